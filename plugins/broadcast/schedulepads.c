// SPDX-License-Identifier: LGPL-2.1-or-later

// The pads of a schedulesrc, each with a thread that pushes the packets of a track when they are
// due.
#include "config.h"

#include <string.h>

#include <gst/sdp/gstsdpmessage.h>

#include "broadcast/schedulesrc_private.h"
#include "core/run/clock.h"

GST_DEBUG_CATEGORY_EXTERN (schedulesrc_debug);
#define GST_CAT_DEFAULT schedulesrc_debug

#define WAIT_MAX_NS (500 * GST_MSECOND)
#define DRIFT_MAX_NS (2 * GST_MSECOND) // of the pipeline's clock, before it is followed

// ---- times ----

// Returns the running time of a time of weir_now_ns(); 0 without a clock.
static gint64
running_time_of (WeirScheduleSrc *self, gint64 at_ns)
{
  GstClock *clock = gst_element_get_clock (GST_ELEMENT (self));
  gint64 result = 0;

  if (!clock)
    return 0;
  result = (gint64) gst_clock_get_time (clock) - weir_now_ns ()
           - (gint64) gst_element_get_base_time (GST_ELEMENT (self)) + at_ns;
  gst_object_unref (clock);
  return result;
}

// Returns the running time of the title's start. It is equal for all packets, unless the title
// stalls, or the pipeline's clock differs from the system's.
static gint64
title_start (WeirScheduleSrc *self, const WeirFollowOut *out, gboolean *moved)
{
  gint64 start = running_time_of (self, out->play_ns);

  g_mutex_lock (&self->lock);
  *moved = !self->start_known || out->stalled;
  if (*moved || ABS (start - self->title_start) > (gint64) DRIFT_MAX_NS)
    self->title_start = start;
  self->start_known = TRUE;
  start = self->title_start;
  if (*moved) {
    for (guint i = 0; i < self->n_pads; i++)
      self->pads[i]->segment_due = TRUE;
  }
  g_mutex_unlock (&self->lock);
  return start;
}

// ---- pushing ----

static void
begin_stream (SchedulePad *pad)
{
  WeirScheduleSrc *self = pad->owner;
  gchar *name = g_strdup_printf ("%u", pad->track);
  gchar *id = gst_pad_create_stream_id (pad->pad, GST_ELEMENT (self), name);
  GstEvent *event = gst_event_new_stream_start (id);

  gst_event_set_group_id (event, GPOINTER_TO_UINT (self) | 1);
  gst_pad_push_event (pad->pad, event);
  gst_pad_push_event (pad->pad, gst_event_new_caps (pad->caps));
  g_free (id);
  g_free (name);
}

// Buffers have running times; the segment says what time of the title they are.
static void
push_segment (SchedulePad *pad, gint64 start)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.start = segment.base = segment.position = (guint64) MAX (start, 0);
  segment.time = (guint64) MAX (-start, 0);
  gst_pad_push_event (pad->pad, gst_event_new_segment (&segment));
}

static GstFlowReturn
push (SchedulePad *pad, const WeirFollowOut *out)
{
  WeirScheduleSrc *self = pad->owner;
  GstBuffer *buffer = packet_keep_take (&self->keep, out->item);
  gboolean moved, segment_due;
  gint64 start = title_start (self, out, &moved);

  g_mutex_lock (&self->lock);
  segment_due = pad->segment_due || !pad->begun;
  pad->segment_due = FALSE;
  g_mutex_unlock (&self->lock);
  if (segment_due)
    push_segment (pad, start);
  buffer = gst_buffer_make_writable (buffer);
  GST_BUFFER_PTS (buffer) = (GstClockTime) MAX (start + out->title_ns, 0);
  if (!pad->begun || out->lost > 0)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  pad->begun = TRUE;
  return gst_pad_push (pad->pad, buffer);
}

static gboolean
take (SchedulePad *pad, gint64 now, WeirFollowOut *out, gint64 *due)
{
  WeirScheduleSrc *self = pad->owner;

  return self->is_live ? weir_live_take (&self->live, pad->track, now, out, due)
                       : weir_follow_take (&self->follow, pad->track, now, out, due);
}

// Waits for the next packet. Returns FALSE at the end of the track, with `*ended`, or when the
// element stops.
static gboolean
wait_for_packet (SchedulePad *pad, WeirFollowOut *out, gboolean *ended)
{
  WeirScheduleSrc *self = pad->owner;
  gboolean got = FALSE;
  gint64 due, now;

  *ended = FALSE;
  g_mutex_lock (&self->lock);
  while (!self->stopping && !got && !*ended) {
    now = weir_now_ns ();
    due = WEIR_NEVER;
    *ended = self->ending || (!self->is_live && weir_follow_ended (&self->follow, pad->track));
    if (self->playing && !*ended)
      got = take (pad, now, out, &due);
    if (!got && !*ended)
      g_cond_wait_until (
          &pad->cond, &self->lock, (MIN (due, now + (gint64) WAIT_MAX_NS) + 999) / 1000);
  }
  if (got) {
    self->output_ns = now;
    if (self->start_up_ns == 0)
      self->start_up_ns = now - self->asked_ns;
  }
  g_mutex_unlock (&self->lock);
  return got;
}

static void
end_track (SchedulePad *pad, GstFlowReturn flow)
{
  if (flow == GST_FLOW_OK || flow == GST_FLOW_EOS) {
    if (!pad->begun)
      push_segment (pad, 0); // before EOS
    gst_pad_push_event (pad->pad, gst_event_new_eos ());
  } else if (flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS) {
    GST_ELEMENT_FLOW_ERROR (pad->owner, flow);
    gst_pad_push_event (pad->pad, gst_event_new_eos ());
  }
  gst_pad_pause_task (pad->pad);
}

static void
run_pads (gpointer data)
{
  SchedulePad *pad = data;
  WeirScheduleSrc *self = pad->owner;
  WeirFollowOut out;
  gboolean ended;
  GstFlowReturn own, flow;

  if (!wait_for_packet (pad, &out, &ended)) {
    end_track (pad, ended ? GST_FLOW_OK : GST_FLOW_FLUSHING);
    return;
  }
  own = push (pad, &out);
  g_mutex_lock (&self->lock);
  flow = gst_flow_combiner_update_pad_flow (self->combiner, pad->pad, own);
  // Elements that are being stopped may fail, such as a decoder that cannot negotiate any more.
  if (flow < GST_FLOW_EOS && !self->playing)
    flow = GST_FLOW_FLUSHING;
  g_mutex_unlock (&self->lock);
  if (own == GST_FLOW_EOS || flow != GST_FLOW_OK)
    end_track (pad, own == GST_FLOW_EOS ? own : flow);
}

// ---- making pads ----

static gboolean
query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  WeirScheduleSrc *self = WEIR_SCHEDULE_SRC (parent);
  GstFormat format;
  GstClockTime latency;

  switch (GST_QUERY_TYPE (query)) {
    case GST_QUERY_LATENCY:
      GST_OBJECT_LOCK (self);
      latency = self->settings.latency;
      GST_OBJECT_UNLOCK (self);
      gst_query_set_latency (query, TRUE, latency, GST_CLOCK_TIME_NONE);
      return TRUE;
    case GST_QUERY_DURATION:
      gst_query_parse_duration (query, &format, NULL);
      if (format != GST_FORMAT_TIME || self->is_live)
        return FALSE;
      gst_query_set_duration (
          query, format, (gint64) self->description->n_frames * self->description->frame_ns);
      return TRUE;
    case GST_QUERY_SCHEDULING:
      gst_query_set_scheduling (query, GST_SCHEDULING_FLAG_SEQUENTIAL, 1, -1, 0);
      gst_query_add_scheduling_mode (query, GST_PAD_MODE_PUSH);
      return TRUE;
    default:
      return gst_pad_query_default (pad, parent, query);
  }
}

// What a description says of the schedule, and so of the time at which it was made, is no property
// of the media; only the number of packets and where the timestamps begin are.
static gboolean
is_of_media (GQuark field, GValue *value, gpointer data)
{
  const gchar *name = g_quark_to_string (field);

  return g_str_equal (name, "x-weir-rtptime") || g_str_equal (name, "x-weir-packets")
         || !(g_str_has_prefix (name, "x-weir-") || g_str_equal (name, "a-source-filter"));
}

// Returns the caps of a media's first format, as rtspsrc makes them; NULL if it has no clock rate.
static GstCaps *
media_caps (const GstSDPMessage *sdp, const GstSDPMedia *media)
{
  const gchar *format = gst_sdp_media_get_format (media, 0);
  GstCaps *caps =
      format ? gst_sdp_media_get_caps_from_media (media, (gint) g_ascii_strtoll (format, NULL, 10))
             : NULL;
  gint rate = 0;

  if (!caps)
    return NULL;
  gst_sdp_message_attributes_to_caps (sdp, caps);
  gst_sdp_media_attributes_to_caps (media, caps);
  gst_structure_set_name (gst_caps_get_structure (caps, 0), "application/x-rtp");
  gst_structure_filter_and_map_in_place (gst_caps_get_structure (caps, 0), is_of_media, NULL);
  if (!gst_structure_get_int (gst_caps_get_structure (caps, 0), "clock-rate", &rate) || rate <= 0)
    gst_clear_caps (&caps);
  return caps;
}

static SchedulePad *
new_pad (WeirScheduleSrc *self, guint32 track, GstCaps *caps)
{
  GstPadTemplate *template =
      gst_element_class_get_pad_template (GST_ELEMENT_GET_CLASS (self), "stream_%u");
  gchar *name = g_strdup_printf ("stream_%u", track);
  SchedulePad *pad = g_new0 (SchedulePad, 1);

  pad->owner = self;
  pad->track = track;
  pad->caps = caps;
  pad->pad = gst_object_ref (gst_pad_new_from_template (template, name));
  g_cond_init (&pad->cond);
  gst_pad_set_query_function (pad->pad, query);
  gst_pad_use_fixed_caps (pad->pad);
  g_free (name);
  return pad;
}

// Returns the caps of each track; NULL if a format is not known. (transfer full)
static GPtrArray *
caps_of (const gchar *text)
{
  GPtrArray *list = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  GstSDPMessage *sdp = NULL;
  gboolean ok = gst_sdp_message_new_from_text (text, &sdp) == GST_SDP_OK;

  for (guint i = 0; ok && i < gst_sdp_message_medias_len (sdp); i++) {
    GstCaps *caps = media_caps (sdp, gst_sdp_message_get_media (sdp, i));

    ok = caps != NULL;
    if (ok)
      g_ptr_array_add (list, caps);
  }
  if (sdp)
    gst_sdp_message_free (sdp);
  if (!ok)
    g_clear_pointer (&list, g_ptr_array_unref);
  return list;
}

// Ignores the timestamp of the instant of a description.
static gboolean
is_same_format (GstCaps *a, GstCaps *b)
{
  GstCaps *caps[2] = { gst_caps_copy (a), gst_caps_copy (b) };
  gboolean same;

  for (guint i = 0; i < 2; i++)
    gst_structure_remove_field (gst_caps_get_structure (caps[i], 0), "x-weir-rtptime");
  same = gst_caps_is_equal (caps[0], caps[1]);
  gst_caps_unref (caps[0]);
  gst_caps_unref (caps[1]);
  return same;
}

gboolean
schedule_src_has_pads (WeirScheduleSrc *self, const gchar *sdp)
{
  GPtrArray *list = caps_of (sdp);
  gboolean same = list && list->len == self->n_pads;

  for (guint i = 0; same && i < list->len; i++)
    same = is_same_format (g_ptr_array_index (list, i), self->pads[i]->caps);
  g_clear_pointer (&list, g_ptr_array_unref);
  return same;
}

// The application's thread may wake the pads meanwhile.
static void
add_pad (WeirScheduleSrc *self, SchedulePad *pad)
{
  g_mutex_lock (&self->lock);
  self->pads[self->n_pads++] = pad;
  g_mutex_unlock (&self->lock);
}

gboolean
schedule_src_add_pads (WeirScheduleSrc *self, const gchar *text, GError **error)
{
  GPtrArray *list = caps_of (text);
  gboolean ok = list && list->len == self->description->n_tracks;

  for (guint32 i = 0; ok && i < list->len; i++)
    add_pad (self, new_pad (self, i, gst_caps_ref (g_ptr_array_index (list, i))));
  g_clear_pointer (&list, g_ptr_array_unref);
  if (!ok)
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "the description has a media whose format is not known");
  return ok;
}

void
schedule_src_start_pads (WeirScheduleSrc *self)
{
  for (guint i = 0; i < self->n_pads; i++) {
    SchedulePad *pad = self->pads[i];

    gst_pad_set_active (pad->pad, TRUE);
    begin_stream (pad); // so that who links the pad knows its caps
    gst_flow_combiner_add_pad (self->combiner, pad->pad);
    gst_element_add_pad (GST_ELEMENT (self), pad->pad);
  }
  gst_element_no_more_pads (GST_ELEMENT (self));
  for (guint i = 0; i < self->n_pads; i++)
    gst_pad_start_task (self->pads[i]->pad, run_pads, self->pads[i], NULL);
}

void
schedule_src_remove_pads (WeirScheduleSrc *self)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = self->n_pads;
  self->n_pads = 0;
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < n; i++) {
    SchedulePad *pad = self->pads[i];

    gst_pad_set_active (pad->pad, FALSE);
    gst_pad_stop_task (pad->pad);
    if (GST_OBJECT_PARENT (pad->pad) == GST_OBJECT (self)) {
      gst_flow_combiner_remove_pad (self->combiner, pad->pad);
      gst_element_remove_pad (GST_ELEMENT (self), pad->pad);
    }
    gst_object_unref (pad->pad);
    gst_caps_unref (pad->caps);
    g_cond_clear (&pad->cond);
    g_free (pad);
  }
}

// With the lock.
void
schedule_src_wake_pads (WeirScheduleSrc *self)
{
  for (guint i = 0; i < self->n_pads; i++)
    g_cond_signal (&self->pads[i]->cond);
}
