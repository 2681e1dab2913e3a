// SPDX-License-Identifier: LGPL-2.1-or-later

// Reads with rtspsrc, and takes the packets in front of its jitter buffers. There the RTP session
// has counted each packet for its reports to the upstream, and no packet has been delayed,
// reordered or given a new timestamp. The relay passes packets on as they arrive; the player has
// its own jitter buffer.

#include "config.h"
#include "base/clock.h"
#include "base/element.h"
#include "base/key_event.h"
#include "base/threads.h"
#include "rtp/rtcp_read.h"
#include "sources/pull.h"
#include "sources/sdp.h"
#include "sources/udp_input.h"

#include <gst/rtsp/rtsp.h>
#include <gst/sdp/sdp.h>
#include <string.h>

// Limit of DESCRIBE requests in a run, which limits redirects.
#define MAX_DESCRIBES 8

// The pad at which a track's packets leave the RTP session.
typedef struct {
  GstPad *pad; // of the newest jitter buffer; NULL before there is one
  guint ssrc;
} SessionPad;

typedef struct {
  const PullContext *context;
  GstRTSPUrl *url;

  GMutex lock;        // of all below
  GPtrArray *caps;    // caps of the tracks that were set up, in order
  GArray *stream_ids; // guint: rtspsrc's number of each track
  gboolean begun;
  guint n_describes;
  guint n_eos;
  SessionPad session_pads[RELAY_MAX_TRACKS];
} RtspPull;

typedef struct {
  RtspPull *pull;
  guint track;
  gboolean base_known;
  guint64 base;
} Tap;

static void
pull_free (gpointer data)
{
  RtspPull *self = data;

  gst_rtsp_url_free (self->url);
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    gst_clear_object (&self->session_pads[i].pad);
  g_ptr_array_unref (self->caps);
  g_array_unref (self->stream_ids);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static gint
find_track (RtspPull *self, guint stream_id)
{
  gint track = -1;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->stream_ids->len; i++) {
    if (g_array_index (self->stream_ids, guint, i) == stream_id)
      track = (gint) i;
  }
  g_mutex_unlock (&self->lock);
  return track;
}

// ---- RTSP ----

static gboolean
is_url (const gchar *text)
{
  GstUri *url = text ? gst_uri_from_string (text) : NULL;
  gboolean is = url != NULL;

  g_clear_pointer (&url, gst_uri_unref);
  return is;
}

// Replaces session URLs that cannot be parsed: rtspsrc joins the tracks' URLs to them.
static void
replace_invalid_session_urls (GstSDPMessage *sdp)
{
  for (guint i = 0; i < gst_sdp_message_attributes_len (sdp); i++) {
    const GstSDPAttribute *attribute = gst_sdp_message_get_attribute (sdp, i);
    GstSDPAttribute own;

    if (g_str_equal (attribute->key, "control") && !is_url (attribute->value)) {
      gst_sdp_attribute_set (&own, "control", "*");
      gst_sdp_message_replace_attribute (sdp, i, &own);
    }
  }
}

// Removes tracks without a URL of their own if there are several tracks: they cannot be requested.
// rtspsrc would select them, and follow a null pointer when it compares their URLs.
static void
on_sdp (GstElement *src, GstSDPMessage *sdp, gpointer data)
{
  GArray *tracks = sdp->medias;
  const gchar *shared;
  guint n_valid = 0;

  replace_invalid_session_urls (sdp);
  if (tracks->len < 2)
    return;
  shared = gst_sdp_message_get_attribute_val (sdp, "control");
  for (guint i = 0; i < tracks->len; i++) {
    GstSDPMedia *track = &g_array_index (tracks, GstSDPMedia, i);
    const gchar *url = gst_sdp_media_get_attribute_val (track, "control");

    url = url ? url : shared;
    if (is_url (url) && !g_str_equal (url, "*"))
      g_array_index (tracks, GstSDPMedia, n_valid++) = *track;
    else
      gst_sdp_media_uninit (track);
  }
  g_array_set_size (tracks, n_valid);
}

static gboolean
on_select_stream (GstElement *src, guint id, GstCaps *caps, gpointer data)
{
  RtspPull *self = data;
  gboolean take;

  caps = gst_caps_copy (caps);
  gst_structure_set_name (gst_caps_get_structure (caps, 0), "application/x-rtp");
  take = sdp_complete_caps (caps);
  g_mutex_lock (&self->lock);
  take = take && self->caps->len < RELAY_MAX_TRACKS;
  if (take) {
    g_ptr_array_add (self->caps, gst_caps_ref (caps));
    g_array_append_val (self->stream_ids, id);
  }
  g_mutex_unlock (&self->lock);
  gst_caps_unref (caps);
  return take;
}

// Reports whether a redirect stays on the configured host and port. An upstream must not send the
// proxy elsewhere.
static gboolean
same_host (RtspPull *self, const gchar *uri)
{
  GstRTSPUrl *url = NULL;
  guint16 port, own_port;
  gboolean same;

  if (gst_rtsp_url_parse (uri, &url) != GST_RTSP_OK)
    return g_str_equal (uri, "*");
  gst_rtsp_url_get_port (url, &port);
  gst_rtsp_url_get_port (self->url, &own_port);
  same = !g_ascii_strcasecmp (url->host, self->url->host) && port == own_port;
  gst_rtsp_url_free (url);
  return same;
}

// Called for a certificate with faults.
static gboolean
on_certificate (GstElement *src, GTlsConnection *connection, GTlsCertificate *certificate,
    GTlsCertificateFlags faults, gpointer data)
{
  const PullContext *context = ((RtspPull *) data)->context;
  gchar *reason = tls_trust_check (&context->config->trust, certificate, faults);

  if (!reason)
    return TRUE;
  context->callbacks->ended (context->owner, reason);
  g_free (reason);
  return FALSE;
}

// Sets which certificates rtspsrc accepts by itself.
static gboolean
set_trust (GstElement *src, const TlsTrust *trust, GError **error)
{
  GTlsDatabase *database = trust->ca ? tls_trust_load (trust, error) : NULL;

  if (trust->ca && !database)
    return FALSE;
  g_object_set (src, "tls-database", database, NULL);
  g_clear_object (&database);
  return TRUE;
}

// Returns FALSE after too many DESCRIBE requests.
static gboolean
begin_session (RtspPull *self)
{
  gboolean ok;

  g_mutex_lock (&self->lock);
  ok = ++self->n_describes <= MAX_DESCRIBES;
  g_ptr_array_set_size (self->caps, 0);
  g_array_set_size (self->stream_ids, 0);
  self->begun = FALSE;
  self->n_eos = 0;
  g_mutex_unlock (&self->lock);
  return ok;
}

static gboolean
on_before_send (GstElement *src, GstRTSPMessage *message, gpointer data)
{
  RtspPull *self = data;
  const PullContext *context = self->context;
  GstRTSPMethod method;
  const gchar *uri;
  gchar *reason = NULL;

  if (gst_rtsp_message_parse_request (message, &method, &uri, NULL) != GST_RTSP_OK)
    return TRUE;

  if (method == GST_RTSP_DESCRIBE)
    thread_set_task_name ("pull", src); // rtspsrc posts no message about this task
  if (method == GST_RTSP_DESCRIBE || method == GST_RTSP_OPTIONS) {
    // A DESCRIBE begins a session (OPTIONS may be a keep-alive): rtspsrc opens a second session
    // over TCP if no packet arrives over UDP.
    if (method == GST_RTSP_DESCRIBE && !begin_session (self))
      reason = g_strdup ("too many redirects");
    if (!reason && !same_host (self, uri))
      reason = g_strdup ("redirected to another host or port, which the proxy does not follow");
  } else if (method == GST_RTSP_PLAY) {
    gboolean first;

    g_mutex_lock (&self->lock);
    first = !self->begun;
    self->begun = TRUE;
    g_mutex_unlock (&self->lock);
    if (first && self->caps->len == 0)
      reason = g_strdup ("the upstream offers no track that can be relayed");
    else if (first)
      context->callbacks->begun (context->owner, relay_source_begin (context->source, self->caps));
  }
  if (reason) {
    context->callbacks->ended (context->owner, reason);
    g_free (reason);
    return FALSE;
  }
  return TRUE;
}

// ---- media ----

static void
take_packet (Tap *tap, GstPad *pad, GstBuffer *packet)
{
  const PullContext *context = tap->pull->context;
  gint64 now = clock_now ();

  if (g_atomic_int_get (&context->cancelled)) {
    gst_buffer_unref (packet);
    return;
  }
  if (!tap->base_known) {
    GstCaps *caps = gst_pad_get_current_caps (pad);
    guint base;

    tap->base_known = TRUE;
    if (caps && gst_structure_get_uint (gst_caps_get_structure (caps, 0), "clock-base", &base))
      tap->base = base;
    gst_clear_caps (&caps);
  }
  relay_push (context->source, tap->track, packet, now, tap->base);
  context->callbacks->packet (context->owner, now);
}

static void
take_eos (Tap *tap)
{
  RtspPull *self = tap->pull;
  gboolean all;

  g_mutex_lock (&self->lock);
  all = ++self->n_eos == self->caps->len;
  g_mutex_unlock (&self->lock);
  if (all)
    self->context->callbacks->ended (self->context->owner, "the upstream ended");
}

static GstPadProbeReturn
on_media (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Tap *tap = data;

  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    take_packet (tap, pad, GST_PAD_PROBE_INFO_BUFFER (info));
    info->data = NULL;
    return GST_PAD_PROBE_HANDLED;
  }
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST) {
    GstBufferList *list = GST_PAD_PROBE_INFO_BUFFER_LIST (info);

    for (guint i = 0; i < gst_buffer_list_length (list); i++)
      take_packet (tap, pad, gst_buffer_ref (gst_buffer_list_get (list, i)));
    return GST_PAD_PROBE_DROP;
  }
  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_EOS)
    take_eos (tap);
  return GST_PAD_PROBE_OK;
}

static void
note_sender_report (RtspPull *self, guint track, const guint8 *rtcp, gsize len)
{
  WeirNtpMap map;

  if (weir_rtcp_find_sr (rtcp, len, &map) == 0)
    relay_set_ntp_map (self->context->source, track, &map);
}

static void
on_rtcp (GObject *session, GstBuffer *buffer, gpointer data)
{
  Tap *tap = data;
  GstMapInfo info;

  if (!gst_buffer_map (buffer, &info, GST_MAP_READ))
    return;
  note_sender_report (tap->pull, tap->track, info.data, info.size);
  gst_buffer_unmap (buffer, &info);
}

static gboolean
is_plain (GstPad *pad)
{
  GstCaps *caps = gst_pad_get_current_caps (pad);
  gboolean plain =
      caps && gst_structure_has_name (gst_caps_get_structure (caps, 0), "application/x-rtcp");

  gst_clear_caps (&caps);
  return plain;
}

// Keeps packets with wrong lengths from the RTP session, which trusts them.
static GstPadProbeReturn
on_untrusted_rtcp (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  gint track =
      find_track (data, (guint) g_ascii_strtoull (strrchr (GST_PAD_NAME (pad), '_') + 1, NULL, 10));
  gboolean sound;
  GstMapInfo map;

  if (!is_plain (pad) || !gst_buffer_map (buffer, &map, GST_MAP_READ))
    return GST_PAD_PROBE_OK; // SRTCP
  sound = weir_rtcp_is_sound (map.data, map.size);
  if (!sound && track >= 0)
    note_sender_report (data, (guint) track, map.data, map.size);
  gst_buffer_unmap (buffer, &map);
  return sound ? GST_PAD_PROBE_OK : GST_PAD_PROBE_DROP;
}

static void
on_manager_pad (GstElement *rtpbin, GstPad *pad, gpointer pull)
{
  if (g_str_has_prefix (GST_PAD_NAME (pad), "recv_rtcp_sink_"))
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_untrusted_rtcp, pull, NULL);
}

static void
free_tap (gpointer data, GClosure *closure)
{
  g_free (data);
}

// ---- keyframes ----

// Takes ownership of `pad`.
static void
set_session_pad (RtspPull *self, guint track, GstPad *pad, guint ssrc)
{
  GstPad *old;

  g_mutex_lock (&self->lock);
  old = self->session_pads[track].pad;
  self->session_pads[track] = (SessionPad) { pad, ssrc };
  g_mutex_unlock (&self->lock);
  gst_clear_object (&old);
}

// Asks the RTP session for a keyframe. It sends a PLI or a FIR, whichever the upstream's SDP
// offers.
static void
ask_for_key (GstElement *pipeline, guint track)
{
  RtspPull *self = g_object_get_data (G_OBJECT (pipeline), "pull");
  gint payload = -1;
  GstEvent *event;
  GstPad *pad;
  guint ssrc;

  g_mutex_lock (&self->lock);
  pad = self->session_pads[track].pad ? gst_object_ref (self->session_pads[track].pad) : NULL;
  ssrc = self->session_pads[track].ssrc;
  if (track < self->caps->len)
    gst_structure_get_int (
        gst_caps_get_structure (g_ptr_array_index (self->caps, track), 0), "payload", &payload);
  g_mutex_unlock (&self->lock);
  if (!pad)
    return;
  event = key_event_new ();
  gst_structure_set (gst_event_writable_structure (event), "ssrc", G_TYPE_UINT, ssrc, "payload",
      G_TYPE_UINT, (guint) payload, NULL);
  gst_pad_push_event (pad, event);
  gst_object_unref (pad);
}

static void
on_new_jitterbuffer (
    GstElement *rtpbin, GstElement *jitterbuffer, guint session, guint ssrc, gpointer data)
{
  RtspPull *self = data;
  gint track = find_track (self, session);
  GObject *rtp_session = NULL;
  GstPad *pad;
  Tap *tap;

  if (track < 0)
    return;

  tap = g_new0 (Tap, 1);
  *tap = (Tap) { self, (guint) track, FALSE, RELAY_NO_BASE };
  pad = gst_element_get_static_pad (jitterbuffer, "sink");
  gst_pad_add_probe (pad,
      GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST
          | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM,
      on_media, g_memdup2 (tap, sizeof *tap), g_free);
  set_session_pad (self, (guint) track, pad, ssrc);

  g_signal_emit_by_name (rtpbin, "get-internal-session", session, &rtp_session);
  if (rtp_session) {
    g_signal_handlers_disconnect_matched (
        rtp_session, G_SIGNAL_MATCH_FUNC, 0, 0, NULL, on_rtcp, NULL);
    g_signal_connect_data (
        rtp_session, "on-receiving-rtcp", G_CALLBACK (on_rtcp), tap, free_tap, 0);
    g_object_unref (rtp_session);
  } else {
    g_free (tap);
  }
}

static void
on_new_manager (GstElement *src, GstElement *rtpbin, gpointer data)
{
  g_signal_connect (rtpbin, "new-jitterbuffer", G_CALLBACK (on_new_jitterbuffer), data);
  g_signal_connect (rtpbin, "pad-added", G_CALLBACK (on_manager_pad), data);
}

static guint
protocols (PullTransport transport)
{
  switch (transport) {
    case PULL_UDP:
      return GST_RTSP_LOWER_TRANS_UDP;
    case PULL_TCP:
      return GST_RTSP_LOWER_TRANS_TCP;
    default:
      return GST_RTSP_LOWER_TRANS_UDP | GST_RTSP_LOWER_TRANS_TCP;
  }
}

GstElement *
rtsp_pull_new (const PullContext *context, GError **error)
{
  const PullConfig *config = context->config;
  GstElement *pipeline, *src;
  RtspPull *self;
  GstRTSPUrl *url = NULL;

  if (gst_rtsp_url_parse (config->uri, &url) != GST_RTSP_OK) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "not a valid RTSP URI");
    return NULL;
  }
  src = element_make ("rtspsrc", error);
  if (!src || !set_trust (src, &config->trust, error)) {
    gst_clear_object (&src);
    gst_rtsp_url_free (url);
    return NULL;
  }

  self = g_new0 (RtspPull, 1);
  self->context = context;
  self->url = url;
  g_mutex_init (&self->lock);
  self->caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  self->stream_ids = g_array_new (FALSE, FALSE, sizeof (guint));

  // upstream.c watches the connect time-out; rtspsrc's time-out is twice as long. rtspsrc gives up
  // UDP without packets well before the read time-out, so that there is time to try TCP.
  g_object_set (src, "location", config->uri, "user-id", config->user, "user-pw", config->password,
      "protocols", protocols (config->transport), "tcp-timeout",
      (guint64) config->connect_timeout_ms * 2000, "timeout",
      (guint64) MIN (config->read_timeout_ms / 2, 3000) * 1000, "probation", 0, "udp-reconnect",
      FALSE, "do-retransmission", FALSE, "udp-buffer-size", UDP_INPUT_BUFFER, "user-agent",
      "Weir/" PACKAGE_VERSION, NULL);
  g_signal_connect (src, "on-sdp", G_CALLBACK (on_sdp), NULL);
  g_signal_connect (src, "select-stream", G_CALLBACK (on_select_stream), self);
  g_signal_connect (src, "before-send", G_CALLBACK (on_before_send), self);
  g_signal_connect (src, "accept-certificate", G_CALLBACK (on_certificate), self);
  g_signal_connect (src, "new-manager", G_CALLBACK (on_new_manager), self);

  pipeline = gst_pipeline_new (NULL);
  gst_bin_add (GST_BIN (pipeline), src);
  g_object_set_data_full (G_OBJECT (pipeline), "pull", self, pull_free);
  pull_set_key_handler (context, pipeline, ask_for_key);
  return pipeline;
}

// ---- the URI ----

// Reports whether gst_rtsp_url_parse() reads the user, host and port of a URI correctly. It takes a
// password with '@' or '/' for part of the host, truncates a wrong port, and accepts a line break,
// which would end the request line.
static gboolean
is_valid_authority (const gchar *uri)
{
  const gchar *authority = strstr (uri, "://") ? strstr (uri, "://") + 3 : "";
  const gchar *end = authority + strcspn (authority, "/?#");
  const gchar *at = memchr (authority, '@', (gsize) (end - authority));
  const gchar *host = at ? at + 1 : authority;
  const gchar *colon = g_strrstr_len (host, end - host, ":");
  gchar *rest = NULL;
  guint64 port;

  for (const gchar *c = uri; *c; c++) {
    if ((guchar) *c <= 0x20 || *c == 0x7f)
      return FALSE;
  }
  if (memchr (host, '@', (gsize) (end - host)))
    return FALSE;
  if (!colon || memchr (colon, ']', (gsize) (end - colon)))
    return TRUE;
  port = g_ascii_strtoull (colon + 1, &rest, 10);
  return g_ascii_isdigit (colon[1]) && rest == end && port > 0 && port <= 65535;
}

// Moves the credentials from the URI into `user` and `password`.
gchar *
rtsp_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  GstRTSPUrl *url = NULL;
  gchar *request;

  if (!is_valid_authority (uri) || gst_rtsp_url_parse (uri, &url) != GST_RTSP_OK || !url->host
      || !*url->host) {
    if (url)
      gst_rtsp_url_free (url);
    return g_strdup (
        "not a valid URI like rtsp://HOST:PORT/PATH; in a password, write @ as %40 and "
        "/ as %2F");
  }
  if (url->user) {
    config->user = g_uri_unescape_string (url->user, NULL);
    config->password = g_uri_unescape_string (url->passwd ? url->passwd : "", NULL);
    g_clear_pointer (&url->user, g_free);
    g_clear_pointer (&url->passwd, g_free);
  }
  request = gst_rtsp_url_get_request_uri (url);
  config->uri = request;
  if (g_str_has_prefix (uri, "rtsps:") && g_str_has_prefix (request, "rtsp:")) {
    config->uri = g_strconcat ("rtsps", request + 4, NULL);
    g_free (request);
  }
  gst_rtsp_url_free (url);
  return NULL;
}
