// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/broadcast.h"

#include <gio/gio.h>

struct _Broadcast {
  gatomicrefcount refs;
  Store *store;
};

Broadcast *
broadcast_new (G_GNUC_UNUSED const gchar *mount_path, G_GNUC_UNUSED const BroadcastConfig *config,
    Store *store)
{
  Broadcast *self = g_new0 (Broadcast, 1);

  g_atomic_ref_count_init (&self->refs);
  self->store = store_ref (store);
  return self;
}

Broadcast *
broadcast_ref (Broadcast *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
broadcast_unref (Broadcast *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  store_unref (self->store);
  g_free (self);
}

BroadcastAnswer
broadcast_describe (G_GNUC_UNUSED Broadcast *self, const gchar *name,
    G_GNUC_UNUSED const gchar *source_address, G_GNUC_UNUSED gchar **sdp,
    G_GNUC_UNUSED gchar **etag, G_GNUC_UNUSED guint *valid_s, G_GNUC_UNUSED guint *retry_s,
    GError **error)
{
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "%s cannot be broadcast", name);
  return BROADCAST_FAILED;
}

void
broadcast_read (G_GNUC_UNUSED Broadcast *self, const gchar *name, G_GNUC_UNUSED const gchar *ranges,
    G_GNUC_UNUSED gsize length, BroadcastPacketsFunc done, gpointer data)
{
  GError *error = g_error_new (G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "%s is not packetized", name);

  done (NULL, error, data);
  g_error_free (error);
}

void
broadcast_get_stats (G_GNUC_UNUSED Broadcast *self, BroadcastStats *stats)
{
  *stats = (BroadcastStats) { 0 };
}
