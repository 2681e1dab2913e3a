// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-blockstoresrc
 * @title: blockstoresrc
 * @short_description: reads a title of a block store
 *
 * Reads the title #WeirBlockStoreSrc:title of the block store in the folder
 * #WeirBlockStoreSrc:location. A title whose buffers had times, when #blockstoresink wrote it,
 * comes out as the same buffers, with their sizes, times and flags, and can seek in time: a seek
 * goes to the beginning of a block, which is a keyframe, and reads one block. Any other title, such
 * as the bytes of an MP4 file, can seek in bytes, and demuxers can pull it.
 *
 * It plays URIs such as `store:///srv/store/bars.vp8`, the path of the store and the title's name.
 *
 * Buffers refer to the memory of the store; nothing is copied. Block k + 1 is requested when the
 * second buffer of block k is, so it has a time slice to come. If a copy of a block is lost, wrong
 * or late, the store reads the other copy. All elements of a process that use one store share its
 * disk queues and its memory.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=250 ! vp8enc deadline=1 ! blockstoresink location=/srv/store title=bars.vp8
 * gst-launch-1.0 blockstoresrc location=/srv/store title=bars.vp8 ! vp8dec ! videoconvert ! autovideosink
 * ]|
 *
 * Since: 0.1
 */
#include "config.h"

#include "store/blockstoresrc.h"

#include "disks/table.h"
#include "elementname.h"
#include "run/clock.h"
#include "store/place.h"
#include "store/reading.h"

GST_DEBUG_CATEGORY_STATIC (blockstoresrc_debug);
#define GST_CAT_DEFAULT blockstoresrc_debug

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

// A block that was asked for.
typedef struct {
  guint32 number;
  WeirBlockRequest *request; // NULL: there is none
  // Under the lock.
  gboolean done;
  WeirBlock *block;
  GError *error;
} Fetch;

struct _WeirBlockStoreSrc {
  GstBaseSrc parent;

  WeirStorePlace place;

  // Streaming thread only, while it runs.
  WeirStoredTitle *title;
  const WeirIndex *index; // of the title
  gboolean has_times;
  WeirBlock *block; // the current one, or NULL
  guint32 number;   // of the current block
  guint n_given;    // buffers given from it
  Fetch next;
  guint32 position; // with times: the block of the next buffer
  gsize record;     // and its number in the block's table
  gsize offset;     // and its first byte in the block
  gboolean discont;

  GMutex lock;
  GCond changed;
  gboolean flushing; // under the lock
};

static void weir_block_store_src_uri_init (gpointer klass, gpointer data);

G_DEFINE_FINAL_TYPE_WITH_CODE (WeirBlockStoreSrc, weir_block_store_src, GST_TYPE_BASE_SRC,
    G_IMPLEMENT_INTERFACE (GST_TYPE_URI_HANDLER, weir_block_store_src_uri_init))
GST_ELEMENT_REGISTER_DEFINE (
    blockstoresrc, "blockstoresrc", GST_RANK_NONE, WEIR_TYPE_BLOCK_STORE_SRC)

// ---- blocks ----

static void
on_block (WeirBlock *block, const GError *error, gpointer data)
{
  WeirBlockStoreSrc *self = data;

  g_mutex_lock (&self->lock);
  self->next.done = TRUE;
  self->next.block = block;
  self->next.error = error ? g_error_copy (error) : NULL;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static void
drop_next (WeirBlockStoreSrc *self)
{
  g_clear_pointer (&self->next.request, weir_block_request_free);
  g_clear_pointer (&self->next.block, weir_block_unref);
  g_clear_error (&self->next.error);
  self->next.done = FALSE;
}

// Asks for a block that is needed in `ns`.
static void
ask_for (WeirBlockStoreSrc *self, guint32 number, gint64 ns)
{
  drop_next (self);
  self->next.number = number;
  self->next.request =
      weir_block_request (self->title, number, weir_now_ns () + ns, on_block, self);
}

static GstFlowReturn
wait_for (WeirBlockStoreSrc *self, guint32 number)
{
  GstFlowReturn ret = GST_FLOW_OK;

  if (!self->next.request || self->next.number != number)
    ask_for (self, number, 0);
  g_mutex_lock (&self->lock);
  while (!self->next.done && !self->flushing)
    g_cond_wait (&self->changed, &self->lock);
  if (!self->next.done)
    ret = GST_FLOW_FLUSHING;
  g_mutex_unlock (&self->lock);
  return ret;
}

// Makes `number` the current block.
static GstFlowReturn
use_block (WeirBlockStoreSrc *self, guint32 number)
{
  GstFlowReturn ret;

  if (self->block && self->number == number)
    return GST_FLOW_OK;
  ret = wait_for (self, number);
  if (ret != GST_FLOW_OK)
    return ret;
  g_clear_pointer (&self->block, weir_block_unref);
  self->block = g_steal_pointer (&self->next.block);
  self->number = number;
  self->n_given = 0;
  if (!self->block) {
    GST_ELEMENT_ERROR (self, RESOURCE, READ, ("%s", self->next.error->message), (NULL));
    ret = GST_FLOW_ERROR;
  }
  drop_next (self);
  return ret;
}

// Counts a buffer from the current block. The first one may be the only one, as after a seek.
static void
note_given (WeirBlockStoreSrc *self)
{
  if (++self->n_given == 2 && self->number + 1 < self->index->n_blocks)
    ask_for (self, self->number + 1, self->index->slice_ns);
}

// Returns memory of the block, which it keeps.
static GstMemory *
wrap (WeirBlock *block, gsize offset, gsize size)
{
  gsize length;
  const guint8 *bytes = weir_block_get_bytes (block, &length);

  return gst_memory_new_wrapped (GST_MEMORY_FLAG_READONLY, (gpointer) bytes, length, offset, size,
      weir_block_ref (block), (GDestroyNotify) (void (*) (void)) weir_block_unref);
}

// ---- titles without times ----

static GstFlowReturn
create_bytes (WeirBlockStoreSrc *self, guint64 offset, guint size, GstBuffer **result)
{
  GstBuffer *buffer = gst_buffer_new ();
  guint64 at = offset, end = MIN (offset + size, self->index->bytes);
  GstFlowReturn ret = at < end ? GST_FLOW_OK : GST_FLOW_EOS;

  while (at < end && ret == GST_FLOW_OK) {
    gint64 number = weir_index_find_byte (self->index, at);
    const WeirIndexBlock *entry = &self->index->blocks[MAX (number, 0)];
    gsize from = (gsize) (at - entry->offset), n = (gsize) MIN (end - at, entry->length - from);

    // The bytes before a lost block come first. Who pulls takes a short buffer for the end.
    if (at > offset && GST_PAD_MODE (GST_BASE_SRC_PAD (self)) == GST_PAD_MODE_PUSH
        && wait_for (self, (guint32) number) == GST_FLOW_OK && self->next.error)
      break;
    ret = use_block (self, (guint32) MAX (number, 0));
    if (ret != GST_FLOW_OK)
      break;
    gst_buffer_append_memory (buffer, wrap (self->block, from, n));
    note_given (self);
    at += n;
  }
  if (ret != GST_FLOW_OK) {
    gst_buffer_unref (buffer);
    return ret;
  }
  GST_BUFFER_OFFSET (buffer) = offset;
  GST_BUFFER_OFFSET_END (buffer) = at;
  *result = buffer;
  return GST_FLOW_OK;
}

// ---- titles with times ----

static GstClockTime
to_time (gint64 ns)
{
  return ns < 0 ? GST_CLOCK_TIME_NONE : (GstClockTime) ns;
}

static GstBuffer *
make_buffer (WeirBlockStoreSrc *self, const WeirTableRecord *record)
{
  GstBuffer *buffer = gst_buffer_new ();

  gst_buffer_append_memory (buffer, wrap (self->block, self->offset, record->size));
  GST_BUFFER_PTS (buffer) = to_time (record->pts);
  GST_BUFFER_DTS (buffer) = to_time (record->dts);
  GST_BUFFER_DURATION (buffer) = to_time (record->duration_ns);
  GST_BUFFER_FLAG_SET (buffer, record->flags & ~(guint) GST_BUFFER_FLAG_TAG_MEMORY);
  if (self->discont)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  self->discont = FALSE;
  return buffer;
}

static GstFlowReturn
create_timed (WeirBlockStoreSrc *self, GstBuffer **result)
{
  WeirTableRecord record;
  gsize length, table_length;
  const guint8 *table;
  GstFlowReturn ret;

  if (self->position >= self->index->n_blocks)
    return GST_FLOW_EOS;
  ret = use_block (self, self->position);
  if (ret != GST_FLOW_OK)
    return ret;
  weir_block_get_bytes (self->block, &length);
  table = weir_block_get_table (self->block, &table_length);
  if (weir_table_read (table, table_length, self->record, &record) < 0
      || record.size > length - self->offset) {
    GST_ELEMENT_ERROR (self, STREAM, DECODE,
        ("block %u of title %s has a wrong table of buffers", self->position, self->place.title),
        (NULL));
    return GST_FLOW_ERROR;
  }
  *result = make_buffer (self, &record);
  note_given (self);
  self->offset += record.size;
  self->record++;
  if (self->offset == length) {
    self->position++;
    self->record = self->offset = 0;
  }
  return GST_FLOW_OK;
}

static gboolean
weir_block_store_src_do_seek (GstBaseSrc *src, GstSegment *segment)
{
  WeirBlockStoreSrc *self = WEIR_BLOCK_STORE_SRC (src);
  gint64 number;

  if (!self->has_times)
    return GST_BASE_SRC_CLASS (weir_block_store_src_parent_class)->do_seek (src, segment);
  if (segment->rate < 0)
    return FALSE;
  number = MAX (weir_index_find_time (self->index, (gint64) segment->position), 0);
  self->position = (guint32) number;
  self->record = self->offset = 0;
  self->discont = TRUE;
  return TRUE;
}

// Moves the beginning of the segment to the keyframe for GST_SEEK_FLAG_KEY_UNIT.
static gboolean
weir_block_store_src_prepare_seek (GstBaseSrc *src, GstEvent *seek, GstSegment *segment)
{
  WeirBlockStoreSrc *self = WEIR_BLOCK_STORE_SRC (src);
  GstSeekFlags flags;
  gint64 number, time;

  if (!GST_BASE_SRC_CLASS (weir_block_store_src_parent_class)
          ->prepare_seek_segment (src, seek, segment))
    return FALSE;
  gst_event_parse_seek (seek, NULL, NULL, &flags, NULL, NULL, NULL, NULL);
  if (!self->has_times || !(flags & GST_SEEK_FLAG_KEY_UNIT) || segment->rate < 0)
    return TRUE;
  number = MAX (weir_index_find_time (self->index, (gint64) segment->position), 0);
  time = self->index->blocks[number].time_ns;
  if (time >= 0)
    segment->start = segment->position = segment->time = (guint64) time;
  return TRUE;
}

// ---- the source ----

static GstFlowReturn
weir_block_store_src_create (GstBaseSrc *src, guint64 offset, guint size, GstBuffer **buffer)
{
  WeirBlockStoreSrc *self = WEIR_BLOCK_STORE_SRC (src);

  return self->has_times ? create_timed (self, buffer) : create_bytes (self, offset, size, buffer);
}

static gboolean
weir_block_store_src_get_size (GstBaseSrc *src, guint64 *size)
{
  WeirBlockStoreSrc *self = WEIR_BLOCK_STORE_SRC (src);

  if (!self->title || self->has_times)
    return FALSE;
  *size = self->index->bytes;
  return TRUE;
}

static gboolean
weir_block_store_src_is_seekable (GstBaseSrc *src)
{
  return TRUE;
}

static gboolean
weir_block_store_src_query (GstBaseSrc *src, GstQuery *query)
{
  WeirBlockStoreSrc *self = WEIR_BLOCK_STORE_SRC (src);
  GstFormat format;

  if (GST_QUERY_TYPE (query) == GST_QUERY_DURATION && self->title) {
    gst_query_parse_duration (query, &format, NULL);
    if (format == GST_FORMAT_TIME && self->has_times && self->index->duration_ns >= 0) {
      gst_query_set_duration (query, GST_FORMAT_TIME, self->index->duration_ns);
      return TRUE;
    }
  }
  if (GST_QUERY_TYPE (query) == GST_QUERY_SCHEDULING) {
    gst_query_set_scheduling (query, GST_SCHEDULING_FLAG_SEEKABLE, 1, -1, 0);
    if (!self->has_times)
      gst_query_add_scheduling_mode (query, GST_PAD_MODE_PULL);
    gst_query_add_scheduling_mode (query, GST_PAD_MODE_PUSH);
    return TRUE;
  }
  return GST_BASE_SRC_CLASS (weir_block_store_src_parent_class)->query (src, query);
}

static gboolean
weir_block_store_src_negotiate (GstBaseSrc *src)
{
  WeirBlockStoreSrc *self = WEIR_BLOCK_STORE_SRC (src);
  GstCaps *caps = *self->index->caps ? gst_caps_from_string (self->index->caps) : NULL;
  gboolean ok = TRUE;

  if (caps && gst_caps_is_fixed (caps))
    ok = gst_base_src_set_caps (src, caps);
  gst_clear_caps (&caps);
  return ok;
}

static void
set_flushing (WeirBlockStoreSrc *self, gboolean flushing)
{
  g_mutex_lock (&self->lock);
  self->flushing = flushing;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static gboolean
weir_block_store_src_unlock (GstBaseSrc *src)
{
  set_flushing (WEIR_BLOCK_STORE_SRC (src), TRUE);
  return TRUE;
}

static gboolean
weir_block_store_src_unlock_stop (GstBaseSrc *src)
{
  set_flushing (WEIR_BLOCK_STORE_SRC (src), FALSE);
  return TRUE;
}

// ---- start and stop ----

static gboolean
open_title (WeirBlockStoreSrc *self, GError **error)
{
  WeirBlockStore *store = weir_block_store_open (self->place.location, error);

  if (store)
    self->title = weir_block_store_open_title (store, self->place.title, error);
  g_clear_pointer (&store, weir_block_store_unref);
  return self->title != NULL;
}

static gboolean
weir_block_store_src_start (GstBaseSrc *src)
{
  WeirBlockStoreSrc *self = WEIR_BLOCK_STORE_SRC (src);
  GError *error = NULL;

  if (!weir_store_place_check (&self->place, GST_ELEMENT (self)))
    return FALSE;
  if (!open_title (self, &error)) {
    if (g_error_matches (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND))
      GST_ELEMENT_ERROR (self, RESOURCE, NOT_FOUND, ("%s", error->message), (NULL));
    else
      GST_ELEMENT_ERROR (self, RESOURCE, OPEN_READ, ("%s", error->message), (NULL));
    g_error_free (error);
    return FALSE;
  }
  self->index = weir_stored_title_get_index (self->title);
  self->has_times = self->index->n_blocks > 0 && self->index->blocks[0].table_length > 0;
  self->position = 0;
  self->record = self->offset = 0;
  self->discont = TRUE;
  gst_base_src_set_format (src, self->has_times ? GST_FORMAT_TIME : GST_FORMAT_BYTES);
  return TRUE;
}

static gboolean
weir_block_store_src_stop (GstBaseSrc *src)
{
  WeirBlockStoreSrc *self = WEIR_BLOCK_STORE_SRC (src);

  drop_next (self);
  g_clear_pointer (&self->block, weir_block_unref);
  g_clear_pointer (&self->title, weir_stored_title_unref);
  self->index = NULL;
  return TRUE;
}

// ---- the URI ----

static GstURIType
weir_block_store_src_get_uri_type (GType type)
{
  return GST_URI_SRC;
}

static const gchar *const *
weir_block_store_src_get_protocols (GType type)
{
  static const gchar *const protocols[] = { "store", NULL };

  return protocols;
}

static gchar *
weir_block_store_src_get_uri (GstURIHandler *handler)
{
  WeirBlockStoreSrc *self = WEIR_BLOCK_STORE_SRC (handler);
  gchar *uri;

  GST_OBJECT_LOCK (self);
  uri = weir_store_place_dup_uri (&self->place);
  GST_OBJECT_UNLOCK (self);
  return uri;
}

static gboolean
weir_block_store_src_set_uri (GstURIHandler *handler, const gchar *uri, GError **error)
{
  WeirBlockStoreSrc *self = WEIR_BLOCK_STORE_SRC (handler);
  WeirStorePlace place;
  gboolean stopped;

  if (!weir_store_place_from_uri (&place, uri, error))
    return FALSE;
  GST_OBJECT_LOCK (self);
  stopped = GST_STATE (self) <= GST_STATE_READY;
  if (stopped) {
    const WeirStorePlace old = self->place;

    self->place = place;
    place = old;
  }
  GST_OBJECT_UNLOCK (self);
  weir_store_place_clear (&place);
  if (!stopped)
    g_set_error (error, GST_URI_ERROR, GST_URI_ERROR_BAD_STATE,
        "the title cannot be changed while the element runs");
  return stopped;
}

static void
weir_block_store_src_uri_init (gpointer klass, gpointer data)
{
  GstURIHandlerInterface *interface = klass;

  interface->get_type = weir_block_store_src_get_uri_type;
  interface->get_protocols = weir_block_store_src_get_protocols;
  interface->get_uri = weir_block_store_src_get_uri;
  interface->set_uri = weir_block_store_src_set_uri;
}

// ---- properties ----

static void
weir_block_store_src_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirBlockStoreSrc *self = WEIR_BLOCK_STORE_SRC (object);

  GST_OBJECT_LOCK (self);
  if (!weir_store_place_set (&self->place, id, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  GST_OBJECT_UNLOCK (self);
}

static void
weir_block_store_src_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirBlockStoreSrc *self = WEIR_BLOCK_STORE_SRC (object);

  GST_OBJECT_LOCK (self);
  if (!weir_store_place_get (&self->place, id, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  GST_OBJECT_UNLOCK (self);
}

static void
weir_block_store_src_init (WeirBlockStoreSrc *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  gst_base_src_set_blocksize (GST_BASE_SRC (self), 64 * 1024);
}

static void
weir_block_store_src_finalize (GObject *object)
{
  WeirBlockStoreSrc *self = WEIR_BLOCK_STORE_SRC (object);

  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  weir_store_place_clear (&self->place);
  G_OBJECT_CLASS (weir_block_store_src_parent_class)->finalize (object);
}

static void
install_properties (GObjectClass *object_class)
{
  /**
   * WeirBlockStoreSrc:location:
   *
   * The folder of the block store.
   *
   * Since: 0.1
   */
  /**
   * WeirBlockStoreSrc:title:
   *
   * The name of the title.
   *
   * Since: 0.1
   */
  weir_store_place_install (object_class, "Name of the title");
}

static void
weir_block_store_src_class_init (WeirBlockStoreSrcClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseSrcClass *src_class = GST_BASE_SRC_CLASS (klass);
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (blockstoresrc_debug, "blockstoresrc", 0, "block store source");
  object_class->set_property = weir_block_store_src_set_property;
  object_class->get_property = weir_block_store_src_get_property;
  object_class->finalize = weir_block_store_src_finalize;
  weir_element_class_set_default_name (object_class);
  install_properties (object_class);
  src_class->start = weir_block_store_src_start;
  src_class->stop = weir_block_store_src_stop;
  src_class->create = weir_block_store_src_create;
  src_class->get_size = weir_block_store_src_get_size;
  src_class->is_seekable = weir_block_store_src_is_seekable;
  src_class->do_seek = weir_block_store_src_do_seek;
  src_class->prepare_seek_segment = weir_block_store_src_prepare_seek;
  src_class->query = weir_block_store_src_query;
  src_class->negotiate = weir_block_store_src_negotiate;
  src_class->unlock = weir_block_store_src_unlock;
  src_class->unlock_stop = weir_block_store_src_unlock_stop;
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Block store source", "Source",
      "Reads a title of a block store on several disks", "Weir");
}
