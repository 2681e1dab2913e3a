// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "reader.h"

#include "load.h"
#include "reader_io.h"
#include "reader_steps.h"
#include "rtsp_text.h"

#include <stdarg.h>

#define SECOND INT64_C (1000000000)
#define PATIENCE_NS SECOND // a reader that plays for less may receive nothing without a fault

static const gchar *const methods[] = {
  [READER_CONNECTING] = "connect",
  [READER_DESCRIBING] = "DESCRIBE",
  [READER_SETTING_UP] = "SETUP",
  [READER_STARTING] = "PLAY",
  [READER_PLAYING] = "OPTIONS",
  [READER_LEAVING] = "TEARDOWN",
};

void
reader_init (Reader *self, Load *load, guint index)
{
  *self = (Reader) {
    .load = load,
    .index = index,
    .control = { SOURCE_CONTROL, -1, self, NULL },
    .deadline_ns = NEVER,
    .keepalive_ns = NEVER,
    .report_ns = NEVER,
    .end_ns = NEVER,
    .session_ns = NEVER,
    .out = g_string_new (NULL),
    .ssrc = g_rand_int (load->random),
  };
}

void
reader_clear (Reader *self)
{
  reader_io_close (self, &self->control);
  for (guint i = 0; i < self->n_tracks; i++) {
    reader_io_close (self, &self->tracks[i].rtp);
    reader_io_close (self, &self->tracks[i].rtcp);
  }
  g_string_free (self->out, TRUE);
  g_free (self->in);
  rtsp_auth_clear (&self->auth);
  g_free (self->session);
  g_free (self->base);
  g_free (self->aggregate);
  g_clear_pointer (&self->sdp, g_array_unref);
}

gint64
reader_due (const Reader *self)
{
  gint64 due = MIN (MIN (self->deadline_ns, self->keepalive_ns), self->report_ns);

  return self->state == READER_PLAYING ? MIN (due, self->end_ns) : due;
}

static gint64
in_seconds (gdouble seconds)
{
  return (gint64) (seconds * SECOND);
}

static void
no_media (Reader *self, gint64 now)
{
  gchar *text = g_strdup_printf ("%s: no packet arrived in %.1f s after PLAY", self->target->uri,
      (gdouble) (now - self->playing_ns) / SECOND);

  results_error (&self->load->results, "no-media", text);
  g_free (text);
}

// Ends the measurement; packets that arrive later are not counted. `now` is 0 if an error ended it,
// which is reported already.
static void
end_measurement (Reader *self, gint64 now)
{
  Results *results = &self->load->results;

  if (self->state != READER_PLAYING)
    return;
  results->playing -= !self->origin;
  if (!self->measured || self->ignores_media)
    return;
  for (guint i = 0; i < self->n_tracks; i++)
    track_end (&self->tracks[i], results, now);
  if (now - self->playing_ns > PATIENCE_NS && !self->first_packet_ns)
    no_media (self, now);
}

void
reader_close (Reader *self)
{
  if (self->state == READER_DONE)
    return;
  reader_io_drain (self);
  end_measurement (self, 0);
  self->state = READER_DONE;
  self->deadline_ns = self->keepalive_ns = self->report_ns = self->end_ns = NEVER;
  reader_io_close (self, &self->control);
  for (guint i = 0; i < self->n_tracks; i++) {
    reader_io_close (self, &self->tracks[i].rtp);
    reader_io_close (self, &self->tracks[i].rtcp);
  }
  load_reader_done (self->load, self);
}

void
reader_fail (Reader *self, const gchar *kind, const gchar *format, ...)
{
  va_list args;
  gchar *what, *text;

  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  text = g_strdup_printf ("%s: %s", self->target->uri, what);
  results_error (&self->load->results, kind, text);
  g_free (what);
  g_free (text);
  reader_close (self);
}

static void
ask (Reader *self, const gchar *method, const gchar *uri, const gchar *headers, gint64 now)
{
  gchar *auth = auth_header (&self->auth, method, uri);
  GString *all = g_string_new (headers);

  if (self->session)
    g_string_append_printf (all, "Session: %s\r\n", self->session);
  if (auth)
    g_string_append (all, auth);
  rtsp_text_request (self->out, method, uri, ++self->cseq, all->str);
  g_free (auth);
  g_string_free (all, TRUE);
  self->asked_ns = now;
  self->deadline_ns = now + in_seconds (self->load->options->timeout);
  reader_io_flush (self);
}

static void
ask_setup (Reader *self, gint64 now)
{
  const Track *track = &self->tracks[self->setting_up];
  gchar transport[128];

  if (self->udp)
    g_snprintf (transport, sizeof transport, "Transport: RTP/AVP;unicast;client_port=%d-%d\r\n",
        track->port, track->port + 1);
  else
    g_snprintf (transport, sizeof transport, "Transport: RTP/AVP/TCP;unicast;interleaved=%u-%u\r\n",
        self->setting_up * 2, self->setting_up * 2 + 1);
  ask (self, "SETUP", track->control, transport, now);
}

// Sends the request of the current state.
static void
ask_again (Reader *self, gint64 now)
{
  switch (self->state) {
    case READER_DESCRIBING:
      ask (self, "DESCRIBE", self->target->uri, "Accept: application/sdp\r\n", now);
      break;
    case READER_SETTING_UP:
      ask_setup (self, now);
      break;
    case READER_STARTING:
      ask (self, "PLAY", self->aggregate, "Range: npt=0-\r\n", now);
      self->play_ns = now;
      break;
    case READER_PLAYING:
      ask (self, "OPTIONS", self->aggregate, NULL, now);
      break;
    case READER_LEAVING:
      ask (self, "TEARDOWN", self->aggregate, NULL, now);
      break;
    default:
      break;
  }
}

void
reader_go_on (Reader *self, ReaderState state, gint64 now)
{
  self->state = state;
  ask_again (self, now);
}

void
reader_start (Reader *self, gint64 now)
{
  int error;

  self->state = READER_CONNECTING;
  self->deadline_ns = now + in_seconds (self->load->options->timeout);
  error = reader_io_connect (self);
  if (error < 0)
    reader_fail (self, "connect", "cannot connect: %s", g_strerror (-error));
}

void
reader_on_connect (Reader *self, int error, gint64 now)
{
  if (error)
    reader_fail (self, "connect", "cannot connect: %s", g_strerror (error));
  else
    reader_go_on (self, READER_DESCRIBING, now);
}

static void
stop_reading (Reader *self)
{
  reader_io_unwatch (self, &self->control);
  for (guint i = 0; i < self->n_tracks && self->udp && !self->ignores_media; i++) {
    reader_io_unwatch (self, &self->tracks[i].rtp);
    reader_io_unwatch (self, &self->tracks[i].rtcp);
  }
}

static void
on_play (Reader *self, gint64 now)
{
  const Options *options = self->load->options;
  Results *results = &self->load->results;

  self->state = READER_PLAYING;
  self->playing_ns = now;
  self->answered_ns = self->heard_ns;
  self->keepalive_ns = now + self->keepalive_every_ns;
  if (!options->no_rr)
    self->report_ns = now + reader_report_gap (self) / 2;
  if (self->origin)
    return;
  self->connected = TRUE;
  results->connected++;
  results->playing++;
  results->last_play_ns = now;
  if (self->session_ns != NEVER)
    self->end_ns = MIN (self->end_ns, now + self->session_ns);
  if (self->slow)
    stop_reading (self);
}

static void
note_delay (Reader *self, WeirHistogram *histogram, gint64 now)
{
  if (self->measured)
    weir_histogram_add (histogram, now - self->asked_ns);
}

static void
on_good_answer (Reader *self, const GstRTSPMessage *answer, gint64 now)
{
  Results *results = &self->load->results;

  switch (self->state) {
    case READER_DESCRIBING:
      note_delay (self, &results->describe, now);
      reader_on_description (self, answer, now);
      break;
    case READER_SETTING_UP:
      note_delay (self, &results->setup, now);
      reader_on_set_up (self, answer, now);
      break;
    case READER_STARTING:
      note_delay (self, &results->play, now);
      on_play (self, now);
      break;
    case READER_LEAVING:
      reader_close (self);
      break;
    default:
      break;
  }
}

static void
on_refusal (Reader *self, guint status)
{
  const gchar *hint = "";
  gchar *text;

  if (status == 401)
    hint = self->challenged ? ": wrong user or password" : ": needs --user and --password";
  text = g_strdup_printf ("%s: %s got %u %s%s", self->target->uri, methods[self->state], status,
      gst_rtsp_status_as_text (status), hint);
  results_refused (&self->load->results, status, text);
  g_free (text);
  reader_close (self);
}

void
reader_on_answer (Reader *self, GstRTSPMessage *answer, gint64 now)
{
  const gchar *cseq = rtsp_text_header (answer, GST_RTSP_HDR_CSEQ);
  GstRTSPStatusCode status = GST_RTSP_STS_INVALID;

  gst_rtsp_message_parse_response (answer, &status, NULL, NULL);
  if (status < 200 || (cseq && g_ascii_strtoull (cseq, NULL, 10) != self->cseq))
    return; // a provisional answer, or the answer to an earlier request
  self->deadline_ns = NEVER;
  if (status == 401 && self->target->user && !self->challenged
      && auth_take_challenge (&self->auth, answer, self->target->user, self->target->password)) {
    self->challenged = TRUE;
    ask_again (self, now);
  } else if (status < 300) {
    self->challenged = FALSE;
    on_good_answer (self, answer, now);
  } else if (self->state != READER_PLAYING && self->state != READER_LEAVING) {
    on_refusal (self, status);
  } else if (self->state == READER_LEAVING) {
    reader_close (self);
  }
  load_reschedule (self->load, self);
}

void
reader_stop (Reader *self, gint64 now)
{
  if (self->state == READER_PLAYING) {
    end_measurement (self, now);
    self->keepalive_ns = self->report_ns = self->end_ns = NEVER;
    reader_go_on (self, READER_LEAVING, now);
    if (self->slow) // the answer comes after media that this reader does not read
      reader_close (self);
  } else if (self->state == READER_WAITING) {
    self->state = READER_DONE;
  } else if (self->state < READER_PLAYING) {
    self->end_ns = now;
  }
  load_reschedule (self->load, self);
}

static void
keep_alive (Reader *self, gint64 now)
{
  self->keepalive_ns = now + self->keepalive_every_ns;
  ask_again (self, now);
  if (self->slow)
    self->deadline_ns = NEVER;
}

static void
on_deadline (Reader *self)
{
  reader_fail (self, "timeout", "no answer to %s", methods[self->state]);
}

void
reader_on_time (Reader *self, gint64 now)
{
  if (now >= self->deadline_ns) {
    on_deadline (self);
    return;
  }
  if (self->state == READER_PLAYING && now >= self->end_ns) {
    reader_stop (self, now);
    return;
  }
  if (now >= self->report_ns) {
    self->report_ns = now + reader_report_gap (self);
    reader_report (self, now);
  }
  if (now >= self->keepalive_ns)
    keep_alive (self, now);
}
