// SPDX-License-Identifier: LGPL-2.1-or-later

// Receives a title that another server broadcasts, with schedulesrc. Each packet leaves it at its
// time, so packets go to the relay as they come.

#include "base/clock.h"
#include "base/element.h"
#include "sources/pull.h"

#include <string.h>

#define SCHEME "rtsp-schedule"

typedef struct {
  const PullContext *context;

  GMutex lock;     // of all below
  GPtrArray *caps; // of the tracks, in order
  guint n_eos;
} SchedulePull;

typedef struct {
  SchedulePull *pull;
  guint track;
} Tap;

static void
pull_free (gpointer data)
{
  SchedulePull *self = data;

  g_ptr_array_unref (self->caps);
  g_mutex_clear (&self->lock);
  g_free (self);
}

// ---- media ----

static void
take_eos (SchedulePull *self)
{
  gboolean all;

  g_mutex_lock (&self->lock);
  all = ++self->n_eos == self->caps->len;
  g_mutex_unlock (&self->lock);
  if (all)
    self->context->callbacks->ended (self->context->owner, "the title ended");
}

static GstPadProbeReturn
on_media (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Tap *tap = data;
  const PullContext *context = tap->pull->context;
  gint64 now = clock_now ();

  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    if (g_atomic_int_get (&context->cancelled)) {
      gst_buffer_unref (GST_PAD_PROBE_INFO_BUFFER (info));
    } else {
      // All tracks of a title begin at the RTP timestamp 0.
      relay_push (context->source, tap->track, GST_PAD_PROBE_INFO_BUFFER (info), now, 0);
      context->callbacks->packet (context->owner, now);
    }
    info->data = NULL;
    return GST_PAD_PROBE_HANDLED;
  }
  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_EOS)
    take_eos (tap->pull);
  return GST_PAD_PROBE_OK;
}

static void
on_pad_added (GstElement *src, GstPad *pad, gpointer data)
{
  SchedulePull *self = data;
  GstCaps *caps = gst_pad_get_current_caps (pad);
  Tap *tap;

  g_mutex_lock (&self->lock);
  if (caps && self->caps->len < RELAY_MAX_TRACKS) {
    tap = g_new (Tap, 1);
    *tap = (Tap) { self, self->caps->len };
    g_ptr_array_add (self->caps, gst_caps_ref (caps));
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM,
        on_media, tap, g_free);
  }
  g_mutex_unlock (&self->lock);
  gst_clear_caps (&caps);
}

// Comes before the first packet.
static void
on_no_more_pads (GstElement *src, gpointer data)
{
  SchedulePull *self = data;
  const PullContext *context = self->context;

  context->callbacks->begun (context->owner, relay_source_begin (context->source, self->caps));
}

GstElement *
schedule_pull_new (const PullContext *context, GError **error)
{
  const PullConfig *config = context->config;
  GstElement *pipeline, *src = element_make ("schedulesrc", error);
  SchedulePull *self;

  if (!src)
    return NULL;
  self = g_new0 (SchedulePull, 1);
  self->context = context;
  self->caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  g_mutex_init (&self->lock);
  g_object_set (src, "location", config->uri, "user-id", config->user, "user-pw", config->password,
      "timeout", (guint64) config->connect_timeout_ms * GST_MSECOND, NULL);
  g_signal_connect (src, "pad-added", G_CALLBACK (on_pad_added), self);
  g_signal_connect (src, "no-more-pads", G_CALLBACK (on_no_more_pads), self);
  pipeline = gst_pipeline_new (NULL);
  gst_bin_add (GST_BIN (pipeline), src);
  g_object_set_data_full (G_OBJECT (pipeline), "pull", self, pull_free);
  return pipeline;
}

// ---- the URI ----

gchar *
schedule_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  gchar *rtsp = g_strconcat ("rtsp", uri + strlen (SCHEME), NULL), *wrong, *request;

  wrong = rtsp_pull_check (rtsp, flags, config);
  if (!wrong) {
    request = config->uri;
    config->uri = g_strconcat (SCHEME, request + strlen ("rtsp"), NULL);
    g_free (request);
  }
  g_free (rtsp);
  return wrong;
}
