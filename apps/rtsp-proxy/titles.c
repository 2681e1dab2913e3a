// SPDX-License-Identifier: LGPL-2.1-or-later
#include "titles.h"

#include "beneath.h"
#include "title_media.h"

#include <errno.h>
#include <gio/gio.h>
#include <string.h>

#define NAME_MAX_BYTES 1024
#define OPENERS_MAX 16

struct _Titles {
  gatomicrefcount refs;
  gchar *mount_path;
  GstRTSPMountPoints *points;

  GMutex lock; // all below
  gchar *folder;
  guint max;
  guint n_open; // those that hold a slot
};

struct _Title {
  gatomicrefcount refs;
  Titles *titles;
  GstRTSPThreadPool *threads;
  gchar *folder, *name, *label, *path;

  GMutex lock; // all below
  TitleState state;
  GError *error;
  GstRTSPMedia *media;
  gboolean held; // prepared once by us
  TitleToldFunc told;
  gpointer told_data;
};

static guint last_id; // atomic

// ---- what the library constructs ----

typedef struct {
  GstRTSPMediaFactory parent;
  GstRTSPMedia *media;
} TitleFactory;

typedef struct {
  GstRTSPMediaFactoryClass parent_class;
} TitleFactoryClass;

GType title_factory_get_type (void);
G_DEFINE_TYPE (TitleFactory, title_factory, GST_TYPE_RTSP_MEDIA_FACTORY)

static GstRTSPMedia *
title_factory_construct (GstRTSPMediaFactory *factory, const GstRTSPUrl *url)
{
  return g_object_ref (((TitleFactory *) factory)->media);
}

static void
title_factory_finalize (GObject *object)
{
  g_object_unref (((TitleFactory *) object)->media);
  G_OBJECT_CLASS (title_factory_parent_class)->finalize (object);
}

static void
title_factory_init (TitleFactory *self)
{
}

static void
title_factory_class_init (TitleFactoryClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = title_factory_finalize;
  GST_RTSP_MEDIA_FACTORY_CLASS (klass)->construct = title_factory_construct;
}

static GstRTSPMediaFactory *
title_factory_new (GstRTSPMedia *media)
{
  TitleFactory *self = g_object_new (title_factory_get_type (), NULL);
  GstRTSPMediaFactory *factory = GST_RTSP_MEDIA_FACTORY (self);

  self->media = g_object_ref (media);
  gst_rtsp_media_factory_set_publish_clock_mode (factory, GST_RTSP_PUBLISH_CLOCK_MODE_NONE);
  // Multicast would let any reader choose a group and a TTL.
  gst_rtsp_media_factory_set_protocols (
      factory, GST_RTSP_LOWER_TRANS_UDP | GST_RTSP_LOWER_TRANS_TCP);
  return factory;
}

// ---- the folder ----

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
  g_free (self->folder);
  g_free (self->mount_path);
  g_free (self);
}

void
titles_configure (Titles *self, const gchar *folder, guint max)
{
  g_mutex_lock (&self->lock);
  g_free (self->folder);
  self->folder = g_strdup (folder);
  self->max = max;
  g_mutex_unlock (&self->lock);
}

static void
give_back_slot (gpointer data)
{
  Titles *self = data;

  g_mutex_lock (&self->lock);
  self->n_open--;
  g_mutex_unlock (&self->lock);
  titles_unref (self);
}

// The folder, to be freed; with a slot, which holds a reference.
static gchar *
take_slot (Titles *self, GError **error)
{
  gchar *folder = NULL;

  g_mutex_lock (&self->lock);
  if (!self->folder) {
    g_set_error (
        error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "%s serves no titles now", self->mount_path);
  } else if (self->n_open >= self->max) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY,
        "%s: %u titles are open, and max-titles does not allow more", self->mount_path,
        self->n_open);
  } else {
    folder = g_strdup (self->folder);
    self->n_open++;
    titles_ref (self);
  }
  g_mutex_unlock (&self->lock);
  return folder;
}

// ---- names ----

static gboolean
is_sound_part (const gchar *part)
{
  for (const gchar *c = part; *c; c++) {
    if ((guchar) *c < 0x20 || *c == 0x7f || *c == '\\')
      return FALSE;
  }
  // Also "." and "..", and what an operator did not mean to be seen.
  return *part && *part != '.' && strlen (part) <= 255;
}

// Unescapes a name, once; NULL if it is none that a title can have. What the kernel is asked later
// does not depend on it: this only keeps nonsense out of the log and away from the file system.
static gchar *
decode (const gchar *escaped)
{
  gchar *name =
      strlen (escaped) <= 3 * NAME_MAX_BYTES ? g_uri_unescape_string (escaped, "/") : NULL;
  gboolean sound = name && strlen (name) <= NAME_MAX_BYTES && g_utf8_validate (name, -1, NULL);
  gchar **parts = sound ? g_strsplit (name, "/", -1) : NULL;

  for (gchar **part = parts; part && *part; part++)
    sound &= is_sound_part (*part);
  g_strfreev (parts);
  if (sound && *name)
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

// ---- opening ----

static GstRTSPMedia *
open_media (Title *self, GError **error)
{
  int fd = beneath_open (self->folder, self->name);
  GstRTSPThread *thread;
  GstRTSPMedia *media;

  if (fd < 0) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "%s", g_strerror (errno));
    return NULL;
  }
  media = title_media_new (fd, self->label);
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
open_title (gpointer data, gpointer unused)
{
  Title *self = data;
  GError *error = NULL;
  GstRTSPMedia *media = open_media (self, &error);
  TitleToldFunc told;

  if (media)
    publish (self, media);
  else
    give_back_slot (self->titles);
  g_mutex_lock (&self->lock);
  self->state = media ? TITLE_READY : TITLE_FAILED;
  self->error = error;
  self->media = media;
  self->held = media != NULL;
  told = g_steal_pointer (&self->told);
  g_mutex_unlock (&self->lock);
  if (told)
    told (self->told_data);
  title_unref (self);
}

static GThreadPool *
get_openers (void)
{
  static gsize openers;

  if (g_once_init_enter (&openers))
    g_once_init_leave (
        &openers, (gsize) g_thread_pool_new (open_title, NULL, OPENERS_MAX, FALSE, NULL));
  return (GThreadPool *) openers;
}

Title *
titles_open (Titles *self, const gchar *escaped, GstRTSPThreadPool *threads, GError **error)
{
  gchar *name = decode (escaped);
  gchar *folder;
  Title *title;

  if (!name) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
        "%s: what was asked for is not the name of a title", self->mount_path);
    return NULL;
  }
  folder = take_slot (self, error);
  if (!folder) {
    g_free (name);
    return NULL;
  }
  title = g_new0 (Title, 1);
  g_atomic_ref_count_init (&title->refs);
  g_mutex_init (&title->lock);
  title->titles = titles_ref (self);
  title->threads = g_object_ref (threads);
  title->folder = folder;
  title->name = name;
  title->label = g_strconcat (self->mount_path, "/", name, NULL);
  title->path = g_strdup_printf (
      "%s/=title%u", self->mount_path, __atomic_add_fetch (&last_id, 1, __ATOMIC_RELAXED));
  g_thread_pool_push (get_openers (), title_ref (title), NULL);
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

void
title_wait (Title *self, TitleToldFunc told, gpointer data)
{
  gboolean waits;

  g_mutex_lock (&self->lock);
  waits = self->state == TITLE_OPENING;
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
  g_free (self->folder);
  g_free (self->name);
  g_free (self->label);
  g_free (self->path);
  g_free (self);
}
