// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "broadcast/rtspask.h"

#include <string.h>

#include "core/bits/bytes.h"

#define SCHEME "rtsp-schedule://"
#define FEATURE "x-weir-schedule"
#define RUN_HEADER "X-Weir-Run"
#define USER_AGENT "schedulesrc"
#define WAIT_US (5 * G_USEC_PER_SEC) // for an answer
#define BODY_MAX (300 << 10)
#define RETRY_MAX 3600 // s

struct _RtspAsk {
  GstRTSPUrl *url;
  gchar *text; // the URL without user and password
  gchar *user, *password;
  gchar *id;                     // of the last description, or NULL
  gchar *run;                    // of the server that gave it, or NULL
  gboolean timed_out;            // the last request that failed
  GMutex lock;                   // guards the two fields below
  GstRTSPConnection *connection; // NULL: closed
  gboolean stopped;
};

RtspAsk *
rtsp_ask_new (const gchar *location, const gchar *user, const gchar *password, GError **error)
{
  GstRTSPUrl *url = NULL;
  gchar *text = NULL;
  RtspAsk *self;

  if (location && g_ascii_strncasecmp (location, SCHEME, strlen (SCHEME)) == 0)
    text = g_strconcat ("rtsp://", location + strlen (SCHEME), NULL);
  if (!text || gst_rtsp_url_parse (text, &url) != GST_RTSP_OK || !url->host || !*url->host) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "\"%s\" is not a URI such as rtsp-schedule://HOST/films/a.mp4", location ? location : "");
    g_clear_pointer (&url, gst_rtsp_url_free);
    g_free (text);
    return NULL;
  }
  g_free (text);
  self = g_new0 (RtspAsk, 1);
  self->url = url;
  self->text = gst_rtsp_url_get_request_uri (url);
  self->user = g_strdup (url->user ? url->user : user);
  self->password = g_strdup (url->user ? url->passwd : password);
  g_mutex_init (&self->lock);
  return self;
}

void
rtsp_ask_free (RtspAsk *self)
{
  rtsp_ask_close (self);
  gst_rtsp_url_free (self->url);
  g_free (self->text);
  g_free (self->user);
  g_free (self->password);
  g_mutex_clear (&self->lock);
  g_free (self->id);
  g_free (self->run);
  g_free (self);
}

void
rtsp_ask_stop (RtspAsk *self)
{
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  if (self->connection)
    gst_rtsp_connection_flush (self->connection, TRUE); // only wakes the other thread
  g_mutex_unlock (&self->lock);
}

void
rtsp_ask_close (RtspAsk *self)
{
  GstRTSPConnection *connection;

  g_mutex_lock (&self->lock);
  connection = g_steal_pointer (&self->connection);
  g_mutex_unlock (&self->lock);
  if (!connection)
    return;
  gst_rtsp_connection_close (connection);
  gst_rtsp_connection_free (connection);
}

static RtspAskResult
fail_request (RtspAsk *self, GstRTSPResult result, const gchar *doing, gchar **why)
{
  gchar *text = gst_rtsp_strresult (result);
  gboolean stopped;

  g_mutex_lock (&self->lock);
  stopped = self->stopped;
  g_mutex_unlock (&self->lock);
  rtsp_ask_close (self);
  self->timed_out = result == GST_RTSP_ETIMEOUT;
  *why = stopped ? NULL
                 : g_strdup_printf ("%s %s:%u: %s", doing, self->url->host, self->url->port, text);
  g_free (text);
  return stopped ? RTSP_ASK_STOPPED : RTSP_ASK_GONE;
}

static RtspAskResult
connect_to_server (RtspAsk *self, gchar **why)
{
  GstRTSPConnection *connection = NULL;
  GstRTSPResult result;
  gboolean stopped;

  if (self->connection)
    return RTSP_ASK_OK;
  result = gst_rtsp_connection_create (self->url, &connection);
  if (result != GST_RTSP_OK)
    return fail_request (self, result, "cannot connect to", why);
  gst_rtsp_connection_set_content_length_limit (connection, BODY_MAX);
  g_mutex_lock (&self->lock);
  stopped = self->stopped;
  self->connection = connection;
  g_mutex_unlock (&self->lock);
  result = stopped ? GST_RTSP_EINTR : gst_rtsp_connection_connect_usec (connection, WAIT_US);
  return result == GST_RTSP_OK ? RTSP_ASK_OK
                               : fail_request (self, result, "cannot connect to", why);
}

// Answers the server's challenge. Returns FALSE if there is nothing to answer it with.
static gboolean
authenticate (RtspAsk *self, GstRTSPMessage *response)
{
  GstRTSPAuthCredential **credentials, **at;
  GstRTSPAuthMethod method = GST_RTSP_AUTH_NONE;

  if (!self->user || !self->password)
    return FALSE;
  credentials = gst_rtsp_message_parse_auth_credentials (response, GST_RTSP_HDR_WWW_AUTHENTICATE);
  gst_rtsp_connection_clear_auth_params (self->connection);
  for (at = credentials; at && *at; at++) {
    if ((*at)->scheme != GST_RTSP_AUTH_BASIC && (*at)->scheme != GST_RTSP_AUTH_DIGEST)
      continue;
    if (method == GST_RTSP_AUTH_DIGEST)
      continue;
    method = (*at)->scheme;
    for (GstRTSPAuthParam **p = (*at)->params; p && *p; p++)
      gst_rtsp_connection_set_auth_param (self->connection, (*p)->name, (*p)->value);
  }
  if (credentials)
    gst_rtsp_auth_credentials_free (credentials);
  return method != GST_RTSP_AUTH_NONE
         && gst_rtsp_connection_set_auth (self->connection, method, self->user, self->password)
                == GST_RTSP_OK;
}

// Sends a request and receives its response, which the caller unsets after RTSP_ASK_OK.
static RtspAskResult
exchange (RtspAsk *self, GstRTSPMessage *request, GstRTSPMessage *response, gchar **why)
{
  GstRTSPResult result;
  gboolean received = FALSE;

  // GStreamer adds the credentials of the connection to those of an earlier try.
  gst_rtsp_message_remove_header (request, GST_RTSP_HDR_AUTHORIZATION, -1);
  result = gst_rtsp_connection_send_usec (self->connection, request, WAIT_US);

  if (result != GST_RTSP_OK)
    return fail_request (self, result, "cannot send to", why);
  while (!received) {
    memset (response, 0, sizeof *response);
    result = gst_rtsp_connection_receive_usec (self->connection, response, WAIT_US);
    if (result != GST_RTSP_OK) {
      gst_rtsp_message_unset (response);
      return fail_request (self, result, "no answer from", why);
    }
    // Requests of the server are not for this client.
    received = response->type == GST_RTSP_MESSAGE_RESPONSE;
    if (!received)
      gst_rtsp_message_unset (response);
  }
  return RTSP_ASK_OK;
}

static RtspAskResult
ask_once (RtspAsk *self, GstRTSPMessage *request, GstRTSPMessage *response, gchar **why)
{
  RtspAskResult result = connect_to_server (self, why);

  if (result == RTSP_ASK_OK)
    result = exchange (self, request, response, why);
  if (result != RTSP_ASK_OK || response->type_data.response.code != GST_RTSP_STS_UNAUTHORIZED
      || !authenticate (self, response))
    return result;
  gst_rtsp_message_unset (response);
  return exchange (self, request, response, why);
}

// Asks once more, over a new connection, if the server has closed the one before.
static RtspAskResult
ask (RtspAsk *self, GstRTSPMessage *request, GstRTSPMessage *response, gchar **why)
{
  gboolean kept = self->connection != NULL;
  RtspAskResult result = ask_once (self, request, response, why);

  if (result != RTSP_ASK_GONE || !kept || self->timed_out)
    return result;
  g_clear_pointer (why, g_free);
  return ask_once (self, request, response, why);
}

static gchar *
dup_run (GstRTSPMessage *response)
{
  gchar *run = NULL;

  gst_rtsp_message_get_header_by_name (response, RUN_HEADER, &run, 0);
  return g_strdup (run);
}

// Describes a refusal with the server's reason, the first line of the body.
static RtspAskResult
refuse (RtspAsk *self, GstRTSPMessage *response, guint *retry_s, gchar **why)
{
  GstRTSPStatusCode code = response->type_data.response.code;
  gchar *header = NULL, *reason;
  guint8 *body = NULL;
  guint size = 0;

  gst_rtsp_message_get_body (response, &body, &size);
  reason = body ? g_utf8_make_valid ((const gchar *) body, MIN (size, 200)) : g_strdup ("");
  reason[strcspn (reason, "\r\n")] = '\0';
  *why = g_strdup_printf ("%s:%u answers %d %s%s%s", self->url->host, self->url->port, code,
      response->type_data.response.reason ? response->type_data.response.reason : "",
      *reason ? ": " : "", reason);
  g_free (reason);
  gst_rtsp_message_get_header (response, GST_RTSP_HDR_RETRY_AFTER, &header, 0);
  if (code != GST_RTSP_STS_SERVICE_UNAVAILABLE)
    return RTSP_ASK_REFUSED;
  *retry_s = header ? (guint) CLAMP (g_ascii_strtoull (header, NULL, 10), 1, RETRY_MAX) : 1;
  return RTSP_ASK_WAIT;
}

void
rtsp_ask_answer_clear (RtspAskAnswer *answer)
{
  g_clear_pointer (&answer->sdp, g_free);
  g_clear_pointer (&answer->id, g_free);
}

RtspAskResult
rtsp_ask_describe (RtspAsk *self, RtspAskAnswer *answer, gchar **why)
{
  GstRTSPMessage request = { 0 }, response = { 0 };
  RtspAskResult result;
  gchar *id = NULL;
  guint8 *body = NULL;
  guint size = 0;

  *answer = (RtspAskAnswer) { 0 };
  gst_rtsp_message_init_request (&request, GST_RTSP_DESCRIBE, self->text);
  gst_rtsp_message_add_header (&request, GST_RTSP_HDR_ACCEPT, "application/sdp");
  gst_rtsp_message_add_header (&request, GST_RTSP_HDR_USER_AGENT, USER_AGENT);
  gst_rtsp_message_add_header_by_name (&request, "Supported", FEATURE);
  result = ask (self, &request, &response, why);
  gst_rtsp_message_unset (&request);
  if (result != RTSP_ASK_OK)
    return result;
  if (response.type_data.response.code != GST_RTSP_STS_OK)
    result = refuse (self, &response, &answer->retry_s, why);
  else {
    gst_rtsp_message_get_body (&response, &body, &size);
    gst_rtsp_message_get_header (&response, GST_RTSP_HDR_ETAG, &id, 0);
    answer->sdp = g_strndup ((const gchar *) body, size);
    answer->length = body ? strlen (answer->sdp) : 0;
    answer->id = g_strdup (id ? id : "");
    g_free (self->id);
    self->id = g_strdup (answer->id);
    g_free (self->run);
    self->run = dup_run (&response);
  }
  gst_rtsp_message_unset (&response);
  return result;
}

// Reads the packets of an answer. Returns FALSE if it is cut off.
static gboolean
read_packets (const guint8 *body, gsize size, RtspAskPacketFunc func, gpointer data)
{
  WeirBytes b = weir_bytes (body, size);
  const uint8_t *packet;
  uint32_t number;
  uint16_t track, len;

  while (weir_bytes_left (&b) > 0) {
    if (!weir_bytes_u32 (&b, &number) || !weir_bytes_u16 (&b, &track) || !weir_bytes_u16 (&b, &len)
        || !weir_bytes_take (&b, len, &packet))
      return FALSE;
    func (track, number, packet, len, data);
  }
  return TRUE;
}

// Returns the body of an answer without the NUL that GStreamer adds to it.
static gsize
body_size (GstRTSPMessage *response, guint8 **body)
{
  gchar *length = NULL;
  guint size = 0;

  gst_rtsp_message_get_body (response, body, &size);
  if (gst_rtsp_message_get_header (response, GST_RTSP_HDR_CONTENT_LENGTH, &length, 0)
      != GST_RTSP_OK)
    return 0;
  return (gsize) MIN (g_ascii_strtoull (length, NULL, 10), size);
}

// Reports whether the packets of an answer are those that were described. For a live stream, their
// numbers and SSRCs say so.
static gboolean
is_described (const RtspAsk *self, GstRTSPMessage *response)
{
  gchar *id = NULL;

  gst_rtsp_message_get_header (response, GST_RTSP_HDR_ETAG, &id, 0);
  return !id || g_strcmp0 (id, self->id) == 0;
}

// Reports whether a server that tells its runs has begun anew since the description: then it does
// not send on groups what it has promised.
static gboolean
has_begun_anew (const RtspAsk *self, GstRTSPMessage *response)
{
  gchar *run = dup_run (response);
  gboolean anew = run && self->run && !g_str_equal (run, self->run);

  g_free (run);
  return anew;
}

static void
make_ranges (GstRTSPMessage *request, const WeirFollowRange *ranges, gsize n)
{
  GString *body = g_string_new (n == 0 ? "live" : NULL);

  for (gsize i = 0; i < n; i++)
    g_string_append_printf (
        body, "%u %u-%u\r\n", ranges[i].track, ranges[i].from, ranges[i].to - 1);
  gst_rtsp_message_add_header (request, GST_RTSP_HDR_CONTENT_TYPE, "application/x-weir-ranges");
  gst_rtsp_message_set_body (request, (const guint8 *) body->str, (guint) body->len);
  g_string_free (body, TRUE);
}

RtspAskResult
rtsp_ask_packets (RtspAsk *self, const WeirFollowRange *ranges, gsize n, RtspAskPacketFunc func,
    gpointer data, gchar **why)
{
  GstRTSPMessage request = { 0 }, response = { 0 };
  RtspAskResult result;
  guint8 *body = NULL;
  guint retry_s;
  gsize size;

  gst_rtsp_message_init_request (&request, GST_RTSP_GET_PARAMETER, self->text);
  make_ranges (&request, ranges, n);
  result = ask (self, &request, &response, why);
  gst_rtsp_message_unset (&request);
  if (result != RTSP_ASK_OK)
    return result;
  size = body_size (&response, &body);
  if (response.type_data.response.code != GST_RTSP_STS_OK)
    result = refuse (self, &response, &retry_s, why);
  else if (!is_described (self, &response)) {
    *why = g_strdup ("the packets are of another title than the description");
    result = RTSP_ASK_REFUSED;
  } else if (!read_packets (body, size, func, data)) {
    *why = g_strdup ("the server's answer with packets is cut off");
    result = RTSP_ASK_REFUSED;
  } else if (has_begun_anew (self, &response)) {
    *why = g_strdup ("the server has begun anew");
    result = RTSP_ASK_ANEW;
  }
  gst_rtsp_message_unset (&response);
  return result;
}
