// SPDX-License-Identifier: LGPL-2.1-or-later
#include "spill.h"

#include "core/window/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECE ((gsize) 1 << 20)
#define BUFFER_FLAGS (~(guint) (GST_MINI_OBJECT_FLAG_LAST - 1)) // without GstMiniObject's flags

struct _CachePiece {
  gint refs; // atomic
  CacheSpill *spill;
  guint64 number; // changes each time the piece is reused
  guint8 *data;
};

// The header of a stored buffer without metas; its data follows the last header of the list.
typedef struct {
  guint64 pts, dts, duration, offset, offset_end;
  guint32 flags;
  guint32 size;
} Record;

typedef struct {
  guint32 n; // number of records that follow
  guint32 is_list;
} Head;

struct _CacheSpill {
  gint refs; // atomic; each piece in use owns one
  int fd;

  // Writer only.
  guint n_pieces;
  CachePiece *current; // a reference
  gsize used;          // bytes of the current piece

  GMutex lock;
  guint max_pieces; // under the lock, from here on
  GQueue unused;
  GHashTable *in_use; // pieces by number
  gboolean has_rule;
  WeirPolicy policy;
};

static guint64 last_number; // atomic

// ---- the file and its pieces ----

CacheSpill *
cache_spill_new (const gchar *dir, guint64 max_bytes)
{
  int fd = weir_spill_open (dir);
  CacheSpill *self;

  if (fd < 0) {
    errno = -fd;
    return NULL;
  }
  self = g_new0 (CacheSpill, 1);
  self->refs = 1;
  self->fd = fd;
  self->max_pieces = (guint) MIN (max_bytes / PIECE, G_MAXUINT);
  g_mutex_init (&self->lock);
  g_queue_init (&self->unused);
  self->in_use = g_hash_table_new (g_int64_hash, g_int64_equal);
  return self;
}

void
cache_spill_set_rule (CacheSpill *self, WeirPolicyRule rule, guint64 bytes_in_memory)
{
  self->has_rule = TRUE;
  weir_policy_init (&self->policy, rule, bytes_in_memory);
}

CacheSpill *
cache_spill_ref (CacheSpill *self)
{
  g_atomic_int_inc (&self->refs);
  return self;
}

void
cache_spill_unref (CacheSpill *self)
{
  CachePiece *piece;

  if (!g_atomic_int_dec_and_test (&self->refs))
    return;
  while ((piece = g_queue_pop_head (&self->unused))) {
    munmap (piece->data, PIECE);
    g_free (piece);
  }
  close (self->fd);
  g_hash_table_unref (self->in_use);
  weir_policy_free (&self->policy);
  g_mutex_clear (&self->lock);
  g_free (self);
}

CachePiece *
cache_piece_ref (CachePiece *piece)
{
  g_atomic_int_inc (&piece->refs);
  return piece;
}

void
cache_piece_unref (CachePiece *piece)
{
  CacheSpill *self = piece->spill;

  if (!g_atomic_int_dec_and_test (&piece->refs))
    return;
  g_mutex_lock (&self->lock);
  g_hash_table_remove (self->in_use, &piece->number);
  weir_policy_remove (&self->policy, piece->number);
  g_queue_push_tail (&self->unused, piece);
  g_mutex_unlock (&self->lock);
  cache_spill_unref (self);
}

static void
piece_unref (gpointer data)
{
  cache_piece_unref (data);
}

void
cache_spill_close (CacheSpill *self)
{
  if (!self)
    return;
  g_clear_pointer (&self->current, piece_unref);
  cache_spill_unref (self);
}

// ---- pieces in memory ----

struct _CacheSpillEvicted {
  CacheSpill *spill; // a reference, which keeps the pieces mapped
  GPtrArray *data;
};

// Adds a piece to those in memory, and returns the pieces that the policy evicts for it. Call with
// the lock.
static CacheSpillEvicted *
keep_in_memory (CacheSpill *self, guint64 number)
{
  CacheSpillEvicted *evicted = g_new (CacheSpillEvicted, 1);
  uint64_t each;

  *evicted = (CacheSpillEvicted) { cache_spill_ref (self), g_ptr_array_new () };
  weir_policy_add (&self->policy, number, PIECE);
  while (weir_policy_evict (&self->policy, &each)) {
    CachePiece *piece = g_hash_table_lookup (self->in_use, &each);

    if (piece)
      g_ptr_array_add (evicted->data, piece->data);
  }
  return evicted;
}

void
cache_spill_page_out (CacheSpillEvicted *evicted)
{
  if (!evicted)
    return;
  for (guint i = 0; i < evicted->data->len; i++)
    madvise (evicted->data->pdata[i], PIECE, MADV_PAGEOUT);
  g_ptr_array_unref (evicted->data);
  cache_spill_unref (evicted->spill);
  g_free (evicted);
}

gboolean
cache_spill_ask (CacheSpill *self, guint64 number, CacheSpillEvicted **evicted)
{
  gboolean held = FALSE;

  if (!self->has_rule)
    return FALSE;
  g_mutex_lock (&self->lock);
  if (g_hash_table_contains (self->in_use, &number)) {
    held = weir_policy_ask (&self->policy, number) == 1;
    if (!held)
      *evicted = keep_in_memory (self, number);
  }
  g_mutex_unlock (&self->lock);
  return held;
}

// Closes the current piece. After writing it is in memory; the policy decides whether it stays.
static void
finish_piece (CacheSpill *self)
{
  CacheSpillEvicted *evicted = NULL;

  if (!self->current)
    return;
  if (self->has_rule) {
    g_mutex_lock (&self->lock);
    evicted = keep_in_memory (self, self->current->number);
    g_mutex_unlock (&self->lock);
  }
  cache_spill_page_out (evicted);
  g_clear_pointer (&self->current, piece_unref);
}

// ---- the pieces ----

static void
note_full (CacheSpill *self)
{
  g_mutex_lock (&self->lock);
  self->max_pieces = self->n_pieces;
  g_mutex_unlock (&self->lock);
}

static CachePiece *
make_piece (CacheSpill *self)
{
  const off_t offset = (off_t) self->n_pieces * (off_t) PIECE;
  CachePiece *piece;
  guint8 *data = weir_spill_map (self->fd, offset, PIECE);

  if (!data) {
    note_full (self);
    return NULL;
  }
  piece = g_new0 (CachePiece, 1);
  piece->spill = self;
  piece->data = data;
  self->n_pieces++;
  return piece;
}

static gboolean
next_piece (CacheSpill *self)
{
  CachePiece *piece;
  gboolean may_grow;

  g_mutex_lock (&self->lock);
  piece = g_queue_pop_head (&self->unused);
  may_grow = self->n_pieces < self->max_pieces;
  g_mutex_unlock (&self->lock);
  if (!piece && may_grow)
    piece = make_piece (self);
  if (!piece)
    return FALSE;
  finish_piece (self);
  piece->refs = 1;
  piece->number = __atomic_add_fetch (&last_number, 1, __ATOMIC_RELAXED);
  g_mutex_lock (&self->lock);
  g_hash_table_insert (self->in_use, &piece->number, piece);
  g_mutex_unlock (&self->lock);
  cache_spill_ref (self); // owned by the piece
  self->current = piece;
  self->used = 0;
  return TRUE;
}

// ---- buffers ----

static void
append_bytes (CacheSpill *self, GstBuffer *to, const guint8 *data, gsize size)
{
  guint8 *at = self->current->data + self->used;

  memcpy (at, data, size);
  self->used += size;
  g_atomic_int_inc (&self->current->refs);
  gst_buffer_append_memory (to, gst_memory_new_wrapped (GST_MEMORY_FLAG_READONLY, at, size, 0, size,
                                    self->current, piece_unref));
}

// Appends the data to the file, and the memory of the file to the buffer. Data that fits into one
// piece is not split. Returns FALSE if the file has no room.
static gboolean
append (CacheSpill *self, GstBuffer *to, const guint8 *data, gsize size)
{
  while (size > 0) {
    gsize room = self->current ? PIECE - self->used : 0;

    if (room < size && (room == 0 || size <= PIECE)) {
      if (!next_piece (self))
        return FALSE;
      room = PIECE;
    }
    append_bytes (self, to, data, MIN (room, size));
    data += MIN (room, size);
    size -= MIN (room, size);
  }
  return TRUE;
}

static GstBuffer *
spill_take_buffer (CacheSpill *self, GstBuffer *buffer)
{
  GstBuffer *copy = NULL;
  GstMapInfo map;

  // A buffer with more memories than the maximum would be merged in memory again.
  if (gst_buffer_get_size (buffer) > (gst_buffer_get_max_memory () - 1) * PIECE
      || !gst_buffer_map (buffer, &map, GST_MAP_READ))
    return NULL;
  copy = gst_buffer_new ();
  gst_buffer_copy_into (copy, buffer,
      GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS | GST_BUFFER_COPY_META, 0, (gsize) -1);
  if (!append (self, copy, map.data, map.size))
    gst_clear_buffer (&copy);
  gst_buffer_unmap (buffer, &map);
  return copy;
}

static GstBufferList *
take_list (CacheSpill *self, GstBufferList *list)
{
  const guint n = gst_buffer_list_length (list);
  GstBufferList *copy = gst_buffer_list_new_sized (n);

  for (guint i = 0; i < n; i++) {
    GstBuffer *buffer = spill_take_buffer (self, gst_buffer_list_get (list, i));

    if (!buffer) {
      gst_buffer_list_unref (copy);
      return NULL;
    }
    gst_buffer_list_add (copy, buffer);
  }
  return copy;
}

// ---- buffers without metas ----

static GstBuffer *
nth_buffer (GstMiniObject *object, guint i)
{
  return GST_IS_BUFFER (object) ? GST_BUFFER (object)
                                : gst_buffer_list_get (GST_BUFFER_LIST (object), i);
}

static guint
count_buffers (GstMiniObject *object)
{
  return GST_IS_BUFFER (object) ? 1 : gst_buffer_list_length (GST_BUFFER_LIST (object));
}

// Returns the number of bytes for the object in the file; 0 if a buffer has metas, or the object
// does not fit into one piece.
static gsize
size_stored (GstMiniObject *object)
{
  const guint n = count_buffers (object);
  gsize size = sizeof (Head) + n * sizeof (Record);

  for (guint i = 0; i < n; i++) {
    GstBuffer *buffer = nth_buffer (object, i);
    gpointer state = NULL;

    if (gst_buffer_iterate_meta (buffer, &state))
      return 0;
    size += gst_buffer_get_size (buffer);
  }
  size = (size + 7) & ~(gsize) 7; // aligns the next object
  return size <= PIECE ? size : 0;
}

static Record
make_record (GstBuffer *buffer)
{
  return (Record) { GST_BUFFER_PTS (buffer), GST_BUFFER_DTS (buffer), GST_BUFFER_DURATION (buffer),
    GST_BUFFER_OFFSET (buffer), GST_BUFFER_OFFSET_END (buffer),
    GST_BUFFER_FLAGS (buffer) & BUFFER_FLAGS, (guint32) gst_buffer_get_size (buffer) };
}

static void
write_records (guint8 *at, GstMiniObject *object)
{
  const Head head = { count_buffers (object), GST_IS_BUFFER_LIST (object) };
  guint8 *bytes = at + sizeof head + head.n * sizeof (Record);

  memcpy (at, &head, sizeof head);
  at += sizeof head;
  for (guint i = 0; i < head.n; i++, at += sizeof (Record)) {
    const Record record = make_record (nth_buffer (object, i));

    memcpy (at, &record, sizeof record);
    gst_buffer_extract (nth_buffer (object, i), 0, bytes, record.size);
    bytes += record.size;
  }
}

static gboolean
store_records (CacheSpill *self, GstMiniObject *object, gsize size, CacheStored *stored)
{
  self->used = (self->used + 7) & ~(gsize) 7;
  if ((!self->current || PIECE - self->used < size) && !next_piece (self))
    return FALSE;
  write_records (self->current->data + self->used, object);
  *stored = (CacheStored) { .piece = cache_piece_ref (self->current),
    .offset = (guint32) self->used,
    .number = self->current->number };
  self->used += size;
  return TRUE;
}

gboolean
cache_spill_store (CacheSpill *self, GstMiniObject *object, CacheStored *stored)
{
  const gsize size = size_stored (object);

  *stored = (CacheStored) { 0 };
  if (size > 0)
    return store_records (self, object, size, stored);
  if (GST_IS_BUFFER_LIST (object))
    stored->copy = (GstMiniObject *) take_list (self, GST_BUFFER_LIST (object));
  else
    stored->copy = (GstMiniObject *) spill_take_buffer (self, GST_BUFFER (object));
  if (stored->copy && self->current)
    stored->number = self->current->number;
  return stored->copy != NULL;
}

static GstBuffer *
load_buffer (CachePiece *piece, const Record *record, guint8 *bytes)
{
  GstBuffer *buffer = gst_buffer_new ();

  if (record->size > 0)
    gst_buffer_append_memory (
        buffer, gst_memory_new_wrapped (GST_MEMORY_FLAG_READONLY, bytes, record->size, 0,
                    record->size, cache_piece_ref (piece), piece_unref));
  GST_BUFFER_PTS (buffer) = record->pts;
  GST_BUFFER_DTS (buffer) = record->dts;
  GST_BUFFER_DURATION (buffer) = record->duration;
  GST_BUFFER_OFFSET (buffer) = record->offset;
  GST_BUFFER_OFFSET_END (buffer) = record->offset_end;
  GST_BUFFER_FLAG_SET (buffer, record->flags);
  return buffer;
}

GstMiniObject *
cache_spill_load (CachePiece *piece, guint32 offset)
{
  guint8 *at = piece->data + offset, *bytes;
  GstBufferList *list = NULL;
  GstBuffer *buffer = NULL;
  Head head;

  memcpy (&head, at, sizeof head);
  at += sizeof head;
  bytes = at + head.n * sizeof (Record);
  if (head.is_list)
    list = gst_buffer_list_new_sized (head.n);
  for (guint i = 0; i < head.n; i++, at += sizeof (Record)) {
    Record record;

    memcpy (&record, at, sizeof record);
    buffer = load_buffer (piece, &record, bytes);
    bytes += record.size;
    if (list)
      gst_buffer_list_add (list, buffer);
  }
  cache_piece_unref (piece);
  return list ? (GstMiniObject *) list : (GstMiniObject *) buffer;
}

guint64
cache_spill_capacity (CacheSpill *self)
{
  guint64 capacity;

  g_mutex_lock (&self->lock);
  capacity = (guint64) self->max_pieces * PIECE;
  g_mutex_unlock (&self->lock);
  return capacity;
}
