// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tls/tls_pending.h"

struct _TlsPending {
  guint most, most_of_key;
  TlsPendingFunc is_silent;
  GQueue all;         // of Place, the oldest first
  GHashTable *counts; // key -> number of its handshakes
};

typedef struct {
  gchar *key;
  gpointer handshake;
} Place;

TlsPending *
tls_pending_new (guint most, guint most_of_key, TlsPendingFunc is_silent)
{
  TlsPending *self = g_new0 (TlsPending, 1);

  self->most = most;
  self->most_of_key = most_of_key;
  self->is_silent = is_silent;
  self->counts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return self;
}

static void
place_free (gpointer data)
{
  Place *place = data;

  g_free (place->key);
  g_free (place);
}

void
tls_pending_free (TlsPending *self)
{
  g_queue_clear_full (&self->all, place_free);
  g_hash_table_unref (self->counts);
  g_free (self);
}

static guint
count (TlsPending *self, const gchar *key)
{
  return GPOINTER_TO_UINT (g_hash_table_lookup (self->counts, key));
}

static gpointer
take (TlsPending *self, GList *link)
{
  Place *place = link->data;
  gpointer handshake = place->handshake;
  guint n = count (self, place->key);

  if (n > 1)
    g_hash_table_insert (self->counts, g_strdup (place->key), GUINT_TO_POINTER (n - 1));
  else
    g_hash_table_remove (self->counts, place->key);
  g_queue_delete_link (&self->all, link);
  place_free (place);
  return handshake;
}

// Returns the oldest handshake of the client with this key, or of all if it is NULL; with `silent`,
// the oldest whose client has sent nothing. Returns NULL if there is none.
static GList *
find_oldest (TlsPending *self, const gchar *key, gboolean silent)
{
  for (GList *l = self->all.head; l; l = l->next) {
    const Place *place = l->data;

    if ((!key || g_str_equal (place->key, key)) && (!silent || self->is_silent (place->handshake)))
      return l;
  }
  return NULL;
}

// Returns the oldest handshake of the client that has the most, or NULL if a client with `n` has as
// many when its next one has been added.
static GList *
find_of_largest (TlsPending *self, guint n)
{
  gpointer key, value;
  const gchar *largest = NULL;
  guint most = n + 1;
  GHashTableIter iter;

  g_hash_table_iter_init (&iter, self->counts);
  while (g_hash_table_iter_next (&iter, &key, &value)) {
    if (GPOINTER_TO_UINT (value) <= most)
      continue;
    largest = key;
    most = GPOINTER_TO_UINT (value);
  }
  return largest ? find_oldest (self, largest, FALSE) : NULL;
}

gboolean
tls_pending_add (TlsPending *self, const gchar *key, gpointer handshake, gpointer *removed)
{
  guint n = count (self, key);
  GList *other = NULL;
  Place *place;

  *removed = NULL;
  if (n >= self->most_of_key)
    other = find_oldest (self, key, TRUE);
  else if (self->all.length >= self->most) {
    other = find_oldest (self, NULL, TRUE);
    if (!other)
      other = find_of_largest (self, n);
  }
  if (!other && (n >= self->most_of_key || self->all.length >= self->most))
    return FALSE;
  if (other)
    *removed = take (self, other);
  place = g_new (Place, 1);
  *place = (Place) { g_strdup (key), handshake };
  g_queue_push_tail (&self->all, place);
  g_hash_table_insert (self->counts, g_strdup (key), GUINT_TO_POINTER (count (self, key) + 1));
  return TRUE;
}

gboolean
tls_pending_remove (TlsPending *self, gpointer handshake)
{
  for (GList *l = self->all.head; l; l = l->next) {
    if (((Place *) l->data)->handshake == handshake) {
      take (self, l);
      return TRUE;
    }
  }
  return FALSE;
}
