// SPDX-License-Identifier: LGPL-2.1-or-later

// A schedulesrc of a live stream: the session's thread asks for the packets since the newest
// keyframe, and then for what the group does not bring.
#include "config.h"

#include "broadcast/schedulesrc_private.h"
#include "core/run/clock.h"

GST_DEBUG_CATEGORY_EXTERN (schedulesrc_debug);
#define GST_CAT_DEFAULT schedulesrc_debug

#define POLL_NS (4 * GST_MSECOND)   // between two looks at what is to be asked for
#define EMPTY_NS (20 * GST_MSECOND) // after an answer without packets
#define RETRY_NS (250 * GST_MSECOND)
#define RANGES_MAX 32
#define PACKETS_MAX 192 // in a request; the server gives up to 256, or 256 KiB
#define FAILURES_MAX 3  // requests for packets in a row that fail while descriptions do not

// All tracks come on the one group, without an end.
static void
receive_all (WeirDescription *d)
{
  WeirDescribedReceive *receive = &d->receives[0];

  *receive = (WeirDescribedReceive) { .channel = d->channels[0].number };
  for (guint i = 0; i < d->n_tracks; i++)
    receive->packets[i] = (WeirPacketRange) { 0, 1 };
  d->n_receives = 1;
}

gint
schedule_src_begin_live (WeirScheduleSrc *self, const WeirFollowSettings *settings, gint64 now)
{
  gint result = weir_live_init (&self->live, self->description->n_tracks, settings);

  if (result == 0)
    weir_live_begin (&self->live, self->description->times, now);
  receive_all (self->description);
  return result;
}

// ---- packets ----

static gboolean
is_new (WeirScheduleSrc *self, guint32 track, const WeirRtp *rtp, gboolean by_group, gsize len)
{
  gint64 now = weir_now_ns ();

  return by_group ? weir_live_heard (&self->live, track, rtp, len, now)
                  : weir_live_answered (&self->live, track, rtp, len, now);
}

void
schedule_src_put_live (WeirScheduleSrc *self, guint32 track, const WeirRtp *rtp, gboolean by_group,
    const guint8 *data, gsize len)
{
  KeptPacket *packet = packet_keep_hold (&self->keep, data, len);
  GQueue dropped = G_QUEUE_INIT;
  gpointer item;

  g_mutex_lock (&self->lock);
  if (is_new (self, track, rtp, by_group, len)) {
    while (weir_live_drop (&self->live, &item))
      g_queue_push_tail (&dropped, item);
    if (weir_live_put (&self->live, track, rtp, by_group, weir_now_ns (), packet) == 0)
      packet = NULL;
    g_cond_signal (&self->pads[track]->cond);
  }
  g_mutex_unlock (&self->lock);
  if (packet)
    g_queue_push_tail (&dropped, packet);
  while ((item = g_queue_pop_head (&dropped)))
    gst_buffer_unref (packet_keep_take (&self->keep, item));
}

static void
take_packet (guint32 track, guint32 number, const guint8 *data, gsize len, gpointer user)
{
  ScheduleSession *s = user;
  WeirRtp rtp;

  if (track >= s->owner->description->n_tracks || weir_rtp_parse (data, len, &rtp) < 0
      || rtp.seq != number)
    return;
  s->n_valid++;
  schedule_src_put_live (s->owner, track, &rtp, FALSE, data, len);
}

// ---- describing again ----

// Begins anew with a description. Returns FALSE if its tracks are others.
static gboolean
take_description (ScheduleSession *s, const RtspAskAnswer *answer, GError **error)
{
  WeirScheduleSrc *self = s->owner;
  WeirDescription *description = g_new0 (WeirDescription, 1);
  gboolean ok = schedule_src_read_description (description, answer, error);

  if (ok && (description->n_frames > 0 || !schedule_src_has_pads (self, answer->sdp))) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "the tracks of the stream have changed on the server since it began");
    ok = FALSE;
  }
  if (ok) {
    receive_all (description);
    g_mutex_lock (&self->lock);
    weir_live_begin (&self->live, description->times, weir_now_ns ());
    self->reconnects++;
    g_mutex_unlock (&self->lock);
    schedule_src_pass_description (self, g_steal_pointer (&description));
  }
  g_free (description);
  return ok;
}

// Returns FALSE if the element stops or cannot go on.
static gboolean
describe_again (ScheduleSession *s)
{
  RtspAskAnswer answer;
  GError *error = NULL;
  gboolean ok;

  rtsp_ask_close (s->owner->ask);
  if (!schedule_src_describe (s, &answer))
    return FALSE;
  ok = take_description (s, &answer, &error);
  if (!ok)
    schedule_src_fail (s->owner, error->code, error->message);
  g_clear_error (&error);
  rtsp_ask_answer_clear (&answer);
  return ok;
}

// ---- asking ----

static void
note_answer (WeirScheduleSrc *self, gboolean newest)
{
  g_mutex_lock (&self->lock);
  if (newest)
    weir_live_answer_ends (&self->live);
  for (guint i = 0; i < self->n_pads; i++)
    g_cond_signal (&self->pads[i]->cond);
  g_mutex_unlock (&self->lock);
}

// Asks for ranges, or without any for the newest packets. Returns FALSE if the element stops or
// cannot go on.
static gboolean
ask_for_packets (ScheduleSession *s, const WeirFollowRange *ranges, gsize n)
{
  WeirScheduleSrc *self = s->owner;
  gchar *why = NULL;
  RtspAskResult result;
  gboolean ok = TRUE;

  s->n_valid = 0;
  result = rtsp_ask_packets (self->ask, ranges, n, take_packet, s, &why);
  note_answer (self, n == 0 && result == RTSP_ASK_OK);
  s->n_refused = result == RTSP_ASK_REFUSED ? s->n_refused + 1 : 0;
  if (why)
    GST_INFO_OBJECT (self, "%s", why);
  if (s->n_refused > FAILURES_MAX) {
    schedule_src_fail (self, GST_RESOURCE_ERROR_READ, why);
    ok = FALSE;
  } else if (result == RTSP_ASK_GONE || result == RTSP_ASK_REFUSED) {
    ok = schedule_src_wait (self, weir_now_ns () + (gint64) RETRY_NS) && describe_again (s);
  } else if (result == RTSP_ASK_WAIT) {
    ok = schedule_src_wait (self, weir_now_ns () + (gint64) RETRY_NS);
  } else if (result == RTSP_ASK_OK && s->n_valid == 0) {
    ok = schedule_src_wait (self, weir_now_ns () + (gint64) EMPTY_NS);
  }
  g_free (why);
  return ok && result != RTSP_ASK_STOPPED;
}

void
schedule_src_follow_live (ScheduleSession *s)
{
  WeirScheduleSrc *self = s->owner;
  WeirFollowRange ranges[RANGES_MAX];
  gboolean go_on = TRUE, stuck = FALSE;

  while (go_on && !stuck) {
    gint64 now = weir_now_ns ();
    gboolean newest, stale;
    gsize n;

    g_mutex_lock (&self->lock);
    newest = !self->live.answered;
    n = newest ? 0 : weir_live_ask (&self->live, now, ranges, RANGES_MAX, PACKETS_MAX);
    stale = weir_live_is_stale (&self->live, now);
    stuck = schedule_src_is_stuck (s);
    go_on = !self->stopping && !self->ending;
    g_mutex_unlock (&self->lock);
    if (!go_on || stuck)
      break;
    if (stale)
      go_on = describe_again (s);
    else if (newest || n > 0)
      go_on = ask_for_packets (s, ranges, n);
    else
      go_on = schedule_src_wait (self, now + (gint64) POLL_NS);
  }
  if (stuck && go_on)
    schedule_src_fail (self, GST_RESOURCE_ERROR_READ, "no packets come from the server any more");
}
