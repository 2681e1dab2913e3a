// SPDX-License-Identifier: LGPL-2.1-or-later
#include "title/remote_track.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "isolate/title_wire.h"
#include "rtp/rtp.h"
#include "weir.h"

#define MTU_MIN 28
#define TAKEN_UNTOLD 4 // messages

enum { PROP_0, PROP_PT, PROP_MTU, PROP_STATS };

struct _RemoteTrack {
  GstElement parent;
  GstPad *pad;
  const RemoteTrackHandler *handler;
  gpointer owner;
  guint number, payload_type, mtu, together;
  gint socket;

  // Of the track's thread:
  guint8 *scratch; // WIRE_MAX
  guint32 n_taken; // messages
  guint32 n_told;  // of them, those that the worker knows of
  gboolean begun;  // the stream-start event was pushed
  gboolean has_caps, has_segment;

  GMutex lock; // protects the fields below
  GCond changed;
  GstSegment segment;
  GstClockTime lead, position; // of the last packet
  gint64 duration;
  gboolean seekable, has_ended;
  gboolean is_flushed;      // between remote_track_flush() and remote_track_resume()
  gboolean is_stale;        // what the worker sends is of the position before a seek
  guint32 reached, resumed; // serial numbers of seeks
  guint flushes;
  gint stops; // atomic, and protected
  gint clock_rate;
  guint32 rtp_time;
  guint16 seq;
  guint seqnum_offset;
};

typedef struct {
  GstElementClass parent_class;
} RemoteTrackClass;

GType remote_track_get_type (void);
G_DEFINE_TYPE (RemoteTrack, remote_track, GST_TYPE_ELEMENT)

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS ("application/x-rtp"));

// ---- what the worker says; in the track's thread ----

static void
on_state (gpointer owner, GstClockTime lead, gint64 duration, gboolean seekable)
{
  RemoteTrack *self = owner;

  g_mutex_lock (&self->lock);
  self->lead = lead;
  self->duration = duration;
  self->seekable = seekable;
  g_mutex_unlock (&self->lock);
}

static gboolean
is_stale (RemoteTrack *self)
{
  gboolean stale;

  g_mutex_lock (&self->lock);
  stale = self->is_stale;
  g_mutex_unlock (&self->lock);
  return stale;
}

static void
begin_track (RemoteTrack *self)
{
  g_autofree gchar *id = NULL;

  if (self->begun)
    return;
  self->begun = TRUE;
  id = g_strdup_printf ("title/%u", self->number);
  gst_pad_push_event (self->pad, gst_event_new_stream_start (id));
}

static void
on_caps (gpointer owner, GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  RemoteTrack *self = owner;

  begin_track (self);
  self->has_caps = TRUE;
  g_mutex_lock (&self->lock);
  gst_structure_get_int (s, "clock-rate", &self->clock_rate);
  gst_structure_get_uint (s, "seqnum-offset", &self->seqnum_offset);
  g_mutex_unlock (&self->lock);
  gst_pad_push_event (self->pad, gst_event_new_caps (caps));
}

static void
on_segment (gpointer owner, const GstSegment *segment)
{
  RemoteTrack *self = owner;

  begin_track (self);
  if (is_stale (self))
    return;
  self->has_segment = TRUE;
  g_mutex_lock (&self->lock);
  self->segment = *segment;
  g_mutex_unlock (&self->lock);
  gst_pad_push_event (self->pad, gst_event_new_segment (segment));
}

static void
note_last (RemoteTrack *self, GstBuffer *packet)
{
  guint n;
  const guint16 *lengths = weir_buffer_get_packets (packet, &n);
  GstMapInfo map;
  WeirRtp rtp;
  gsize last;

  if (!gst_buffer_map (packet, &map, GST_MAP_READ))
    return;
  last = lengths ? lengths[n - 1] : map.size;
  if (weir_rtp_parse (map.data + map.size - last, last, &rtp) == 0) {
    g_mutex_lock (&self->lock);
    self->seq = rtp.seq;
    self->rtp_time = rtp.timestamp;
    self->position = GST_BUFFER_PTS (packet);
    g_mutex_unlock (&self->lock);
  }
  gst_buffer_unmap (packet, &map);
}

// Downstream takes nothing more, so the track waits for a seek. If downstream flushes, one is in
// progress: the track reads on, up to the new position.
static void
wait_for_flush (RemoteTrack *self, guint flushes)
{
  g_mutex_lock (&self->lock);
  while (self->flushes == flushes && !g_atomic_int_get (&self->stops))
    g_cond_wait (&self->changed, &self->lock);
  g_mutex_unlock (&self->lock);
}

static void
on_packets (gpointer owner, GstBufferList *packets)
{
  RemoteTrack *self = owner;
  guint n = gst_buffer_list_length (packets), flushes;
  GstFlowReturn ret;

  if (!self->has_caps || !self->has_segment || is_stale (self)) {
    gst_buffer_list_unref (packets);
    return;
  }
  note_last (self, gst_buffer_list_get (packets, n - 1));
  g_mutex_lock (&self->lock);
  flushes = self->flushes;
  g_mutex_unlock (&self->lock);
  if (n > 1) {
    ret = gst_pad_push_list (self->pad, packets);
  } else {
    ret = gst_pad_push (self->pad, gst_buffer_ref (gst_buffer_list_get (packets, 0)));
    gst_buffer_list_unref (packets);
  }
  if (ret != GST_FLOW_OK && ret != GST_FLOW_FLUSHING)
    wait_for_flush (self, flushes);
}

static void
on_gap (gpointer owner, GstClockTime at, GstClockTime duration)
{
  RemoteTrack *self = owner;

  // A track without data has no segment.
  begin_track (self);
  if (!is_stale (self))
    gst_pad_push_event (self->pad, gst_event_new_gap (at, duration));
}

static void
on_eos (gpointer owner)
{
  RemoteTrack *self = owner;

  begin_track (self);
  if (!is_stale (self))
    gst_pad_push_event (self->pad, gst_event_new_eos ());
}

// Waits until the seek is done: the flush must have ended before anything of the new position is
// pushed.
static void
on_flushed (gpointer owner, guint32 serial)
{
  RemoteTrack *self = owner;

  self->has_segment = FALSE;
  g_mutex_lock (&self->lock);
  self->reached = serial;
  self->is_stale = FALSE;
  g_mutex_unlock (&self->lock);
  self->handler->waits (self->owner);
  g_mutex_lock (&self->lock);
  while ((gint32) (serial - self->resumed) > 0 && !g_atomic_int_get (&self->stops))
    g_cond_wait (&self->changed, &self->lock);
  g_mutex_unlock (&self->lock);
}

static const TitleTrackHandler track_handler = { on_state, on_caps, on_segment, on_packets, on_gap,
  on_eos, on_flushed };

// ---- the track's thread ----

// The worker is gone, or has made a mistake. Ends the track, unless it has not begun.
static void
end (RemoteTrack *self)
{
  gst_pad_pause_task (self->pad);
  g_mutex_lock (&self->lock);
  self->has_ended = TRUE;
  g_mutex_unlock (&self->lock);
  self->handler->waits (self->owner);
  g_mutex_lock (&self->lock);
  while (self->is_flushed && !g_atomic_int_get (&self->stops))
    g_cond_wait (&self->changed, &self->lock);
  g_mutex_unlock (&self->lock);
  if (self->begun && !g_atomic_int_get (&self->stops))
    gst_pad_push_event (self->pad, gst_event_new_eos ());
}

// The worker sends only so much more. It is told now and then, not for each message; and before
// the socket is empty, so that this thread and the worker's do not wake each other for each
// message.
static void
tell_taken (RemoteTrack *self)
{
  g_autofree WireMessage *message = NULL;

  if (self->n_told == self->n_taken)
    return;
  message = g_new (WireMessage, 1);
  title_wire_put_taken (message, self->n_taken);
  // A worker that does not read harms its own title only.
  if (send (self->socket, message->data, message->len, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
    self->n_told = self->n_taken;
}

static gssize
receive (RemoteTrack *self)
{
  gssize n;

  if (self->n_taken - self->n_told >= TAKEN_UNTOLD)
    tell_taken (self);
  n = recv (self->socket, self->scratch, WIRE_MAX, MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN) {
    tell_taken (self);
    n = recv (self->socket, self->scratch, WIRE_MAX, 0);
  }
  self->n_taken += n > 0;
  return n;
}

static void
loop (gpointer data)
{
  RemoteTrack *self = data;
  gssize n = receive (self);

  if (n < 0 && errno == EINTR)
    return;
  if (n <= 0 || g_atomic_int_get (&self->stops)) {
    end (self);
  } else if (!title_wire_read_track (
                 self->scratch, (gsize) n, &track_handler, self->together, self)) {
    self->handler->malformed (self->owner, self->number);
    end (self);
  }
}

static gboolean
activate_mode (GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active)
{
  if (mode != GST_PAD_MODE_PUSH)
    return FALSE;
  return active ? gst_pad_start_task (pad, loop, parent, NULL) : gst_pad_stop_task (pad);
}

static void
stop (RemoteTrack *self)
{
  g_mutex_lock (&self->lock);
  g_atomic_int_set (&self->stops, TRUE);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  shutdown (self->socket, SHUT_RDWR);
}

static GstStateChangeReturn
remote_track_change_state (GstElement *element, GstStateChange transition)
{
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    stop ((RemoteTrack *) element);
  return GST_ELEMENT_CLASS (remote_track_parent_class)->change_state (element, transition);
}

// ---- seeks ----

void
remote_track_flush (RemoteTrack *self, guint32 serial, guint32 seqnum)
{
  GstEvent *event = gst_event_new_flush_start ();

  g_mutex_lock (&self->lock);
  self->flushes++;
  self->is_flushed = TRUE;
  self->is_stale = self->reached != serial;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  gst_event_set_seqnum (event, seqnum);
  gst_pad_push_event (self->pad, event);
}

gboolean
remote_track_waits (RemoteTrack *self, guint32 serial)
{
  gboolean waits;

  g_mutex_lock (&self->lock);
  waits = self->reached == serial || self->has_ended;
  g_mutex_unlock (&self->lock);
  return waits;
}

void
remote_track_resume (RemoteTrack *self, guint32 serial, guint32 seqnum)
{
  GstEvent *event = gst_event_new_flush_stop (TRUE);

  gst_event_set_seqnum (event, seqnum);
  gst_pad_push_event (self->pad, event);
  g_mutex_lock (&self->lock);
  self->resumed = serial;
  self->is_flushed = FALSE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

gboolean
remote_track_is_cut_off (RemoteTrack *self)
{
  gboolean cut_off;

  g_mutex_lock (&self->lock);
  cut_off = self->has_ended;
  g_mutex_unlock (&self->lock);
  return cut_off;
}

GstClockTime
remote_track_get_lead (RemoteTrack *self)
{
  GstClockTime lead;

  g_mutex_lock (&self->lock);
  lead = self->lead;
  g_mutex_unlock (&self->lock);
  return lead;
}

static gboolean
on_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  RemoteTrack *self = (RemoteTrack *) parent;
  gboolean ok = TRUE;

  if (GST_EVENT_TYPE (event) == GST_EVENT_SEEK)
    ok = self->handler->seek (self->owner, self->number, event);
  gst_event_unref (event);
  return ok;
}

// ---- queries ----

// As demuxers do: in stream time.
static gboolean
answer_segment (RemoteTrack *self, GstQuery *query)
{
  const GstSegment *segment = &self->segment;
  guint64 stop = segment->stop == GST_CLOCK_TIME_NONE
                     ? segment->duration
                     : gst_segment_to_stream_time (segment, GST_FORMAT_TIME, segment->stop);

  gst_query_set_segment (query, segment->rate, GST_FORMAT_TIME,
      (gint64) gst_segment_to_stream_time (segment, GST_FORMAT_TIME, segment->start),
      (gint64) stop);
  return TRUE;
}

// Answers with the lock held.
static gboolean
answer (RemoteTrack *self, GstQuery *query)
{
  GstFormat format;

  switch (GST_QUERY_TYPE (query)) {
    case GST_QUERY_DURATION:
      gst_query_parse_duration (query, &format, NULL);
      if (format != GST_FORMAT_TIME || self->duration < 0)
        return FALSE;
      gst_query_set_duration (query, GST_FORMAT_TIME, self->duration);
      return TRUE;
    case GST_QUERY_POSITION:
      gst_query_parse_position (query, &format, NULL);
      if (format != GST_FORMAT_TIME || !GST_CLOCK_TIME_IS_VALID (self->position))
        return FALSE;
      gst_query_set_position (query, GST_FORMAT_TIME,
          (gint64) gst_segment_to_stream_time (&self->segment, GST_FORMAT_TIME, self->position));
      return TRUE;
    case GST_QUERY_SEEKING:
      gst_query_parse_seeking (query, &format, NULL, NULL, NULL);
      if (format != GST_FORMAT_TIME)
        return FALSE;
      gst_query_set_seeking (query, GST_FORMAT_TIME, self->seekable, 0, self->duration);
      return TRUE;
    case GST_QUERY_SEGMENT:
      return answer_segment (self, query);
    case GST_QUERY_LATENCY:
      gst_query_set_latency (query, FALSE, 0, GST_CLOCK_TIME_NONE);
      return TRUE;
    default:
      return FALSE;
  }
}

static gboolean
on_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  RemoteTrack *self = (RemoteTrack *) parent;
  gboolean answered;

  g_mutex_lock (&self->lock);
  answered = answer (self, query);
  g_mutex_unlock (&self->lock);
  return answered || gst_pad_query_default (pad, parent, query);
}

// ---- properties ----

// Returns the statistics of the payloader that gst-rtsp-server reads for a track without packets.
static GstStructure *
dup_stats (RemoteTrack *self)
{
  GstClockTime at;
  GstStructure *stats;

  g_mutex_lock (&self->lock);
  at = gst_segment_to_running_time (&self->segment, GST_FORMAT_TIME, self->position);
  stats = gst_structure_new ("application/x-rtp-payload-stats", "clock-rate", G_TYPE_UINT,
      (guint) self->clock_rate, "running-time", G_TYPE_UINT64, at, "seqnum", G_TYPE_UINT,
      (guint) self->seq, "timestamp", G_TYPE_UINT, (guint) self->rtp_time, "seqnum-offset",
      G_TYPE_UINT, self->seqnum_offset, NULL);
  g_mutex_unlock (&self->lock);
  return stats;
}

static void
remote_track_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  RemoteTrack *self = (RemoteTrack *) object;

  if (id == PROP_PT)
    g_value_set_uint (value, self->payload_type);
  else if (id == PROP_MTU)
    g_value_set_uint (value, (guint) g_atomic_int_get (&self->mtu));
  else
    g_value_take_boxed (value, dup_stats (self));
}

static void
remote_track_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  RemoteTrack *self = (RemoteTrack *) object;

  g_atomic_int_set (&self->mtu, g_value_get_uint (value));
  self->handler->set_mtu (self->owner, self->number, g_value_get_uint (value));
}

// ---- construction ----

static void
remote_track_init (RemoteTrack *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  gst_segment_init (&self->segment, GST_FORMAT_TIME);
  self->lead = self->position = GST_CLOCK_TIME_NONE;
  self->duration = -1;
  self->scratch = g_malloc (WIRE_MAX);
  self->pad = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_set_activatemode_function (self->pad, activate_mode);
  gst_pad_set_event_function (self->pad, on_event);
  gst_pad_set_query_function (self->pad, on_query);
  gst_element_add_pad (GST_ELEMENT (self), self->pad);
}

static void
remote_track_finalize (GObject *object)
{
  RemoteTrack *self = (RemoteTrack *) object;

  close (self->socket);
  g_free (self->scratch);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  G_OBJECT_CLASS (remote_track_parent_class)->finalize (object);
}

static void
remote_track_class_init (RemoteTrackClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  const GParamFlags reads = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;

  object_class->get_property = remote_track_get_property;
  object_class->set_property = remote_track_set_property;
  object_class->finalize = remote_track_finalize;
  element_class->change_state = remote_track_change_state;
  g_object_class_install_property (
      object_class, PROP_PT, g_param_spec_uint ("pt", NULL, NULL, 0, 127, 96, reads));
  g_object_class_install_property (object_class, PROP_MTU,
      g_param_spec_uint ("mtu", NULL, NULL, MTU_MIN, G_MAXUINT, 1400, reads | G_PARAM_WRITABLE));
  g_object_class_install_property (object_class, PROP_STATS,
      g_param_spec_boxed ("stats", NULL, NULL, GST_TYPE_STRUCTURE, reads));
  gst_element_class_add_static_pad_template (element_class, &src_template);
  // gst-rtsp-server knows payloaders by this class.
  gst_element_class_set_static_metadata (element_class, "Track of a title in a worker process",
      "Codec/Payloader/Network/RTP", "Outputs the packets that a worker process sends", "Weir");
}

GstElement *
remote_track_new (
    const RemoteTrackConfig *config, const RemoteTrackHandler *handler, gpointer owner)
{
  RemoteTrack *self = g_object_new (remote_track_get_type (), NULL);

  self->handler = handler;
  self->owner = owner;
  self->number = config->number;
  self->payload_type = config->payload_type;
  self->mtu = config->mtu;
  self->together = config->together;
  self->socket = config->socket;
  return GST_ELEMENT (self);
}
