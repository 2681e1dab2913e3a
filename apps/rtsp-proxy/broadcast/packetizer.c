// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/packetizer.h"

#include <gio/gio.h>
#include <string.h>

#include "base/buffer_memory.h"
#include "base/clock.h"
#include "broadcast/packet_writer.h"
#include "title/title_open.h"

#define WAITING_BYTES_MAX (64u << 20) // of memory, while packets wait for those of other tracks
#define PACKETS_AT_ONCE 1000          // written before the progress is told
#define PROGRESS_NS (GST_SECOND / 10)
#define REORDERED_MAX 17 // pictures; H.264 and H.265 allow 16 before one that is shown earlier
#define SILENCE_NS (20 * GST_SECOND) // a title that gives no packets for so long has failed

typedef struct _Packetizer Packetizer;

typedef struct {
  gint64 at_ns;
  GstBuffer *packet;
} Item;

typedef struct {
  Packetizer *owner;
  GstPad *pad; // a sink
  // With the lock:
  GQueue items;                // with the times at which they are to be sent
  GQueue untimed;              // with the times at which they are to be played
  gint64 times[REORDERED_MAX]; // of the pictures in `untimed`, sorted
  guint n_times;
  gint64 shown_ns; // of the last packet
  GstSegment segment;
  GstCaps *caps;
  gint64 at_ns; // of the last packet that has a time
  gboolean ended;
} Input;

struct _Packetizer {
  PacketWriter *writer;
  GstElement *pipeline, *title;

  GMutex lock; // protects the fields below
  GCond changed;
  Input inputs[RELAY_MAX_TRACKS];
  guint n_inputs;
  gboolean complete; // there are no more tracks
  gboolean stopped;  // take no packets
  gsize bytes;       // of memory that waiting packets take
  guint64 n_taken;   // packets, ever
  GError *error;
};

// ---- tracks, in their threads ----

// Pictures come in the order of decoding, and not all files say when they are to be decoded. So the
// first one in that order is sent at the earliest time at which any of the following is shown, and
// so on: at an even rate, and as early as necessary.

// Gives the oldest picture that has no time yet the earliest time.
static void
time_picture (Input *self)
{
  const gint64 shown_ns = ((Item *) g_queue_peek_head (&self->untimed))->at_ns;

  self->at_ns = MAX (self->at_ns, self->times[0]);
  memmove (self->times, self->times + 1, --self->n_times * sizeof *self->times);
  while (self->untimed.length > 0
         && ((Item *) g_queue_peek_head (&self->untimed))->at_ns == shown_ns) {
    Item *item = g_queue_pop_head (&self->untimed);

    item->at_ns = self->at_ns;
    g_queue_push_tail (&self->items, item);
  }
}

// Keeps the times at which pictures are shown sorted.
static void
note_shown (Input *self, gint64 shown_ns)
{
  guint i = self->n_times++;

  for (; i > 0 && self->times[i - 1] > shown_ns; i--)
    self->times[i] = self->times[i - 1];
  self->times[i] = shown_ns;
}

// Takes a packet, with the time at which its picture or sound is to be played.
static void
take (Input *self, GstBuffer *packet)
{
  guint64 running = 0;
  Item *item = g_new (Item, 1);
  const gint sign = gst_segment_to_running_time_full (
      &self->segment, GST_FORMAT_TIME, GST_BUFFER_PTS (packet), &running);
  const gint64 shown_ns = sign != 0 ? sign * (gint64) running : self->shown_ns;

  *item = (Item) { shown_ns, gst_buffer_ref (packet) };
  if (self->untimed.length == 0 || shown_ns != self->shown_ns) {
    if (self->n_times == REORDERED_MAX)
      time_picture (self);
    note_shown (self, shown_ns);
  }
  self->shown_ns = shown_ns;
  g_queue_push_tail (&self->untimed, item);
  self->owner->bytes += buffer_memory (packet);
  self->owner->n_taken++;
}

// Reports whether the oldest packet is known. Call with the lock.
static gboolean
can_merge (const Packetizer *self)
{
  gboolean can = self->complete && self->n_inputs > 0;

  for (guint i = 0; i < self->n_inputs; i++)
    can = can && (self->inputs[i].items.length > 0 || self->inputs[i].ended);
  return can;
}

// Waits while there are many packets that can be written. If there are that many for another
// reason, a track is far behind the others in the file.
static GstFlowReturn
wait_for_room (Packetizer *self)
{
  while (self->bytes > WAITING_BYTES_MAX && can_merge (self) && !self->stopped)
    g_cond_wait (&self->changed, &self->lock);
  if (self->bytes > WAITING_BYTES_MAX && !self->stopped && !self->error)
    g_set_error (&self->error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
        "the file has one track more than %u MiB behind another; interleave its tracks",
        WAITING_BYTES_MAX >> 20);
  g_cond_broadcast (&self->changed);
  return self->stopped || self->error ? GST_FLOW_FLUSHING : GST_FLOW_OK;
}

static GstFlowReturn
on_buffer (GstPad *pad, GstObject *parent, GstBuffer *packet)
{
  Input *self = gst_pad_get_element_private (pad);
  GstFlowReturn ret;

  g_mutex_lock (&self->owner->lock);
  take (self, packet);
  ret = wait_for_room (self->owner);
  g_mutex_unlock (&self->owner->lock);
  gst_buffer_unref (packet);
  return ret;
}

static GstFlowReturn
on_list (GstPad *pad, GstObject *parent, GstBufferList *list)
{
  Input *self = gst_pad_get_element_private (pad);
  const guint n = gst_buffer_list_length (list);
  GstFlowReturn ret;

  g_mutex_lock (&self->owner->lock);
  for (guint i = 0; i < n; i++)
    take (self, gst_buffer_list_get (list, i));
  ret = wait_for_room (self->owner);
  g_mutex_unlock (&self->owner->lock);
  gst_buffer_list_unref (list);
  return ret;
}

// Later caps differ only in parameter sets, which are in the packets too.
static void
note_event (Input *self, GstEvent *event)
{
  GstCaps *caps;

  if (GST_EVENT_TYPE (event) == GST_EVENT_CAPS) {
    gst_event_parse_caps (event, &caps);
    if (!self->caps)
      self->caps = gst_caps_ref (caps);
  } else if (GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT) {
    gst_event_copy_segment (event, &self->segment);
  } else if (GST_EVENT_TYPE (event) == GST_EVENT_EOS) {
    while (self->untimed.length > 0)
      time_picture (self);
    self->ended = TRUE;
    g_cond_broadcast (&self->owner->changed);
  }
}

static gboolean
on_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  Input *self = gst_pad_get_element_private (pad);

  g_mutex_lock (&self->owner->lock);
  note_event (self, event);
  g_mutex_unlock (&self->owner->lock);
  gst_event_unref (event);
  return TRUE;
}

// ---- the title ----

static void
on_pad_added (GstElement *title, GstPad *src, Packetizer *self)
{
  Input *input;

  if (self->n_inputs == RELAY_MAX_TRACKS)
    return;
  input = &self->inputs[self->n_inputs];
  input->owner = self;
  input->at_ns = G_MININT64;
  g_queue_init (&input->items);
  g_queue_init (&input->untimed);
  gst_segment_init (&input->segment, GST_FORMAT_TIME);
  input->pad = gst_pad_new (NULL, GST_PAD_SINK);
  gst_pad_set_element_private (input->pad, input);
  gst_pad_set_chain_function (input->pad, on_buffer);
  gst_pad_set_chain_list_function (input->pad, on_list);
  gst_pad_set_event_function (input->pad, on_event);
  gst_pad_set_active (input->pad, TRUE);
  g_mutex_lock (&self->lock);
  self->n_inputs++;
  g_mutex_unlock (&self->lock);
  gst_pad_link (src, input->pad);
}

static void
on_no_more_pads (GstElement *title, Packetizer *self)
{
  g_mutex_lock (&self->lock);
  self->complete = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static GstBusSyncReply
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  Packetizer *self = data;
  GError *error = NULL;

  if (title_file_parse_failure (self->title, message, &error, NULL)) {
    g_mutex_lock (&self->lock);
    if (!self->error)
      self->error = g_error_new_literal (G_IO_ERROR,
          error->domain == GST_STREAM_ERROR ? G_IO_ERROR_NOT_SUPPORTED : G_IO_ERROR_FAILED,
          error->message);
    g_cond_broadcast (&self->changed);
    g_mutex_unlock (&self->lock);
    g_error_free (error);
  }
  gst_message_unref (message);
  return GST_BUS_DROP;
}

static void
start (Packetizer *self, int fd)
{
  GstBus *bus;

  self->title = title_open_unpaced (fd);
  self->pipeline = gst_pipeline_new (NULL);
  bus = gst_element_get_bus (self->pipeline);
  gst_bus_set_sync_handler (bus, on_message, self, NULL);
  gst_object_unref (bus);
  gst_bin_add (GST_BIN (self->pipeline), self->title);
  g_signal_connect (self->title, "pad-added", G_CALLBACK (on_pad_added), self);
  g_signal_connect (self->title, "no-more-pads", G_CALLBACK (on_no_more_pads), self);
  gst_element_set_state (self->pipeline, GST_STATE_PLAYING);
}

static void
free_item (gpointer data)
{
  Item *item = data;

  gst_buffer_unref (item->packet);
  g_free (item);
}

static void
stop (Packetizer *self)
{
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  gst_element_set_state (self->pipeline, GST_STATE_NULL);
  gst_object_unref (self->pipeline);
  for (guint i = 0; i < self->n_inputs; i++) {
    Input *input = &self->inputs[i];

    gst_pad_set_active (input->pad, FALSE);
    gst_object_unref (input->pad);
    g_queue_clear_full (&input->items, free_item);
    g_queue_clear_full (&input->untimed, free_item);
    gst_clear_caps (&input->caps);
  }
}

// ---- merging ----

// Waits until the oldest packet is known, something has failed, or it is time to tell the progress.
// Returns whether the oldest packet is known. Call with the lock.
static gboolean
wait_for_packets (Packetizer *self, gint64 until_ns)
{
  while (!self->error && !can_merge (self)) {
    if (!g_cond_wait_until (&self->changed, &self->lock, until_ns / 1000))
      break;
  }
  return !self->error && can_merge (self);
}

// Takes the oldest packet. Returns NULL at the end, or if it is not known. Call with the lock.
static Item *
pop_oldest (Packetizer *self, guint *track)
{
  const Item *oldest = NULL;
  Item *item;

  if (!can_merge (self))
    return NULL;
  for (guint i = 0; i < self->n_inputs; i++) {
    const Item *head = g_queue_peek_head (&self->inputs[i].items);

    if (head && (!oldest || head->at_ns < oldest->at_ns)) {
      oldest = head;
      *track = i;
    }
  }
  item = oldest ? g_queue_pop_head (&self->inputs[*track].items) : NULL;
  if (item)
    self->bytes -= buffer_memory (item->packet);
  return item;
}

static gboolean
is_at_end (Packetizer *self)
{
  gboolean at_end = self->complete && self->n_inputs > 0;

  for (guint i = 0; i < self->n_inputs; i++)
    at_end = at_end && self->inputs[i].ended && self->inputs[i].items.length == 0;
  return at_end;
}

// A track that ends without caps has no packets either.
static gboolean
add_tracks (Packetizer *self, GError **error)
{
  gboolean ok = TRUE;

  for (guint i = 0; i < self->n_inputs && ok; i++) {
    GstCaps *caps = self->inputs[i].caps;

    if (caps)
      ok = packet_writer_add_track (self->writer, caps, error);
    else
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "track %u has no data", i + 1);
    ok = ok && caps;
  }
  return ok;
}

// Writes some packets that are known to be the oldest. Returns FALSE on failure.
static gboolean
write_packets (Packetizer *self, gint64 *at_ns, GError **error)
{
  gboolean ok = TRUE;
  guint track = 0;
  Item *item;

  for (guint i = 0; i < PACKETS_AT_ONCE && ok; i++) {
    g_mutex_lock (&self->lock);
    item = pop_oldest (self, &track);
    if (self->bytes < WAITING_BYTES_MAX)
      g_cond_broadcast (&self->changed);
    g_mutex_unlock (&self->lock);
    if (!item)
      return TRUE;
    *at_ns = item->at_ns;
    ok = packet_writer_add (self->writer, track, item->at_ns, item->packet, error);
    free_item (item);
  }
  return ok;
}

typedef struct {
  PacketizeProgress tell;
  gpointer data;
  gint64 next_ns;
  guint64 n_taken; // packets that there were at `taken_ns`
  gint64 taken_ns;
} Progress;

// Returns FALSE and sets `error` if the caller gives up, or the title has been silent for too long.
static gboolean
tell_progress (Packetizer *self, Progress *progress, gint64 at_ns, GError **error)
{
  const gint64 now = clock_now ();
  gint64 duration;

  g_mutex_lock (&self->lock);
  if (self->n_taken != progress->n_taken) {
    progress->n_taken = self->n_taken;
    progress->taken_ns = now;
  }
  g_mutex_unlock (&self->lock);
  if (now - progress->taken_ns > (gint64) SILENCE_NS) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "the title gave no packets for %u s",
        (guint) (SILENCE_NS / GST_SECOND));
    return FALSE;
  }
  if (now < progress->next_ns)
    return TRUE;
  progress->next_ns = now + (gint64) PROGRESS_NS;
  duration = title_file_get_duration (self->title);
  if (progress->tell (
          progress->data, duration > 0 ? CLAMP ((gdouble) at_ns / (gdouble) duration, 0, 1) : 0))
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "the title is not needed any more");
  return FALSE;
}

// Reports whether the title failed, and sets `error`. Call with the lock.
static gboolean
has_failed (Packetizer *self, gboolean at_end, GError **error)
{
  if (self->error)
    g_propagate_error (error, g_error_copy (self->error));
  else if (at_end && title_file_is_cut_off (self->title))
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "the worker process of the title has ended");
  else
    return FALSE;
  return TRUE;
}

static gboolean
merge (Packetizer *self, Progress *progress, GError **error)
{
  gboolean has_tracks = FALSE, known, at_end, failed;
  gint64 at_ns = 0;

  do {
    g_mutex_lock (&self->lock);
    known = wait_for_packets (self, clock_now () + (gint64) PROGRESS_NS);
    at_end = is_at_end (self);
    failed = has_failed (self, at_end, error);
    g_mutex_unlock (&self->lock);
    if (failed)
      return FALSE;
    if (known && !has_tracks && !(has_tracks = add_tracks (self, error)))
      return FALSE;
    if (known && !write_packets (self, &at_ns, error))
      return FALSE;
    if (!tell_progress (self, progress, at_ns, error))
      return FALSE;
  } while (!at_end);
  return TRUE;
}

PacketFile *
packetize (int fd, const gchar *dir, guint64 max_bytes, PacketizeProgress progress, gpointer data,
    GError **error)
{
  Packetizer self = { .writer = packet_writer_new (dir, max_bytes, error) };
  Progress telling = { .tell = progress, .data = data, .taken_ns = clock_now () };
  PacketFile *file = NULL;

  if (!self.writer)
    return NULL;
  g_mutex_init (&self.lock);
  g_cond_init (&self.changed);
  start (&self, fd);
  if (merge (&self, &telling, error))
    file = packet_writer_finish (self.writer, error);
  stop (&self);
  packet_writer_free (self.writer);
  g_clear_error (&self.error);
  g_mutex_clear (&self.lock);
  g_cond_clear (&self.changed);
  return file;
}
