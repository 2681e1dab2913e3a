// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_opening.h"

#include <gio/gio.h>

#include "base/files_left.h"
#include "base/threads.h"

#define OPENERS 2            // threads of a store
#define WAIT_MAX_US 10000000 // for a thread, after which a title is not opened

struct _HttpOpening {
  gatomicrefcount refs;
  Store *store;
  gchar *name;
  gint64 asked_us;
  GMutex lock; // protects the fields below; held while `done` runs
  gboolean ended;
  StoreBytes *bytes;
  GError *error;
  void (*done) (gpointer data); // NULL once it has run, or the opening was freed
  gpointer data;
};

static void
unref (HttpOpening *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_pointer (&self->bytes, store_bytes_unref);
  g_clear_error (&self->error);
  store_unref (self->store);
  g_free (self->name);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static gboolean
is_wanted (HttpOpening *self)
{
  gboolean wanted;

  g_mutex_lock (&self->lock);
  wanted = self->done != NULL;
  g_mutex_unlock (&self->lock);
  return wanted;
}

static void
open_title (HttpOpening *self)
{
  StoreBytes *bytes = NULL;
  GError *error = NULL;

  if (!is_wanted (self))
    return;
  if (g_get_monotonic_time () - self->asked_us > WAIT_MAX_US)
    g_set_error_literal (&error, G_IO_ERROR, G_IO_ERROR_BUSY,
        "titles of this store take too long to open, so that others wait for them");
  else if (!files_are_left (FILES_FOR_BYTES))
    g_set_error_literal (&error, G_IO_ERROR, G_IO_ERROR_BUSY, FILES_PROBLEM);
  else
    bytes = store_open_bytes (self->store, self->name, &error);
  g_mutex_lock (&self->lock);
  self->ended = TRUE;
  self->bytes = bytes;
  self->error = error;
  if (self->done)
    self->done (self->data);
  self->done = NULL;
  g_mutex_unlock (&self->lock);
}

// ---- the threads of the stores ----

// A store whose titles are opened. An origin that does not answer delays its own titles only.
typedef struct {
  guint n_working;
  GQueue waiting; // of HttpOpening
} Line;

static GMutex lines_lock;
static GHashTable *lines; // Store: Line, of stores at work; with `lines_lock` held

// Returns the opening that the store's thread does next, or NULL: then the thread ends.
static HttpOpening *
take_next (Store *store)
{
  HttpOpening *next;
  Line *line;

  g_mutex_lock (&lines_lock);
  line = g_hash_table_lookup (lines, store);
  next = g_queue_pop_head (&line->waiting);
  if (!next && --line->n_working == 0)
    g_hash_table_remove (lines, store);
  g_mutex_unlock (&lines_lock);
  return next;
}

static void
work (gpointer opening)
{
  HttpOpening *self = opening;

  while (self) {
    HttpOpening *next;

    open_title (self);
    next = take_next (self->store);
    unref (self);
    self = next;
  }
}

// Gives the opening to a thread of its store. Takes ownership of a reference.
static void
begin_opening (HttpOpening *self)
{
  gboolean starts;
  Line *line;

  g_mutex_lock (&lines_lock);
  if (!lines)
    lines = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  line = g_hash_table_lookup (lines, self->store);
  if (!line) {
    line = g_new0 (Line, 1);
    g_hash_table_insert (lines, self->store, line);
  }
  starts = line->n_working < OPENERS;
  if (starts)
    line->n_working++;
  else
    g_queue_push_tail (&line->waiting, self);
  g_mutex_unlock (&lines_lock);
  if (starts)
    thread_run ("http-open", work, self);
}

// Returns whether the opening waited for a thread; then it does no more.
static gboolean
take_out (HttpOpening *self)
{
  gboolean waited;
  Line *line;

  g_mutex_lock (&lines_lock);
  line = g_hash_table_lookup (lines, self->store);
  waited = line && g_queue_remove (&line->waiting, self);
  g_mutex_unlock (&lines_lock);
  return waited;
}

HttpOpening *
http_opening_new (Store *store, gchar *name, void (*done) (gpointer data), gpointer data)
{
  HttpOpening *self = g_new0 (HttpOpening, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->store = store;
  self->name = name;
  self->asked_us = g_get_monotonic_time ();
  self->done = done;
  self->data = data;
  g_atomic_ref_count_inc (&self->refs);
  begin_opening (self);
  return self;
}

gboolean
http_opening_take (HttpOpening *self, StoreBytes **bytes, GError **error)
{
  gboolean ended;

  g_mutex_lock (&self->lock);
  ended = self->ended;
  *bytes = g_steal_pointer (&self->bytes);
  if (self->error)
    g_propagate_error (error, g_steal_pointer (&self->error));
  g_mutex_unlock (&self->lock);
  return ended;
}

void
http_opening_free (HttpOpening *self)
{
  if (!self)
    return;
  g_mutex_lock (&self->lock);
  self->done = NULL;
  g_mutex_unlock (&self->lock);
  // While a store hangs, clients come and go.
  if (take_out (self))
    unref (self);
  unref (self);
}
