// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/mux_input.h"

#include <gst/app/gstappsrc.h>

#include "base/buffer_memory.h"
#include "base/clock.h"
#include "base/files_left.h"
#include "base/log.h"
#include "frames/frame_taker.h"
#include "outlets/ts/mux_frames.h"
#include "relay/left_out.h"
#include "relay/relay_caps.h"
#include "relay/track_watch.h"

#define WAIT_FOR_TRACKS (3 * GST_SECOND) // more than a SyncedSink may pass at once
#define HELD_BYTES_MAX (8 * 1024 * 1024) // of memory
#define SILENCE (300 * GST_MSECOND)      // a track that is so far behind gets gaps
#define GAP_INTERVAL (100 * GST_MSECOND) // between two gaps of a track

typedef struct {
  MuxInput *input;
  guint number;
  FrameTaker *taker;  // the main thread's; NULL: left out
  GstElement *source; // NULL: left out
  MuxFrames frames;   // the upstream's thread's

  // With the lock.
  GstCaps *sent; // that `source` has got
  gboolean has_time;
  gint64 time; // of its newest packet or gap, in the relay's time
} Track;

typedef struct {
  guint track;
  GstBuffer *buffer;
  GstCaps *caps;
} Held;

struct _MuxInput {
  gatomicrefcount refs; // the owner's, the takers', and those of functions that run later
  const Carriage *carriage;
  WeirLayerSet layers;
  const MuxInputCallbacks *callbacks;
  gchar *label, *tail;
  Relay *relay;
  TrackWatch *watched;

  // The main thread's.
  gpointer owner;  // NULL: freed
  GPtrArray *caps; // NULL until the tracks are known
  GstElement *pipeline;
  guint watch;
  gchar *told; // the tracks whose absence was logged last

  GMutex lock;    // protects the fields below
  guint32 tracks; // that are carried
  gboolean starting, running, over;
  gboolean waits_for_picture; // set before it runs
  gint64 first_time, newest;
  GstClockTime first_picture; // its DTS
  Track each[RELAY_MAX_TRACKS];
  GArray *held; // of Held: frames from before the pipeline runs
  gsize held_bytes;
};

static MuxInput *
ref (MuxInput *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
clear_held (gpointer data)
{
  gst_buffer_unref (((Held *) data)->buffer);
  gst_caps_unref (((Held *) data)->caps);
}

static void
unref (gpointer data)
{
  MuxInput *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    gst_clear_object (&self->each[i].source);
    mux_frames_clear (&self->each[i].frames);
    gst_clear_caps (&self->each[i].sent);
  }
  g_clear_pointer (&self->caps, g_ptr_array_unref);
  g_array_unref (self->held);
  relay_unref (self->relay);
  g_mutex_clear (&self->lock);
  g_free (self->label);
  g_free (self->tail);
  g_free (self->told);
  g_free (self);
}

static void
run_later (MuxInput *self, GSourceFunc function)
{
  g_main_context_invoke_full (NULL, G_PRIORITY_DEFAULT, function, ref (self), unref);
}

// ---- the end of a pipeline; main thread ----

static void
stop_pipeline (MuxInput *self)
{
  g_clear_handle_id (&self->watch, g_source_remove);
  if (self->pipeline)
    gst_element_set_state (self->pipeline, GST_STATE_NULL);
  gst_clear_object (&self->pipeline);
}

static void
leave_tracks (MuxInput *self)
{
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    g_clear_pointer (&self->each[i].taker, frame_taker_free);
}

static void
end (MuxInput *self, const gchar *reason)
{
  g_mutex_lock (&self->lock);
  self->running = FALSE;
  self->over = TRUE;
  g_mutex_unlock (&self->lock);
  stop_pipeline (self);
  leave_tracks (self);
  if (self->owner)
    self->callbacks->ended (self->owner, reason);
}

static gboolean
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  MuxInput *self = data;
  g_autoptr (GError) error = NULL;

  if (GST_MESSAGE_TYPE (message) != GST_MESSAGE_ERROR)
    return G_SOURCE_CONTINUE;
  gst_message_parse_error (message, &error, NULL);
  self->watch = 0;
  end (self, error->message);
  return G_SOURCE_REMOVE;
}

// ---- the start of a pipeline; main thread ----

static void
connect_track (MuxInput *self, guint number)
{
  g_autofree gchar *name = g_strdup_printf ("in%u", number);

  self->each[number].source = gst_bin_get_by_name (GST_BIN (self->pipeline), name);
}

static void
tell_left_out (MuxInput *self, const gchar *left_out)
{
  if (!left_out || !g_strcmp0 (left_out, self->told))
    return;
  left_out_log (self->label, left_out);
  g_free (self->told);
  self->told = g_strdup (left_out);
}

// Returns the tracks that have had packets, of those that are carried.
static guint32
find_live (MuxInput *self)
{
  guint32 live = 0;

  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    live |= self->tracks & 1u << i && self->each[i].has_time ? 1u << i : 0;
  return live;
}

// A gap before the first frame of a track has no segment to be in, as an appsrc sends it with that
// frame. GStreamer 1.22 warns critically.
static GstPadProbeReturn
on_gap (GstPad *pad, GstPadProbeInfo *info, gpointer unused)
{
  g_autoptr (GstEvent) segment = NULL;

  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) != GST_EVENT_GAP)
    return GST_PAD_PROBE_OK;
  segment = gst_pad_get_sticky_event (pad, GST_EVENT_SEGMENT, 0);
  if (!segment)
    return GST_PAD_PROBE_DROP;
  return GST_PAD_PROBE_OK;
}

static gboolean
watch_gaps (GstElement *mux, GstPad *pad, gpointer unused)
{
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_gap, NULL, NULL);
  return TRUE;
}

static gboolean
make_pipeline (MuxInput *self, guint32 tracks)
{
  GError *error = NULL;
  GstElement *mux;
  g_autoptr (GstBus) bus = NULL;
  g_autofree gchar *text = NULL;

  if (!files_are_left (FILES_FOR_MEDIA)) {
    end (self, FILES_PROBLEM);
    return FALSE;
  }
  text = carriage_dup_launch (self->carriage, self->caps, tracks, self->tail);
  self->pipeline = gst_parse_launch_full (text, NULL, GST_PARSE_FLAG_FATAL_ERRORS, &error);
  if (!self->pipeline) {
    end (self, error->message);
    g_error_free (error);
    return FALSE;
  }
  gst_object_ref_sink (self->pipeline);
  mux = gst_bin_get_by_name (GST_BIN (self->pipeline), "mux");
  gst_element_foreach_sink_pad (mux, watch_gaps, NULL);
  gst_object_unref (mux);
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    if (tracks & 1u << i)
      connect_track (self, i);
  }
  bus = gst_element_get_bus (self->pipeline);
  self->watch = gst_bus_add_watch (bus, on_message, self);
  return TRUE;
}

// Drops sound from before the first picture (see Carriage.has_zero).
static gboolean
is_too_early (const MuxInput *self, const Track *track, GstBuffer *buffer)
{
  return self->waits_for_picture && !track->frames.is_video
         && (!GST_CLOCK_TIME_IS_VALID (self->first_picture)
             || GST_BUFFER_PTS (buffer) < self->first_picture);
}

// Call with the lock held. Takes ownership of the buffer.
static void
push (MuxInput *self, guint number, GstBuffer *buffer, GstCaps *caps)
{
  Track *track = &self->each[number];

  if (!track->source || is_too_early (self, track, buffer)) {
    gst_buffer_unref (buffer);
    return;
  }
  if (gst_caps_replace (&track->sent, caps))
    gst_app_src_set_caps (GST_APP_SRC (track->source), caps);
  gst_app_src_push_buffer (GST_APP_SRC (track->source), buffer);
}

// Passes on the frames that have waited. Under the lock, so that later ones follow them.
static void
run_held (MuxInput *self, gboolean waits_for_picture)
{
  g_mutex_lock (&self->lock);
  self->waits_for_picture = waits_for_picture;
  for (guint i = 0; i < self->held->len; i++) {
    const Held *held = &g_array_index (self->held, Held, i);

    push (self, held->track, gst_buffer_ref (held->buffer), held->caps);
  }
  g_array_set_size (self->held, 0);
  self->running = TRUE;
  g_mutex_unlock (&self->lock);
}

static gboolean
has_video (const MuxInput *self, guint32 tracks)
{
  gboolean has = FALSE;

  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    has |= tracks & 1u << i && self->each[i].frames.is_video;
  return has;
}

// Returns the elements that select layers. (transfer full)
static GPtrArray *
find_filters (MuxInput *self)
{
  GPtrArray *filters = g_ptr_array_new_with_free_func (gst_object_unref);

  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    FrameTaker *taker = self->each[i].taker;
    GstElement *filter = taker ? frame_taker_get_filter (taker) : NULL;

    if (filter)
      g_ptr_array_add (filters, gst_object_ref (filter));
  }
  return filters;
}

// Makes the owner know the pipeline, and starts it.
static gboolean
play (MuxInput *self, gboolean video)
{
  g_autoptr (GPtrArray) filters = find_filters (self);
  gboolean used = self->callbacks->made (self->owner, self->pipeline, filters, video);

  return used
         && gst_element_set_state (self->pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE;
}

static gboolean
start (gpointer data)
{
  MuxInput *self = data;
  gboolean video;
  guint32 live;

  if (!self->owner || self->over)
    return G_SOURCE_REMOVE;
  g_mutex_lock (&self->lock);
  live = find_live (self);
  g_mutex_unlock (&self->lock);
  video = has_video (self, live);
  if (!make_pipeline (self, live))
    return G_SOURCE_REMOVE;
  if (play (self, video))
    run_held (self, video && self->carriage->has_zero);
  else
    end (self, "its pipeline cannot start");
  return G_SOURCE_REMOVE;
}

// ---- frames; the upstream's threads ----

static void
hold (MuxInput *self, guint number, GstBuffer *buffer, GstCaps *caps)
{
  const Held held = { number, buffer, gst_caps_ref (caps) };

  if (self->held_bytes + buffer_memory (buffer) > HELD_BYTES_MAX) {
    clear_held ((gpointer) &held);
    return;
  }
  self->held_bytes += buffer_memory (buffer);
  g_array_append_val (self->held, held);
}

// Reports whether it is time to start: once.
static gboolean
is_complete (MuxInput *self)
{
  if (self->starting
      || (find_live (self) != self->tracks
          && self->newest - self->first_time < (gint64) WAIT_FOR_TRACKS))
    return FALSE;
  self->starting = TRUE;
  return TRUE;
}

// Lets the multiplexer go on without the tracks that are silent.
static void
fill_gaps (MuxInput *self)
{
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    Track *track = &self->each[i];

    if (!track->source || self->newest - track->time < (gint64) (SILENCE + GAP_INTERVAL))
      continue;
    track->time = self->newest - (gint64) SILENCE;
    gst_element_send_event (track->source,
        gst_event_new_gap ((GstClockTime) MAX (track->time + FRAME_CHAIN_START, 0), 0));
  }
}

static void
on_arrived (gpointer data, gint64 time)
{
  Track *track = data;
  MuxInput *self = track->input;
  gboolean starts = FALSE;

  g_mutex_lock (&self->lock);
  if (!self->over) {
    if (find_live (self) == 0)
      self->first_time = self->newest = time;
    track->has_time = TRUE;
    track->time = time;
    self->newest = MAX (self->newest, time);
    if (self->running)
      fill_gaps (self);
    else
      starts = is_complete (self);
  }
  g_mutex_unlock (&self->lock);
  if (starts)
    run_later (self, start);
}

static void
on_format (gpointer data, const GstCaps *caps)
{
  mux_frames_set_format (&((Track *) data)->frames, caps);
}

static void
on_frame (gpointer data, const Frame *frame)
{
  Track *track = data;
  MuxInput *self = track->input;
  GstBuffer *buffer = mux_frames_make (&track->frames, frame);

  if (!buffer)
    return;
  g_mutex_lock (&self->lock);
  if (track->frames.is_video && !GST_CLOCK_TIME_IS_VALID (self->first_picture))
    self->first_picture = GST_BUFFER_DTS (buffer);
  if (self->over)
    gst_buffer_unref (buffer);
  else if (self->running)
    push (self, track->number, buffer, track->frames.caps);
  else
    hold (self, track->number, buffer, track->frames.caps);
  g_mutex_unlock (&self->lock);
}

static void
on_track_ended (gpointer data)
{
  unref (((Track *) data)->input);
}

static void
on_track_failed (gpointer data, const gchar *reason)
{
  MuxInput *self = ((Track *) data)->input;

  ref (self);
  end (self, reason);
  unref (self);
}

static const FrameTakerFunctions functions = { on_arrived, on_format, on_frame, on_track_ended,
  on_track_failed };

// ---- the relay's tracks; main thread ----

static gboolean
make_taker (MuxInput *self, guint number, GError **error)
{
  GstCaps *caps = g_ptr_array_index (self->caps, number);
  const FrameWish wish = { self->layers, !weir_layer_set_equal (self->layers, WEIR_LAYER_SET_ALL),
    FRAMES_FROM_NOW };
  Track *track = &self->each[number];

  mux_frames_init (&track->frames, self->carriage, caps);
  track->taker = frame_taker_new (self->relay, number, caps, &wish, error);
  return track->taker != NULL;
}

static void
take_tracks (MuxInput *self)
{
  g_autofree gchar *left_out = NULL;
  GError *error = NULL;
  gboolean made = TRUE;
  guint32 tracks = carriage_choose (self->carriage, self->caps, &left_out);

  tell_left_out (self, left_out);
  g_mutex_lock (&self->lock);
  self->tracks = tracks;
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < RELAY_MAX_TRACKS && made; i++)
    made = !(tracks & 1u << i) || make_taker (self, i, &error);
  if (!made) {
    end (self, error->message);
    g_error_free (error);
    return;
  }
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    if (self->each[i].taker) {
      ref (self);
      frame_taker_start (self->each[i].taker, &functions, &self->each[i], self->label);
    }
  }
}

static void
on_tracks (gpointer data, GPtrArray *caps)
{
  MuxInput *self = data;

  if (self->over)
    return;
  if (!self->caps) {
    self->caps = g_ptr_array_ref (caps);
    take_tracks (self);
  } else if (!relay_caps_are_equal (self->caps, caps)) {
    end (self, "the tracks have changed");
  } else {
    for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
      if (self->each[i].taker && self->each[i].frames.is_video)
        relay_ask_key (self->relay, i, clock_now ());
    }
  }
}

guint32
mux_input_choose (const Carriage *carriage, Relay *relay, gchar **left_out)
{
  g_autoptr (GPtrArray) caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  GstCaps *each;

  for (guint i = 0; (each = relay_dup_caps (relay, i)); i++)
    g_ptr_array_add (caps, each);
  return carriage_choose (carriage, caps, left_out);
}

gchar *
mux_input_dup_problem (const Carriage *carriage, Relay *relay)
{
  gchar *left_out, *problem = NULL;

  if (!mux_input_choose (carriage, relay, &left_out))
    problem = g_strdup (left_out ? left_out : "the stream has no tracks");
  g_free (left_out);
  return problem;
}

MuxInput *
mux_input_new (const Carriage *carriage, Relay *relay, WeirLayerSet layers, const gchar *label,
    const gchar *tail, const MuxInputCallbacks *callbacks, gpointer owner)
{
  MuxInput *self = g_new0 (MuxInput, 1);

  g_atomic_ref_count_init (&self->refs);
  self->first_picture = GST_CLOCK_TIME_NONE;
  g_mutex_init (&self->lock);
  self->carriage = carriage;
  self->layers = layers;
  self->callbacks = callbacks;
  self->owner = owner;
  self->label = g_strdup (label);
  self->tail = g_strdup (tail);
  self->relay = relay_ref (relay);
  self->held = g_array_new (FALSE, FALSE, sizeof (Held));
  g_array_set_clear_func (self->held, clear_held);
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    self->each[i].input = self;
    self->each[i].number = i;
  }
  self->watched = track_watch_new (relay, on_tracks, self);
  return self;
}

const gchar *
mux_input_get_left_out (MuxInput *self)
{
  return self->told;
}

void
mux_input_free (MuxInput *self)
{
  track_watch_free (self->watched);
  g_mutex_lock (&self->lock);
  self->running = FALSE;
  self->over = TRUE;
  g_mutex_unlock (&self->lock);
  self->owner = NULL;
  stop_pipeline (self);
  leave_tracks (self);
  unref (self);
}
