// SPDX-License-Identifier: LGPL-2.1-or-later
// Stored titles of upstreams that can seek, of mounts with the key `interval`. Each reader has
// media of its own (media_get_own()), which plays sessions that readers share. PLAY and PAUSE are
// put aside until the session and the player have done what they ask for.
#include "base/log.h"
#include "outlets/rtsp/media.h"
#include "outlets/rtsp/media_feeds.h"
#include "outlets/rtsp/serving.h"
#include "weir-rtsp.h"

// A server may begin at the keyframe before the place that it was asked for, or at one behind it.
#define NEAR (10 * (gint64) GST_SECOND)
#define OPENINGS_MAX 2

typedef enum { IDLE, OPENS, BEGINS, PAUSES } Step;

// What is done for a request that was put aside.
typedef struct {
  Step step;
  gint64 wanted;        // OPENS: where the session is to play from, ns
  guint n_openings;     // of this request
  Presentation *opened; // OPENS: the session that starts, used; or NULL
  gboolean flows;       // the media gets packets
} Work;

static LogLimit refusals = { .burst = 100, .interval_ms = 100 };
static LogLimit unsought = LOG_LIMIT_FAILURES;

static void
work_free (gpointer data)
{
  Work *self = data;

  g_clear_pointer (&self->opened, presentation_leave);
  g_free (self);
}

static Work *
get_work (GstRTSPSessionMedia *media)
{
  Work *self = g_object_get_data (G_OBJECT (media), "weir-session-work");

  if (!self) {
    self = g_new0 (Work, 1);
    g_object_set_data_full (G_OBJECT (media), "weir-session-work", self, work_free);
  }
  return self;
}

static GstRTSPMedia *
get_media (const RtspRequest *request)
{
  return gst_rtsp_session_media_get_media (request->ctx->sessmedia);
}

static Presentation *
get_own (const RtspRequest *request)
{
  return media_get_own (get_media (request));
}

static Relay *
get_relay (const RtspRequest *request)
{
  return presentation_get_relay (get_own (request));
}

static gboolean
is_playing (const RtspRequest *request)
{
  return gst_rtsp_session_media_get_rtsp_state (request->ctx->sessmedia) == GST_RTSP_STATE_PLAYING;
}

// ---- DESCRIBE ----

// (transfer full)
static gchar *
format_npt (gint64 from, gint64 to)
{
  gchar begin[G_ASCII_DTOSTR_BUF_SIZE], end[G_ASCII_DTOSTR_BUF_SIZE];

  // Players compare the times of pictures with the place that they asked for, to the tick.
  g_ascii_formatd (begin, sizeof begin, "%.6f", (gdouble) from / GST_SECOND);
  g_ascii_formatd (end, sizeof end, "%.3f", (gdouble) to / GST_SECOND);
  return g_strdup_printf ("npt=%s-%s", begin, end);
}

static void
describe (const RtspRequest *request, GstRTSPMedia *media, GstSDPMessage *sdp)
{
  Presentation *own = media_get_own (media);
  GstSDPAttribute range;
  TitlePlace place;
  g_autofree gchar *text = NULL;

  serving_live_describe_sets (own, sdp);
  if (!presentation_get_place (own, &place))
    return;
  text = format_npt (place.start, place.end);
  gst_sdp_attribute_set (&range, "range", text);
  // gst-rtsp-server has described the range of a live stream.
  for (guint i = gst_sdp_message_attributes_len (sdp); i > 0; i--) {
    if (g_str_equal (gst_sdp_message_get_attribute (sdp, i - 1)->key, "range"))
      gst_sdp_message_remove_attribute (sdp, i - 1);
  }
  gst_sdp_message_insert_attribute (sdp, -1, &range);
}

// ---- PLAY ----

static GstRTSPStatusCode
refuse (const RtspRequest *request, GError *error)
{
  log_event_limited (&refusals, "reader %s refused: PLAY: %s", request->peer, error->message);
  g_error_free (error);
  return GST_RTSP_STS_SERVICE_UNAVAILABLE;
}

static GstRTSPStatusCode
refuse_without_media (const RtspRequest *request)
{
  return refuse (request, g_error_new (G_IO_ERROR, G_IO_ERROR_BUSY, NO_MEDIA_PROBLEM,
                              presentation_get_label (get_own (request))));
}

// Opens a session that plays from `at`, and puts the request aside until it has started.
static GstRTSPStatusCode
open_at (Work *self, const RtspRequest *request, gint64 at)
{
  Mount *mount = mounts_get (request->mounts, presentation_get_mount_path (get_own (request)));
  GError *error = NULL;

  if (!mount || ++self->n_openings > OPENINGS_MAX
      || !weir_client_defer (request->ctx->client, request->ctx)) {
    g_clear_pointer (&mount, mount_unref);
    return refuse_without_media (request);
  }
  g_clear_pointer (&self->opened, presentation_leave);
  self->opened = mount_use_at (mount, at, &error);
  mount_unref (mount);
  self->step = OPENS;
  self->wanted = at;
  if (self->opened) {
    presentation_wait (self->opened, resume_run, resume_new (request->ctx->client));
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  }
  resume_run (resume_new (request->ctx->client)); // and then it is refused
  log_event_limited (&refusals, "reader %s: PLAY: %s", request->peer, error->message);
  g_error_free (error);
  return GST_RTSP_STS_SERVICE_UNAVAILABLE;
}

// Begins to play a session (transfer full); NULL: goes on with the one before.
static GstRTSPStatusCode
begin (Work *self, const RtspRequest *request, Presentation *session)
{
  if (!weir_client_defer (request->ctx->client, request->ctx)) {
    g_clear_pointer (&session, presentation_leave);
    return refuse_without_media (request);
  }
  self->step = BEGINS;
  if (self->flows)
    media_feeds_detach (get_media (request), get_relay (request));
  presentation_play (get_own (request), session, resume_run, resume_new (request->ctx->client));
  return GST_RTSP_STS_SERVICE_UNAVAILABLE;
}

// The session plays from elsewhere than it was asked for: its server cannot seek.
static void
note_unsought (const RtspRequest *request, gint64 wanted, gint64 from)
{
  const gchar *path = presentation_get_mount_path (get_own (request));
  g_autoptr (Mount) mount = mounts_get (request->mounts, path);

  log_event_limited (&unsought,
      "mount %s: the upstream does not seek: it was asked to play from %.1f s, and plays from %.1f "
      "s;"
      " new readers are offered no seeks",
      path, (gdouble) wanted / GST_SECOND, (gdouble) from / GST_SECOND);
  if (mount)
    mount_note_unsought (mount);
}

static GstRTSPStatusCode
begin_opened (Work *self, const RtspRequest *request)
{
  Presentation *session = g_steal_pointer (&self->opened);
  GError *error = NULL;
  TitlePlace place;

  if (!session)
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  if (presentation_ask (session, &error) != PRESENTATION_READY
      || !presentation_get_place (session, &place)) {
    presentation_leave (session);
    return error ? refuse (request, error) : refuse_without_media (request);
  }
  if (self->wanted > 0 && ABS (place.from - self->wanted) > NEAR)
    note_unsought (request, self->wanted, place.from);
  return begin (self, request, session);
}

static GstRTSPStatusCode
end_beginning (Work *self, const RtspRequest *request)
{
  Presentation *own = get_own (request);
  TapePlayer *player = presentation_dup_player (own);
  TapeResult result = tape_player_get_result (player);
  gint64 at = tape_player_get_position (player);

  tape_player_unref (player);
  if (result == TAPE_GONE)
    return open_at (self, request, at);
  if (result == TAPE_CHANGED) {
    log_event_limited (
        &refusals, "reader %s refused: PLAY: the title has other tracks by now", request->peer);
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  }
  if (self->flows)
    media_feeds_flush (get_media (request));
  self->flows = FALSE;
  return GST_RTSP_STS_OK;
}

static GstRTSPStatusCode
go_on (Work *self, const RtspRequest *request)
{
  Step step = self->step;

  self->step = IDLE;
  return step == OPENS ? begin_opened (self, request) : end_beginning (self, request);
}

// Pauses a reader that plays, because the packets of the new position must follow the answer.
static void
leave_position (const RtspRequest *request)
{
  if (!is_playing (request))
    return;
  if (request->reader)
    reader_pause (request->reader, TRUE);
  gst_rtsp_session_media_set_state (request->ctx->sessmedia, GST_STATE_PAUSED);
}

static GstRTSPStatusCode
seek (Work *self, const RtspRequest *request, gint64 at)
{
  TitlePlace place;

  if (!presentation_get_place (get_own (request), &place))
    return refuse_without_media (request);
  if (at >= place.end)
    return GST_RTSP_STS_INVALID_RANGE;
  leave_position (request);
  return open_at (self, request, at <= place.start ? 0 : at);
}

// Reports whether a PLAY from `at` is the first one, from the beginning: the session of the
// DESCRIBE plays that.
static gboolean
is_first (const RtspRequest *request, gint64 at)
{
  GstRTSPState state = gst_rtsp_session_media_get_rtsp_state (request->ctx->sessmedia);
  TitlePlace place;

  return state == GST_RTSP_STATE_INIT && presentation_get_place (get_own (request), &place)
         && at <= place.start;
}

static GstRTSPStatusCode
start (Work *self, const RtspRequest *request, const gchar *range)
{
  DemandStart where;
  gint64 at = 0;

  where = range ? demand_read_range (range, &at) : DEMAND_NOW;
  gst_rtsp_message_remove_header (request->ctx->request, GST_RTSP_HDR_RANGE, -1);
  self->n_openings = 0;
  switch (where) {
    case DEMAND_NOW:
      return is_playing (request) ? GST_RTSP_STS_OK : begin (self, request, NULL);
    case DEMAND_NPT:
      return is_first (request, at) ? begin (self, request, NULL) : seek (self, request, at);
    case DEMAND_CLOCK:
    case DEMAND_NOWHERE:
      return GST_RTSP_STS_INVALID_RANGE;
    default:
      return GST_RTSP_STS_BAD_REQUEST;
  }
}

static GstRTSPStatusCode
begin_play (const RtspRequest *request)
{
  Work *self = get_work (request->ctx->sessmedia);
  const gchar *range = request_get_header (request->ctx, GST_RTSP_HDR_RANGE, 0);

  if (!presentation_follows (get_own (request)))
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  if (weir_client_was_deferred (request->ctx->client, request->ctx) && self->step != IDLE)
    return go_on (self, request);
  return start (self, request, range);
}

static void
answer_play (const RtspRequest *request)
{
  TapePlayer *player = presentation_dup_player (get_own (request));
  TitlePlace place;

  if (presentation_get_place (get_own (request), &place)) {
    gst_rtsp_message_remove_header (request->ctx->response, GST_RTSP_HDR_RANGE, -1);
    gst_rtsp_message_take_header (request->ctx->response, GST_RTSP_HDR_RANGE,
        format_npt (tape_player_get_position (player), place.end));
  }
  tape_player_unref (player);
}

static void
end_play (const RtspRequest *request)
{
  Work *self = get_work (request->ctx->sessmedia);
  TapePlayer *player;

  if (self->flows)
    return;
  self->flows = TRUE;
  media_feeds_attach (get_media (request), get_relay (request));
  player = presentation_dup_player (get_own (request));
  tape_player_go (player);
  tape_player_unref (player);
}

// ---- PAUSE ----

static GstRTSPStatusCode
begin_pause (const RtspRequest *request)
{
  Work *self = get_work (request->ctx->sessmedia);
  TapePlayer *player;

  if (self->step == PAUSES) {
    self->step = IDLE;
  } else if (is_playing (request) && weir_client_defer (request->ctx->client, request->ctx)) {
    self->step = PAUSES;
    player = presentation_dup_player (get_own (request));
    tape_player_pause (player, resume_run, resume_new (request->ctx->client));
    tape_player_unref (player);
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  }
  if (request->reader)
    reader_pause (request->reader, TRUE);
  return GST_RTSP_STS_OK;
}

const Serving serving_session = { .describe = describe,
  .begin_play = begin_play,
  .adjust_play = serving_live_adjust,
  .answer_play = answer_play,
  .end_play = end_play,
  .begin_pause = begin_pause };
