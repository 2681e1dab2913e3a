// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/input_times.h"

#include "base/clock.h"
#include "base/key_event.h"

// Frames of an input that come this much earlier than they should move it at once; it was late when
// the stage began. Frames that are all later than LATE for as long as a window move it, too: the
// clock of a camera is slow.
#define EARLY (10 * (gint64) GST_MSECOND)
#define LATE (100 * (gint64) GST_MSECOND)
#define WINDOW (2 * (gint64) GST_SECOND)
#define RECENT 64 // pictures whose frame of the first input is known

typedef struct _Times Times;

typedef struct {
  Times *times;
  guint number;
  gboolean known, settled;
  gint64 offset; // ns to add to the input's times
  gint64 least;  // lateness of the earliest frame of the window, ns
  gint64 window; // when it ends, ns
  gint64 shift;  // ns that put a frame of video near the middle of a picture's time
  gint64 shown;  // number of the picture that shows the last frame
} Input;

struct _Times {
  gint64 base; // monotonic time of the running time 0
  GMutex lock; // protects all below
  Input inputs[16];
  gboolean begun;        // a frame has passed, at whose time the pictures begin
  gint64 start, period;  // of the pictures: running times; 0: not known yet
  gint64 recent[RECENT]; // times of frames of the first input, by the number of the picture
  gint64 number[RECENT]; // that number
  gint64 seen, seen_in;  // time of the last frame of the first input, and the picture that has it
  gint64 correction;     // ns from a picture's own time to that of the frame
  gint64 last;           // time of the last picture or sound that went out
};

static void
times_free (gpointer data)
{
  g_mutex_clear (&((Times *) data)->lock);
  g_free (data);
}

static gboolean
carries_video (GstPad *pad)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (pad);
  gboolean video = caps && gst_structure_has_name (gst_caps_get_structure (caps, 0), "video/x-raw");

  return video;
}

// ---- inputs; with the lock held ----

// Follows the arrival of the input's frames. `late` is how much later this one came than its time
// says. Collectors and encoders of sound do not follow small steps, so there are none later on.
// Returns FALSE for the first frames, as long as each comes earlier than the one before says: a
// stage begins with some that have waited.
static gboolean
follow (Input *self, gint64 late, gint64 now, gboolean video)
{
  const gint64 early = video || !self->settled ? EARLY : LATE;
  const gboolean known = self->known;

  if ((!known && self->number > 0) || late < -early) {
    self->offset += late;
    late = 0;
  } else {
    self->settled = known;
  }
  if (!self->known || now > self->window) {
    if (self->known && self->least > LATE)
      self->offset += self->least;
    self->known = TRUE;
    self->window = now + WINDOW;
    self->least = late;
  }
  self->least = MIN (self->least, late);
  return self->settled;
}

// Sets `*time` of a frame of video to the middle of that of the picture that shows it: at an edge,
// it would be shown now early, now late. Returns FALSE if another frame has that picture, or if the
// pictures are not known yet.
static gboolean
assign (Input *self, gint64 *time, gint64 original)
{
  Times *times = self->times;
  const gint64 period = times->period, half = period / 2;
  gint64 phase, picture;

  if (period == 0) {
    gboolean first = !times->begun;

    times->begun = TRUE;
    return first;
  }
  picture = (*time + self->shift - times->start) / period;
  phase = *time + self->shift - times->start - picture * period;
  if (ABS (phase - half) > half / 2) {
    self->shift += half - phase;
    // Not further than to the edge of the picture before or after.
    if (self->shift > half)
      self->shift -= period;
    else if (self->shift <= -half)
      self->shift += period;
    picture = (*time + self->shift - times->start) / period;
  }
  if (picture <= self->shown || picture < 0)
    return FALSE;
  self->shown = picture;
  *time = times->start + picture * period + half;
  if (self->number == 0) {
    times->recent[picture % RECENT] = original;
    times->number[picture % RECENT] = picture;
  }
  return TRUE;
}

static GstPadProbeReturn
on_frame (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Input *self = data;
  Times *times = self->times;
  GstBuffer *frame = gst_buffer_make_writable (GST_PAD_PROBE_INFO_BUFFER (info));
  const gint64 now = clock_now () - times->base;
  gint64 time = (gint64) GST_BUFFER_PTS (frame), original = time, before;
  gboolean video = carries_video (pad), passes;

  GST_PAD_PROBE_INFO_DATA (info) = frame;
  if (!GST_BUFFER_PTS_IS_VALID (frame))
    return GST_PAD_PROBE_OK;
  g_mutex_lock (&times->lock);
  before = self->offset;
  passes = follow (self, now - time - self->offset, now, video);
  if (before != self->offset)
    GST_BUFFER_FLAG_SET (frame, GST_BUFFER_FLAG_RESYNC);
  time += self->offset;
  passes = passes && (!video || assign (self, &time, original));
  g_mutex_unlock (&times->lock);
  GST_BUFFER_PTS (frame) = (GstClockTime) MAX (time, 0);
  GST_BUFFER_DTS (frame) = GST_CLOCK_TIME_NONE;
  // It ends with its picture: if it is late, it must not take the place of the next one.
  if (video && times->period > 0)
    GST_BUFFER_DURATION (frame) = (GstClockTime) times->period / 4;
  return passes ? GST_PAD_PROBE_OK : GST_PAD_PROBE_DROP;
}

// Requests for keyframes end here: decoders of the inputs need none, and cameras would answer them.
static GstPadProbeReturn
on_upstream_event (GstPad *pad, GstPadProbeInfo *info, gpointer unused)
{
  return key_event_is (GST_PAD_PROBE_INFO_EVENT (info)) ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
}

// Events that say that nothing comes for a while have times that are not moved, and may come before
// the segment; a collector sees itself that nothing comes.
static GstPadProbeReturn
on_event (GstPad *pad, GstPadProbeInfo *info, gpointer unused)
{
  return GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_GAP ? GST_PAD_PROBE_DROP
                                                                           : GST_PAD_PROBE_OK;
}

// ---- the output ----

// Returns the time, in that of the first input, of a picture. If the first input has as many frames
// as there are pictures, that is the time of its frame; if not, its frames would only make the
// rhythm uneven. Call with the lock held.
static gint64
correct (Times *self, gint64 time, gint64 own)
{
  const gint64 picture = MAX ((time - self->start) / self->period, 0);
  const gint64 frame = self->recent[picture % RECENT];

  if (picture > 0 && self->number[picture % RECENT] == picture) {
    if (ABS (frame - self->seen - self->period * (picture - self->seen_in)) < self->period / 8)
      self->correction = frame - own;
    self->seen = frame;
    self->seen_in = picture;
  }
  return own + self->correction;
}

static GstPadProbeReturn
on_output (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Times *self = data;
  GstBuffer *buffer = gst_buffer_make_writable (GST_PAD_PROBE_INFO_BUFFER (info));
  gint64 time = (gint64) GST_BUFFER_PTS (buffer), own;

  GST_PAD_PROBE_INFO_DATA (info) = buffer;
  g_mutex_lock (&self->lock);
  own = time - self->inputs[0].offset;
  if (carries_video (pad) && GST_BUFFER_DURATION_IS_VALID (buffer)) {
    if (self->period == 0)
      self->start = time;
    self->period = (gint64) GST_BUFFER_DURATION (buffer);
    own = self->period > 0 ? correct (self, time, own) : own;
  }
  own = MAX (own, self->last + 1);
  self->last = own;
  g_mutex_unlock (&self->lock);
  GST_BUFFER_PTS (buffer) = (GstClockTime) MAX (own, 0);
  return GST_PAD_PROBE_OK;
}

// ---- the pipeline ----

static void
watch (Times *self, GstElement *element)
{
  const gchar *name = GST_OBJECT_NAME (element);
  const GType collector = g_type_from_name ("GstAggregator");
  g_autoptr (GstPad) pad = gst_element_get_static_pad (element, "src");
  guint64 n;

  if (pad && g_str_has_prefix (name, "input")
      && g_ascii_string_to_unsigned (name + 5, 10, 0, G_N_ELEMENTS (self->inputs) - 1, &n, NULL)) {
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, on_upstream_event, NULL, NULL);
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_event, NULL, NULL);
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_frame, &self->inputs[n], NULL);
  } else if (pad && collector && g_type_is_a (G_OBJECT_TYPE (element), collector)) {
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_output, self, NULL);
  }
}

static void
watch_value (const GValue *value, gpointer times)
{
  watch (times, g_value_get_object (value));
}

void
input_times_align (GstElement *pipeline)
{
  GstElement *named = gst_bin_get_by_name (GST_BIN (pipeline), INPUT_TIMES);
  GstIterator *all;
  GstClock *clock;
  Times *self;
  gint64 offset;

  if (!named)
    return;
  g_object_get (named, "ts-offset", &offset, NULL);
  gst_object_unref (named);
  self = g_new0 (Times, 1);
  self->base = MAX (-offset, 0);
  g_mutex_init (&self->lock);
  for (guint i = 0; i < G_N_ELEMENTS (self->inputs); i++) {
    self->inputs[i].times = self;
    self->inputs[i].number = i;
  }
  g_object_set_data_full (G_OBJECT (pipeline), "weir-times", self, times_free);
  all = gst_bin_iterate_recurse (GST_BIN (pipeline));
  gst_iterator_foreach (all, watch_value, self); // nothing else changes the pipeline yet
  gst_iterator_free (all);
  clock = gst_system_clock_obtain ();
  gst_pipeline_use_clock (GST_PIPELINE (pipeline), clock);
  gst_object_unref (clock);
  gst_element_set_start_time (pipeline, GST_CLOCK_TIME_NONE);
  gst_element_set_base_time (pipeline, (GstClockTime) self->base);
}
