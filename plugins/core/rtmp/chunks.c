// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtmp/chunks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EXTENDED 0xffffffu // a timestamp that stands for the one of 32 bits behind the header
#define ROOM_MIN 4096      // bytes
#define ROOM_KEPT 262144   // bytes of a chunk stream between two messages

// What the last chunk of a chunk stream says about the next.
typedef struct {
  bool used;
  uint32_t id;
  bool extended;
  uint32_t field; // its timestamp or difference
  uint32_t timestamp;
  uint32_t len;
  uint8_t type;
  uint32_t stream;
  bool inside; // a message is not complete
  uint8_t *data;
  size_t at, room;
} Stream;

struct _WeirRtmpChunks {
  Stream streams[WEIR_RTMP_CHUNK_STREAMS];
  uint32_t size;
  size_t limit, stored;
  Stream *current; // whose chunk is not complete
  size_t left;     // bytes of that chunk
  Stream *given;   // whose message the caller has
};

WeirRtmpChunks *
weir_rtmp_chunks_new (void)
{
  WeirRtmpChunks *self = calloc (1, sizeof *self);

  if (self)
    self->size = WEIR_RTMP_CHUNK_DEFAULT;
  return self;
}

void
weir_rtmp_chunks_free (WeirRtmpChunks *self)
{
  for (size_t i = 0; i < WEIR_RTMP_CHUNK_STREAMS; i++)
    free (self->streams[i].data);
  free (self);
}

void
weir_rtmp_chunks_set_limit (WeirRtmpChunks *self, size_t len)
{
  self->limit = len;
}

void
weir_rtmp_chunks_set_size (WeirRtmpChunks *self, uint32_t size)
{
  self->size = size;
}

// ---- messages ----

static void
forget (WeirRtmpChunks *self, Stream *stream)
{
  self->stored -= stream->inside ? stream->at : 0;
  stream->inside = false;
  stream->at = 0;
}

void
weir_rtmp_chunks_abort (WeirRtmpChunks *self, uint32_t id)
{
  for (size_t i = 0; i < WEIR_RTMP_CHUNK_STREAMS; i++) {
    if (self->streams[i].used && self->streams[i].id == id)
      forget (self, &self->streams[i]);
  }
}

static void
take_back (WeirRtmpChunks *self)
{
  Stream *stream = self->given;

  self->given = NULL;
  if (!stream || stream->room <= ROOM_KEPT)
    return;
  free (stream->data);
  stream->data = NULL;
  stream->room = 0;
}

static int
make_room (Stream *stream, size_t need)
{
  size_t room = stream->room * 2 > ROOM_MIN ? stream->room * 2 : ROOM_MIN;
  uint8_t *data;

  if (need <= stream->room)
    return 0;
  room = room > need ? room : need;
  data = realloc (stream->data, room);
  if (!data)
    return -ENOMEM;
  stream->data = data;
  stream->room = room;
  return 0;
}

// Takes what has come of the chunk in hand.
static int
take_payload (WeirRtmpChunks *self, WeirBytes *b)
{
  Stream *stream = self->current;
  size_t n = weir_bytes_left (b) < self->left ? weir_bytes_left (b) : self->left;
  const uint8_t *bytes;

  if (n == 0)
    return 0;
  if (n > self->limit || self->stored > self->limit - n)
    return -EMSGSIZE;
  if (make_room (stream, stream->at + n) < 0)
    return -ENOMEM;
  weir_bytes_take (b, n, &bytes);
  memcpy (stream->data + stream->at, bytes, n);
  stream->at += n;
  self->stored += n;
  self->left -= n;
  return 0;
}

static int
end_chunk (WeirRtmpChunks *self, WeirRtmpMessage *message)
{
  Stream *stream = self->current;

  self->current = NULL;
  if (stream->at < stream->len)
    return 0;
  *message = (WeirRtmpMessage) { stream->type, stream->stream, stream->timestamp, stream->data,
    stream->at };
  forget (self, stream);
  self->given = stream;
  return 1;
}

// ---- headers; on a copy of the cursor, as they may be cut short ----

static Stream *
find_stream (WeirRtmpChunks *self, uint32_t id)
{
  Stream *unused = NULL;

  for (size_t i = 0; i < WEIR_RTMP_CHUNK_STREAMS; i++) {
    Stream *each = &self->streams[i];

    if (each->used && each->id == id)
      return each;
    if (!each->used && !unused)
      unused = each;
  }
  if (unused)
    unused->id = id;
  return unused;
}

// Reads the basic header (5.3.1.1). Returns its format.
static unsigned
read_basic (WeirBytes *b, uint32_t *id)
{
  uint8_t first, low = 0, high = 0;

  weir_bytes_u8 (b, &first);
  *id = first & 0x3f;
  if (*id < 2) {
    weir_bytes_u8 (b, &low);
    if (*id == 1)
      weir_bytes_u8 (b, &high);
    *id = 64u + low + 256u * high;
  }
  return first >> 6;
}

static void
read_stream_number (WeirBytes *b, uint32_t *number)
{
  const uint8_t *p;

  // The only number in RTMP with the lowest byte first.
  if (weir_bytes_take (b, 4, &p))
    *number = p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 24;
}

// Skips the extended timestamp of a chunk of format 3, which repeats it. Some encoders leave it out
// there, so other bytes are media. Fails if more bytes are needed to tell.
static void
skip_repeated (WeirBytes *b, const Stream *next)
{
  const uint32_t values[] = { next->field, next->timestamp }; // senders repeat either
  size_t n = weir_bytes_left (b) < 4 ? weir_bytes_left (b) : 4;

  for (size_t i = 0; i < 2; i++) {
    const uint8_t bytes[] = { (uint8_t) (values[i] >> 24), (uint8_t) (values[i] >> 16),
      (uint8_t) (values[i] >> 8), (uint8_t) values[i] };

    if (memcmp (b->at, bytes, n) == 0) {
      weir_bytes_skip (b, 4);
      return;
    }
  }
}

// Reads the message header (5.3.1.2), and the extended timestamp, into `next`.
static void
read_message_header (WeirBytes *b, unsigned format, Stream *next)
{
  if (format < 3) {
    weir_bytes_u24 (b, &next->field);
    next->extended = next->field == EXTENDED;
  }
  if (format < 2) {
    weir_bytes_u24 (b, &next->len);
    weir_bytes_u8 (b, &next->type);
  }
  if (format == 0)
    read_stream_number (b, &next->stream);
  if (next->extended && format < 3)
    weir_bytes_u32 (b, &next->field);
  else if (next->extended)
    skip_repeated (b, next);
}

static int
begin_message (WeirRtmpChunks *self, Stream *stream, unsigned format)
{
  if (stream->len > self->limit)
    return -EMSGSIZE;
  stream->timestamp = format == 0 ? stream->field : stream->timestamp + stream->field;
  stream->inside = true;
  stream->at = 0;
  return 0;
}

// Returns 1 if a header was read, 0 if it is cut short.
static int
begin_chunk (WeirRtmpChunks *self, WeirBytes *b)
{
  WeirBytes at = *b;
  uint32_t id;
  unsigned format = read_basic (&at, &id);
  Stream *stream, next;

  if (at.failed)
    return 0;
  stream = find_stream (self, id);
  // Only the first kind says all about its message, and only the last continues one.
  if (!stream || (!stream->used && format != 0) || (stream->inside && format != 3))
    return -EBADMSG;
  next = *stream;
  read_message_header (&at, format, &next);
  if (at.failed)
    return 0;
  next.used = true;
  *stream = next;
  *b = at;
  if (!stream->inside && begin_message (self, stream, format) < 0)
    return -EMSGSIZE;
  self->current = stream;
  self->left = stream->len - stream->at < self->size ? stream->len - stream->at : self->size;
  return 1;
}

int
weir_rtmp_chunks_read (WeirRtmpChunks *self, WeirBytes *b, WeirRtmpMessage *message)
{
  take_back (self);
  for (;;) {
    int result = self->current ? 1 : begin_chunk (self, b);

    if (result == 1)
      result = take_payload (self, b);
    else
      return result;
    if (result < 0 || self->left > 0)
      return result;
    result = end_chunk (self, message);
    if (result != 0)
      return result;
  }
}
