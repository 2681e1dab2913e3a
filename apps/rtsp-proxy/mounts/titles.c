// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mounts/titles.h"

#include "base/files_left.h"
#include "base/log.h"
#include "base/threads.h"
#include "title/title_open.h"

#include <errno.h>
#include <gio/gio.h>
#include <malloc.h>
#include <string.h>

#define TRIM_AFTER_MS 1000 // after a title was closed

struct _Titles {
  gatomicrefcount refs;
  gchar *mount_path;
  const TitleOutlet *outlet;
  GObject *data; // the outlet's

  GMutex lock; // protects the fields below
  Store *store;
  guint max;
  guint start_timeout_ms;
  guint n_open; // slots in use; a title has one while it is being opened, and its media as long as
                // it exists
};

// Work that title_run() has started.
typedef struct {
  GObject *media; // give_up() is called for it after the time limit
  TitleRunFunc run;
  gpointer data;
  GDestroyNotify free_data;
} Job;

struct _Title {
  gatomicrefcount refs;
  Titles *titles;
  Store *store;
  gchar *name, *label, *path;
  guint start_timeout_ms;

  GMutex lock; // protects the fields below
  TitleState state;
  GError *error; // why it could not be opened
  GObject *media;
  gboolean held;     // the hold that open() took is not released yet
  gboolean works;    // a worker thread opens the title, or runs the job
  Job *job;          // NULL while the title is being opened
  GSource *deadline; // of that work, on the main thread; NULL once it has passed
  gint result;       // of the last job
  TitleDoneFunc done;
  gpointer done_data;
};

static guint last_id; // atomic

// ---- the store and the slots ----

Titles *
titles_new (const gchar *mount_path, const TitleOutlet *outlet, GObject *data)
{
  Titles *self = g_new0 (Titles, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->mount_path = g_strdup (mount_path);
  self->outlet = outlet;
  self->data = g_object_ref (data);
  return self;
}

Titles *
titles_ref (Titles *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
titles_unref (Titles *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_object_unref (self->data);
  g_mutex_clear (&self->lock);
  g_clear_pointer (&self->store, store_unref);
  g_free (self->mount_path);
  g_free (self);
}

void
titles_configure (Titles *self, Store *store, guint max, guint start_timeout_ms)
{
  Store *before;

  g_mutex_lock (&self->lock);
  before = self->store;
  self->store = store;
  self->max = max;
  self->start_timeout_ms = start_timeout_ms;
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&before, store_unref);
  if (store)
    title_open_prepare ();
}

Store *
titles_dup_store (Titles *self)
{
  Store *store;

  g_mutex_lock (&self->lock);
  store = self->store ? store_ref (self->store) : NULL;
  g_mutex_unlock (&self->lock);
  return store;
}

static gint trims; // atomic

static gboolean
trim (gpointer unused)
{
  g_atomic_int_set (&trims, FALSE);
  malloc_trim (0);
  return G_SOURCE_REMOVE;
}

// A title uses some threads. The C library gives each thread an arena, and keeps the freed
// memory of arenas until it is trimmed.
static void
trim_soon (void)
{
  if (g_atomic_int_compare_and_exchange (&trims, FALSE, TRUE))
    g_timeout_add (TRIM_AFTER_MS, trim, NULL);
}

static void
release_slot (gpointer data)
{
  Titles *self = data;

  g_mutex_lock (&self->lock);
  self->n_open--;
  g_mutex_unlock (&self->lock);
  trim_soon ();
  titles_unref (self);
}

// Takes a slot, which holds a reference to `self`, and a promise of files, and returns a reference
// to the store; or NULL and an error.
static Store *
take_slot (Titles *self, guint *start_timeout_ms, GError **error)
{
  Store *store = NULL;

  g_mutex_lock (&self->lock);
  if (!self->store) {
    g_set_error (
        error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "%s serves no titles now", self->mount_path);
  } else if (self->n_open >= self->max) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "%s: max-titles: %u titles are open already",
        self->mount_path, self->n_open);
  } else if (!files_promise (FILES_FOR_TITLE)) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "%s: %s", self->mount_path, FILES_PROBLEM);
  } else {
    store = store_ref (self->store);
    *start_timeout_ms = self->start_timeout_ms;
    self->n_open++;
    titles_ref (self);
  }
  g_mutex_unlock (&self->lock);
  return store;
}

// ---- names ----

gchar *
title_decode_name (const gchar *escaped)
{
  gchar *name =
      strlen (escaped) <= 3 * STORE_NAME_MAX ? g_uri_unescape_string (escaped, "/") : NULL;

  if (name && store_is_name (name))
    return name;
  g_free (name);
  return NULL;
}

gboolean
title_is (Title *self, Titles *titles, const gchar *name)
{
  g_autofree gchar *decoded = self->titles == titles ? title_decode_name (name) : NULL;

  return decoded
         && (g_str_equal (decoded, self->name)
             || g_str_equal (decoded, self->path + strlen (titles->mount_path) + 1));
}

// ---- work that may block ----

// There are as many threads as there are titles at work, so no title waits for another; max-titles
// limits their number.
static void work (gpointer title);

// Returns the function to call once the lock is released, or NULL. Call with the lock held.
static TitleDoneFunc
take_done (Title *self, gpointer *data)
{
  *data = self->done_data;
  return g_steal_pointer (&self->done);
}

static void
give_up (Title *self)
{
  GObject *media = NULL;

  g_mutex_lock (&self->lock);
  if (self->works)
    media = self->job ? self->job->media : self->media;
  if (media)
    g_object_ref (media);
  g_mutex_unlock (&self->lock);
  if (media)
    self->titles->outlet->give_up (media);
  g_clear_object (&media);
}

// Call with the lock held.
static void
fail_late (Title *self)
{
  g_clear_pointer (&self->deadline, g_source_unref);
  if (self->state != TITLE_OPENING)
    return;
  self->state = TITLE_FAILED;
  self->error = g_error_new (G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
      "cannot be played: opening took longer than %.1f s", self->start_timeout_ms / 1000.0);
}

// Ends the wait for work that takes too long, even if the worker thread never returns.
static gboolean
on_deadline (gpointer title)
{
  Title *self = title;
  TitleDoneFunc done = NULL;
  gpointer data;
  gboolean late;

  g_mutex_lock (&self->lock);
  late = self->deadline == g_main_current_source (); // else the work has just ended
  if (late) {
    fail_late (self);
    done = take_done (self, &data);
  }
  g_mutex_unlock (&self->lock);
  if (!late)
    return G_SOURCE_REMOVE;
  log_event ("%s: opening or seeking took longer than %.1f s", self->label,
      self->start_timeout_ms / 1000.0);
  give_up (self);
  if (done)
    done (data);
  return G_SOURCE_REMOVE;
}

// Call with the lock held, or before any other thread knows the title.
static void
begin_work (Title *self)
{
  self->works = TRUE;
  self->deadline = g_timeout_source_new (self->start_timeout_ms);
  g_source_set_callback (self->deadline, on_deadline, title_ref (self),
      (GDestroyNotify) (void (*) (void)) title_unref);
  g_source_attach (self->deadline, NULL);
  thread_run ("title-worker", work, title_ref (self));
}

static void
end_work (Title *self)
{
  TitleDoneFunc done;
  GSource *deadline;
  gpointer data;
  Job *job;

  g_mutex_lock (&self->lock);
  self->works = FALSE;
  job = g_steal_pointer (&self->job);
  deadline = g_steal_pointer (&self->deadline);
  done = take_done (self, &data);
  g_mutex_unlock (&self->lock);
  if (job) {
    job->free_data (job->data);
    g_object_unref (job->media);
    g_free (job);
  }
  if (deadline) {
    g_source_destroy (deadline);
    g_source_unref (deadline);
  }
  if (done)
    done (data);
}

// Reports whether clients learn why a title cannot be opened: there are too many, or the store or
// its origin does not work.
static gboolean
is_told (gint code)
{
  return code == G_IO_ERROR_NO_SPACE || code == G_IO_ERROR_PROXY_FAILED
         || code == G_IO_ERROR_TIMED_OUT || code == G_IO_ERROR_INVALID_DATA;
}

static GObject *
open_media (Title *self, GError **error)
{
  const TitleOutlet *outlet = self->titles->outlet;
  GError *why = NULL;
  int fd = store_open (self->store, self->name, NULL, &why);
  GObject *media;

  if (fd < 0) {
    if (!is_told (why->code))
      why->code = G_IO_ERROR_NOT_FOUND;
    g_propagate_error (error, why);
    return NULL;
  }
  media = outlet->make (fd, self->label);
  g_mutex_lock (&self->lock);
  self->media = g_object_ref (media);
  g_mutex_unlock (&self->lock);
  if (outlet->open (media, error))
    return media;
  g_object_unref (media);
  return NULL;
}

static void
end_promise (gpointer use)
{
  files_end_promise (GPOINTER_TO_INT (use));
}

void
titles_note_playing (GObject *media)
{
  g_object_set_data (media, "files", NULL);
}

static void
publish (Title *self, GObject *media)
{
  Titles *titles = self->titles;

  // A reader may use the media for longer than the title exists.
  g_object_set_data_full (media, "slot", titles, release_slot);
  files_change_promise (FILES_FOR_TITLE, FILES_FOR_PLAYING);
  g_object_set_data_full (media, "files", GINT_TO_POINTER (FILES_FOR_PLAYING), end_promise);
  titles->outlet->publish (media, self->path, titles->data);
}

static void
open_title (Title *self)
{
  g_autoptr (GError) error = NULL;
  GObject *media = open_media (self, &error), *failed = NULL;

  if (media) {
    publish (self, media);
  } else {
    files_end_promise (FILES_FOR_TITLE);
    release_slot (self->titles);
  }
  g_mutex_lock (&self->lock);
  self->held = media != NULL;
  if (!media)
    failed = g_steal_pointer (&self->media);
  if (self->state == TITLE_OPENING) { // else the time limit is over
    self->state = media ? TITLE_READY : TITLE_FAILED;
    self->error = g_steal_pointer (&error);
  }
  g_mutex_unlock (&self->lock);
  g_clear_object (&media);
  g_clear_object (&failed);
}

static void
run_job (Title *self, const Job *job)
{
  gint result = job->run (job->data);

  g_mutex_lock (&self->lock);
  self->result = result;
  g_mutex_unlock (&self->lock);
}

static void
work (gpointer title)
{
  Title *self = title;

  if (self->job)
    run_job (self, self->job);
  else
    open_title (self);
  end_work (self);
  title_unref (self);
}

Title *
titles_open (Titles *self, const gchar *escaped, GError **error)
{
  gchar *name = title_decode_name (escaped);
  guint start_timeout_ms;
  Store *store;
  Title *title;

  if (!name) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "%s: the URL does not name a title",
        self->mount_path);
    return NULL;
  }
  store = take_slot (self, &start_timeout_ms, error);
  if (!store) {
    g_free (name);
    return NULL;
  }
  title = g_new0 (Title, 1);
  g_atomic_ref_count_init (&title->refs);
  g_mutex_init (&title->lock);
  title->titles = titles_ref (self);
  title->store = store;
  title->name = name;
  title->label = g_strconcat (self->mount_path, "/", name, NULL);
  title->path = g_strdup_printf (
      "%s/=title%u", self->mount_path, __atomic_add_fetch (&last_id, 1, __ATOMIC_RELAXED));
  title->start_timeout_ms = start_timeout_ms;
  begin_work (title);
  return title;
}

TitleState
title_ask (Title *self, GError **error)
{
  TitleState state;

  g_mutex_lock (&self->lock);
  state = self->state;
  if (self->error && error)
    *error = g_error_copy (self->error);
  g_mutex_unlock (&self->lock);
  return state;
}

gboolean
title_run (Title *self, GObject *media, TitleRunFunc run, gpointer data, GDestroyNotify free_data)
{
  gboolean idle;

  g_mutex_lock (&self->lock);
  idle = !self->works;
  if (idle) {
    self->job = g_new (Job, 1);
    *self->job = (Job) { g_object_ref (media), run, data, free_data };
    begin_work (self);
  }
  g_mutex_unlock (&self->lock);
  if (!idle)
    free_data (data);
  return idle;
}

gboolean
title_get_result (Title *self, gint *result)
{
  gboolean idle;

  g_mutex_lock (&self->lock);
  idle = !self->works;
  *result = self->result;
  g_mutex_unlock (&self->lock);
  return idle;
}

gboolean
title_works (Title *self)
{
  gboolean works;

  g_mutex_lock (&self->lock);
  works = self->works;
  g_mutex_unlock (&self->lock);
  return works;
}

void
title_wait (Title *self, TitleDoneFunc done, gpointer data)
{
  gboolean waits;

  g_mutex_lock (&self->lock);
  waits = self->deadline != NULL;
  if (waits) {
    self->done = done;
    self->done_data = data;
  }
  g_mutex_unlock (&self->lock);
  if (!waits)
    done (data);
}

void
title_hand_over (Title *self)
{
  GObject *media = NULL;

  g_mutex_lock (&self->lock);
  if (self->held)
    media = self->media;
  self->held = FALSE;
  g_mutex_unlock (&self->lock);
  if (media)
    self->titles->outlet->release (media);
}

const gchar *
title_get_path (Title *self)
{
  return self->path;
}

const gchar *
title_get_mount_path (Title *self)
{
  return self->titles->mount_path;
}

const gchar *
title_get_label (Title *self)
{
  return self->label;
}

// ---- construction ----

Title *
title_ref (Title *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
title_leave (Title *self)
{
  give_up (self);
  title_unref (self);
}

void
title_unref (Title *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  if (self->media) {
    self->titles->outlet->withdraw (self->path, self->titles->data);
    title_hand_over (self);
    g_object_unref (self->media);
  }
  titles_unref (self->titles);
  g_clear_error (&self->error);
  g_mutex_clear (&self->lock);
  store_unref (self->store);
  g_free (self->name);
  g_free (self->label);
  g_free (self->path);
  g_free (self);
}
