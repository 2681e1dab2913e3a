// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtmp/rtmp_media.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "matroska/write.h"
#include "outlets/rtmp/rtmp_counts.h"
#include "rtmp/amf.h"
#include "rtmp/flv.h"

#define HOLD_MS 2000                 // of media, until a track that does not come is left out
#define HOLD_BYTES (8 * 1024 * 1024) // of memory, the same
#define FRAME_BYTES 160              // of memory, beside the data of a frame
#define JUMP_MS 10000                // between two messages: they are of different clocks
#define NO_STEP G_MAXINT64

typedef enum { VIDEO, AUDIO, N_TRACKS } Kind;

static const gchar *const kind_names[N_TRACKS] = { "video", "audio" };

typedef struct {
  gboolean is_absent; // by the metadata, or it is left out
  GBytes *config;     // NULL: not known
  WeirMp4Codec codec;
  guint32 rate; // of audio
  guint16 channels;
  gint index;           // in the Matroska; -1: not in it
  gboolean is_told;     // a line in the log says that it is left out
  gboolean has_empties; // so does one about empty NAL units
  // The last timestamp, and the time that it stands for since the stream's first one.
  gboolean has_time;
  guint32 timestamp;
  gint64 ms;
} Track;

typedef struct {
  Kind kind;
  gint64 ms; // presentation time
  gboolean key;
  GBytes *data;
} Frame;

struct _RtmpMedia {
  gchar *peer;
  Track tracks[N_TRACKS];
  gboolean has_begun;
  GQueue held; // of Frame, until it begins
  gsize held_bytes;
  gboolean is_again; // a Matroska has ended, and the next begins
  gint64 origin_ms;  // presentation time at which the Matroska begins
};

static LogLimit lines = { .burst = 8, .interval_ms = 10000 };

static void
frame_free (gpointer data)
{
  Frame *frame = data;

  g_bytes_unref (frame->data);
  g_free (frame);
}

RtmpMedia *
rtmp_media_new (const gchar *peer)
{
  RtmpMedia *self = g_new0 (RtmpMedia, 1);

  self->peer = g_strdup (peer);
  g_queue_init (&self->held);
  for (guint i = 0; i < N_TRACKS; i++)
    self->tracks[i].index = -1;
  return self;
}

void
rtmp_media_free (RtmpMedia *self)
{
  g_queue_clear_full (&self->held, frame_free);
  for (guint i = 0; i < N_TRACKS; i++)
    g_clear_pointer (&self->tracks[i].config, g_bytes_unref);
  g_free (self->peer);
  g_free (self);
}

// ---- the tracks ----

// Encoders leave out the codec of a track that they do not send, or write no number or text.
static gboolean
names_codec (const WeirAmf *values, const gchar *field)
{
  WeirAmf value;

  weir_amf_find (values, field, &value);
  return (value.type == WEIR_AMF_NUMBER && value.number != 0)
         || (value.type == WEIR_AMF_STRING && value.len > 0);
}

static void
take_metadata (RtmpMedia *self, const WeirRtmpEvent *event)
{
  static const gchar *const fields[N_TRACKS] = { "videocodecid", "audiocodecid" };
  WeirBytes b = weir_bytes (event->data, event->len);
  WeirAmf name, values;
  gboolean names[N_TRACKS];

  if (weir_amf_read (&b, &name) < 0 || !weir_amf_is (&name, "onMetaData")
      || weir_amf_read (&b, &values) < 0)
    return;
  for (guint i = 0; i < N_TRACKS; i++)
    names[i] = names_codec (&values, fields[i]);
  // Metadata that name no track say nothing about tracks.
  for (guint i = 0; i < N_TRACKS && (names[VIDEO] || names[AUDIO]); i++)
    self->tracks[i].is_absent |= !names[i];
}

static gboolean
is_known (const Track *track)
{
  return track->config || track->is_absent;
}

static gboolean
is_time (RtmpMedia *self)
{
  const Frame *first = g_queue_peek_head (&self->held);

  if (self->has_begun || !first)
    return FALSE;
  return (is_known (&self->tracks[VIDEO]) && is_known (&self->tracks[AUDIO]))
         || self->held_bytes > HOLD_BYTES
         || MAX (self->tracks[VIDEO].ms, self->tracks[AUDIO].ms) - first->ms > HOLD_MS;
}

// Whether a record says what the former one did. Some encoders add an extension to that of AAC.
static gboolean
is_repeated (const Track *track, const WeirFlv *flv)
{
  gsize len = track->config ? g_bytes_get_size (track->config) : 0;

  return track->config && track->codec == flv->codec
         && (len == flv->len || flv->codec == WEIR_MP4_AAC)
         && memcmp (g_bytes_get_data (track->config, NULL), flv->data, MIN (len, flv->len)) == 0;
}

// Drops the frames that wait for a decoder with the former record.
static void
drop_held (RtmpMedia *self, Kind kind)
{
  GList *next;

  for (GList *l = self->held.head; l; l = next) {
    next = l->next;
    if (((Frame *) l->data)->kind != kind)
      continue;
    self->held_bytes -= g_bytes_get_size (((Frame *) l->data)->data) + FRAME_BYTES;
    frame_free (l->data);
    g_queue_delete_link (&self->held, l);
    rtmp_counts_add_unusable ();
  }
}

// Ends the Matroska: its tracks cannot change. The next frame begins another one.
static void
end_matroska (RtmpMedia *self, Kind kind)
{
  log_event_limited (&lines, "publisher %s: its stream begins anew: %s %s", self->peer,
      kind_names[kind],
      self->tracks[kind].config ? "has other parameters now" : "has begun after the other track");
  self->has_begun = FALSE;
  self->is_again = TRUE;
  self->held_bytes = 0;
}

static const gchar *
take_config (RtmpMedia *self, Kind kind, const WeirFlv *flv)
{
  Track *track = &self->tracks[kind];
  const WeirMp4Track shown = { flv->codec, .config = flv->data, .config_len = flv->len };
  gchar text[WEIR_MP4_CODEC_TEXT];

  if (weir_mp4_codec_text (&shown, text) < 0
      || (kind == AUDIO
          && weir_flv_read_aac_config (flv->data, flv->len, &track->rate, &track->channels) < 0))
    return kind == AUDIO ? "the record of its audio codec is malformed"
                         : "the record of its video codec is malformed";
  if (is_repeated (track, flv))
    return NULL;
  if (self->has_begun)
    end_matroska (self, kind);
  drop_held (self, kind);
  g_clear_pointer (&track->config, g_bytes_unref);
  track->codec = flv->codec;
  track->config = g_bytes_new (flv->data, flv->len);
  track->is_absent = FALSE;
  return NULL;
}

static const gchar *
leave_out (RtmpMedia *self, Kind kind, const gchar *codec)
{
  Track *track = &self->tracks[kind];

  if (!track->is_told)
    log_event_limited (&lines, "publisher %s: its %s is left out: %s is not taken over RTMP",
        self->peer, kind_names[kind], codec);
  track->is_absent = track->is_told = TRUE;
  rtmp_counts_add_unusable ();
  return !self->has_begun && self->tracks[VIDEO].is_absent && self->tracks[AUDIO].is_absent
             ? "it has no track that can be relayed"
             : NULL;
}

// ---- the Matroska ----

static void
put_frame (RtmpMedia *self, const Frame *frame, GQueue *parts)
{
  gint index = self->tracks[frame->kind].index;
  gsize len = g_bytes_get_size (frame->data);
  guint8 *part;

  if (index < 0) {
    rtmp_counts_add_unusable ();
    return;
  }
  part = g_malloc (WEIR_MATROSKA_FRAME_HEAD + len);
  weir_matroska_write_frame_head (
      part, (gsize) index, (guint64) MAX (frame->ms - self->origin_ms, 0) * 1000, frame->key, len);
  memcpy (part + WEIR_MATROSKA_FRAME_HEAD, g_bytes_get_data (frame->data, NULL), len);
  g_queue_push_tail (parts, g_bytes_new_take (part, WEIR_MATROSKA_FRAME_HEAD + len));
}

static void
put_head (RtmpMedia *self, GQueue *parts)
{
  WeirMp4Track shown[N_TRACKS];
  gsize n = 0, size;
  guint8 *head;

  for (guint i = 0; i < N_TRACKS; i++) {
    Track *track = &self->tracks[i];

    // One that comes later begins the Matroska anew, which then waits for nothing else.
    track->is_absent |= !track->config;
    track->index = track->config ? (gint) n : -1;
    if (!track->config)
      continue;
    shown[n++] = (WeirMp4Track) { .codec = track->codec,
      .timescale = track->rate,
      .channels = track->channels,
      .config = g_bytes_get_data (track->config, NULL),
      .config_len = g_bytes_get_size (track->config) };
  }
  size = weir_matroska_write_head (NULL, 0, shown, n);
  head = g_malloc (size);
  weir_matroska_write_head (head, size, shown, n);
  g_queue_push_tail (parts, g_bytes_new_take (head, size));
}

static void
begin_media (RtmpMedia *self, GQueue *parts)
{
  Frame *frame;

  if (self->is_again)
    g_queue_push_tail (parts, g_bytes_new (NULL, 0));
  self->has_begun = TRUE;
  self->origin_ms = G_MAXINT64;
  for (GList *l = self->held.head; l; l = l->next)
    self->origin_ms = MIN (self->origin_ms, ((Frame *) l->data)->ms);
  put_head (self, parts);
  while ((frame = g_queue_pop_head (&self->held))) {
    put_frame (self, frame, parts);
    frame_free (frame);
  }
}

// ---- messages ----

// Returns how far a timestamp is from the track's last one, or NO_STEP if they are of different
// clocks.
static gint64
find_step (const Track *track, guint32 timestamp)
{
  gint64 step = (gint32) (timestamp - track->timestamp);

  return track->has_time && ABS (step) < JUMP_MS ? step : NO_STEP;
}

// Records are no media: encoders give them any time. Most publishers have one clock for both
// tracks, some one for each. A clock that begins, or is set, goes on where the other track is,
// exactly if both have the same one.
static void
take_time (RtmpMedia *self, Kind kind, guint32 timestamp)
{
  Track *track = &self->tracks[kind], *other = &self->tracks[!kind];
  gint64 step = find_step (track, timestamp), apart = find_step (other, timestamp);

  if (step != NO_STEP)
    track->ms += step;
  else if (apart != NO_STEP)
    track->ms = other->ms + apart;
  else
    track->ms = MAX (track->ms, other->ms);
  if (!track->has_time && other->has_time && apart == NO_STEP)
    log_event_limited (&lines,
        "publisher %s: its audio and its video have different clocks: they are joined as they come",
        self->peer);
  track->timestamp = timestamp;
  track->has_time = TRUE;
}

// Empty NAL units end what parses them.
static GBytes *
copy_picture (RtmpMedia *self, Track *track, const WeirFlv *flv)
{
  guint8 *data = g_malloc (MAX (flv->len, 1));
  gsize record_len, n_empty;
  const guint8 *record = g_bytes_get_data (track->config, &record_len);
  bool cut;
  gsize len = weir_flv_copy_units (
      track->codec, record, record_len, flv->data, flv->len, data, &n_empty, &cut);

  if (n_empty > 0 && !track->has_empties)
    log_event_limited (
        &lines, "publisher %s: its video has empty NAL units, which are left out", self->peer);
  track->has_empties |= n_empty > 0;
  if (cut && len > 0)
    rtmp_counts_add_unusable ();
  return g_bytes_new_take (data, len);
}

static void
tell_about_record (RtmpMedia *self, Kind kind)
{
  Track *track = &self->tracks[kind];

  if (!track->is_told && self->has_begun && !track->config)
    log_event_limited (&lines,
        "publisher %s: its %s is left out until the record of its codec comes", self->peer,
        kind_names[kind]);
  track->is_told |= self->has_begun;
}

static const gchar *
take_frame (RtmpMedia *self, Kind kind, guint32 timestamp, const WeirFlv *flv, GQueue *parts)
{
  Track *track = &self->tracks[kind];
  Frame frame;
  gsize len;

  take_time (self, kind, timestamp);
  frame = (Frame) { kind, track->ms + flv->offset, flv->key, NULL };

  if (!track->config || track->codec != flv->codec) {
    tell_about_record (self, kind);
    rtmp_counts_add_unusable ();
    return NULL;
  }
  frame.data = kind == VIDEO ? copy_picture (self, track, flv) : g_bytes_new (flv->data, flv->len);
  len = g_bytes_get_size (frame.data);
  if (len == 0) {
    rtmp_counts_add_unusable ();
    g_bytes_unref (frame.data);
  } else if (self->has_begun) {
    put_frame (self, &frame, parts);
    g_bytes_unref (frame.data);
  } else {
    self->held_bytes += len + FRAME_BYTES;
    g_queue_push_tail (&self->held, g_memdup2 (&frame, sizeof frame));
  }
  return NULL;
}

static const gchar *
take_media (RtmpMedia *self, Kind kind, const WeirRtmpEvent *event, GQueue *parts)
{
  gchar codec[WEIR_FLV_CODEC_TEXT];
  WeirFlv flv;
  int result = kind == VIDEO ? weir_flv_read_video (event->data, event->len, &flv, codec)
                             : weir_flv_read_audio (event->data, event->len, &flv, codec);

  if (result == -ENOTSUP)
    return leave_out (self, kind, codec);
  if (result < 0)
    rtmp_counts_add_unusable ();
  if (result < 0 || flv.kind == WEIR_FLV_NOTHING)
    return NULL;
  return flv.kind == WEIR_FLV_CONFIG ? take_config (self, kind, &flv)
                                     : take_frame (self, kind, event->timestamp, &flv, parts);
}

const gchar *
rtmp_media_take (RtmpMedia *self, const WeirRtmpEvent *event, GQueue *parts)
{
  const gchar *problem = NULL;

  if (event->type == WEIR_RTMP_METADATA)
    take_metadata (self, event);
  else
    problem = take_media (self, event->type == WEIR_RTMP_VIDEO ? VIDEO : AUDIO, event, parts);
  if (!problem && is_time (self))
    begin_media (self, parts);
  return problem;
}
