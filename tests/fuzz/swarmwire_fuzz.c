// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of messages between the proxy and the worker process that has libtorrent. The
// input consists of messages, each after two bytes of length; the upper bit of the length says
// whether the message is a job.

#include "app.h"
#include "stores/swarm_wire.h"

static void
read_job (const uint8_t *data, size_t len)
{
  guint64 rate;
  guint timeout_s;
  SwarmReaderTitle *title = swarm_wire_read_job (data, len, &rate, &timeout_s);

  if (!title)
    return;
  require (title->torrent_name && title->label && (!title->file || *title->file));
  for (const gchar *const *p = title->properties; *p; p += 2)
    require (p[1]);
  swarm_wire_free_title (title);
}

static void
read_message (const uint8_t *data, size_t len)
{
  SwarmWireMessage message;

  if (!swarm_wire_read (data, len, &message))
    return;
  require (
      message.type != SWARM_WIRE_BYTES || (message.bytes == data + 1 && message.length == len - 1));
  require ((message.type == SWARM_WIRE_FAILED) == (message.error != NULL));
  g_clear_error (&message.error);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  while (size >= 2) {
    size_t len = (size_t) (data[0] & 0x7f) << 8 | data[1];
    gboolean job = data[0] >> 7;

    data += 2;
    size -= 2;
    len = len < size ? len : size;
    if (job)
      read_job (data, len);
    else
      read_message (data, len);
    data += len;
    size -= len;
  }
  return 0;
}
