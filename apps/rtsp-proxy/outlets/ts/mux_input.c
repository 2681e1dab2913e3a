// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/mux_input.h"

#include <gst/app/gstappsrc.h>

#include "base/buffer_memory.h"
#include "base/clock.h"
#include "base/files_left.h"
#include "base/key_event.h"
#include "base/log.h"
#include "outlets/ts/decode_times.h"
#include "relay/left_out.h"
#include "relay/synced_sink.h"

#define WAIT_FOR_TRACKS (3 * GST_SECOND) // more than a SyncedSink may pass at once
#define HELD_BYTES_MAX (8 * 1024 * 1024) // of memory
#define SILENCE (300 * GST_MSECOND)      // a track that is so far behind gets gaps
#define PICTURE (40 * GST_MSECOND)       // if the stream does not say its rate
#define START (10 * GST_SECOND)          // of the multiplexer's time: no DTS is before 0
#define GAP_INTERVAL (100 * GST_MSECOND) // between two gaps of a track

typedef struct {
  MuxInput *input;
  guint number;
  GstElement *source; // NULL: left out
  DecodeTimes times;  // of video; the parser's thread
  gboolean has_time;
  gint64 time; // of its newest packet or gap, in the relay's time
} Track;

typedef struct {
  guint track;
  GstBuffer *buffer;
} Held;

struct _MuxInput {
  gatomicrefcount refs; // the owner's, the relay's, and those of functions that run later
  const Carriage *carriage;
  WeirLayerSet layers;
  const MuxInputCallbacks *callbacks;
  gchar *label, *tail;
  Relay *relay;
  SyncedSink *synced;

  // The main thread's.
  gpointer owner; // NULL: freed
  GstElement *pipeline;
  guint watch;
  gchar *told;                // the tracks whose absence was logged last
  gboolean waits_for_picture; // set before the pipeline starts

  GMutex lock;     // protects the fields below
  GPtrArray *caps; // NULL until the tracks are known
  guint32 tracks;
  gboolean starting, running, over;
  gint64 first_time, newest;
  GstClockTime first_picture; // its DTS
  Track each[RELAY_MAX_TRACKS];
  GArray *held; // of Held: packets from before the pipeline runs
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
}

static void
unref (gpointer data)
{
  MuxInput *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    gst_clear_object (&self->each[i].source);
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
end (MuxInput *self, const gchar *reason)
{
  g_mutex_lock (&self->lock);
  self->running = FALSE;
  self->over = TRUE;
  g_mutex_unlock (&self->lock);
  stop_pipeline (self);
  if (self->owner)
    self->callbacks->ended (self->owner, reason);
}

static gboolean
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  MuxInput *self = data;
  GError *error = NULL;

  if (GST_MESSAGE_TYPE (message) != GST_MESSAGE_ERROR)
    return G_SOURCE_CONTINUE;
  gst_message_parse_error (message, &error, NULL);
  self->watch = 0;
  end (self, error->message);
  g_error_free (error);
  return G_SOURCE_REMOVE;
}

// ---- the start of a pipeline; main thread ----

static gboolean
is_video (const GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);

  return !g_strcmp0 (gst_structure_get_string (s, "media"), "video");
}

static GstPadProbeReturn
on_upstream_event (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Track *track = data;

  if (key_event_is (GST_PAD_PROBE_INFO_EVENT (info)))
    relay_ask_key (track->input->relay, track->number, clock_now ());
  return GST_PAD_PROBE_OK;
}

static void
note_picture (MuxInput *self, GstClockTime time)
{
  g_mutex_lock (&self->lock);
  if (!GST_CLOCK_TIME_IS_VALID (self->first_picture))
    self->first_picture = time;
  g_mutex_unlock (&self->lock);
}

// RTP timestamps are times of presentation. A frame without one would stop its track in the
// multiplexer for good.
static GstPadProbeReturn
on_picture (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Track *track = data;
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  GstClockTime duration =
      GST_BUFFER_DURATION_IS_VALID (buffer) ? GST_BUFFER_DURATION (buffer) : PICTURE;

  if (!GST_BUFFER_PTS_IS_VALID (buffer))
    return GST_PAD_PROBE_DROP;
  buffer = gst_buffer_make_writable (buffer);
  GST_BUFFER_DTS (buffer) = (GstClockTime) decode_times_next (
      &track->times, (gint64) GST_BUFFER_PTS (buffer), (gint64) duration);
  note_picture (track->input, GST_BUFFER_DTS (buffer));
  GST_PAD_PROBE_INFO_DATA (info) = buffer;
  return GST_PAD_PROBE_OK;
}

// Drops sound from before the first picture (see Carriage.has_zero), and sound without a time:
// rtpmp4gdepay knows the times of several frames in one packet from the second packet on.
static GstPadProbeReturn
on_sound (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  MuxInput *self = ((Track *) data)->input;
  GstClockTime at = GST_BUFFER_PTS (GST_PAD_PROBE_INFO_BUFFER (info));
  gboolean passes;

  g_mutex_lock (&self->lock);
  passes = !self->waits_for_picture
           || (GST_CLOCK_TIME_IS_VALID (self->first_picture) && at >= self->first_picture);
  g_mutex_unlock (&self->lock);
  return passes && GST_CLOCK_TIME_IS_VALID (at) ? GST_PAD_PROBE_OK : GST_PAD_PROBE_DROP;
}

static void
watch_frames (MuxInput *self, Track *track, GstPadProbeCallback probe)
{
  gchar *name = g_strdup_printf ("frames%u", track->number);
  GstElement *queue = gst_bin_get_by_name (GST_BIN (self->pipeline), name);
  GstPad *pad = gst_element_get_static_pad (queue, "sink");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, probe, track, NULL);
  gst_object_unref (pad);
  gst_object_unref (queue);
  g_free (name);
}

static void
connect_track (MuxInput *self, guint number, GstCaps *caps)
{
  Track *track = &self->each[number];
  gchar *name = g_strdup_printf ("in%u", number);
  GstPad *pad;

  track->source = gst_bin_get_by_name (GST_BIN (self->pipeline), name);
  gst_app_src_set_caps (GST_APP_SRC (track->source), caps);
  pad = gst_element_get_static_pad (track->source, "src");
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, on_upstream_event, track, NULL);
  gst_object_unref (pad);
  g_free (name);
  watch_frames (self, track, is_video (caps) ? on_picture : on_sound);
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

// A gap before the first frame of a track has no segment to be in, as a depayloader sends it with
// that frame. GStreamer 1.22 warns critically.
static GstPadProbeReturn
on_gap (GstPad *pad, GstPadProbeInfo *info, gpointer unused)
{
  GstEvent *segment;

  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) != GST_EVENT_GAP)
    return GST_PAD_PROBE_OK;
  segment = gst_pad_get_sticky_event (pad, GST_EVENT_SEGMENT, 0);
  if (!segment)
    return GST_PAD_PROBE_DROP;
  gst_event_unref (segment);
  return GST_PAD_PROBE_OK;
}

static gboolean
watch_gaps (GstElement *mux, GstPad *pad, gpointer unused)
{
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_gap, NULL, NULL);
  return TRUE;
}

static gboolean
make_pipeline (MuxInput *self, const GPtrArray *caps, guint32 tracks)
{
  GError *error = NULL;
  GstElement *mux;
  GstBus *bus;
  gchar *text;

  if (!files_are_left (FILES_FOR_MEDIA)) {
    end (self, FILES_PROBLEM);
    return FALSE;
  }
  text = carriage_dup_launch (self->carriage, caps, tracks, self->layers, self->tail);
  self->pipeline = gst_parse_launch_full (text, NULL, GST_PARSE_FLAG_FATAL_ERRORS, &error);
  g_free (text);
  if (!self->pipeline) {
    end (self, error->message);
    g_error_free (error);
    return FALSE;
  }
  gst_object_ref_sink (self->pipeline);
  mux = gst_bin_get_by_name (GST_BIN (self->pipeline), "mux");
  gst_element_foreach_sink_pad (mux, watch_gaps, NULL);
  gst_object_unref (mux);
  for (guint i = 0; i < caps->len; i++) {
    if (tracks & 1u << i)
      connect_track (self, i, g_ptr_array_index (caps, i));
  }
  bus = gst_element_get_bus (self->pipeline);
  self->watch = gst_bus_add_watch (bus, on_message, self);
  gst_object_unref (bus);
  return TRUE;
}

static void
push (MuxInput *self, guint number, GstBuffer *buffer)
{
  GstElement *source = self->each[number].source;

  if (source)
    gst_app_src_push_buffer (GST_APP_SRC (source), buffer);
  else
    gst_buffer_unref (buffer);
}

// Passes on the packets that have waited. Under the lock, so that later ones follow them.
static void
run_held (MuxInput *self)
{
  GArray *held;

  g_mutex_lock (&self->lock);
  held = self->held;
  self->held = g_array_new (FALSE, FALSE, sizeof (Held));
  for (guint i = 0; i < held->len; i++)
    push (self, g_array_index (held, Held, i).track, g_array_index (held, Held, i).buffer);
  self->running = TRUE;
  g_mutex_unlock (&self->lock);
  g_array_set_clear_func (held, NULL);
  g_array_unref (held);
}

static gboolean
start (gpointer data)
{
  MuxInput *self = data;
  gboolean has_video = FALSE;
  gchar *left_out = NULL;
  GPtrArray *caps;
  guint32 live;

  if (!self->owner)
    return G_SOURCE_REMOVE;
  g_mutex_lock (&self->lock);
  caps = g_ptr_array_ref (self->caps);
  live = find_live (self);
  g_mutex_unlock (&self->lock);
  carriage_choose (self->carriage, caps, &left_out);
  tell_left_out (self, left_out);
  g_free (left_out);
  for (guint i = 0; i < caps->len; i++)
    has_video |= live & 1u << i && is_video (g_ptr_array_index (caps, i));
  self->waits_for_picture = has_video && self->carriage->has_zero;
  if (make_pipeline (self, caps, live)) {
    if (self->callbacks->made (self->owner, self->pipeline, has_video)
        && gst_element_set_state (self->pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE) {
      run_held (self);
    } else {
      end (self, "its pipeline cannot start");
    }
  }
  g_ptr_array_unref (caps);
  return G_SOURCE_REMOVE;
}

// ---- the relay's side ----

static gboolean
same_caps (const GPtrArray *a, const GPtrArray *b)
{
  gboolean same = a->len == b->len;

  for (guint i = 0; i < a->len && same; i++)
    same = gst_caps_is_equal (g_ptr_array_index (a, i), g_ptr_array_index (b, i));
  return same;
}

static gboolean
end_changed (gpointer data)
{
  MuxInput *self = data;

  if (self->owner)
    end (self, "the tracks have changed");
  return G_SOURCE_REMOVE;
}

static void
on_begun (gpointer data, Relay *relay, GPtrArray *caps, gint64 from)
{
  MuxInput *self = data;
  gchar *left_out = NULL;
  gboolean changed;

  g_mutex_lock (&self->lock);
  changed = self->caps && !same_caps (self->caps, caps);
  if (!self->caps) {
    self->caps = g_ptr_array_ref (caps);
    self->tracks = carriage_choose (self->carriage, caps, &left_out);
  }
  g_mutex_unlock (&self->lock);
  g_free (left_out);
  if (changed)
    run_later (self, end_changed);
  for (guint i = 0; i < caps->len && !changed; i++) {
    if (is_video (g_ptr_array_index (caps, i)))
      relay_ask_key (relay, i, clock_now ());
  }
}

static void
hold (MuxInput *self, guint number, GstBuffer *buffer)
{
  const Held held = { number, buffer };

  if (self->held_bytes + buffer_memory (buffer) > HELD_BYTES_MAX) {
    gst_buffer_unref (buffer);
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
    gst_element_send_event (
        track->source, gst_event_new_gap ((GstClockTime) MAX (track->time + (gint64) START, 0), 0));
  }
}

static void
on_push (gpointer data, const RelayPacket *packet)
{
  MuxInput *self = data;
  Track *track = &self->each[packet->track];
  GstBuffer *buffer = packet->buffer;
  gboolean starts = FALSE;

  if (packet->track >= RELAY_MAX_TRACKS) {
    gst_buffer_unref (buffer);
    return;
  }
  buffer = gst_buffer_make_writable (buffer);
  GST_BUFFER_PTS (buffer) = (GstClockTime) MAX (packet->time + (gint64) START, 0);
  GST_BUFFER_DTS (buffer) = GST_CLOCK_TIME_NONE;
  g_mutex_lock (&self->lock);
  if (self->over || !(self->tracks & 1u << packet->track)) {
    gst_buffer_unref (buffer);
  } else {
    if (find_live (self) == 0)
      self->first_time = self->newest = packet->time;
    track->has_time = TRUE;
    track->time = packet->time;
    self->newest = MAX (self->newest, packet->time);
    if (self->running) {
      fill_gaps (self);
      push (self, packet->track, buffer);
    } else {
      hold (self, packet->track, buffer);
      starts = is_complete (self);
    }
  }
  g_mutex_unlock (&self->lock);
  if (starts)
    run_later (self, start);
}

static const RelaySink functions = { .begun = on_begun, .push = on_push, .ended = unref };

guint32
mux_input_choose (const Carriage *carriage, Relay *relay, gchar **left_out)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  guint32 tracks;
  GstCaps *each;

  for (guint i = 0; (each = relay_dup_caps (relay, i)); i++)
    g_ptr_array_add (caps, each);
  tracks = carriage_choose (carriage, caps, left_out);
  g_ptr_array_unref (caps);
  return tracks;
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
  self->synced = synced_sink_add (relay, label, &functions, ref (self), G_MAXUINT32);
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
  synced_sink_remove (self->synced);
  g_mutex_lock (&self->lock);
  self->running = FALSE;
  self->over = TRUE;
  g_mutex_unlock (&self->lock);
  self->owner = NULL;
  stop_pipeline (self);
  unref (self);
}
