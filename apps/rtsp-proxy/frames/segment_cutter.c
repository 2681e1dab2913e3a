// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/segment_cutter.h"

#include "base/log.h"
#include "mp4/init.h"
#include "frames/segment_track.h"

#define NS_PER_MS G_GINT64_CONSTANT (1000000)
#define NS_PER_S (1000 * NS_PER_MS)
#define PROBE_NS (NS_PER_S / 2)     // of the leading track, to measure its frames
#define PROBE_MAX_NS (3 * NS_PER_S) // in which the other tracks must begin; a SyncedSink passes 2 s
#define PROBE_FRAMES 4
#define FIRST_MAX_NS (12 * NS_PER_S) // the first segment, which shows how far apart keyframes are
#define GAP_NS (2 * NS_PER_S)        // between two frames: a discontinuity
#define BYTES_MAX (64 * 1024 * 1024) // of frames that wait
#define FRAMES_MAX 4096              // of a track
#define WALL_STEP_US 1000            // by which the wall clock follows in one segment
#define WALL_JUMP_US (2 * G_USEC_PER_SEC)
#define WALL_OTHER_US (G_USEC_PER_SEC / 4) // more than packets of one source come late

typedef enum { PHASE_WAITING, PHASE_PROBING, PHASE_RUNNING } Phase;

struct _SegmentCutter {
  gatomicrefcount refs;
  SegmentOutput *outputs[SEGMENT_TRACKS_MAX];
  guint n_outputs;
  guint output_of[SEGMENT_TRACKS_MAX]; // the tracks
  gchar languages[SEGMENT_TRACKS_MAX][RELAY_LANGUAGE];
  SegmentLengths lengths;
  gchar *label;
  guint n_tracks, lead;

  GMutex lock; // protects the fields below
  SegmentTrack tracks[SEGMENT_TRACKS_MAX];
  gboolean written[SEGMENT_TRACKS_MAX]; // the track is in the initialization segment
  Phase phase;
  gint64 first_pts, newest_pts; // of the leading track since the last discontinuity
  gint64 part_ns;               // most of a part; 0: not measured yet
  gint64 part_start, segment_start;
  gboolean changed[SEGMENT_TRACKS_MAX]; // an output's format
  gboolean in_segment, discontinuity;
  guint examined; // frames of the leading track
  guint32 sequence;
  gboolean ended;
  gint64 wall_us, wall_least_us; // wall clock minus presentation time
  LogLimit full;
};

SegmentCutter *
segment_cutter_new (SegmentOutput *const *outputs, guint n_outputs, const SegmentLengths *lengths,
    const gchar *label, const SegmentCutterTrack *tracks, guint n_tracks)
{
  SegmentCutter *self = g_new0 (SegmentCutter, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->n_outputs = n_outputs;
  for (guint i = 0; i < n_outputs; i++) {
    outputs[i]->ops->ref (outputs[i]);
    self->outputs[i] = outputs[i];
  }
  self->lengths = *lengths;
  self->label = g_strdup (label);
  self->n_tracks = n_tracks;
  self->full = LOG_LIMIT_FAILURES;
  self->wall_least_us = G_MAXINT64;
  for (guint i = n_tracks; i-- > 0;) {
    segment_track_init (&self->tracks[i], tracks[i].codec);
    self->output_of[i] = tracks[i].output;
    g_strlcpy (self->languages[i], tracks[i].language ? tracks[i].language : "", RELAY_LANGUAGE);
    if (weir_mp4_is_video (tracks[i].codec) || !weir_mp4_is_video (tracks[self->lead].codec))
      self->lead = i;
  }
  return self;
}

SegmentCutter *
segment_cutter_ref (SegmentCutter *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
segment_cutter_unref (SegmentCutter *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  for (guint i = 0; i < self->n_tracks; i++)
    segment_track_clear (&self->tracks[i]);
  for (guint i = 0; i < self->n_outputs; i++)
    self->outputs[i]->ops->unref (self->outputs[i]);
  g_mutex_clear (&self->lock);
  g_free (self->label);
  g_free (self);
}

// ---- segments ----

static SegmentTrack *
get_lead (SegmentCutter *self)
{
  return &self->tracks[self->lead];
}

// Returns the format of the output's tracks that are known by now, and their initialization
// segment. Returns NULL if nothing has come yet of a track with an output of its own.
static GBytes *
make_init (SegmentCutter *self, guint output, SegmentFormat *format)
{
  size_t (*write) (uint8_t *, size_t, const WeirMp4Track *, size_t) =
      self->outputs[output]->ops->makes_files ? weir_mp4_write_file_init : weir_mp4_write_init;
  WeirMp4Track mp4[SEGMENT_TRACKS_MAX];
  GString *codecs = g_string_new (NULL);
  gsize n = 0, size;
  guint8 *data;

  *format = (SegmentFormat) { 0 };
  for (guint i = 0; i < self->n_tracks; i++) {
    const SegmentTrack *track = &self->tracks[i];
    char text[WEIR_MP4_CODEC_TEXT];

    if (self->output_of[i] != output)
      continue;
    self->written[i] = track->mp4.config && weir_mp4_codec_text (&track->mp4, text) == 0
                       && (output == 0 || track->frames->len > 0 || self->written[i]);
    if (!self->written[i])
      continue;
    mp4[n++] = track->mp4;
    g_string_append_printf (codecs, "%s%s", codecs->len > 0 ? "," : "", text);
    if (weir_mp4_is_video (track->mp4.codec) && format->height < track->mp4.height) {
      format->width = track->mp4.width;
      format->height = track->mp4.height;
      format->frame_rate = track->typical_ns > 0 ? 1e9 / (gdouble) track->typical_ns : 0;
    } else if (!weir_mp4_is_video (track->mp4.codec)) {
      format->channels = track->mp4.channels;
      g_strlcpy (format->language, self->languages[i], RELAY_LANGUAGE);
    }
  }
  format->codecs = g_string_free (codecs, FALSE);
  if (n == 0 && output > 0)
    return NULL;
  size = write (NULL, 0, mp4, n);
  data = g_malloc (size);
  write (data, size, mp4, n);
  return g_bytes_new_take (data, size);
}

// The clock of the source and that of this machine drift apart, and packets come late, never early.
// After a discontinuity the frames may be another source's, as far from the clock as its burst was
// long.
static void
follow_wall (SegmentCutter *self)
{
  gint64 off = self->wall_least_us - self->wall_us;
  gint64 jump = self->discontinuity ? WALL_OTHER_US : WALL_JUMP_US;

  if (self->wall_least_us != G_MAXINT64)
    self->wall_us += ABS (off) > jump ? off : CLAMP (off, -WALL_STEP_US, WALL_STEP_US);
  self->wall_least_us = G_MAXINT64;
}

// The first output is the last to begin a segment, to get a part and to end a segment: who sees it
// there finds it in the others, too.
static void
begin_segment (SegmentCutter *self, const SegmentFrame *first)
{
  follow_wall (self);
  for (guint i = self->n_outputs; i-- > 0;) {
    SegmentOutput *output = self->outputs[i];
    SegmentFormat format = { 0 };
    g_autoptr (GBytes) init = self->changed[i] ? make_init (self, i, &format) : NULL;

    output->ops->begin_segment (output, init, init ? &format : NULL,
        first->pts / 1000 + self->wall_us, self->discontinuity);
    g_free (format.codecs);
    self->changed[i] = self->changed[i] && !init;
  }
  self->discontinuity = FALSE;
  self->in_segment = TRUE;
  self->segment_start = self->part_start = first->dts;
}

static void
end_segment (SegmentCutter *self)
{
  for (guint i = self->n_outputs; i-- > 0;)
    self->outputs[i]->ops->end_segment (self->outputs[i]);
  self->in_segment = FALSE;
}

// ---- parts ----

// Returns how many frames of the track belong before `end`. Without `all`, the last one stays, as
// its duration is not known yet.
static guint
count_before (const SegmentTrack *track, gint64 end, gboolean all)
{
  guint n = track->n_timed > 0 && !all ? track->n_timed - 1 : track->n_timed;

  while (n > 0 && segment_track_nth (track, n - 1)->dts >= end)
    n--;
  return n;
}

static guint8 *
add_frames (guint8 *at, const SegmentTrack *track, guint n)
{
  for (guint i = 0; i < n; i++) {
    GstBuffer *data = segment_track_nth (track, i)->data;

    at += gst_buffer_extract (data, 0, at, gst_buffer_get_size (data));
  }
  return at;
}

static gboolean
is_written (const SegmentCutter *self, guint track, guint output)
{
  return self->written[track] && self->output_of[track] == output;
}

// Returns the fragment of an output: the first `n` frames of its tracks. Returns NULL if a track
// with an output of its own has none.
static GBytes *
write_fragment (SegmentCutter *self, guint output, const guint *n, gboolean begins_segment)
{
  WeirMp4Run runs[SEGMENT_TRACKS_MAX];
  gsize head, size, n_runs = 0, total = 0;
  WeirMp4Sample *samples;
  guint8 *data, *at;

  for (guint i = 0; i < self->n_tracks; i++)
    total += is_written (self, i, output) ? n[i] : 0;
  if (total == 0 && output > 0)
    return NULL;
  samples = g_new (WeirMp4Sample, total);
  total = 0;
  for (guint i = 0; i < self->n_tracks; i++) {
    if (!is_written (self, i, output))
      continue;
    segment_track_fill (&self->tracks[i], n[i], samples + total, &runs[n_runs++]);
    total += n[i];
  }
  size = head = weir_mp4_write_fragment (NULL, 0, self->sequence, begins_segment, runs, n_runs);
  for (gsize i = 0; i < n_runs; i++)
    for (gsize k = 0; k < runs[i].n_samples; k++)
      size += runs[i].samples[k].size;
  data = g_malloc (size);
  weir_mp4_write_fragment (data, head, self->sequence, begins_segment, runs, n_runs);
  at = data + head;
  for (guint i = 0; i < self->n_tracks; i++)
    at = is_written (self, i, output) ? add_frames (at, &self->tracks[i], n[i]) : at;
  g_free (samples);
  return g_bytes_new_take (data, size);
}

// Ends the part before frame `n_lead` of the leading track. With `all`, takes the other tracks'
// frames that have come, too.
static void
cut_part (SegmentCutter *self, guint n_lead, gboolean all)
{
  SegmentTrack *lead = get_lead (self);
  gint64 end = segment_track_get_end (lead, n_lead - 1);
  gint64 duration = MIN (end - self->part_start, self->part_ns);
  gboolean independent = segment_track_nth (lead, 0)->key;
  guint n[SEGMENT_TRACKS_MAX];

  for (guint i = 0; i < self->n_tracks; i++)
    n[i] = i == self->lead ? n_lead : count_before (&self->tracks[i], all ? G_MAXINT64 : end, all);
  self->sequence++;
  for (guint i = self->n_outputs; i-- > 0;)
    self->outputs[i]->ops->add_part (self->outputs[i],
        write_fragment (self, i, n, self->part_start == self->segment_start), duration,
        independent || i > 0);
  for (guint i = 0; i < self->n_tracks; i++)
    segment_track_drop (&self->tracks[i], n[i]);
  self->examined -= MIN (n_lead, self->examined);
  self->part_start = end;
}

// Returns how long the current segment may be.
static gint64
get_segment_max (SegmentCutter *self)
{
  gint64 max = self->outputs[0]->ops->get_segment_max (self->outputs[0]);

  return max > 0 ? max : MAX (FIRST_MAX_NS, self->lengths.segment_ns);
}

// Cuts what ends before frame `i` of the leading track, which is timed.
static void
examine (SegmentCutter *self, guint i)
{
  SegmentTrack *lead = get_lead (self);
  const SegmentFrame *frame = segment_track_nth (lead, i);
  gint64 part = frame->dts - self->part_start, segment = frame->dts - self->segment_start;
  gint64 typical = lead->typical_ns;

  if (!self->in_segment) {
    begin_segment (self, frame);
  } else if ((frame->key && segment >= self->lengths.segment_ns - typical / 2)
             || segment + typical > get_segment_max (self)) {
    cut_part (self, i, FALSE);
    end_segment (self);
    begin_segment (self, segment_track_nth (lead, 0));
  } else if (part > self->part_ns && i > 1) {
    cut_part (self, i - 1, FALSE);
  } else if (part + typical > self->part_ns) {
    cut_part (self, i, FALSE);
  }
}

static void
examine_new (SegmentCutter *self)
{
  while (self->examined < get_lead (self)->n_timed) {
    guint i = self->examined++;

    examine (self, i);
  }
}

// ---- frames ----

// Writes what there is, and waits for a keyframe that begins a discontinuity.
static void
restart (SegmentCutter *self)
{
  for (guint i = 0; i < self->n_tracks; i++)
    segment_track_flush (&self->tracks[i]);
  if (self->phase == PHASE_RUNNING)
    examine_new (self);
  if (self->in_segment) {
    cut_part (self, get_lead (self)->n_timed, TRUE);
    end_segment (self);
    self->discontinuity = TRUE;
  }
  for (guint i = 0; i < self->n_tracks; i++)
    segment_track_drop (&self->tracks[i], self->tracks[i].frames->len);
  self->examined = 0;
  self->phase = PHASE_WAITING;
  self->wall_least_us = G_MAXINT64;
}

// The target is of whole frames, and at least as long as a part, whatever the rounding of times.
static void
measure (SegmentCutter *self)
{
  gint64 typical, frames;

  for (guint i = 0; i < self->n_tracks; i++)
    segment_track_measure (&self->tracks[i]);
  typical = MAX (get_lead (self)->typical_ns, NS_PER_MS);
  if (self->part_ns == 0) {
    frames = MAX ((self->lengths.part_ns + typical / 2) / typical, 1);
    self->part_ns = (frames * typical / NS_PER_MS + 1) * NS_PER_MS;
    for (guint i = 0; i < self->n_outputs; i++)
      self->outputs[i]->ops->set_part_target (self->outputs[i], self->part_ns);
  }
  self->phase = PHASE_RUNNING;
}

static gboolean
has_probed (SegmentCutter *self)
{
  gint64 span = self->newest_pts - self->first_pts;
  gboolean complete = TRUE;

  for (guint i = 0; i < self->n_tracks; i++)
    complete &= self->tracks[i].mp4.config && self->tracks[i].frames->len > 1;
  return get_lead (self)->frames->len >= PROBE_FRAMES
         && span >= (complete ? PROBE_NS : PROBE_MAX_NS);
}

// Returns whether the frame can be used.
static gboolean
accept (SegmentCutter *self, guint i, gint64 pts, gboolean key)
{
  const SegmentTrack *track = &self->tracks[i];
  gsize bytes = 0;

  for (guint k = 0; k < self->n_tracks; k++)
    bytes += self->tracks[k].bytes;
  if (bytes > BYTES_MAX || track->frames->len >= FRAMES_MAX) {
    log_event_limited (&self->full, "%s %s: too many frames wait to be written",
        self->outputs[0]->ops->name, self->label);
    restart (self);
  }
  if (i == self->lead && self->phase != PHASE_WAITING && ABS (pts - self->newest_pts) > GAP_NS)
    restart (self);
  if (self->phase == PHASE_WAITING && i == self->lead && key) {
    self->phase = self->part_ns > 0 ? PHASE_RUNNING : PHASE_PROBING;
    self->first_pts = self->newest_pts = pts;
  }
  return track->mp4.config && self->phase != PHASE_WAITING && pts >= self->first_pts
         && (self->phase == PHASE_PROBING || !self->in_segment || self->written[i]
             || self->output_of[i] > 0);
}

void
segment_cutter_set_format (SegmentCutter *self, guint track, const WeirMp4Track *format)
{
  guint output = self->output_of[track];

  g_mutex_lock (&self->lock);
  // The frames so far are of the format before.
  if (self->phase == PHASE_RUNNING && self->tracks[track].mp4.config
      && (self->tracks[track].mp4.config_len != format->config_len
          || memcmp (self->tracks[track].mp4.config, format->config, format->config_len) != 0))
    restart (self);
  self->changed[output] |= segment_track_set_format (&self->tracks[track], format);
  // A late track needs another beginning, which only one with an output of its own has not had.
  if (self->phase == PHASE_RUNNING && self->changed[output] && !self->written[track] && output == 0)
    restart (self);
  g_mutex_unlock (&self->lock);
}

void
segment_cutter_add (
    SegmentCutter *self, guint track, GstBuffer *frame, gint64 pts, gboolean key, gint64 wall_us)
{
  g_mutex_lock (&self->lock);
  if (self->ended || !accept (self, track, pts, key)) {
    gst_buffer_unref (frame);
  } else {
    segment_track_add (&self->tracks[track], frame, pts, key, wall_us);
    if (track == self->lead) {
      self->newest_pts = MAX (self->newest_pts, pts);
      self->wall_least_us = MIN (self->wall_least_us, wall_us - pts / 1000);
      if (self->phase == PHASE_PROBING && has_probed (self))
        measure (self);
      if (self->phase == PHASE_RUNNING)
        examine_new (self);
    }
  }
  g_mutex_unlock (&self->lock);
}

void
segment_cutter_interrupt (SegmentCutter *self)
{
  g_mutex_lock (&self->lock);
  restart (self);
  g_mutex_unlock (&self->lock);
}

void
segment_cutter_end (SegmentCutter *self)
{
  g_mutex_lock (&self->lock);
  restart (self);
  self->ended = TRUE;
  g_mutex_unlock (&self->lock);
}
