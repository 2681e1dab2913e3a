// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_config.h"
#include "mounts/presentation_private.h"
#include "outlets/rtsp/live_media.h"
#include "outlets/rtsp/title_media.h"

#include <fcntl.h>

#define PATIENCE_S 30

static void
on_changed (Presentation *presentation, gpointer unused)
{
}

static void
on_idle (Presentation *presentation, gpointer unused)
{
}

static const PresentationCallbacks callbacks = { .idle = on_idle, .changed = on_changed };

static void
on_open (gpointer n_opened)
{
  ++*(guint *) n_opened;
}

static void
release (gpointer media)
{
  gst_rtsp_media_unprepare (media);
  g_object_unref (media);
}

static const LiveMediaOps ops = { .open = on_open, .release = release };

typedef struct {
  MountConfig *config;
  GPtrArray *stages;
  Presentation *presentation;
  LiveMedia *live;
  guint n_opened;
} Fixture;

static void
set_up (Fixture *f, gconstpointer unused)
{
  f->config = mount_config_new ("/cam");
  f->config->on_demand = TRUE;
  f->config->linger_ms = 1;
  f->stages = g_ptr_array_new ();
  f->presentation = presentation_new (NULL, "/cam", NULL, f->config, f->stages, 0, &callbacks, f);
  f->live = live_media_new (f->presentation, &ops, &f->n_opened);
}

static void
run_main (void)
{
  while (g_main_context_iteration (NULL, FALSE))
    ;
}

static void
tear_down (Fixture *f, gconstpointer unused)
{
  live_media_stop (f->live);
  live_media_unref (f->live);
  presentation_unref (f->presentation);
  run_main ();
  mount_config_unref (f->config);
  g_ptr_array_unref (f->stages);
}

static void
keep (Fixture *f, GstRTSPMedia *media)
{
  gst_rtsp_media_prepare (media, NULL);
  if (!live_media_keep (f->live, g_object_ref (media)))
    release (media);
}

static gboolean
on_late (gpointer late)
{
  *(gboolean *) late = TRUE;
  return G_SOURCE_REMOVE;
}

static GstRTSPMedia *
media_new (void)
{
  gchar *path = g_build_filename (g_getenv ("WEIR_DATA"), "bigbuckbunny.mp4", NULL);
  GstRTSPMedia *media = title_media_new (open (path, O_RDONLY | O_CLOEXEC), "media");
  GstRTSPThreadPool *threads = gst_rtsp_thread_pool_new ();

  g_assert_true (gst_rtsp_media_prepare (
      media, gst_rtsp_thread_pool_get_thread (threads, GST_RTSP_THREAD_TYPE_MEDIA, NULL)));
  g_object_unref (threads);
  g_free (path);
  return media;
}

// The user has left before the main thread learns of it.
static void
media_of_a_user_that_leaves_at_once_is_released (Fixture *f, gconstpointer unused)
{
  GstRTSPMedia *media = media_new ();
  gboolean late = FALSE;
  guint timeout = g_timeout_add_seconds (PATIENCE_S, on_late, &late);

  live_media_use (f->live);
  keep (f, media);
  live_media_unuse (f->live);
  gst_rtsp_media_unprepare (media);
  g_assert_cmpint (gst_rtsp_media_get_status (media), ==, GST_RTSP_MEDIA_STATUS_PREPARED);

  while (gst_rtsp_media_get_status (media) == GST_RTSP_MEDIA_STATUS_PREPARED && !late)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpint (gst_rtsp_media_get_status (media), ==, GST_RTSP_MEDIA_STATUS_UNPREPARED);
  g_source_remove (timeout);
  g_object_unref (media);
}

// All users have left before the media is prepared, so nothing would release it later.
static void
media_without_users_is_not_kept (Fixture *f, gconstpointer unused)
{
  GstRTSPMedia *media = media_new ();

  live_media_use (f->live);
  live_media_unuse (f->live);
  run_main ();
  keep (f, media);
  gst_rtsp_media_unprepare (media);
  g_assert_cmpint (gst_rtsp_media_get_status (media), ==, GST_RTSP_MEDIA_STATUS_UNPREPARED);
  g_object_unref (media);
}

static void
on_told (gpointer n_told)
{
  ++*(guint *) n_told;
}

// A request neither uses media that is not ready, nor has it opened twice.
static void
waiting_requests_are_told_that_media_has_failed (Fixture *f, gconstpointer unused)
{
  guint n_told = 0;

  live_media_use (f->live);
  f->presentation->known = TRUE;
  live_media_update (f->live);
  live_media_update (f->live);
  g_assert_cmpuint (f->n_opened, ==, 1);
  g_assert_cmpint (live_media_ask (f->live, NULL), ==, PRESENTATION_STARTING);
  g_assert_cmpint (presentation_ask (f->presentation, NULL), ==, PRESENTATION_READY);
  g_assert_null (live_media_dup_key (f->live, TRUE));
  live_media_wait (f->live, on_told, &n_told);
  live_media_wait (f->live, on_told, &n_told);
  g_assert_cmpuint (n_told, ==, 0);

  live_media_opened (f->live, "the test says so");
  g_assert_cmpuint (n_told, ==, 2);
  g_assert_cmpint (live_media_ask (f->live, NULL), ==, PRESENTATION_DOWN);
  run_main ();
  g_assert_cmpuint (f->n_opened, ==, 1);
}

// A cache, the beginning of a title's session and a keyframe are kept for readers to come; nothing
// else is.
static void
media_without_readers_is_only_opened_to_keep_something (Fixture *f, gconstpointer unused)
{
  f->presentation->known = TRUE;
  live_media_update (f->live);
  f->presentation->n_users = 1; // of another protocol
  live_media_update (f->live);
  g_assert_cmpuint (f->n_opened, ==, 0);

  f->config->cache.time_ms = 1;
  live_media_update (f->live);
  g_assert_cmpuint (f->n_opened, ==, 1);
  live_media_opened (f->live, NULL);
  f->config->cache.time_ms = 0;

  f->config->on_demand = FALSE;
  run_main ();
  g_assert_cmpuint (f->n_opened, ==, 2);
  live_media_opened (f->live, NULL);
  f->config->on_demand = TRUE;
  f->presentation->n_users = 0;
  run_main ();
  g_assert_cmpuint (f->n_opened, ==, 2);
}

#define ADD(path, test) g_test_add ("/live-media/" path, Fixture, NULL, set_up, test, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  ADD ("media-of-a-user-that-leaves-at-once-is-released",
      media_of_a_user_that_leaves_at_once_is_released);
  ADD ("media-without-users-is-not-kept", media_without_users_is_not_kept);
  ADD ("waiting-requests-are-told-that-media-has-failed",
      waiting_requests_are_told_that_media_has_failed);
  ADD ("media-without-readers-is-only-opened-to-keep-something",
      media_without_readers_is_only_opened_to_keep_something);
  return g_test_run ();
}
