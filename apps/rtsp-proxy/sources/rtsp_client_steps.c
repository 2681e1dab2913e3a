// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sources/rtsp_client_private.h"
#include "sources/rtsp_control.h"

// Limit of DESCRIBE requests in a run, which limits redirects.
#define MAX_DESCRIBES 8
// RFC 2326, section 12.37, for servers that do not say.
#define SESSION_TIMEOUT_S 60
#define SESSION_TIMEOUT_MAX_S 3600
#define SESSION_MAX 256 // bytes of an identifier
#define TRANSPORT_FIELDS_MAX 32

void
rtsp_client_end_by_status (RtspClient *self, const gchar *method, guint status)
{
  gchar *text = g_ascii_strdown (gst_rtsp_status_as_text (status), -1);
  gchar *reason = g_strdup_printf ("the upstream answered %s with %u (%s)", method, status, text);

  rtsp_client_end (self, reason);
  g_free (reason);
  g_free (text);
}

// ---- OPTIONS and DESCRIBE ----

static void
describe (RtspClient *self)
{
  self->step = RTSP_DESCRIBE;
  if (++self->n_describes > MAX_DESCRIBES)
    rtsp_client_end (self, "too many redirects");
  else
    rtsp_client_send (self, "DESCRIBE", self->uri, "Accept: application/sdp\r\n");
}

// OPTIONS follows PLAY: before DESCRIBE it would cost a round trip until the first picture.
void
rtsp_client_begin (RtspClient *self)
{
  if (self->asks_options) {
    self->step = RTSP_OPTIONS;
    rtsp_client_send (self, "OPTIONS", self->uri, NULL);
  } else {
    describe (self);
  }
}

gboolean
rtsp_client_begin_again (RtspClient *self)
{
  // A server that closed the connection after it had refused DESCRIBE gets OPTIONS on a new one.
  gboolean anew = self->step == RTSP_OPTIONS && self->refusal && !self->link && !self->began_anew;

  if ((self->asks_options || self->step != RTSP_DESCRIBE) && !anew)
    return FALSE;
  self->asks_options = TRUE;
  self->began_anew = anew;
  if (self->link) {
    rtsp_client_begin (self);
  } else {
    self->step = RTSP_CONNECTING;
    rtsp_client_connect (self);
  }
  return TRUE;
}

// Goes to where an answer redirects, on the configured host and port: an upstream must not send the
// proxy elsewhere.
static void
follow (RtspClient *self, const gchar *location)
{
  GstRTSPUrl *url = NULL;
  guint16 port, own_port;

  if (!location || !rtsp_control_is_sound (location)
      || gst_rtsp_url_parse (location, &url) != GST_RTSP_OK) {
    rtsp_client_end (self, "redirected without a valid URL");
    return;
  }
  gst_rtsp_url_get_port (url, &port);
  gst_rtsp_url_get_port (self->url, &own_port);
  if (self->tls && !(url->transports & GST_RTSP_LOWER_TRANS_TLS)) {
    rtsp_client_end (self, "redirected from rtsps:// to rtsp://, which the proxy does not follow");
  } else if (!g_ascii_strcasecmp (url->host, self->url->host) && port == own_port) {
    g_free (self->uri);
    self->uri = gst_rtsp_url_get_request_uri (url);
    describe (self);
  } else {
    rtsp_client_end (self, "redirected to another host or port, which the proxy does not follow");
  }
  gst_rtsp_url_free (url);
}

// Reads from an answer to OPTIONS how to keep the session alive: by GET_PARAMETER, unless the
// server says that it does not know it.
static void
read_methods (RtspClient *self, const RtspMessage *answer)
{
  const gchar *list;

  self->knows_methods = TRUE;
  self->keeps_by_options = rtsp_message_get (answer, "Public", 0) != NULL;
  for (guint i = 0; (list = rtsp_message_get (answer, "Public", i)); i++) {
    if (strstr (list, "GET_PARAMETER"))
      self->keeps_by_options = FALSE;
  }
}

// ---- SETUP ----

static void
set_up (RtspClient *self, RtspTrack *track)
{
  guint channel = 2 * self->at;
  gchar *lines;

  track->interleaved = self->over_tcp;
  track->channels[0] = (guint8) channel;
  track->channels[1] = (guint8) (channel + 1);
  if (self->over_tcp) {
    lines = g_strdup_printf (
        "Transport: RTP/AVP/TCP;unicast;interleaved=%u-%u\r\n", channel, channel + 1);
  } else if (rtsp_track_open_sockets (track)) {
    lines = g_strdup_printf (
        "Transport: RTP/AVP;unicast;client_port=%u-%u\r\n", track->port, (guint) track->port + 1);
  } else {
    rtsp_client_end (self, "cannot open a pair of UDP sockets");
    return;
  }
  rtsp_client_send (self, "SETUP", track->url, lines);
  g_free (lines);
}

static void
send_play (RtspClient *self, const gchar *uri)
{
  gchar seconds[G_ASCII_DTOSTR_BUF_SIZE], *line;

  g_ascii_formatd (seconds, sizeof seconds, "%.3f", (gdouble) self->from / GST_SECOND);
  line = g_strdup_printf ("Range: npt=%s-\r\n", seconds);
  rtsp_client_send (self, "PLAY", uri, line);
  g_free (line);
}

static void
tell_place (RtspClient *self)
{
  if (self->has_place && !g_atomic_int_get (&self->context->cancelled))
    relay_set_place (self->context->source, &self->place);
}

static void
play (RtspClient *self)
{
  g_atomic_int_set (&self->heard, 0);
  if (rtsp_client_begin_media (self)) {
    self->step = RTSP_PLAY;
    tell_place (self);
    send_play (self, self->session_uri);
  } else if (self->refused) {
    rtsp_client_end_by_status (self, "SETUP", self->refused);
  } else {
    rtsp_client_end (self, "the upstream offers no track that can be relayed");
  }
}

// Sets up the next track, or plays.
static void
set_up_next (RtspClient *self)
{
  self->step = RTSP_SETUP;
  if (self->at < self->tracks->len)
    set_up (self, g_ptr_array_index (self->tracks, self->at));
  else
    play (self);
}

// Reads an identifier and the time-out behind it, which is optional.
static void
read_session (RtspClient *self, const gchar *text)
{
  gsize len = text ? strcspn (text, "; \t") : 0;
  const gchar *timeout = text ? strstr (text + len, "timeout=") : NULL;
  guint64 seconds = timeout ? g_ascii_strtoull (timeout + 8, NULL, 10) : 0;

  if (len == 0 || len > SESSION_MAX)
    return;
  g_free (self->session);
  self->session = g_strndup (text, len);
  if (seconds > 0)
    self->session_timeout_s = (guint) MIN (seconds, SESSION_TIMEOUT_MAX_S);
}

// Takes the transport that the server chose, if it says so. Returns FALSE if it cannot be used.
static gboolean
read_transport (RtspTrack *track, const GstRTSPTransport *transport)
{
  const GstRTSPRange *channels = &transport->interleaved;

  if (transport->trans != GST_RTSP_TRANS_RTP
      || transport->lower_transport == GST_RTSP_LOWER_TRANS_UDP_MCAST)
    return FALSE;
  // Some servers leave out the "/TCP".
  if (transport->lower_transport == GST_RTSP_LOWER_TRANS_TCP || channels->min >= 0)
    track->interleaved = TRUE;
  else if (track->interleaved)
    return FALSE;
  if (channels->min >= 0 && channels->min <= 255) {
    track->channels[0] = (guint8) channels->min;
    track->channels[1] =
        (guint8) (channels->max > channels->min ? MIN (channels->max, 255) : channels->min + 1);
  }
  return TRUE;
}

// Returns the fields of a transport that the library knows, without blanks: it warns of the others.
// (transfer full)
static gchar *
dup_known_fields (const gchar *text)
{
  static const gchar *const known[] = { "unicast", "multicast", "destination", "source", "layers",
    "mode", "append", "interleaved", "ttl", "port", "client_port", "server_port", "ssrc", NULL };
  gchar *lower = g_ascii_strdown (text, -1);
  gchar **fields = g_strsplit (lower, ";", TRANSPORT_FIELDS_MAX);
  GString *out = g_string_new (fields[0] ? g_strstrip (fields[0]) : NULL);

  for (guint i = 1; fields[0] && fields[i]; i++) {
    const gchar *field = g_strstrip (fields[i]);
    gchar *name = g_strndup (field, strcspn (field, "="));

    if (g_strv_contains (known, g_strstrip (name)))
      g_string_append_printf (out, ";%s", field);
    g_free (name);
  }
  g_strfreev (fields);
  g_free (lower);
  return g_string_free (out, FALSE);
}

// Parses the transport of an answer to a request for unicast. Returns FALSE if it is none.
static gboolean
parse_transport (const gchar *text, GstRTSPTransport *transport)
{
  gchar *known = dup_known_fields (text);
  gboolean ok = gst_rtsp_transport_parse (known, transport) == GST_RTSP_OK;

  // What has neither "unicast" nor "multicast" is multicast by RFC 2326, but no server means that.
  if (ok && transport->lower_transport == GST_RTSP_LOWER_TRANS_UDP_MCAST
      && !strstr (known, ";multicast"))
    transport->lower_transport = GST_RTSP_LOWER_TRANS_UDP;
  g_free (known);
  return ok;
}

static gboolean
begin_track (RtspTrack *track, const gchar *text)
{
  GstRTSPTransport *transport;
  gboolean ok;

  gst_rtsp_transport_new (&transport);
  ok = !text || !parse_transport (text, transport) || read_transport (track, transport);
  ok = ok && rtsp_track_begin (track, transport);
  gst_rtsp_transport_free (transport);
  return ok;
}

// Asks for TCP, for this track if it is the first one, else for all. Returns FALSE if UDP is
// wanted, or TCP was refused.
static gboolean
try_tcp (RtspClient *self)
{
  if (self->over_tcp || self->config.transport != PULL_AUTO)
    return FALSE;
  if (self->session)
    rtsp_client_restart_over_tcp (self);
  else
    self->over_tcp = TRUE;
  return TRUE;
}

static void
take_set_up (RtspClient *self, const RtspMessage *answer)
{
  RtspTrack *track = g_ptr_array_index (self->tracks, self->at);

  if (answer->status == 401 || answer->status == 454) {
    rtsp_client_end_by_status (self, "SETUP", answer->status);
  } else if (answer->status == 461 && try_tcp (self)) {
    if (self->step == RTSP_SETUP)
      set_up_next (self);
  } else if (answer->status >= 300) {
    self->refused = answer->status;
    self->at++;
    set_up_next (self);
  } else {
    self->at++;
    if (begin_track (track, rtsp_message_get (answer, "Transport", 0)))
      set_up_next (self);
    else if (!try_tcp (self))
      rtsp_client_end (self, "the upstream chose a transport that cannot be used");
    else if (self->step == RTSP_SETUP) // there is no session to end
      rtsp_client_restart_over_tcp (self);
  }
}

static void
take_description (RtspClient *self, const RtspMessage *answer)
{
  const gchar *base = rtsp_message_get (answer, "Content-Base", 0);

  if (!base || !rtsp_control_is_sound (base))
    base = rtsp_message_get (answer, "Content-Location", 0);
  if (!base || !rtsp_control_is_sound (base))
    base = self->uri;
  if (!rtsp_client_read_sdp (self, base, answer)) {
    rtsp_client_end (self, "the upstream's answer to DESCRIBE is not a session description (SDP)");
    return;
  }
  self->at = 0;
  self->refusal = 0;
  set_up_next (self);
}

// ---- PLAY, and after ----

static void
set_keep_alive (RtspClient *self, gint64 now)
{
  guint timeout_s = self->session_timeout_s ? self->session_timeout_s : SESSION_TIMEOUT_S;

  self->keep_alive_due = now + timeout_s * (gint64) GST_SECOND / 2;
}

void
rtsp_client_keep_alive (RtspClient *self, gint64 now)
{
  set_keep_alive (self, now);
  if (!self->link)
    rtsp_client_connect (self); // calls this again
  else if (self->is_connected)
    rtsp_client_send (
        self, self->keeps_by_options ? "OPTIONS" : "GET_PARAMETER", self->session_uri, NULL);
}

static void
take_keep_alive (RtspClient *self, const gchar *method, const RtspMessage *answer)
{
  if (!self->knows_methods && g_str_equal (method, "OPTIONS"))
    read_methods (self, answer);
  else
    self->keeps_by_options |= answer->status >= 400;
}

// Plays the next track by its own URL. Returns FALSE if none is left.
static gboolean
play_next (RtspClient *self)
{
  const RtspTrack *track = NULL;

  while (!track && self->at < self->tracks->len) {
    track = g_ptr_array_index (self->tracks, self->at++);
    if (!track->media.in)
      track = NULL;
  }
  if (track)
    send_play (self, track->url);
  return track != NULL;
}

// Some servers have no URL by which all tracks are played at once.
static gboolean
play_each (RtspClient *self)
{
  if (self->plays_each)
    return FALSE;
  self->plays_each = TRUE;
  self->at = 0;
  return play_next (self);
}

static void
take_played (RtspClient *self, const RtspMessage *answer)
{
  const gchar *info;

  for (guint i = 0; (info = rtsp_message_get (answer, "RTP-Info", i)); i++)
    rtsp_client_read_rtp_info (self, info);
  if (self->plays_each && play_next (self))
    return;
  self->place.from = rtsp_client_read_from (self, answer);
  tell_place (self);
  self->step = RTSP_PLAYING;
  self->played = clock_now ();
  set_keep_alive (self, self->played);
  if (!self->knows_methods)
    rtsp_client_send (self, "OPTIONS", self->session_uri, NULL);
}

static void
take_play (RtspClient *self, const RtspMessage *answer)
{
  guint status = answer->status;
  gboolean is_refused = status >= 400 && status < 500 && status != 401 && status != 454;

  if (status == 457 && self->request.lines
      && self->from == 0) // some live servers accept no Range header
    rtsp_client_send (self, "PLAY", self->request.uri, NULL);
  else if (status < 300)
    take_played (self, answer);
  else if (!is_refused || !play_each (self))
    rtsp_client_end_by_status (self, "PLAY", status);
}

void
rtsp_client_take_answer (RtspClient *self, const RtspMessage *answer)
{
  const gchar *method = self->request.method;
  guint status = answer->status;

  self->request.method = NULL;
  if (status < 300 && self->step < RTSP_PLAYING)
    read_session (self, rtsp_message_get (answer, "Session", 0));
  switch (self->step) {
    case RTSP_OPTIONS:
      read_methods (self, answer);
      if (status == 401)
        rtsp_client_end_by_status (self, method, status);
      else if (status >= 300 && status < 400)
        follow (self, rtsp_message_get (answer, "Location", 0));
      else
        describe (self);
      break;
    case RTSP_DESCRIBE:
      if (status >= 300 && status < 400)
        follow (self, rtsp_message_get (answer, "Location", 0));
      else if (status < 400)
        take_description (self, answer);
      else if (status == 401 || status == 404 || !rtsp_client_begin_again (self))
        rtsp_client_end_by_status (self, method, status);
      else
        self->refusal = status;
      break;
    case RTSP_SETUP:
      take_set_up (self, answer);
      break;
    case RTSP_PLAY:
      take_play (self, answer);
      break;
    case RTSP_PLAYING:
      take_keep_alive (self, method, answer);
      break;
    case RTSP_LEAVING:
    case RTSP_RESTARTING:
      self->leave_by = 0; // the next tick goes on
      break;
    default:
      break;
  }
}

void
rtsp_client_take_request (RtspClient *self, const RtspMessage *request)
{
  static const gchar *const known[] = { "OPTIONS", "GET_PARAMETER", "SET_PARAMETER", "ANNOUNCE",
    "REDIRECT", "TEARDOWN", NULL };
  gboolean knows = g_strv_contains (known, request->method);
  const gchar *cseq = rtsp_message_get (request, "CSeq", 0);
  gchar *text = g_strdup_printf ("RTSP/1.0 %s\r\nCSeq: %" G_GUINT64_FORMAT "\r\n%s\r\n",
      knows ? "200 OK" : "501 Not Implemented", cseq ? g_ascii_strtoull (cseq, NULL, 10) : 0,
      "Public: OPTIONS, GET_PARAMETER, SET_PARAMETER, ANNOUNCE, REDIRECT, TEARDOWN\r\n");

  if (self->link)
    rtsp_link_send (self->link, text, strlen (text));
  g_free (text);
  if (g_str_equal (request->method, "REDIRECT"))
    rtsp_client_end (self, "the upstream redirects the session");
  else if (g_str_equal (request->method, "TEARDOWN"))
    rtsp_client_end (self, "the upstream ended the session");
}
