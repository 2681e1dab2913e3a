// SPDX-License-Identifier: LGPL-2.1-or-later

// The thread of a schedulesrc that talks to the server.
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "broadcast/schedulesrc_private.h"
#include "core/run/clock.h"

GST_DEBUG_CATEGORY_EXTERN (schedulesrc_debug);
#define GST_CAT_DEFAULT schedulesrc_debug

#define POLL_NS (4 * GST_MSECOND) // between two looks at what is to be asked for
#define RETRY_MIN_NS (250 * GST_MSECOND)
#define RETRY_MAX_NS (4 * GST_SECOND)
#define RANGES_MAX 32
#define REFUSALS_MAX 3  // requests for packets in a row
#define PACKETS_MAX 192 // in a request; the server gives up to 256, or 256 KiB

gboolean
schedule_src_wait (WeirScheduleSrc *self, gint64 until)
{
  gboolean stopping;

  g_mutex_lock (&self->lock);
  while (!self->stopping && weir_now_ns () < until)
    g_cond_wait_until (&self->cond, &self->lock, (until + 999) / 1000);
  stopping = self->stopping;
  g_mutex_unlock (&self->lock);
  return !stopping;
}

static GstResourceError
code_of (RtspAskResult result)
{
  return result == RTSP_ASK_REFUSED ? GST_RESOURCE_ERROR_NOT_FOUND : GST_RESOURCE_ERROR_OPEN_READ;
}

gboolean
schedule_src_describe (ScheduleSession *s, RtspAskAnswer *answer)
{
  WeirScheduleSrc *self = s->owner;
  gint64 end = weir_now_ns () + s->timeout_ns, pause = RETRY_MIN_NS;
  RtspAskResult result;
  gchar *why = NULL;

  while ((result = rtsp_ask_describe (self->ask, answer, &why)) != RTSP_ASK_OK) {
    gint64 wait = result == RTSP_ASK_WAIT ? (gint64) answer->retry_s * (gint64) GST_SECOND : pause;

    if (result == RTSP_ASK_STOPPED)
      return FALSE;
    if (result == RTSP_ASK_REFUSED || weir_now_ns () + wait > end) {
      schedule_src_fail (self, code_of (result), why);
      g_free (why);
      return FALSE;
    }
    GST_INFO_OBJECT (self, "%s; trying again", why);
    g_clear_pointer (&why, g_free);
    if (!schedule_src_wait (self, weir_now_ns () + wait))
      return FALSE;
    pause = MIN (pause * 2, (gint64) RETRY_MAX_NS);
  }
  return TRUE;
}

// ---- packets ----

static void
take_packet (guint32 track, guint32 number, const guint8 *data, gsize len, gpointer user)
{
  ScheduleSession *s = user;
  WeirScheduleSrc *self = s->owner;
  gboolean wanted;
  WeirRtp rtp;

  if (track >= self->description->n_tracks || weir_rtp_parse (data, len, &rtp) < 0)
    return;
  g_mutex_lock (&self->lock);
  wanted = weir_follow_answered (&self->follow, track, number, &rtp, len);
  g_mutex_unlock (&self->lock);
  if (number < self->description->n_packets[track] && rtp.seq == (guint16) number)
    s->n_valid++;
  if (wanted)
    schedule_src_put (self, track, number, &rtp, FALSE, packet_keep_hold (&self->keep, data, len));
}

static gboolean
has_ended (WeirScheduleSrc *self)
{
  gboolean ended = TRUE;

  if (self->ending)
    return TRUE;
  for (guint i = 0; i < self->n_pads; i++)
    ended = ended && weir_follow_ended (&self->follow, i);
  return ended;
}

// Goes on with the groups of a server that has begun anew. Without them all comes by unicast.
static void
take_description (ScheduleSession *s, const RtspAskAnswer *answer)
{
  WeirDescription *description = g_new0 (WeirDescription, 1);
  GError *error = NULL;

  if (schedule_src_read_description (description, answer, &error)) {
    schedule_src_pass_description (s->owner, description);
    return;
  }
  GST_WARNING_OBJECT (s->owner, "%s", error->message);
  g_error_free (error);
  g_free (description);
}

// Asks for the description again: whether the title is still the same, and what comes on groups.
// Returns FALSE if the element stops or cannot go on.
static gboolean
describe_again (ScheduleSession *s)
{
  WeirScheduleSrc *self = s->owner;
  RtspAskAnswer answer;
  gboolean same;

  if (!schedule_src_describe (s, &answer))
    return FALSE;
  same = strcmp (answer.id, s->id) == 0;
  if (same)
    take_description (s, &answer);
  rtsp_ask_answer_clear (&answer);
  if (!same)
    schedule_src_fail (
        self, GST_RESOURCE_ERROR_NOT_FOUND, "the title has changed on the server since it began");
  g_mutex_lock (&self->lock);
  self->reconnects++;
  g_mutex_unlock (&self->lock);
  return same;
}

static gboolean
reconnect (ScheduleSession *s)
{
  WeirScheduleSrc *self = s->owner;

  rtsp_ask_close (self->ask);
  return schedule_src_wait (self, weir_now_ns () + (gint64) RETRY_MIN_NS) && describe_again (s);
}

// Asks for packets. Returns FALSE if the element stops or cannot go on.
static gboolean
ask_for_packets (ScheduleSession *s, const WeirFollowRange *ranges, gsize n)
{
  WeirScheduleSrc *self = s->owner;
  gchar *why = NULL;
  RtspAskResult result;
  gboolean ok;

  s->n_valid = 0;
  result = rtsp_ask_packets (self->ask, ranges, n, take_packet, s, &why);
  ok = result != RTSP_ASK_STOPPED;

  if (why)
    GST_INFO_OBJECT (self, "%s", why);
  s->n_refused = result == RTSP_ASK_REFUSED ? s->n_refused + 1 : 0;
  if (result != RTSP_ASK_OK && result != RTSP_ASK_ANEW) {
    g_mutex_lock (&self->lock);
    self->follow.unreachable = true;
    g_mutex_unlock (&self->lock);
  }
  // A server that was restarted does not know the title before it is asked to describe it.
  if (s->n_refused > REFUSALS_MAX) {
    schedule_src_fail (self, GST_RESOURCE_ERROR_READ, why);
    ok = FALSE;
  } else if (result == RTSP_ASK_GONE || result == RTSP_ASK_REFUSED)
    ok = reconnect (s);
  else if (result == RTSP_ASK_ANEW)
    ok = describe_again (s);
  else if (result == RTSP_ASK_WAIT || (result == RTSP_ASK_OK && s->n_valid == 0))
    ok = schedule_src_wait (self, weir_now_ns () + (gint64) RETRY_MIN_NS);
  g_free (why);
  g_mutex_lock (&self->lock);
  weir_follow_ask_again (&self->follow);
  g_mutex_unlock (&self->lock);
  return ok;
}

gboolean
schedule_src_is_stuck (const ScheduleSession *s)
{
  WeirScheduleSrc *self = s->owner;
  gint64 since = MAX (MAX (self->output_ns, self->playing_ns), self->follow.play_ns);

  return self->playing && weir_now_ns () - since > s->timeout_ns;
}

static void
run_session (ScheduleSession *s)
{
  WeirScheduleSrc *self = s->owner;
  WeirFollowRange ranges[RANGES_MAX];
  gboolean go_on = TRUE, stuck = FALSE;

  while (go_on && !stuck) {
    gsize n;

    g_mutex_lock (&self->lock);
    n = weir_follow_ask (&self->follow, weir_now_ns (), ranges, RANGES_MAX, PACKETS_MAX);
    if (n == 0) // all that is due soon has come
      self->follow.unreachable = false;
    stuck = schedule_src_is_stuck (s);
    go_on = !self->stopping && !has_ended (self);
    g_mutex_unlock (&self->lock);
    if (go_on && !stuck)
      go_on = n > 0 ? ask_for_packets (s, ranges, n)
                    : schedule_src_wait (self, weir_now_ns () + (gint64) POLL_NS);
  }
  if (stuck && go_on)
    schedule_src_fail (self, GST_RESOURCE_ERROR_READ, "no packets come from the server any more");
}

// ---- beginning ----

gboolean
schedule_src_read_description (
    WeirDescription *description, const RtspAskAnswer *answer, GError **error)
{
  char why[WEIR_DESCRIPTION_WHY];
  gint result = weir_description_read (description, answer->sdp, answer->length, why);

  if (result == 0)
    return TRUE;
  if (result == -ENOENT)
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "the server does not broadcast this title: its description has no schedule");
  else
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "the server's description is not valid: %s", why);
  return FALSE;
}

// With the lock.
static gboolean
begin_to_follow (WeirScheduleSrc *self)
{
  WeirFollowSettings settings = { 0 };
  gint64 now = weir_now_ns ();
  gint result;

  for (guint i = 0; i < self->n_pads; i++) {
    gint rate = 0;

    gst_structure_get_int (gst_caps_get_structure (self->pads[i]->caps, 0), "clock-rate", &rate);
    settings.clock_rate[i] = (guint32) rate;
  }
  GST_OBJECT_LOCK (self);
  settings.slack_ns = (gint64) self->settings.latency;
  settings.max_groups = self->settings.max_groups;
  GST_OBJECT_UNLOCK (self);
  self->is_live = self->description->n_frames == 0;
  result = self->is_live ? schedule_src_begin_live (self, &settings, now)
                         : weir_follow_init (&self->follow, self->description, &settings, now);
  if (result == 0 && !self->is_live)
    self->wait_ns = self->follow.play_ns - now;
  self->following = result == 0;
  return self->following;
}

static gboolean
begin_session (ScheduleSession *s)
{
  WeirScheduleSrc *self = s->owner;
  RtspAskAnswer answer;
  GError *error = NULL;
  gboolean ok = FALSE;

  if (!schedule_src_describe (s, &answer))
    return FALSE;
  if (schedule_src_read_description (self->description, &answer, &error)
      && schedule_src_add_pads (self, answer.sdp, &error)) {
    g_mutex_lock (&self->lock);
    ok = begin_to_follow (self);
    g_mutex_unlock (&self->lock);
    if (!ok)
      g_set_error (&error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT,
          "no memory for a title of this length");
  }
  s->id = g_strdup (answer.id);
  rtsp_ask_answer_clear (&answer);
  if (error)
    schedule_src_fail (self, error->code, error->message);
  g_clear_error (&error);
  return ok;
}

gpointer
schedule_src_session (gpointer data)
{
  WeirScheduleSrc *self = data;
  ScheduleSession s = { .owner = self };

  GST_OBJECT_LOCK (self);
  s.timeout_ns = (gint64) self->settings.timeout;
  GST_OBJECT_UNLOCK (self);
  if (begin_session (&s)) {
    self->receiver = g_thread_new ("schedule-groups", schedule_src_receive, self);
    schedule_src_start_pads (self);
    if (self->is_live)
      schedule_src_follow_live (&s);
    else
      run_session (&s);
  }
  g_free (s.id);
  return NULL;
}
