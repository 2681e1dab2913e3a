// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/broadcast_requests.h"

#include "base/log.h"
#include "broadcast/source_address.h"
#include "config/mount_broadcast.h"
#include "outlets/rtsp/answer.h"
#include "text/config_error.h"
#include "weir-rtsp.h"

#include <libsoup/soup.h>
#include <string.h>

#define FEATURE "x-weir-schedule"
#define RUN_HEADER "X-Weir-Run"
#define RANGES_TYPE "application/x-weir-ranges"
#define PACKETS_TYPE "application/x-weir-packets"
#define SDP_TYPE "application/sdp"
#define BUSY_RETRY_S 1
#define UNREAD_INTERVAL_MS 20 // between two looks at whether the client has read its last answer

// Shared by all clients, because any peer can cause refusals as fast as it sends requests.
static LogLimit refusals = { .burst = 100, .interval_ms = 100 };

// What a disk is asked for a request: packets, or whether a title is there. The broadcast fills it
// in, in a thread of its own, and then resumes the request; the client may be gone by then.
struct _BroadcastReading {
  gatomicrefcount refs;
  gpointer resume;
  GBytes *body;  // NULL until the packets are read, and if there is an error
  gchar *etag;   // of the body
  gchar *run;    // of the broadcast
  GError *error; // or NULL
};

static void
reading_unref (BroadcastReading *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_pointer (&self->body, g_bytes_unref);
  g_clear_error (&self->error);
  g_free (self->etag);
  g_free (self->run);
  g_free (self);
}

void
broadcast_requests_init (BroadcastRequests *self, RtspConnection *connection)
{
  *self = (BroadcastRequests) { .connection = connection };
}

void
broadcast_requests_clear (BroadcastRequests *self)
{
  g_clear_pointer (&self->reading, reading_unref);
}

// ---- headers ----

// Reports whether one of the elements in a list of values, without their parameters, is `wanted`.
static gboolean
list_has (const gchar *list, const gchar *wanted)
{
  g_auto (GStrv) items = g_strsplit (list, ",", 0);
  gboolean has = FALSE;

  for (gchar **item = items; *item && !has; item++) {
    (*item)[strcspn (*item, ";")] = '\0';
    has = g_ascii_strcasecmp (g_strstrip (*item), wanted) == 0;
  }
  return has;
}

static gboolean
header_has (GstRTSPContext *ctx, GstRTSPHeaderField field, const gchar *wanted)
{
  const gchar *list;

  for (gint i = 0; (list = request_get_header (ctx, field, i)); i++) {
    if (list_has (list, wanted))
      return TRUE;
  }
  return FALSE;
}

// Without the header, a client accepts any type.
static gboolean
accepts (GstRTSPContext *ctx, const gchar *type)
{
  return !request_get_header (ctx, GST_RTSP_HDR_ACCEPT, 0)
         || header_has (ctx, GST_RTSP_HDR_ACCEPT, type)
         || header_has (ctx, GST_RTSP_HDR_ACCEPT, "application/*")
         || header_has (ctx, GST_RTSP_HDR_ACCEPT, "*/*");
}

gboolean
broadcast_requests_asks_for_packets (GstRTSPContext *ctx)
{
  return ctx->method == GST_RTSP_GET_PARAMETER
         && header_has (ctx, GST_RTSP_HDR_CONTENT_TYPE, RANGES_TYPE);
}

// ---- answers ----

// Answers an error. `retry_s` 0: trying again would not help.
static GstRTSPStatusCode
refuse (BroadcastRequests *self, GstRTSPContext *ctx, GstRTSPStatusCode status, guint retry_s,
    const gchar *why)
{
  log_event_limited (&refusals, "reader %s refused: %s", self->connection->peer, why);
  return answer_refuse (ctx, status, retry_s, why);
}

static GstRTSPStatusCode
refuse_error (BroadcastRequests *self, GstRTSPContext *ctx, const GError *error)
{
  static const struct {
    GIOErrorEnum code;
    GstRTSPStatusCode status;
  } codes[] = {
    { G_IO_ERROR_INVALID_ARGUMENT, GST_RTSP_STS_BAD_REQUEST },
    { G_IO_ERROR_INVALID_DATA, GST_RTSP_STS_INVALID_RANGE },
    { G_IO_ERROR_NOT_FOUND, GST_RTSP_STS_NOT_FOUND },
    { G_IO_ERROR_NO_SPACE, GST_RTSP_STS_NOT_ENOUGH_BANDWIDTH },
    { G_IO_ERROR_BUSY, GST_RTSP_STS_SERVICE_UNAVAILABLE },
  };
  // The query of the URL has a wrong value, as for any reader.
  gboolean wrong = error->domain == CONFIG_ERROR;
  GstRTSPStatusCode status = wrong ? GST_RTSP_STS_NOT_FOUND : GST_RTSP_STS_INTERNAL_SERVER_ERROR;

  for (guint i = 0; i < G_N_ELEMENTS (codes); i++) {
    if (g_error_matches (error, G_IO_ERROR, (gint) codes[i].code))
      status = codes[i].status;
  }
  return refuse (self, ctx, status, status == GST_RTSP_STS_SERVICE_UNAVAILABLE ? BUSY_RETRY_S : 0,
      error->message);
}

static GstRTSPStatusCode
refuse_type (BroadcastRequests *self, GstRTSPContext *ctx, const gchar *type)
{
  g_autofree gchar *why =
      g_strdup_printf ("the answer is %s, which the header Accept does not name", type);

  return refuse (self, ctx, GST_RTSP_STS_NOT_ACCEPTABLE, 0, why);
}

// ---- finding ----

typedef struct {
  LiveBroadcast *live; // the broadcast of a stream; or NULL, and
  Broadcast *broadcast;
  gchar *name;   // of the title, unescaped
  gchar *source; // the address from which packets are sent, or NULL
} Found;

static void
found_clear (Found *self)
{
  g_clear_pointer (&self->live, live_broadcast_unref);
  g_clear_pointer (&self->broadcast, broadcast_unref);
  g_free (self->name);
  g_free (self->source);
}

static gchar *
dup_source (Mount *mount)
{
  g_autoptr (MountConfig) config = mount_dup_config (mount);
  const BroadcastConfig broadcast = mount_broadcast_get (config);

  return source_address_dup (broadcast.groups, broadcast.iface);
}

// Reports whether the demand is for what the broadcast of a stream sends: the mount's own
// presentation, all its layers, at the live edge.
static gboolean
is_own (const Demand *demand, const Resolved *resolved)
{
  return !resolved->is_below && !resolved->choices && demand->delay_ns < 0
         && weir_layer_set_equal (demand->layers, WEIR_LAYER_SET_ALL);
}

// Finds what a request is about. Returns FALSE, with or without an error, if it has no broadcast.
static gboolean
find_broadcast (RequestTarget *request, Found *found, GError **error)
{
  const Resolved *target = request_target_get (request, error);

  *found = (Found) { 0 };
  if (!target || !target->mount)
    return FALSE;
  if (target->title) {
    found->broadcast = mount_dup_broadcast (target->mount);
    found->name = title_decode_name (target->title);
  } else if (is_own (request->demand, target)) {
    found->live = mount_dup_live_broadcast (target->mount);
  }
  if (found->live || (found->broadcast && found->name))
    found->source = dup_source (target->mount);
  else if (found->broadcast)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "the URL does not name a title");
  return found->live || (found->broadcast && found->name);
}

// ---- waiting for a disk ----

// Begins to read for a request that was put aside. Returns what the broadcast's thread gets.
static BroadcastReading *
reading_begin (BroadcastRequests *self, Broadcast *broadcast)
{
  BroadcastReading *reading = g_new0 (BroadcastReading, 1);

  g_atomic_ref_count_init (&reading->refs);
  reading->resume = resume_new (self->connection->client);
  reading->run = g_strdup (broadcast_get_run (broadcast));
  self->connection->waits_for_content = TRUE;
  self->reading = reading;
  g_atomic_ref_count_inc (&reading->refs);
  return reading;
}

static void
reading_end (BroadcastReading *self, const GError *error)
{
  self->error = error ? g_error_copy (error) : NULL;
  resume_run (g_steal_pointer (&self->resume));
  reading_unref (self);
}

// ---- DESCRIBE ----

static void
add_etag (GstRTSPContext *ctx, const gchar *etag)
{
  gst_rtsp_message_take_header (ctx->response, GST_RTSP_HDR_ETAG, g_strdup_printf ("\"%s\"", etag));
}

static void
add_run (GstRTSPContext *ctx, const gchar *run)
{
  gst_rtsp_message_add_header_by_name (ctx->response, RUN_HEADER, run);
}

static void
add_expiry (GstRTSPContext *ctx, guint valid_s)
{
  g_autoptr (GDateTime) now = g_date_time_new_now_utc ();
  g_autoptr (GDateTime) end = g_date_time_add_seconds (now, valid_s);

  gst_rtsp_message_take_header (
      ctx->response, GST_RTSP_HDR_EXPIRES, soup_date_time_to_string (end, SOUP_DATE_HTTP));
}

static GstRTSPStatusCode
answer_description (
    GstRTSPContext *ctx, const gchar *run, const gchar *sdp, const gchar *etag, guint valid_s)
{
  g_autofree gchar *uri = gst_rtsp_url_get_request_uri (ctx->uri);

  // Clients append the URLs of the tracks to it, so it has no query.
  uri[strcspn (uri, "?")] = '\0';
  answer_begin (ctx, GST_RTSP_STS_OK);
  gst_rtsp_message_add_header_by_name (ctx->response, "Supported", FEATURE);
  gst_rtsp_message_take_header (ctx->response, GST_RTSP_HDR_CONTENT_BASE,
      g_strconcat (uri, g_str_has_suffix (uri, "/") ? "" : "/", NULL));
  add_etag (ctx, etag);
  if (run)
    add_run (ctx, run);
  add_expiry (ctx, valid_s);
  answer_add_body (ctx, SDP_TYPE, sdp, strlen (sdp));
  return answer_send (ctx, NULL);
}

static GstRTSPStatusCode
describe (BroadcastRequests *self, GstRTSPContext *ctx, const Found *found)
{
  gchar *sdp = NULL, *etag = NULL, *why;
  guint valid_s = 0, retry_s = 0;
  GError *error = NULL;
  GstRTSPStatusCode status = GST_RTSP_STS_OK;
  BroadcastAnswer answer = BROADCAST_FAILED;

  if (!found->live)
    answer = broadcast_describe (
        found->broadcast, found->name, found->source, &sdp, &etag, &valid_s, &retry_s, &error);
  else if (live_broadcast_describe (found->live, found->source, &sdp, &etag, &valid_s, &error))
    answer = BROADCAST_READY;
  switch (answer) {
    case BROADCAST_READY:
      status = answer_description (
          ctx, found->broadcast ? broadcast_get_run (found->broadcast) : NULL, sdp, etag, valid_s);
      break;
    case BROADCAST_PREPARING:
      why = g_strdup_printf ("%s is being prepared for its broadcast", found->name);
      status = refuse (self, ctx, GST_RTSP_STS_SERVICE_UNAVAILABLE, MAX (retry_s, 1), why);
      g_free (why);
      break;
    case BROADCAST_FAILED:
      // The ordinary description serves a title that cannot be broadcast.
      if (!g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED))
        status = refuse_error (self, ctx, error);
      break;
  }
  g_clear_error (&error);
  g_free (sdp);
  g_free (etag);
  return status;
}

static void
on_looked (const GError *error, gpointer reading)
{
  reading_end (reading, error);
}

// Describes a title after a look on its disk; puts the request aside until then, if possible.
static GstRTSPStatusCode
look_and_describe (BroadcastRequests *self, GstRTSPContext *ctx, const Found *found)
{
  if (!broadcast_needs_look (found->broadcast, found->name))
    return describe (self, ctx, found);
  if (weir_client_defer (self->connection->client, ctx)) {
    broadcast_look (
        found->broadcast, found->name, on_looked, reading_begin (self, found->broadcast));
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  }
  broadcast_look (found->broadcast, found->name, NULL, NULL);
  return describe (self, ctx, found);
}

// Reports whether the ordinary DESCRIBE answers, as clients cannot have the title.
static gboolean
end_looking (BroadcastRequests *self)
{
  BroadcastReading *looked = g_steal_pointer (&self->reading);
  gboolean failed = looked->error != NULL;

  self->connection->waits_for_content = FALSE;
  reading_unref (looked);
  return failed;
}

static GstRTSPStatusCode
check_description (BroadcastRequests *self, RequestTarget *request)
{
  GstRTSPContext *ctx = request->ctx;
  gboolean waited = self->connection->waits_for_content
                    && weir_client_was_deferred (self->connection->client, ctx);
  GstRTSPStatusCode status = GST_RTSP_STS_OK;
  Found found;

  // Without a look, it is the ordinary DESCRIBE that has waited.
  if (waited && (!self->reading || end_looking (self)))
    return GST_RTSP_STS_OK;
  // Without a broadcast, the ordinary DESCRIBE answers.
  if (!find_broadcast (request, &found, NULL))
    ;
  else if (!accepts (ctx, SDP_TYPE))
    status = refuse_type (self, ctx, SDP_TYPE);
  else if (found.live || waited)
    status = describe (self, ctx, &found);
  else
    status = look_and_describe (self, ctx, &found);
  found_clear (&found);
  return status;
}

// ---- GET_PARAMETER ----

static void
on_read (GBytes *body, const gchar *etag, const GError *error, gpointer data)
{
  BroadcastReading *reading = data;

  reading->body = body ? g_bytes_ref (body) : NULL;
  reading->etag = g_strdup (etag);
  reading_end (reading, error);
}

// Returns the body of a request, without the zero that GStreamer adds to each.
static const gchar *
get_ranges (GstRTSPContext *ctx, gsize *length)
{
  guint8 *data = NULL;
  guint size = 0;

  gst_rtsp_message_get_body (ctx->request, &data, &size);
  *length = size > 0 && !data[size - 1] ? size - 1 : size;
  return data ? (const gchar *) data : "";
}

// Puts the request aside until its packets are read.
static GstRTSPStatusCode
begin_reading (BroadcastRequests *self, GstRTSPContext *ctx, const Found *found)
{
  const gchar *ranges;
  gsize length;

  // The request is put aside first, as on_read() may be called at once.
  if (!weir_client_defer (self->connection->client, ctx))
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  ranges = get_ranges (ctx, &length);
  broadcast_read (found->broadcast, found->name, ranges, length, on_read,
      reading_begin (self, found->broadcast));
  return GST_RTSP_STS_SERVICE_UNAVAILABLE;
}

static GstRTSPStatusCode
answer_packets (BroadcastRequests *self, GstRTSPContext *ctx, GBytes *body,
    const BroadcastReading *reading, const GError *error)
{
  gconstpointer data;
  gsize size;

  if (error)
    return refuse_error (self, ctx, error);
  data = g_bytes_get_data (body, &size);
  answer_begin (ctx, GST_RTSP_STS_OK);
  if (reading) {
    add_etag (ctx, reading->etag);
    add_run (ctx, reading->run);
  }
  answer_add_body (ctx, PACKETS_TYPE, data, size);
  return answer_send (ctx, NULL);
}

static GstRTSPStatusCode
end_reading (BroadcastRequests *self, GstRTSPContext *ctx)
{
  BroadcastReading *reading = g_steal_pointer (&self->reading);
  GstRTSPStatusCode status = answer_packets (self, ctx, reading->body, reading, reading->error);

  reading_unref (reading);
  return status;
}

// The packets of a stream are in memory.
static GstRTSPStatusCode
answer_live (BroadcastRequests *self, GstRTSPContext *ctx, LiveBroadcast *live)
{
  gsize length;
  const gchar *ranges = get_ranges (ctx, &length);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) body = live_broadcast_read (live, ranges, length, &error);

  return answer_packets (self, ctx, body, NULL, error);
}

// Puts the request aside while the client has not read its last answer, so that at most one answer
// is in memory for it.
static GstRTSPStatusCode
wait_for_room (BroadcastRequests *self, GstRTSPContext *ctx)
{
  if (weir_client_defer (self->connection->client, ctx))
    resume_after (self->connection->client, UNREAD_INTERVAL_MS);
  return GST_RTSP_STS_SERVICE_UNAVAILABLE;
}

static GstRTSPStatusCode
check_packets (BroadcastRequests *self, RequestTarget *request)
{
  GstRTSPContext *ctx = request->ctx;
  g_autoptr (GError) error = NULL;
  GstRTSPStatusCode status;
  Found found;

  if (self->reading && weir_client_was_deferred (self->connection->client, ctx))
    return end_reading (self, ctx);
  self->connection->waits_for_content = TRUE;
  if (weir_client_get_waiting (self->connection->client) > 0)
    return wait_for_room (self, ctx);
  if (!find_broadcast (request, &found, &error))
    status = error ? refuse_error (self, ctx, error)
                   : refuse (self, ctx, GST_RTSP_STS_UNSUPPORTED_MEDIA_TYPE, 0,
                         "the path has no broadcast, so it has no numbered packets");
  else if (!accepts (ctx, PACKETS_TYPE))
    status = refuse_type (self, ctx, PACKETS_TYPE);
  else if (found.live)
    status = answer_live (self, ctx, found.live);
  else
    status = begin_reading (self, ctx, &found);
  found_clear (&found);
  return status;
}

GstRTSPStatusCode
broadcast_requests_check (BroadcastRequests *self, RequestTarget *request)
{
  if (broadcast_requests_asks_for_packets (request->ctx))
    return check_packets (self, request);
  return request->ctx->method == GST_RTSP_DESCRIBE
                 && header_has (request->ctx, GST_RTSP_HDR_SUPPORTED, FEATURE)
             ? check_description (self, request)
             : GST_RTSP_STS_OK;
}
