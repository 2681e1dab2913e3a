// SPDX-License-Identifier: LGPL-2.1-or-later

// Receives a title or a live stream that another server broadcasts, with schedulesrc. Each packet
// leaves it at its time, so packets go to the relay as they come.

#include "base/clock.h"
#include "base/element.h"
#include "sources/pull.h"

#include <stdlib.h>
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
  guint64 base; // RTP timestamp of an instant that all tracks have in common, or RELAY_NO_BASE
  gboolean ssrc_known;
  guint32 ssrc;
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

// Reports whether a packet goes on with the stream. A server of a live stream that was restarted
// has other numbers and timestamps.
static gboolean
goes_on (Tap *tap, GstBuffer *packet)
{
  guint8 bytes[4] = { 0 };
  guint32 ssrc;
  gboolean same;

  gst_buffer_extract (packet, 8, bytes, sizeof bytes);
  ssrc = GST_READ_UINT32_BE (bytes);
  same = !tap->ssrc_known || tap->ssrc == ssrc;
  tap->ssrc_known = TRUE;
  tap->ssrc = ssrc;
  return same;
}

static GstPadProbeReturn
on_media (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Tap *tap = data;
  const PullContext *context = tap->pull->context;
  gint64 now = clock_now ();

  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    GstBuffer *packet = GST_PAD_PROBE_INFO_BUFFER (info);
    gboolean same = goes_on (tap, packet);

    if (g_atomic_int_get (&context->cancelled) || !same) {
      gst_buffer_unref (packet);
    } else {
      relay_push (context->source, tap->track, packet, now, tap->base);
      context->callbacks->packet (context->owner, now);
    }
    if (!same)
      context->callbacks->ended (context->owner, "the server has begun the stream anew");
    info->data = NULL;
    return GST_PAD_PROBE_HANDLED;
  }
  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_EOS)
    take_eos (tap->pull);
  return GST_PAD_PROBE_OK;
}

// A live stream's caps say which timestamp of each track belongs to one instant, if it has had
// packets. All tracks of a title begin at 0.
static guint64
get_base (const GstStructure *caps)
{
  const gchar *time = gst_structure_get_string (caps, "x-weir-rtptime");

  if (time)
    return strtoul (time, NULL, 10);
  return gst_structure_has_field (caps, "x-weir-packets") ? 0 : RELAY_NO_BASE;
}

// The caps of a track without what is only of this run. (transfer full)
static GstCaps *
plain_caps (GstCaps *caps)
{
  GstCaps *plain = gst_caps_copy (caps);

  gst_structure_remove_fields (
      gst_caps_get_structure (plain, 0), "x-weir-rtptime", "x-weir-packets", NULL);
  return plain;
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
    *tap = (Tap) {
      .pull = self, .track = self->caps->len, .base = get_base (gst_caps_get_structure (caps, 0))
    };
    g_ptr_array_add (self->caps, plain_caps (caps));
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
      "multicast-iface", config->endpoint.iface, "timeout",
      (guint64) config->connect_timeout_ms * GST_MSECOND, NULL);
  g_signal_connect (src, "pad-added", G_CALLBACK (on_pad_added), self);
  g_signal_connect (src, "no-more-pads", G_CALLBACK (on_no_more_pads), self);
  pipeline = gst_pipeline_new (NULL);
  gst_bin_add (GST_BIN (pipeline), src);
  g_object_set_data_full (G_OBJECT (pipeline), "pull", self, pull_free);
  return pipeline;
}

// ---- the URI ----

// Removes the parameter `iface` from a URI, and returns its value, or NULL. The other parameters
// are the server's. (transfer full)
static gchar *
take_iface (gchar **uri)
{
  GStrv parts = g_strsplit (*uri, "?", 2);
  GStrv parameters = g_strsplit (parts[1] ? parts[1] : "", "&", 0);
  GString *rest = g_string_new (parts[0]);
  gchar *iface = NULL, separator = '?';

  for (gchar **at = parameters; *at; at++) {
    if (!iface && g_str_has_prefix (*at, "iface=")) {
      iface = g_strdup (*at + strlen ("iface="));
    } else {
      g_string_append_printf (rest, "%c%s", separator, *at);
      separator = '&';
    }
  }
  g_free (*uri);
  *uri = g_string_free (rest, FALSE);
  g_strfreev (parameters);
  g_strfreev (parts);
  return iface;
}

gchar *
schedule_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  gchar *rtsp = g_strconcat ("rtsp", uri + strlen (SCHEME), NULL), *wrong, *request;

  config->endpoint.iface = take_iface (&rtsp);
  if (config->endpoint.iface && !*config->endpoint.iface) {
    g_free (rtsp);
    return g_strdup ("iface is empty");
  }
  wrong = rtsp_pull_check (rtsp, flags, config);
  if (!wrong) {
    request = config->uri;
    config->uri = g_strconcat (SCHEME, request + strlen ("rtsp"), NULL);
    g_free (request);
  }
  g_free (rtsp);
  return wrong;
}
