// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_config.h"
#include "content/presentation_private.h"
#include "outlets/rtsp/media.h"
#include "outlets/rtsp/title_media.h"

#include <fcntl.h>

#define PATIENCE_S 30

static void
on_idle (Presentation *presentation, gpointer idle)
{
  *(gboolean *) idle = TRUE;
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
media_of_a_user_that_leaves_at_once_is_released (void)
{
  const PresentationCallbacks callbacks = { .idle = on_idle };
  MountConfig *config = mount_config_new ("/cam");
  GPtrArray *stages = g_ptr_array_new ();
  gboolean idle = FALSE, late = FALSE;
  GstRTSPMedia *media = media_new ();
  Presentation *self;
  guint timeout;

  config->on_demand = TRUE;
  config->linger_ms = 1;
  self = presentation_new (NULL, "/cam", NULL, config, stages, 0, &callbacks, &idle);
  presentation_use (self);
  media_keep (media, self);
  presentation_unuse (self);
  gst_rtsp_media_unprepare (media);
  g_assert_cmpint (gst_rtsp_media_get_status (media), ==, GST_RTSP_MEDIA_STATUS_PREPARED);

  timeout = g_timeout_add_seconds (PATIENCE_S, on_late, &late);
  while (!idle && !late)
    g_main_context_iteration (NULL, TRUE);
  g_assert_true (idle);
  g_assert_cmpint (gst_rtsp_media_get_status (media), ==, GST_RTSP_MEDIA_STATUS_UNPREPARED);

  g_source_remove (timeout);
  presentation_unref (self);
  g_object_unref (media);
  mount_config_unref (config);
  g_ptr_array_unref (stages);
}

// All users have left before the media is prepared, so nothing would release it later.
static void
media_without_users_is_not_kept (void)
{
  const PresentationCallbacks callbacks = { .idle = on_idle };
  MountConfig *config = mount_config_new ("/cam");
  GPtrArray *stages = g_ptr_array_new ();
  gboolean idle = FALSE;
  GstRTSPMedia *media = media_new ();
  Presentation *self;

  config->on_demand = TRUE;
  self = presentation_new (NULL, "/cam", NULL, config, stages, 0, &callbacks, &idle);
  presentation_use (self);
  presentation_unuse (self);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  media_keep (media, self);
  gst_rtsp_media_unprepare (media);
  g_assert_cmpint (gst_rtsp_media_get_status (media), ==, GST_RTSP_MEDIA_STATUS_UNPREPARED);

  presentation_unref (self);
  g_object_unref (media);
  mount_config_unref (config);
  g_ptr_array_unref (stages);
}

static void
on_open (Presentation *presentation, gpointer n_opened)
{
  ++*(guint *) n_opened;
}

static void
on_told (gpointer n_told)
{
  ++*(guint *) n_told;
}

// A request neither uses media that is not ready, nor has it opened twice.
static void
waiting_requests_are_told_that_media_has_failed (void)
{
  const PresentationCallbacks callbacks = { .open_media = on_open };
  MountConfig *config = mount_config_new ("/cam");
  GPtrArray *stages = g_ptr_array_new ();
  guint n_opened = 0, n_told = 0;
  Presentation *self;

  self = presentation_new (NULL, "/cam", NULL, config, stages, 0, &callbacks, &n_opened);
  presentation_use (self);
  self->known = TRUE;
  presentation_open_media (self);
  presentation_open_media (self);
  g_assert_cmpuint (n_opened, ==, 1);
  g_assert_cmpint (presentation_ask (self), ==, PRESENTATION_STARTING);
  g_assert_null (presentation_dup_media_key (self, TRUE));
  presentation_wait (self, on_told, &n_told);
  presentation_wait (self, on_told, &n_told);
  g_assert_cmpuint (n_told, ==, 0);

  presentation_media_opened (self, "the test says so");
  g_assert_cmpuint (n_told, ==, 2);
  g_assert_cmpint (presentation_ask (self), ==, PRESENTATION_DOWN);
  presentation_open_media (self);
  g_assert_cmpuint (n_opened, ==, 1);

  presentation_stop (self);
  presentation_unref (self);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  mount_config_unref (config);
  g_ptr_array_unref (stages);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  g_test_add_func ("/presentation/media-of-a-user-that-leaves-at-once-is-released",
      media_of_a_user_that_leaves_at_once_is_released);
  g_test_add_func (
      "/presentation/media-without-users-is-not-kept", media_without_users_is_not_kept);
  g_test_add_func ("/presentation/waiting-requests-are-told-that-media-has-failed",
      waiting_requests_are_told_that_media_has_failed);
  return g_test_run ();
}
