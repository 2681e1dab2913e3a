// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_stream.h"

#include "base/files_left.h"
#include "base/log.h"
#include "frames/segmenter.h"
#include "relay/relay_caps.h"
#include "relay/track_watch.h"

struct _HlsStream {
  gatomicrefcount refs;
  HlsVariant shown;
  HlsSettings settings;
  HlsWindow *windows[SEGMENT_TRACKS_MAX];
  Relay *relay;

  // Of the main thread.
  TrackWatch *tracks;
  Segmenter *pipeline;
  GPtrArray *caps; // of the tracks of `pipeline`

  GMutex lock; // protects the fields below
  HlsStreamState state;
  gchar *reason, *left_out;
};

static void
set_state (HlsStream *self, HlsStreamState state, const gchar *reason)
{
  g_mutex_lock (&self->lock);
  self->state = state;
  g_free (self->reason);
  self->reason = g_strdup (reason);
  g_mutex_unlock (&self->lock);
  hls_window_give_up (self->windows[0]);
  for (guint i = 0; i < SEGMENT_TRACKS_MAX; i++)
    hls_window_wake (self->windows[i]);
}

static void
on_failed (const gchar *reason, gpointer data)
{
  HlsStream *self = data;

  log_event ("hls %s failed: %s", presentation_get_label (self->shown.presentation), reason);
  set_state (self, HLS_STREAM_FAILED, reason);
}

// ---- the relay's side ----

static void
start_pipeline (HlsStream *self, GPtrArray *caps)
{
  GString *left_out = g_string_new (NULL);
  SegmentOutput *outputs[SEGMENT_TRACKS_MAX];

  for (guint i = 0; i < SEGMENT_TRACKS_MAX; i++)
    outputs[i] = hls_window_get_output (self->windows[i]);
  self->caps = g_ptr_array_ref (caps);
  self->pipeline = segmenter_new (self->relay, caps, outputs, SEGMENT_TRACKS_MAX,
      &self->settings.lengths, &self->shown.layers,
      presentation_get_label (self->shown.presentation), left_out, on_failed, self);
  if (!self->pipeline)
    set_state (self, HLS_STREAM_UNSUPPORTED, left_out->str);
  g_mutex_lock (&self->lock);
  self->left_out = g_string_free (left_out, left_out->len == 0);
  g_mutex_unlock (&self->lock);
}

static void
on_tracks (gpointer data, GPtrArray *caps)
{
  HlsStream *self = data;

  if (!self->caps && !files_are_left (FILES_FOR_MEDIA))
    on_failed (FILES_PROBLEM, self);
  else if (!self->caps)
    start_pipeline (self, caps);
  else if (!relay_caps_are_equal (self->caps, caps))
    on_failed ("its tracks have changed", self);
}

// ---- the presentation ----

static void
on_waited (gpointer data)
{
  HlsStream *self = data;
  g_autoptr (GError) error = NULL;

  if (presentation_ask (self->shown.presentation, &error) == PRESENTATION_DOWN)
    set_state (self,
        g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED) ? HLS_STREAM_UNFIT
                                                                      : HLS_STREAM_FAILED,
        error ? error->message : NULL);
  hls_stream_unref (self);
}

HlsStream *
hls_stream_new (const HlsVariant *shown, const HlsSettings *settings, HlsCommon *common)
{
  HlsStream *self = g_new0 (HlsStream, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->shown = *shown;
  self->settings = *settings;
  for (guint i = 0; i < SEGMENT_TRACKS_MAX; i++)
    self->windows[i] = hls_window_new (settings, common, i > 0);
  self->relay = relay_ref (presentation_get_relay (shown->presentation));
  self->tracks = track_watch_new (self->relay, on_tracks, self);
  presentation_wait (shown->presentation, on_waited, hls_stream_ref (self));
  return self;
}

HlsStream *
hls_stream_ref (HlsStream *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
hls_stream_unref (HlsStream *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  for (guint i = 0; i < SEGMENT_TRACKS_MAX; i++)
    hls_window_unref (self->windows[i]);
  relay_unref (self->relay);
  presentation_leave (self->shown.presentation);
  g_clear_pointer (&self->caps, g_ptr_array_unref);
  g_mutex_clear (&self->lock);
  g_free (self->reason);
  g_free (self->left_out);
  g_free (self);
}

static gboolean
stop_here (gpointer data)
{
  HlsStream *self = data;

  g_clear_pointer (&self->tracks, track_watch_free);
  g_clear_pointer (&self->pipeline, segmenter_free);
  hls_stream_unref (self);
  return G_SOURCE_REMOVE;
}

void
hls_stream_stop (HlsStream *self)
{
  set_state (self, HLS_STREAM_FAILED, "the stream has ended");
  g_main_context_invoke (NULL, stop_here, hls_stream_ref (self));
}

HlsStreamState
hls_stream_ask (HlsStream *self, gchar **reason)
{
  SegmentFormat format = { 0 };
  HlsStreamState state;

  g_mutex_lock (&self->lock);
  state = self->state;
  if (state != HLS_STREAM_STARTING)
    *reason = g_strdup (self->reason);
  g_mutex_unlock (&self->lock);
  if (state == HLS_STREAM_STARTING && hls_window_dup_format (self->windows[0], &format))
    state = HLS_STREAM_READY;
  hls_format_clear (&format);
  return state;
}

gboolean
hls_stream_has_failed (HlsStream *self)
{
  gboolean failed;

  g_mutex_lock (&self->lock);
  failed = self->state == HLS_STREAM_FAILED || self->state == HLS_STREAM_UNFIT;
  g_mutex_unlock (&self->lock);
  return failed;
}

gchar *
hls_stream_dup_left_out (HlsStream *self)
{
  gchar *left_out;

  g_mutex_lock (&self->lock);
  left_out = g_strdup (self->left_out);
  g_mutex_unlock (&self->lock);
  return left_out;
}

HlsWindow *
hls_stream_get_window (HlsStream *self, guint i)
{
  return self->windows[i];
}
