// SPDX-License-Identifier: LGPL-2.1-or-later
// Looks on the disk for the titles of a broadcast that clients ask for.

#include <gio/gio.h>

#include "base/clock.h"
#include "base/log.h"
#include "broadcast/broadcast_private.h"

#define LOOK_NS ((gint64) GST_SECOND) // between two looks at a title
#define LOOKS_MAX 256                 // that wait

typedef struct {
  gchar *name;
  BroadcastLookFunc done;
  gpointer data;
} Look;

gboolean
broadcast_needs_look (Broadcast *self, const gchar *name)
{
  const gint64 now = clock_now ();
  BroadcastTitle *title;
  gboolean needs;

  if (g_thread_pool_unprocessed (self->lookers) >= LOOKS_MAX)
    return FALSE;
  g_mutex_lock (&self->lock);
  title = broadcast_find_title (self, name);
  needs = !title || (title->state == TITLE_READY && now - title->looked_ns >= LOOK_NS);
  if (title && needs)
    title->looked_ns = now;
  g_mutex_unlock (&self->lock);
  return needs;
}

// Returns what tells the title from another one of the same name, or NULL with an error.
static gchar *
dup_stamp (Broadcast *self, const gchar *name, GError **error)
{
  StoreBytes *bytes = store_open_bytes (self->store, name, error);
  gchar *stamp = bytes ? g_strdup (bytes->etag) : NULL;

  g_clear_pointer (&bytes, store_bytes_unref);
  return stamp;
}

// Takes a title out of the clients' sight if it is another one than `stamp`. Returns whether it
// was. Call with the lock.
static gboolean
retire (Broadcast *self, BroadcastTitle *title, const gchar *stamp)
{
  if (title->state != TITLE_READY || !title->stamp || g_str_equal (title->stamp, stamp))
    return FALSE;
  g_hash_table_steal (self->titles, title->name);
  broadcast_title_retire (title, clock_now ());
  g_hash_table_insert (self->titles, title->name, title);
  return TRUE;
}

// Compares the title with `stamp` (transfer full), and adds it if it is new or has changed.
static void
note_stamp (Broadcast *self, const gchar *name, gchar *stamp)
{
  BroadcastTitle *title;
  gboolean changed;

  g_mutex_lock (&self->lock);
  title = broadcast_find_title (self, name);
  changed = title && retire (self, title, stamp);
  if (!title || changed)
    title = broadcast_add_title (self, name, NULL); // or broadcast_describe() says why not
  if (title && !title->stamp)
    title->stamp = g_steal_pointer (&stamp);
  g_mutex_unlock (&self->lock);
  g_free (stamp);
  if (changed)
    log_event ("%s/%s: the title has changed; it is packetized anew", self->mount_path, name);
}

// A title whose disk does not answer is still there in its packet file.
static gboolean
is_known (Broadcast *self, const gchar *name)
{
  BroadcastTitle *title;
  gboolean known;

  g_mutex_lock (&self->lock);
  title = broadcast_find_title (self, name);
  known = title && title->state == TITLE_READY;
  g_mutex_unlock (&self->lock);
  return known;
}

static void
look (Broadcast *self, gpointer data)
{
  Look *l = data;
  GError *error = NULL;
  g_autofree gchar *stamp = dup_stamp (self, l->name, &error);

  if (stamp && !g_atomic_int_get (&self->stopped))
    note_stamp (self, l->name, g_steal_pointer (&stamp));
  if (error && !g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND)
      && is_known (self, l->name))
    g_clear_error (&error);
  if (error) {
    g_mutex_lock (&self->lock);
    self->stats.refused_other++;
    g_mutex_unlock (&self->lock);
  }
  if (l->done)
    l->done (error, l->data);
  g_clear_error (&error);
  g_free (l->name);
  g_free (l);
}

void
broadcast_look (Broadcast *self, const gchar *name, BroadcastLookFunc done, gpointer data)
{
  Look *l = g_new (Look, 1);

  *l = (Look) { g_strdup (name), done, data };
  broadcast_push_job (self, self->lookers, look, l);
}
