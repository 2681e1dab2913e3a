// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/bytes.h"

void
store_bytes_init (StoreBytes *self, const StoreBytesKind *kind)
{
  self->refs = 1;
  self->kind = kind;
}

StoreBytes *
store_bytes_ref (StoreBytes *self)
{
  g_atomic_int_inc (&self->refs);
  return self;
}

gboolean
store_bytes_try_ref (StoreBytes *self)
{
  gint n = g_atomic_int_get (&self->refs);

  while (n > 0 && !g_atomic_int_compare_and_exchange (&self->refs, n, n + 1))
    n = g_atomic_int_get (&self->refs);
  return n > 0;
}

void
store_bytes_unref (StoreBytes *self)
{
  if (!g_atomic_int_dec_and_test (&self->refs))
    return;
  g_free (self->etag);
  self->kind->free (self);
}

gboolean
store_bytes_enter (StoreBytes *self, guint64 at, GError **error)
{
  return !self->kind->enter || self->kind->enter (self, at, error);
}

void
store_bytes_leave (StoreBytes *self)
{
  if (self->kind->leave)
    self->kind->leave (self);
}

StoreRegion *
store_bytes_ask (
    StoreBytes *self, guint64 at, gint64 deadline_ns, StoreRegionDone done, gpointer data)
{
  return self->kind->ask (self, at, deadline_ns, done, data);
}

gboolean
store_region_is_ready (StoreRegion *self, GError **error)
{
  return self->kind->is_ready (self, error);
}

void
store_region_get (StoreRegion *self, guint64 at, int *fd, off_t *offset, gsize *length)
{
  self->kind->get (self, at, fd, offset, length);
}

void
store_region_free (StoreRegion *self)
{
  if (self)
    self->kind->free_region (self);
}
