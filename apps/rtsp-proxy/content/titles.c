// SPDX-License-Identifier: LGPL-2.1-or-later
#include "content/titles.h"

#include "base/log.h"
#include "base/threads.h"
#include "content/title_factory.h"
#include "content/title_media.h"

#include <errno.h>
#include <gio/gio.h>
#include <malloc.h>
#include <string.h>

#define TRIM_AFTER_MS 1000

struct _Titles {
  gatomicrefcount refs;
  gchar *mount_path;
  GstRTSPMountPoints *points;

  GMutex lock; // all below
  Store *store;
  guint max;
  guint start_timeout_ms;
  guint n_open; // those that hold a slot
};

// What a PLAY wants.
typedef struct {
  GstRTSPSessionMedia *session;
  GstRTSPTimeRange *range;
  GstSeekFlags flags;
  gdouble rate;
} Play;

struct _Title {
  gatomicrefcount refs;
  Titles *titles;
  GstRTSPThreadPool *threads;
  Store *store;
  gchar *name, *label, *path;
  guint start_timeout_ms;

  GMutex lock; // all below
  TitleState state;
  GError *error;
  GstRTSPMedia *media;
  gboolean held;         // prepared once by us
  gboolean works;        // a thread does something for it: opens it, or
  Play *play;            // this
  GSource *deadline;     // of that, on the main thread
  GstRTSPStatusCode end; // of the last PLAY
  TitleToldFunc told;
  gpointer told_data;
};

static guint last_id; // atomic

// ---- where they are, and how many ----

Titles *
titles_new (const gchar *mount_path, GstRTSPMountPoints *points)
{
  Titles *self = g_new0 (Titles, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->mount_path = g_strdup (mount_path);
  self->points = g_object_ref (points);
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
  g_object_unref (self->points);
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
}

static gint trims; // atomic

static gboolean
trim (gpointer unused)
{
  g_atomic_int_set (&trims, FALSE);
  malloc_trim (0);
  return G_SOURCE_REMOVE;
}

// A title has had a dozen threads, each with an arena of the C library's that keeps what it was
// given for them.
static void
trim_soon (void)
{
  if (g_atomic_int_compare_and_exchange (&trims, FALSE, TRUE))
    g_timeout_add (TRIM_AFTER_MS, trim, NULL);
}

static void
give_back_slot (gpointer data)
{
  Titles *self = data;

  g_mutex_lock (&self->lock);
  self->n_open--;
  g_mutex_unlock (&self->lock);
  trim_soon ();
  titles_unref (self);
}

// The store, to be unreferenced; with a slot, which holds a reference.
static Store *
take_slot (Titles *self, guint *start_timeout_ms, GError **error)
{
  Store *store = NULL;

  g_mutex_lock (&self->lock);
  if (!self->store) {
    g_set_error (
        error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "%s serves no titles now", self->mount_path);
  } else if (self->n_open >= self->max) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY,
        "%s: %u titles are open, and max-titles does not allow more", self->mount_path,
        self->n_open);
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

// Unescapes a name, once; NULL if it is none that a title can have.
static gchar *
decode (const gchar *escaped)
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
  gchar *decoded = self->titles == titles ? decode (name) : NULL;
  gboolean same = decoded
                  && (g_str_equal (decoded, self->name)
                      || g_str_equal (decoded, self->path + strlen (titles->mount_path) + 1));

  g_free (decoded);
  return same;
}

// ---- what may take its time ----

// Each has a thread, so that none waits for another's; max-titles bounds them.
static void work (gpointer title, gpointer unused);

static GThreadPool *
get_workers (void)
{
  static gsize workers;

  if (g_once_init_enter (&workers))
    g_once_init_leave (&workers, (gsize) g_thread_pool_new (work, NULL, -1, FALSE, NULL));
  return (GThreadPool *) workers;
}

// With the lock held, to be called without.
static TitleToldFunc
take_told (Title *self, gpointer *data)
{
  *data = self->told_data;
  return g_steal_pointer (&self->told);
}

// Who works for it soon finds that it has failed.
static void
give_up (Title *self)
{
  GstRTSPMedia *media = NULL;

  g_mutex_lock (&self->lock);
  if (self->works)
    media = self->play ? gst_rtsp_session_media_get_media (self->play->session) : self->media;
  if (media)
    g_object_ref (media);
  g_mutex_unlock (&self->lock);
  if (media)
    title_media_give_up (media);
  g_clear_object (&media);
}

// With the lock held.
static void
fail_late (Title *self)
{
  g_clear_pointer (&self->deadline, g_source_unref);
  if (self->state != TITLE_OPENING)
    return;
  self->state = TITLE_FAILED;
  self->error = g_error_new (G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
      "it can't be played: nothing came of it within %.1f s", self->start_timeout_ms / 1000.0);
}

// Who waits is told, whether or not the thread comes back.
static gboolean
deadline_over (gpointer title)
{
  Title *self = title;
  TitleToldFunc told = NULL;
  gpointer data;
  gboolean late;

  g_mutex_lock (&self->lock);
  late = self->deadline == g_main_current_source (); // it has not come back just now
  if (late) {
    fail_late (self);
    told = take_told (self, &data);
  }
  g_mutex_unlock (&self->lock);
  if (!late)
    return G_SOURCE_REMOVE;
  log_event ("%s: given up: nothing came of it within %.1f s", self->label,
      self->start_timeout_ms / 1000.0);
  give_up (self);
  if (told)
    told (data);
  return G_SOURCE_REMOVE;
}

// With the lock held, or before anybody else knows it.
static void
begin_work (Title *self)
{
  self->works = TRUE;
  self->deadline = g_timeout_source_new (self->start_timeout_ms);
  g_source_set_callback (self->deadline, deadline_over, title_ref (self),
      (GDestroyNotify) (void (*) (void)) title_unref);
  g_source_attach (self->deadline, NULL);
  g_thread_pool_push (get_workers (), title_ref (self), NULL);
}

static void
end_work (Title *self)
{
  TitleToldFunc told;
  GSource *deadline;
  Play *play;
  gpointer data;

  g_mutex_lock (&self->lock);
  self->works = FALSE;
  play = g_steal_pointer (&self->play);
  deadline = g_steal_pointer (&self->deadline);
  told = take_told (self, &data);
  g_mutex_unlock (&self->lock);
  if (play) {
    g_object_unref (play->session);
    g_clear_pointer (&play->range, gst_rtsp_range_free);
    g_free (play);
  }
  if (deadline) {
    g_source_destroy (deadline);
    g_source_unref (deadline);
  }
  if (told)
    told (data);
}

static GstRTSPMedia *
open_media (Title *self, GError **error)
{
  int fd = store_open (self->store, self->name, NULL);
  GstRTSPThread *thread;
  GstRTSPMedia *media;

  if (fd < 0) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "%s", g_strerror (errno));
    return NULL;
  }
  media = title_media_new (fd, self->label);
  g_mutex_lock (&self->lock);
  self->media = g_object_ref (media);
  g_mutex_unlock (&self->lock);
  thread = gst_rtsp_thread_pool_get_thread (self->threads, GST_RTSP_THREAD_TYPE_MEDIA, NULL);
  if (title_media_prepare (media, thread, error))
    return media;
  g_object_unref (media);
  return NULL;
}

static void
publish (Title *self, GstRTSPMedia *media)
{
  // Its slot is free when nobody plays it any more.
  g_object_set_data_full (G_OBJECT (media), "slot", self->titles, give_back_slot);
  gst_rtsp_mount_points_add_factory (self->titles->points, self->path, title_factory_new (media));
}

static void
open_title (Title *self)
{
  GError *error = NULL;
  GstRTSPMedia *media = open_media (self, &error), *failed = NULL;

  if (media)
    publish (self, media);
  else
    give_back_slot (self->titles);
  g_mutex_lock (&self->lock);
  self->held = media != NULL;
  if (!media)
    failed = g_steal_pointer (&self->media);
  if (self->state == TITLE_OPENING) { // else it is too late
    self->state = media ? TITLE_READY : TITLE_FAILED;
    self->error = g_steal_pointer (&error);
  }
  g_mutex_unlock (&self->lock);
  g_clear_object (&media);
  g_clear_object (&failed);
  g_clear_error (&error);
}

static void
play_title (Title *self, Play *play)
{
  GstRTSPStatusCode end = title_media_play (play->session, play->range, play->flags, play->rate);

  g_mutex_lock (&self->lock);
  self->end = end;
  g_mutex_unlock (&self->lock);
}

static void
work (gpointer title, gpointer unused)
{
  Title *self = title;

  thread_set_name ("title-worker");
  if (self->play)
    play_title (self, self->play);
  else
    open_title (self);
  end_work (self);
  title_unref (self);
  thread_set_name (THREAD_IDLE);
}

Title *
titles_open (Titles *self, const gchar *escaped, GstRTSPThreadPool *threads, GError **error)
{
  gchar *name = decode (escaped);
  guint start_timeout_ms;
  Store *store;
  Title *title;

  if (!name) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
        "%s: what was asked for is not the name of a title", self->mount_path);
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
  title->threads = g_object_ref (threads);
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
title_play (Title *self, GstRTSPSessionMedia *session, GstRTSPTimeRange *range, GstSeekFlags flags,
    gdouble rate)
{
  gboolean idle;
  Play *play;

  g_mutex_lock (&self->lock);
  idle = !self->works;
  if (idle) {
    play = g_new (Play, 1);
    *play = (Play) { g_object_ref (session), range, flags, rate };
    self->play = play;
    self->end = GST_RTSP_STS_SERVICE_UNAVAILABLE;
    begin_work (self);
  }
  g_mutex_unlock (&self->lock);
  if (!idle && range)
    gst_rtsp_range_free (range);
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

GstRTSPStatusCode
title_get_play_status (Title *self)
{
  GstRTSPStatusCode end;

  g_mutex_lock (&self->lock);
  end = self->works ? GST_RTSP_STS_SERVICE_UNAVAILABLE : self->end;
  g_mutex_unlock (&self->lock);
  return end;
}

void
title_wait (Title *self, TitleToldFunc told, gpointer data)
{
  gboolean waits;

  g_mutex_lock (&self->lock);
  waits = self->deadline != NULL;
  if (waits) {
    self->told = told;
    self->told_data = data;
  }
  g_mutex_unlock (&self->lock);
  if (!waits)
    told (data);
}

void
title_hand_over (Title *self)
{
  GstRTSPMedia *media = NULL;

  g_mutex_lock (&self->lock);
  if (self->held)
    media = self->media;
  self->held = FALSE;
  g_mutex_unlock (&self->lock);
  if (media)
    gst_rtsp_media_unprepare (media);
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

// ---- life ----

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
    gst_rtsp_mount_points_remove_factory (self->titles->points, self->path);
    title_hand_over (self);
    g_object_unref (self->media);
  }
  titles_unref (self->titles);
  g_object_unref (self->threads);
  g_clear_error (&self->error);
  g_mutex_clear (&self->lock);
  store_unref (self->store);
  g_free (self->name);
  g_free (self->label);
  g_free (self->path);
  g_free (self);
}
