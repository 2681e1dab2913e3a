// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the reader of messages from worker processes. The first byte of the input is the number of
// tracks that the worker has told; the other bytes are a message.

#include "app.h"
#include "isolate/wire.h"
#include "relay/relay.h"

static struct {
  const uint8_t *data;
  size_t size;
  guint n_tracks;
} message;

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  init_gst ();
  only_critical ();
  return 0;
}

static void
on_tracks (gpointer owner, GPtrArray *caps)
{
  require (caps->len >= 1 && caps->len <= RELAY_MAX_TRACKS);
  for (guint i = 0; i < caps->len; i++)
    require (gst_caps_is_fixed (g_ptr_array_index (caps, i)));
}

static void
on_packet (gpointer owner, guint track, const WirePacket *packet)
{
  require (track < message.n_tracks);
  require (
      packet->data >= message.data && packet->data + packet->len <= message.data + message.size);
}

static void
on_mapped (gpointer owner, guint track, const WeirNtpMap *map)
{
  require (track < message.n_tracks);
}

static void
on_overflowed (gpointer owner, guint32 n)
{
}

static void
on_ended (gpointer owner, const gchar *reason)
{
  require (g_utf8_validate (reason, -1, NULL) && !strpbrk (reason, "\r\n"));
}

static void
on_track (gpointer owner, guint track, GstCaps *caps)
{
  require (track < message.n_tracks && gst_caps_is_fixed (caps));
}

static void
on_index (gpointer owner, guint track)
{
  require (track < message.n_tracks);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static const WireHandler handler = { on_tracks, on_packet, on_mapped, on_overflowed, on_ended,
    on_track, on_index, on_index, on_ended };

  if (size < 1 || size > WIRE_MAX)
    return 0;
  message.data = data + 1;
  message.size = size - 1;
  message.n_tracks = data[0] % (RELAY_MAX_TRACKS + 1);
  wire_read (message.data, message.size, message.n_tracks, &handler, NULL);
  return 0;
}
