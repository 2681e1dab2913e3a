// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/title_media.h"

#include "base/element.h"
#include "base/log.h"
#include "base/threads.h"
#include "outlets/rtsp/title_sinks.h"
#include "relay/left_out.h"
#include "title/title_file.h"
#include "title/title_open.h"
#include "weir-rtsp.h"

#include <string.h>
#include <unistd.h>

#define RATE_MIN 0.125
#define RATE_MAX 8.0
#define SECONDS_MAX 1e9
#define SETTLE_LIMIT (5 * GST_SECOND)

typedef struct {
  GstRTSPMedia parent;
  GstElement *file; // not owned: a part of the media's element
  gchar *label;
  int fd;
  gint ready;     // atomic: the media is prepared
  GError *error;  // why preparing failed; media's thread only, until preparing has ended
  gboolean begun; // the library has begun to prepare the media; media's thread only
  gboolean early; // the title failed before that; media's thread only
  LogLimit reads; // of errors of reading: what cannot be read is read again after a seek
  // Used by requests only, which run one at a time.
  gdouble beginning;    // first position of the title in s; negative: not known yet
  GstClockTime left_at; // where it was paused

  GMutex lock;       // protects the fields below
  gboolean seeks;    // a seek is in progress
  gboolean given_up; // title_media_give_up() was called
} TitleMedia;

typedef struct {
  GstRTSPMediaClass parent_class;
} TitleMediaClass;

GType title_media_get_type (void);
G_DEFINE_TYPE (TitleMedia, title_media, GST_TYPE_RTSP_MEDIA)

// ---- PAUSE ----

static GstBin *
dup_pipeline (GstRTSPMedia *media)
{
  g_autoptr (GstElement) element = gst_rtsp_media_get_element (media);

  return (GstBin *) gst_object_get_parent (GST_OBJECT (element));
}

void
title_media_paused (GstRTSPMedia *media)
{
  TitleMedia *self = (TitleMedia *) media;
  GstBin *pipeline = dup_pipeline (media);

  self->left_at = title_sinks_get_sent (pipeline);
  gst_object_unref (pipeline);
  title_file_fill_gaps (self->file);
}

// ---- PLAY ----

static gboolean
is_position (const GstRTSPTime *time)
{
  return time->type == GST_RTSP_TIME_SECONDS && time->seconds >= 0 && time->seconds < SECONDS_MAX;
}

// Gets the title's first position, which need not be 0: that of a recording is not. Only before the
// first seek does the library know it.
static void
learn_beginning (GstRTSPMedia *media)
{
  TitleMedia *self = (TitleMedia *) media;
  GstRTSPTimeRange *whole = NULL;
  g_autofree gchar *text = NULL;

  if (self->beginning >= 0)
    return;
  text = gst_rtsp_media_get_range_string (media, FALSE, GST_RTSP_RANGE_NPT);
  self->beginning = 0;
  if (text && gst_rtsp_range_parse (text, &whole) == GST_RTSP_OK && is_position (&whole->min))
    self->beginning = whole->min.seconds;
  g_clear_pointer (&whole, gst_rtsp_range_free);
}

// Reports whether the range has a part of the title. Removes an end that lies after the title's
// end. Moves a start before the title to its first position: pacing would wait for the difference.
static gboolean
is_in_range (GstRTSPMedia *media, GstRTSPTimeRange *range)
{
  gint64 duration = title_file_get_duration (((TitleMedia *) media)->file);
  gdouble seconds = duration < 0 ? SECONDS_MAX : (gdouble) duration / GST_SECOND;

  if (range->unit != GST_RTSP_RANGE_NPT || !is_position (&range->min)
      || range->min.seconds >= seconds)
    return FALSE;
  range->min.seconds = MAX (range->min.seconds, ((TitleMedia *) media)->beginning);
  if (range->max.type == GST_RTSP_TIME_SECONDS && range->max.seconds >= seconds)
    range->max.type = GST_RTSP_TIME_END;
  return range->max.type == GST_RTSP_TIME_END
         || (is_position (&range->max) && range->max.seconds > range->min.seconds);
}

// Mutes the tracks that are not set up.
static void
mute_others (GstRTSPMedia *media, GstElement *file)
{
  for (guint i = 0; i < gst_rtsp_media_n_streams (media); i++)
    title_file_mute (file, i, !gst_rtsp_stream_is_complete (gst_rtsp_media_get_stream (media, i)));
}

static GstRTSPTimeRange *
range_from (GstClockTime start)
{
  g_autofree gchar *text = g_strdup_printf (
      "npt=%" G_GUINT64_FORMAT ".%09u-", start / GST_SECOND, (guint) (start % GST_SECOND));
  GstRTSPTimeRange *range = NULL;

  gst_rtsp_range_parse (text, &range);
  return range;
}

static gboolean
is_beginning (const GstRTSPTimeRange *range)
{
  return range->min.type == GST_RTSP_TIME_SECONDS && range->min.seconds == 0;
}

GstRTSPStatusCode
title_media_adjust_play (
    GstRTSPMedia *media, GstRTSPTimeRange **range, GstSeekFlags *flags, gdouble rate)
{
  TitleMedia *self = (TitleMedia *) media;
  gboolean raw = title_file_is_raw (self->file);

  learn_beginning (media);
  mute_others (media, self->file);
  if (!(rate >= RATE_MIN && rate <= RATE_MAX) || (raw && rate != 1.0)) // false for NaN
    return GST_RTSP_STS_PARAMETER_NOT_UNDERSTOOD;
  // A position outside the file has no data.
  if (*range && ((raw && !is_beginning (*range)) || !is_in_range (media, *range)))
    return GST_RTSP_STS_INVALID_RANGE;
  // The PAUSE has cut off a frame, so playing starts again from a keyframe.
  if (!*range && GST_CLOCK_TIME_IS_VALID (self->left_at) && !raw)
    *range = range_from (self->left_at);
  if (*range)
    *flags |= GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_KEY_UNIT | GST_SEEK_FLAG_SNAP_BEFORE;
  *flags &= ~(GstSeekFlags) GST_SEEK_FLAG_ACCURATE;
  return GST_RTSP_STS_OK;
}

// Returns when all sinks have their first packet after a seek, or after SETTLE_LIMIT.
static void
settle (GstRTSPMedia *media)
{
  g_autoptr (GstBin) pipeline = NULL;

  // Before the first PLAY the streams block, and hold their first packets.
  for (guint i = 0; i < gst_rtsp_media_n_streams (media); i++) {
    if (gst_rtsp_stream_is_blocking (gst_rtsp_media_get_stream (media, i)))
      return;
  }
  pipeline = dup_pipeline (media);
  gst_element_get_state (GST_ELEMENT (pipeline), NULL, NULL, SETTLE_LIMIT);
}

// Reports whether all tracks that are sent have a segment, with the same rates.
static gboolean
rates_are_known (GstRTSPMedia *media)
{
  gdouble rates[2] = { 0 }, first[2] = { 0 };

  for (guint i = 0; i < gst_rtsp_media_n_streams (media); i++) {
    GstRTSPStream *stream = gst_rtsp_media_get_stream (media, i);

    if (!gst_rtsp_stream_is_complete (stream) || !gst_rtsp_stream_is_sender (stream))
      continue;
    if (!gst_rtsp_stream_get_rates (stream, &rates[0], &rates[1]))
      return FALSE;
    if (first[0] == 0)
      memcpy (first, rates, sizeof first);
    if (memcmp (first, rates, sizeof first) != 0)
      return FALSE;
  }
  return TRUE;
}

// Seeks once more, to the keyframe before the position, if the demuxer has not done so (that of
// fragmented MP4 does not). Seeks to 1 us before the keyframe, because the library's times are not
// exact; the frames before the keyframe are dropped.
static void
go_to_keyframe (GstRTSPMedia *media, GstRTSPTimeRange *range, GstSeekFlags flags, gdouble rate)
{
  GstRTSPTimeRange *from;
  GstClockTime lead;

  if (!range || gst_rtsp_media_get_status (media) == GST_RTSP_MEDIA_STATUS_ERROR)
    return;
  settle (media);
  lead = title_file_get_lead (((TitleMedia *) media)->file);
  if (!GST_CLOCK_TIME_IS_VALID (lead)
      || (range->max.type == GST_RTSP_TIME_SECONDS
          && (gdouble) lead / GST_SECOND >= range->max.seconds))
    return;
  from = range_from (lead > GST_USECOND ? lead - GST_USECOND : 0);
  from->max = range->max;
  gst_rtsp_media_seek_trickmode (media, from, flags, rate, 0);
  gst_rtsp_range_free (from);
}

static void
go_back (GstRTSPMedia *media, GstSeekFlags flags)
{
  TitleMedia *self = (TitleMedia *) media;
  GstClockTime begins_at = (GstClockTime) (self->beginning * GST_SECOND);
  GstClockTime at = GST_CLOCK_TIME_IS_VALID (self->left_at) ? self->left_at : begins_at;
  GstRTSPTimeRange *range = range_from (at);

  gst_rtsp_media_seek_trickmode (media, range, flags, 1.0, 0);
  gst_rtsp_range_free (range);
}

// Seeks to the range; seeks back if there is no data. A worker process that ends after it has
// answered the seek also ends the wait for packets, without an error of the media.
static GstRTSPStatusCode
go_to (GstRTSPMedia *media, GstRTSPTimeRange *range, GstSeekFlags flags, gdouble rate)
{
  TitleMedia *self = (TitleMedia *) media;
  gboolean known;

  gst_rtsp_media_seek_trickmode (media, range, flags, rate, 0);
  go_to_keyframe (media, range, flags, rate);
  if (gst_rtsp_media_get_status (media) != GST_RTSP_MEDIA_STATUS_PREPARED)
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  settle (media);
  if (title_file_is_cut_off (self->file))
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  known = rates_are_known (media);
  if (!known) {
    log_event ("%s: no data at the position that the reader requested", self->label);
    go_back (media, flags);
  }
  self->left_at = GST_CLOCK_TIME_NONE;
  return known ? GST_RTSP_STS_OK : GST_RTSP_STS_INVALID_RANGE;
}

// Pauses a reader that plays before a seek, because the packets of the new position must follow the
// answer, which gives their sequence numbers.
static gboolean
pause_for_play (GstRTSPMedia *media, GstRTSPSessionMedia *session)
{
  gst_rtsp_session_media_set_state (session, GST_STATE_PAUSED);
  title_media_paused (media);
  return gst_rtsp_media_unsuspend (media);
}

static void
set_seeks (TitleMedia *self, gboolean seeks)
{
  g_mutex_lock (&self->lock);
  self->seeks = seeks;
  g_mutex_unlock (&self->lock);
}

// Adds a user to the media during the seek, by preparing it once more. Without that user, a
// connection that ends during the seek would unprepare the media; the seek of gst-rtsp-server would
// overwrite that state, and the media would be unprepared twice. The user is added after pausing,
// because media with two users is not paused.
static GstRTSPStatusCode
go_undisturbed (GstRTSPMedia *media, GstRTSPTimeRange *range, GstSeekFlags flags, gdouble rate)
{
  GstRTSPStatusCode status;

  if (!gst_rtsp_media_prepare (media, NULL))
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  set_seeks ((TitleMedia *) media, TRUE);
  status = go_to (media, range, flags, rate);
  set_seeks ((TitleMedia *) media, FALSE);
  gst_rtsp_media_unprepare (media);
  return status;
}

GstRTSPStatusCode
title_media_play (
    GstRTSPSessionMedia *session, GstRTSPTimeRange *range, GstSeekFlags flags, gdouble rate)
{
  GstRTSPMedia *media = gst_rtsp_session_media_get_media (session);
  gboolean sent =
      range && gst_rtsp_session_media_get_rtsp_state (session) == GST_RTSP_STATE_PLAYING;

  if (sent && !pause_for_play (media, session))
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  return go_undisturbed (media, range, flags, rate);
}

void
title_media_give_up (GstRTSPMedia *media)
{
  TitleMedia *self = (TitleMedia *) media;

  g_mutex_lock (&self->lock);
  self->given_up = TRUE;
  g_mutex_unlock (&self->lock);
  title_file_give_up (self->file);
}

// Returns the end of the title. gst-rtsp-server uses the end of the segment, which some demuxers do
// not set. Called with the media's lock held.
static gboolean
title_media_query_stop (GstRTSPMedia *media, gint64 *stop)
{
  if (GST_RTSP_MEDIA_CLASS (title_media_parent_class)->query_stop (media, stop) && *stop > 0)
    return TRUE;
  *stop = title_file_get_duration (((TitleMedia *) media)->file);
  return *stop >= 0;
}

// ---- construction ----

gboolean
title_media_is (GstRTSPMedia *media)
{
  return G_TYPE_CHECK_INSTANCE_TYPE (media, title_media_get_type ());
}

// Reports whether the caps of all tracks are known. Some codecs have their parameters in the stream
// only, so the caps are unknown until a track has data.
static gboolean
can_be_described (GstRTSPMedia *media)
{
  gboolean known = TRUE;
  GstCaps *caps;

  for (guint i = 0; i < gst_rtsp_media_n_streams (media); i++) {
    caps = gst_rtsp_stream_get_caps (gst_rtsp_media_get_stream (media, i));
    known &= caps != NULL;
    gst_clear_caps (&caps);
  }
  return known;
}

static gboolean
is_read_error (const GError *error)
{
  return g_error_matches (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ);
}

gchar *
title_media_dup_left_out (GstRTSPMedia *media)
{
  return title_file_dup_left_out (((TitleMedia *) media)->file);
}

static void
log_left_out (TitleMedia *self)
{
  g_autofree gchar *text = title_file_dup_left_out (self->file);

  if (text)
    left_out_log (self->label, text);
}

gboolean
title_media_prepare (GstRTSPMedia *media, GstRTSPThread *thread, GError **error)
{
  TitleMedia *self = (TitleMedia *) media;
  gint code = G_IO_ERROR_NOT_SUPPORTED;

  if (gst_rtsp_media_prepare (media, thread)) {
    if (can_be_described (media)) {
      g_atomic_int_set (&self->ready, TRUE);
      log_left_out (self);
      return TRUE;
    }
    gst_rtsp_media_unprepare (media);
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
        "cannot be played: a track has no data near the start");
    return FALSE;
  }
  if (is_read_error (self->error)
      || g_error_matches (self->error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ))
    code = G_IO_ERROR_INVALID_DATA; // the store is to blame, not the file
  g_set_error (error, G_IO_ERROR, code, "cannot be played: %s",
      self->error ? self->error->message : "no media in time");
  return FALSE;
}

static gboolean
pass_on (GstRTSPMedia *media, GstMessage *message)
{
  return GST_RTSP_MEDIA_CLASS (title_media_parent_class)->handle_message (media, message);
}

// Passes an error of the title to gst-rtsp-server, but not through the pipeline.
static gboolean
pass_error_on (TitleMedia *self, const GError *error)
{
  g_autoptr (GstMessage) message =
      gst_message_new_error (GST_OBJECT (self->file), (GError *) error, NULL);

  return pass_on (GST_RTSP_MEDIA (self), message);
}

// Logs an error of media that is ready. The stream ends there, but the reader may seek to another
// position. If the media was given up during a seek, passes the error on, so that the seek fails.
static void
handle_late_error (TitleMedia *self, const GError *error)
{
  gboolean given_up, fails;

  g_mutex_lock (&self->lock);
  given_up = self->given_up;
  fails = given_up && self->seeks;
  g_mutex_unlock (&self->lock);
  if (fails)
    pass_error_on (self, error);
  if (!given_up && is_read_error (error))
    log_event_limited (&self->reads, "%s: %s", self->label, error->message);
  else if (!given_up)
    log_event ("%s: %s", self->label, error->message);
}

// Called at the first change of state: from now on gst-rtsp-server can handle an error.
static void
begin_media (TitleMedia *self)
{
  self->begun = TRUE;
  if (self->early)
    pass_error_on (self, self->error);
  self->early = FALSE;
}

// Passes an error on, or keeps it until gst-rtsp-server has begun to prepare the media, because the
// library asserts that when it handles an error.
static gboolean
fail_media (TitleMedia *self)
{
  if (self->begun)
    return pass_error_on (self, self->error);
  self->early = TRUE;
  return TRUE;
}

// Handles an error of the title (transfer full). Bytes that the store cannot give need not be an
// error of the media: a demuxer can do without some of them, such as a table of positions. If it
// cannot, it fails, too, and the first error is the reason.
static gboolean
handle_error (TitleMedia *self, GError *error)
{
  gboolean fatal = !is_read_error (error);

  if (g_atomic_int_get (&self->ready)) {
    handle_late_error (self, error);
    g_error_free (error);
    return TRUE;
  }
  if (self->error)
    g_error_free (error);
  else
    self->error = error;
  return !fatal || fail_media (self);
}

// Called with the media's lock held. A thread that adds a track waits for that lock; a thread that
// stops the media holds the pipeline's state lock and waits for the first thread. This function
// must therefore not take the pipeline's lock while tracks may be added, so it ignores LATENCY
// messages until the media is ready. The latency is queried again when the media plays.
static gboolean
title_media_handle_message (GstRTSPMedia *media, GstMessage *message)
{
  TitleMedia *self = (TitleMedia *) media;
  GError *error;
  gchar *debug;

  if (title_file_parse_failure (self->file, message, &error, &debug)) {
    element_explain_error (error, debug);
    g_free (debug);
    return handle_error (self, error);
  }
  switch (GST_MESSAGE_TYPE (message)) {
    case GST_MESSAGE_LATENCY:
      return !g_atomic_int_get (&self->ready) || pass_on (media, message);
    case GST_MESSAGE_STATE_CHANGED:
      if (!self->begun)
        begin_media (self);
      break;
    default:
      break;
  }
  return pass_on (media, message);
}

GstRTSPMedia *
title_media_new (int fd, const gchar *label)
{
  GstElement *pipeline = gst_pipeline_new (NULL);
  GstElement *element = gst_bin_new (NULL);
  GstElement *file = title_open (fd);
  TitleMedia *self = g_object_new (title_media_get_type (), "element", element, "transport-mode",
      GST_RTSP_TRANSPORT_MODE_PLAY, NULL);
  GstRTSPMedia *media = GST_RTSP_MEDIA (self);

  // gst-rtsp-server finds an element that adds its pads later by this name.
  gst_object_set_name (GST_OBJECT (file), "dynpay0");
  gst_bin_add (GST_BIN (element), file);
  self->file = file;
  self->fd = fd;
  self->label = g_strdup (label);
  title_sinks_set_up (GST_BIN (pipeline));
  threads_name_tasks (pipeline, "title");
  gst_rtsp_media_collect_streams (media);
  gst_rtsp_media_take_pipeline (media, GST_PIPELINE (pipeline));
  return media;
}

// A title needs no RTP session, which would cost a thread and a look at each packet.
static GstElement *
title_media_create_rtpbin (GstRTSPMedia *media)
{
  return weir_sender_bin_new ();
}

static void
title_media_init (TitleMedia *self)
{
  g_mutex_init (&self->lock);
  self->beginning = -1;
  self->reads = (LogLimit) { .burst = 1, .interval_ms = 10000 };
  self->left_at = GST_CLOCK_TIME_NONE;
}

static void
title_media_finalize (GObject *object)
{
  TitleMedia *self = (TitleMedia *) object;

  close (self->fd);
  g_clear_error (&self->error);
  g_mutex_clear (&self->lock);
  g_free (self->label);
  G_OBJECT_CLASS (title_media_parent_class)->finalize (object);
}

static void
title_media_class_init (TitleMediaClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = title_media_finalize;
  GST_RTSP_MEDIA_CLASS (klass)->handle_message = title_media_handle_message;
  GST_RTSP_MEDIA_CLASS (klass)->query_stop = title_media_query_stop;
  GST_RTSP_MEDIA_CLASS (klass)->create_rtpbin = title_media_create_rtpbin;
}
