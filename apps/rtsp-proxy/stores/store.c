// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/store.h"

#include <string.h>

static gboolean
is_valid_part (const gchar *part)
{
  for (const gchar *c = part; *c; c++) {
    if ((guchar) *c < 0x20 || *c == 0x7f || *c == '\\')
      return FALSE;
  }
  // A leading dot means ".", ".." or a hidden file.
  return *part && *part != '.' && strlen (part) <= 255;
}

gboolean
store_is_name (const gchar *name)
{
  gboolean valid = *name && strlen (name) <= STORE_NAME_MAX && g_utf8_validate (name, -1, NULL);
  g_auto (GStrv) parts = valid ? g_strsplit (name, "/", -1) : NULL;

  for (gchar **part = parts; part && *part; part++)
    valid &= is_valid_part (*part);
  return valid;
}

void
store_init (Store *self, const StoreKind *kind)
{
  g_atomic_ref_count_init (&self->refs);
  self->kind = kind;
}

Store *
store_ref (Store *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
store_unref (Store *self)
{
  if (g_atomic_ref_count_dec (&self->refs))
    self->kind->free (self);
}

int
store_open (Store *self, const gchar *name, guint64 *size, GError **error)
{
  return self->kind->open (self, name, size, error);
}

StoreBytes *
store_open_bytes (Store *self, const gchar *name, GError **error)
{
  return self->kind->open_bytes (self, name, error);
}

guint
store_get_disks (Store *self, StoreDisk *disks, guint n_max)
{
  return self->kind->get_disks ? self->kind->get_disks (self, disks, n_max) : 0;
}

gboolean
store_get_swarm (Store *self, StoreSwarmTitle *sum, StoreSwarmFunc found, gpointer data)
{
  if (!self->kind->get_swarm)
    return FALSE;
  self->kind->get_swarm (self, sum, found, data);
  return TRUE;
}

gboolean
store_list (Store *self, StoreFoundFunc found, gpointer data)
{
  return self->kind->list (self, found, data);
}

void
store_swarm_add (StoreSwarmTitle *sum, const StoreSwarmTitle *figures)
{
  sum->peer_bytes += figures->peer_bytes;
  sum->origin_bytes += figures->origin_bytes;
  sum->sent_bytes += figures->sent_bytes;
  sum->duplicate_bytes += figures->duplicate_bytes;
  sum->wrong_bytes += figures->wrong_bytes;
  sum->origin_errors += figures->origin_errors;
  sum->late_pieces += figures->late_pieces;
  sum->stalls += figures->stalls;
  sum->stalled_us += figures->stalled_us;
  sum->starts += figures->starts;
  sum->starts_us += figures->starts_us;
}
