// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/part_writer.h"

#include <errno.h>
#include <sys/socket.h>

void
part_writer_init (PartWriter *self, gint fd)
{
  self->fd = fd;
  self->rest = g_byte_array_new ();
}

void
part_writer_clear (PartWriter *self)
{
  g_clear_pointer (&self->rest, g_byte_array_unref);
}

// Returns how much the socket took.
static gsize
put (PartWriter *self, const guint8 *bytes, gsize len)
{
  gssize n;

  do
    n = send (self->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  return (gsize) MAX (n, 0);
}

gboolean
part_writer_write (PartWriter *self, const guint8 *bytes, gsize len)
{
  gsize n;

  if (self->rest->len > 0) {
    n = put (self, self->rest->data, self->rest->len);
    g_byte_array_remove_range (self->rest, 0, (guint) n);
  }
  if (self->rest->len > 0)
    return FALSE;
  n = put (self, bytes, len);
  if (n == 0 && len > 0)
    return FALSE;
  g_byte_array_append (self->rest, bytes + n, (guint) (len - n));
  return TRUE;
}
