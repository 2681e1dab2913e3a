// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-blockstoresink
 * @title: blockstoresink
 * @short_description: writes a stream as a title into a block store
 *
 * Takes any stream and writes it as the title #WeirBlockStoreSink:title into the block store in the
 * folder #WeirBlockStoreSink:location, which `weir-store init` has made. The title can be seen once
 * the stream has ended: EOS writes its index. A title that is not finished leaves nothing behind.
 *
 * The stream is cut into blocks of about one time slice of the store. If its buffers have times, a
 * block ends before the first keyframe after a slice, and the title keeps the sizes, times and
 * flags of the buffers, so that #blockstoresrc outputs the same buffers. Otherwise, as for the
 * bytes of a file, blocks are cut by size: a slice at #WeirBlockStoreSink:bitrate. Bytes are taken
 * in their order: a multiplexer that goes back to write its header anew fails.
 *
 * Writing blocks on the disks, in the streaming thread.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=250 ! vp8enc deadline=1 ! blockstoresink location=/srv/store title=bars.vp8
 * ]|
 *
 * Since: 0.1
 */
#include "config.h"

#include "store/blockstoresink.h"

#include "disks/table.h"
#include "elementname.h"
#include "store/place.h"
#include "store/writing.h"

GST_DEBUG_CATEGORY_STATIC (blockstoresink_debug);
#define GST_CAT_DEFAULT blockstoresink_debug

enum {
  PROP_BITRATE = WEIR_STORE_PROP_LAST + 1,
};

#define DEFAULT_BITRATE 6000000
#define SLICES_MAX 4                 // of a block without a keyframe
#define BLOCK_BYTES_MAX (128u << 20) // far below the bound of the index

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

struct _WeirBlockStoreSink {
  GstBaseSink parent;

  // Under the object lock; not changed while it runs.
  WeirStorePlace place;
  guint64 bitrate;

  // Streaming thread only.
  WeirBlockStore *store;
  WeirTitleWriter *writer; // NULL before the first buffer, and after the end
  gboolean has_times;      // as the first buffer has
  GByteArray *bytes, *table;
  gint64 block_time;  // stream time of the block's first buffer, or WEIR_INDEX_NO_TIME
  gboolean keyframe;  // the block begins with one
  gint64 first, last; // times of the title so far, or WEIR_INDEX_NO_TIME
  guint64 end;        // offset of the next byte
  gboolean failed;    // until the next start, nothing more is written
};

G_DEFINE_FINAL_TYPE (WeirBlockStoreSink, weir_block_store_sink, GST_TYPE_BASE_SINK)
GST_ELEMENT_REGISTER_DEFINE (
    blockstoresink, "blockstoresink", GST_RANK_NONE, WEIR_TYPE_BLOCK_STORE_SINK)

// Removes what was written, as a title without one of its blocks is none. Takes ownership of the
// error.
static GstFlowReturn
fail_title (WeirBlockStoreSink *self, GError *error)
{
  if (g_error_matches (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NO_SPACE))
    GST_ELEMENT_ERROR (self, RESOURCE, NO_SPACE_LEFT, ("%s", error->message), (NULL));
  else
    GST_ELEMENT_ERROR (self, RESOURCE, WRITE, ("%s", error->message), (NULL));
  g_error_free (error);
  self->failed = TRUE;
  g_clear_pointer (&self->writer, weir_title_writer_free);
  return GST_FLOW_ERROR;
}

// ---- blocks ----

static GstFlowReturn
write_block (WeirBlockStoreSink *self)
{
  gsize length = self->bytes->len;
  GError *error = NULL;
  gboolean ok;

  if (length == 0)
    return GST_FLOW_OK;
  g_byte_array_append (self->bytes, self->table->data, self->table->len);
  ok = weir_title_writer_add_block (self->writer, self->bytes->data, length, self->table->len,
      self->block_time, self->keyframe ? WEIR_BLOCK_KEYFRAME : 0, &error);
  g_byte_array_set_size (self->bytes, 0);
  g_byte_array_set_size (self->table, 0);
  return ok ? GST_FLOW_OK : fail_title (self, error);
}

static void
note_times (WeirBlockStoreSink *self, gint64 time, GstClockTime duration)
{
  gint64 end = time + (GST_CLOCK_TIME_IS_VALID (duration) ? (gint64) duration : 0);

  if (time == WEIR_INDEX_NO_TIME)
    return;
  self->first = self->first == WEIR_INDEX_NO_TIME ? time : MIN (self->first, time);
  self->last = MAX (self->last, end);
}

// Writes the bytes of a stream without times, a slice at a time.
static GstFlowReturn
add_bytes (WeirBlockStoreSink *self, GstBuffer *buffer, const GstMapInfo *map)
{
  const guint8 *data = map->data;
  gsize size = map->size;
  gdouble slice = (gdouble) weir_block_store_get_slice (self->store) / GST_SECOND;
  gsize block = (gsize) CLAMP ((gdouble) self->bitrate / 8 * slice, 1, BLOCK_BYTES_MAX);
  GstFlowReturn ret = GST_FLOW_OK;

  // Multiplexers give bytes with times, from which the title's rate follows.
  if (GST_BUFFER_PTS_IS_VALID (buffer))
    note_times (self, (gint64) GST_BUFFER_PTS (buffer), GST_BUFFER_DURATION (buffer));
  while (size > 0 && ret == GST_FLOW_OK) {
    gsize n = MIN (size, block - self->bytes->len);

    g_byte_array_append (self->bytes, data, (guint) n);
    data += n;
    size -= n;
    if (self->bytes->len == block) {
      self->block_time = WEIR_INDEX_NO_TIME;
      ret = write_block (self);
    }
  }
  return ret;
}

// ---- buffers with times ----

// Returns the stream time of a buffer's time, which may be negative.
static gint64
to_stream_time (WeirBlockStoreSink *self, GstClockTime time)
{
  const GstSegment *segment = &GST_BASE_SINK (self)->segment;

  if (!GST_CLOCK_TIME_IS_VALID (time))
    return WEIR_INDEX_NO_TIME;
  return (gint64) time - (gint64) segment->start + (gint64) segment->time;
}

// Reports whether a block ends before a buffer.
static gboolean
is_cut (WeirBlockStoreSink *self, gint64 time, gboolean keyframe, gsize size)
{
  gint64 slice = weir_block_store_get_slice (self->store), passed = 0;

  if (self->bytes->len == 0)
    return FALSE;
  if (time != WEIR_INDEX_NO_TIME && self->block_time != WEIR_INDEX_NO_TIME)
    passed = time - self->block_time;
  return (keyframe && passed >= slice) || passed >= SLICES_MAX * slice
         || self->bytes->len + size > BLOCK_BYTES_MAX;
}

static GstFlowReturn
add_buffer (WeirBlockStoreSink *self, GstBuffer *buffer, const GstMapInfo *map)
{
  gboolean keyframe = !GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_DELTA_UNIT);
  gint64 pts = to_stream_time (self, GST_BUFFER_PTS (buffer));
  gint64 dts = to_stream_time (self, GST_BUFFER_DTS (buffer));
  gint64 time = pts != WEIR_INDEX_NO_TIME ? pts : dts;
  WeirTableRecord record = { (guint32) map->size,
    GST_BUFFER_FLAGS (buffer) & ~(guint) GST_BUFFER_FLAG_TAG_MEMORY, pts, dts,
    GST_BUFFER_DURATION_IS_VALID (buffer) ? (gint64) GST_BUFFER_DURATION (buffer)
                                          : WEIR_INDEX_NO_TIME };
  guint8 bytes[WEIR_TABLE_RECORD_BYTES];
  GstFlowReturn ret = GST_FLOW_OK;

  if (is_cut (self, time, keyframe, map->size))
    ret = write_block (self);
  if (ret != GST_FLOW_OK)
    return ret;
  if (self->bytes->len == 0) {
    self->block_time = time;
    self->keyframe = keyframe;
  }
  weir_table_write (bytes, &record);
  g_byte_array_append (self->table, bytes, sizeof bytes);
  g_byte_array_append (self->bytes, map->data, (guint) map->size);
  note_times (self, time, GST_BUFFER_DURATION (buffer));
  return GST_FLOW_OK;
}

// ---- the stream ----

static gboolean
begin_title (WeirBlockStoreSink *self, GstBuffer *first)
{
  GstCaps *caps = gst_pad_get_current_caps (GST_BASE_SINK_PAD (self));
  gchar *text = caps ? gst_caps_to_string (caps) : NULL;
  GError *error = NULL;

  self->has_times = GST_BASE_SINK (self)->segment.format == GST_FORMAT_TIME
                    && (GST_BUFFER_PTS_IS_VALID (first) || GST_BUFFER_DTS_IS_VALID (first));
  self->writer = weir_title_writer_new (self->store, self->place.title, text, 0, &error);
  gst_clear_caps (&caps);
  g_free (text);
  return self->writer || (fail_title (self, error), FALSE);
}

static GstFlowReturn
weir_block_store_sink_render (GstBaseSink *sink, GstBuffer *buffer)
{
  WeirBlockStoreSink *self = WEIR_BLOCK_STORE_SINK (sink);
  GstFlowReturn ret;
  GstMapInfo map;

  if (self->failed || (!self->writer && !begin_title (self, buffer)))
    return GST_FLOW_ERROR;
  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    return fail_title (self, g_error_new (WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED,
                                 "a buffer of '%s' cannot be read", self->place.title));
  if (map.size == 0)
    ret = GST_FLOW_OK;
  else if (map.size > BLOCK_BYTES_MAX)
    ret = fail_title (
        self, g_error_new (WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED,
                  "a buffer of %" G_GSIZE_FORMAT " bytes is larger than a block may be", map.size));
  else
    ret = self->has_times ? add_buffer (self, buffer, &map) : add_bytes (self, buffer, &map);
  self->end += map.size;
  gst_buffer_unmap (buffer, &map);
  return ret;
}

// Writes the rest and the index.
static gboolean
end_title (WeirBlockStoreSink *self)
{
  gint64 duration = WEIR_INDEX_NO_TIME;
  GError *error = NULL;
  gboolean ok;

  if (!self->has_times)
    self->block_time = WEIR_INDEX_NO_TIME;
  if (self->first != WEIR_INDEX_NO_TIME)
    duration = self->last - self->first;
  if (write_block (self) != GST_FLOW_OK)
    return FALSE;
  ok = weir_title_writer_finish (self->writer, duration > 0 ? 0 : self->bitrate,
      duration > 0 ? duration : WEIR_INDEX_NO_TIME, &error);
  if (!ok)
    fail_title (self, error);
  g_clear_pointer (&self->writer, weir_title_writer_free);
  return ok;
}

// Reports whether the bytes to come belong behind those that were written.
static gboolean
check_segment (WeirBlockStoreSink *self, GstEvent *event)
{
  const GstSegment *segment;

  gst_event_parse_segment (event, &segment);
  if (segment->format != GST_FORMAT_BYTES || self->failed)
    return TRUE;
  if (!self->writer)
    self->end = segment->start;
  if (segment->start == self->end && !(self->writer && self->has_times))
    return TRUE;
  fail_title (
      self, g_error_new (WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED,
                "the stream goes from byte %" G_GUINT64_FORMAT " to byte %" G_GUINT64_FORMAT
                ", as multiplexers do to write a header anew, but '%s' takes bytes in their order "
                "only; write a file and add that",
                self->end, segment->start, self->place.title));
  return FALSE;
}

static gboolean
weir_block_store_sink_event (GstBaseSink *sink, GstEvent *event)
{
  WeirBlockStoreSink *self = WEIR_BLOCK_STORE_SINK (sink);

  // Without an index, the title is not there: so this comes before the EOS message, which there is
  // not after an error.
  if ((GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT && !check_segment (self, event))
      || (GST_EVENT_TYPE (event) == GST_EVENT_EOS
          && (self->failed || (self->writer && !end_title (self))))) {
    gst_event_unref (event);
    return FALSE;
  }
  return GST_BASE_SINK_CLASS (weir_block_store_sink_parent_class)->event (sink, event);
}

// ---- start and stop ----

static gboolean
weir_block_store_sink_start (GstBaseSink *sink)
{
  WeirBlockStoreSink *self = WEIR_BLOCK_STORE_SINK (sink);
  GError *error = NULL;

  if (!weir_store_place_check (&self->place, GST_ELEMENT (self)))
    return FALSE;
  self->store = weir_block_store_open (self->place.location, &error);
  if (!self->store) {
    GST_ELEMENT_ERROR (self, RESOURCE, OPEN_WRITE, ("%s", error->message), (NULL));
    g_error_free (error);
    return FALSE;
  }
  self->failed = FALSE;
  self->first = WEIR_INDEX_NO_TIME;
  self->last = WEIR_INDEX_NO_TIME;
  self->bytes = g_byte_array_new ();
  self->table = g_byte_array_new ();
  return TRUE;
}

static gboolean
weir_block_store_sink_stop (GstBaseSink *sink)
{
  WeirBlockStoreSink *self = WEIR_BLOCK_STORE_SINK (sink);

  g_clear_pointer (&self->writer, weir_title_writer_free);
  g_clear_pointer (&self->store, weir_block_store_unref);
  g_clear_pointer (&self->bytes, g_byte_array_unref);
  g_clear_pointer (&self->table, g_byte_array_unref);
  return TRUE;
}

// ---- properties ----

static void
weir_block_store_sink_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirBlockStoreSink *self = WEIR_BLOCK_STORE_SINK (object);

  GST_OBJECT_LOCK (self);
  if (id == PROP_BITRATE)
    self->bitrate = g_value_get_uint64 (value);
  else if (!weir_store_place_set (&self->place, id, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  GST_OBJECT_UNLOCK (self);
}

static void
weir_block_store_sink_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirBlockStoreSink *self = WEIR_BLOCK_STORE_SINK (object);

  GST_OBJECT_LOCK (self);
  if (id == PROP_BITRATE)
    g_value_set_uint64 (value, self->bitrate);
  else if (!weir_store_place_get (&self->place, id, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  GST_OBJECT_UNLOCK (self);
}

static void
weir_block_store_sink_init (WeirBlockStoreSink *self)
{
  self->bitrate = DEFAULT_BITRATE;
  gst_base_sink_set_sync (GST_BASE_SINK (self), FALSE);
}

static void
weir_block_store_sink_finalize (GObject *object)
{
  WeirBlockStoreSink *self = WEIR_BLOCK_STORE_SINK (object);

  weir_store_place_clear (&self->place);
  G_OBJECT_CLASS (weir_block_store_sink_parent_class)->finalize (object);
}

static void
install_properties (GObjectClass *object_class)
{
  /**
   * WeirBlockStoreSink:location:
   *
   * The folder of the block store.
   *
   * Since: 0.1
   */
  /**
   * WeirBlockStoreSink:title:
   *
   * The name of the title, a relative path such as `comedy/duck soup.mp4`. There must be no title
   * of this name yet.
   *
   * Since: 0.1
   */
  weir_store_place_install (object_class, "Name of the new title");
  /**
   * WeirBlockStoreSink:bitrate:
   *
   * The bit rate of a stream without times, in bits per second. It gives the size of the blocks. It
   * is the rate at which the title is served, too, if its buffers have no times. Not used for a
   * time segment.
   *
   * Since: 0.1
   */
  g_object_class_install_property (object_class, PROP_BITRATE,
      g_param_spec_uint64 ("bitrate", "Bit rate",
          "Bit rate of a stream without times, in bits per second", 1000,
          G_GUINT64_CONSTANT (100000000000), DEFAULT_BITRATE, WEIR_STORE_PROP_FLAGS));
}

static void
weir_block_store_sink_class_init (WeirBlockStoreSinkClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseSinkClass *sink_class = GST_BASE_SINK_CLASS (klass);
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (blockstoresink_debug, "blockstoresink", 0, "block store sink");
  object_class->set_property = weir_block_store_sink_set_property;
  object_class->get_property = weir_block_store_sink_get_property;
  object_class->finalize = weir_block_store_sink_finalize;
  weir_element_class_set_default_name (object_class);
  install_properties (object_class);
  sink_class->start = weir_block_store_sink_start;
  sink_class->stop = weir_block_store_sink_stop;
  sink_class->render = weir_block_store_sink_render;
  sink_class->event = weir_block_store_sink_event;
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_set_static_metadata (element_class, "Block store sink", "Sink",
      "Writes a stream as a title into a block store on several disks", "Weir");
}
