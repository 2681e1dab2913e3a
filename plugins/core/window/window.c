// SPDX-License-Identifier: LGPL-2.1-or-later
#include "window/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rtp/rtp.h"

#define FIRST_CAPACITY 16
#define RTCP_SR 200

int
weir_window_init (WeirWindow *window, WeirWindowBounds bounds, WeirCodec codec)
{
  memset (window, 0, sizeof *window);
  window->bounds = bounds;
  window->limit = SIZE_MAX;
  window->last_join = window->late_join = WEIR_NO_POSITION;
  window->last_rtp_time = WEIR_UNWRAP_START;
  window->newest_time = INT64_MIN;
  window->block_size = WEIR_BLOCK_BYTES_MIN;
  weir_window_set_codec (window, codec);
  window->capacity = FIRST_CAPACITY;
  window->index = malloc (window->capacity * sizeof *window->index);
  return window->index ? 0 : -ENOMEM;
}

static WeirPacket *
entry (WeirWindow *window, int64_t position)
{
  return &window->index[(uint64_t) position & (window->capacity - 1)];
}

// Every packet in the index or the stage holds a reference to its block.
static void
drop_oldest (WeirWindow *window)
{
  WeirPacket *oldest = entry (window, window->tail);

  window->bytes -= oldest->length;
  weir_window_block_unref (oldest->block);
  if (window->last_join == window->tail)
    window->last_join = WEIR_NO_POSITION;
  window->tail++;
}

size_t
weir_window_drop_stage (WeirWindow *window)
{
  size_t n = window->n_staged;

  for (size_t i = 0; i < n; i++)
    weir_window_block_unref (window->stage[i].block);
  window->n_staged = window->bytes_staged = 0;
  window->in_frame = window->frame_key = window->frame_join = false;
  window->late_join = WEIR_NO_POSITION;
  return n;
}

void
weir_window_flush (WeirWindow *window)
{
  while (window->tail < window->head)
    drop_oldest (window);
  weir_window_drop_stage (window);
}

void
weir_window_free (WeirWindow *window)
{
  weir_window_flush (window);
  weir_window_set_file (window, NULL);
  free (window->index);
  free (window->stage);
  memset (window, 0, sizeof *window);
}

void
weir_window_set_file (WeirWindow *window, WeirBlockFile *file)
{
  weir_window_block_unref (window->block);
  window->block = NULL;
  weir_block_file_unref (window->file);
  window->file = file ? weir_block_file_ref (file) : NULL;
  window->limit = SIZE_MAX;
}

// ---- the writer ----

void
weir_window_set_codec (WeirWindow *window, WeirCodec codec)
{
  window->layers = (WeirLayers) { .codec = codec };
  window->seen_key = false;
}

// Marks the start of the frame in progress as a join point. It may lie before the packet that shows
// this, for example at parameter sets or a delimiter.
static void
mark_staged_frame (WeirWindow *window)
{
  int64_t first = window->frame_start - window->head;

  for (size_t i = first < 0 ? 0 : (size_t) first; i < window->n_staged; i++) {
    if (window->stage[i].flags & WEIR_PACKET_RTP)
      window->stage[i].flags |= WEIR_PACKET_KEY;
  }
  // A start that is already published is marked on publishing, under the lock.
  if (first >= 0)
    window->stage[first].flags |= WEIR_PACKET_JOIN;
  else
    window->late_join = window->frame_start;
}

static void
read_rtp (WeirWindow *window, WeirPacket *packet, const uint8_t *data, const WeirRtp *rtp,
    const WeirLayer *told)
{
  int64_t position = window->head + (int64_t) window->n_staged;
  WeirLayer layer;

  packet->seq = rtp->seq;
  packet->rtp_time = weir_unwrap32 (&window->last_rtp_time, rtp->timestamp);
  packet->flags = WEIR_PACKET_RTP | (rtp->marker ? WEIR_PACKET_MARKER : 0);
  if (!window->in_frame || packet->rtp_time != window->frame_rtp_time) {
    packet->flags |= WEIR_PACKET_START;
    window->frame_start = position;
    window->frame_rtp_time = packet->rtp_time;
    window->in_frame = true;
    window->frame_key = window->frame_join = false;
  }

  if (told) {
    layer = *told;
    packet->flags |= WEIR_PACKET_TOLD | (layer.switch_up ? WEIR_PACKET_SWITCH_UP : 0)
                     | (layer.enter ? WEIR_PACKET_ENTER : 0);
  } else {
    weir_layers_read (&window->layers, data + rtp->payload_offset, rtp->payload_length, &layer);
  }
  packet->spatial = layer.spatial;
  packet->quality = layer.quality;
  packet->temporal = layer.temporal;
  if (layer.discardable)
    packet->flags |= WEIR_PACKET_DISCARDABLE;
  // In a stream of an unknown codec, or one that refreshes its picture gradually, every packet
  // counts as a key packet.
  window->seen_key = window->seen_key || layer.keyframe;
  window->frame_key = window->frame_key || layer.keyframe || layer.parameters;
  if (window->frame_key || !window->seen_key)
    packet->flags |= WEIR_PACKET_KEY;
  if (layer.keyframe && !window->frame_join) {
    window->frame_join = true;
    mark_staged_frame (window);
  }
  // An audio frame is one packet, and its marker has another meaning.
  if (rtp->marker || window->layers.codec == WEIR_CODEC_AUDIO)
    window->in_frame = false;
}

// Reports whether another packet of `len` bytes does not fit into the same send.
static bool
is_full (const WeirWindow *window, size_t len)
{
  return window->n_staged == WEIR_STAGE_PACKETS || window->bytes_staged + len > WEIR_PACKET_MAX;
}

static void
count_staged (WeirWindow *window, size_t len, int64_t now_ns)
{
  if (window->n_staged++ == 0)
    window->staged_ns = now_ns;
  if (window->measured_bytes == 0)
    window->measured_from_ns = now_ns;
  window->measured_to_ns = now_ns;
  window->measured_bytes += len;
  window->bytes_staged += len;
  window->block_used += len;
}

WeirStageState
weir_window_stage (WeirWindow *window, size_t len, const WeirLayer *layer, int64_t now_ns)
{
  const uint8_t *data = window->block->data + window->block_used;
  WeirPacket *packet = &window->stage[window->n_staged];
  bool rtcp = weir_rtp_is_rtcp (data, len);
  WeirRtp rtp;

  *packet = (WeirPacket) {
    .block = weir_window_block_ref (window->block),
    .offset = (uint32_t) window->block_used,
    .length = (uint32_t) len,
    .arrival_ns = now_ns,
    .position = window->head + (int64_t) window->n_staged,
  };
  if (!rtcp && weir_rtp_parse (data, len, &rtp) == 0) {
    read_rtp (window, packet, data, &rtp, layer);
  } else if (!rtcp) {
    window->n_opaque++;
    if (layer && layer->keyframe)
      packet->flags = WEIR_PACKET_START | WEIR_PACKET_JOIN | WEIR_PACKET_KEY;
  } else if (data[1] == RTCP_SR && window->last_rtp_time == WEIR_UNWRAP_START) {
    // In a stream of RTCP only, a new reader begins with the newest sender report, which tells how
    // the tracks are synchronised.
    packet->flags = WEIR_PACKET_START | WEIR_PACKET_JOIN | WEIR_PACKET_KEY;
  }
  count_staged (window, len, now_ns);

  if (!(packet->flags & WEIR_PACKET_RTP))
    return is_full (window, len) ? WEIR_STAGE_FULL : WEIR_STAGE_URGENT;
  if (!window->in_frame)
    return WEIR_STAGE_FRAME;
  return is_full (window, len) ? WEIR_STAGE_FULL : WEIR_STAGE_MORE;
}

WeirStageState
weir_window_stage_as (WeirWindow *window, size_t len, const WeirPacket *as)
{
  WeirPacket *packet = &window->stage[window->n_staged];

  *packet = *as;
  packet->block = weir_window_block_ref (window->block);
  packet->offset = (uint32_t) window->block_used;
  packet->length = (uint32_t) len;
  count_staged (window, len, as->arrival_ns);
  return is_full (window, len) ? WEIR_STAGE_FULL : WEIR_STAGE_MORE;
}

// ---- publishing ----

static bool
index_resize (WeirWindow *window, size_t capacity)
{
  WeirPacket *index = malloc (capacity * sizeof *index);

  if (!index)
    return false;
  for (int64_t p = window->tail; p < window->head; p++)
    index[(uint64_t) p & (capacity - 1)] = *entry (window, p);
  free (window->index);
  window->index = index;
  window->capacity = capacity;
  return true;
}

// Returns a packet of the window or the stage.
static const WeirPacket *
packet_at (const WeirWindow *window, int64_t position)
{
  return position < window->head ? weir_window_at (window, position)
                                 : &window->stage[position - window->head];
}

// Returns the tail that the bounds allow for this head, byte count and newest join point.
static int64_t
tail_within_bounds (const WeirWindow *window, int64_t head, size_t bytes, int64_t last_join)
{
  const WeirWindowBounds *bounds = &window->bounds;
  int64_t oldest_ns = packet_at (window, head - 1)->arrival_ns - bounds->time_ns;
  size_t most = bounds->bytes < window->limit ? bounds->bytes : window->limit;
  int64_t tail;

  // The newest packet always stays.
  for (tail = window->tail; tail < head - 1; tail++) {
    const WeirPacket *packet = packet_at (window, tail);
    bool kept = bounds->keep_join && last_join != WEIR_NO_POSITION && tail >= last_join;

    if (bytes <= most && (uint64_t) (head - tail) <= bounds->packets
        && (kept || packet->arrival_ns >= oldest_ns))
      break;
    bytes -= packet->length;
    if (tail == last_join)
      last_join = WEIR_NO_POSITION;
  }
  return tail;
}

// Reports whether a published packet turned out to be the start of a join point.
static bool
has_late_join (const WeirWindow *window)
{
  return window->late_join != WEIR_NO_POSITION && window->late_join >= window->tail;
}

static int64_t
last_join_after (const WeirWindow *window)
{
  int64_t last_join = has_late_join (window) ? window->late_join : window->last_join;

  for (size_t i = 0; i < window->n_staged; i++) {
    if (window->stage[i].flags & WEIR_PACKET_JOIN)
      last_join = window->head + (int64_t) i;
  }
  return last_join;
}

int64_t
weir_window_tail_after (const WeirWindow *window)
{
  if (window->n_staged == 0)
    return window->tail;
  return tail_within_bounds (window, window->head + (int64_t) window->n_staged,
      window->bytes + window->bytes_staged, last_join_after (window));
}

static void
mark_late_join (WeirWindow *window)
{
  int64_t rtp_time = entry (window, window->late_join)->rtp_time;

  entry (window, window->late_join)->flags |= WEIR_PACKET_JOIN;
  window->newest_time = rtp_time;
  for (int64_t position = window->late_join; position < window->head; position++) {
    WeirPacket *packet = entry (window, position);

    if (packet->flags & WEIR_PACKET_RTP && packet->rtp_time == rtp_time)
      packet->flags |= WEIR_PACKET_KEY;
  }
}

static void
add_staged (WeirWindow *window, const WeirPacket *packet)
{
  bool join = packet->flags & WEIR_PACKET_JOIN;

  *entry (window, window->head++) = *packet;
  window->bytes += packet->length;
  if (packet->flags & WEIR_PACKET_RTP && (join || packet->rtp_time > window->newest_time))
    window->newest_time = packet->rtp_time;
}

void
weir_window_make_smaller (WeirWindow *window)
{
  size_t bytes = window->bytes + window->bytes_staged;

  window->limit = bytes > WEIR_WINDOW_LIMIT_MIN + WEIR_BLOCK_BYTES ? bytes - WEIR_BLOCK_BYTES
                                                                   : WEIR_WINDOW_LIMIT_MIN;
}

bool
weir_window_publish (WeirWindow *window, uint64_t *lost)
{
  int64_t last_join, tail;

  if (window->n_staged == 0)
    return false;
  while (window->capacity < (uint64_t) (window->head - window->tail) + window->n_staged) {
    if (!index_resize (window, window->capacity * 2)) {
      *lost += weir_window_drop_stage (window);
      return false;
    }
  }
  last_join = last_join_after (window);
  tail = weir_window_tail_after (window);
  if (has_late_join (window))
    mark_late_join (window);
  for (size_t i = 0; i < window->n_staged; i++)
    add_staged (window, &window->stage[i]);
  window->n_staged = window->bytes_staged = 0;
  window->late_join = WEIR_NO_POSITION;
  window->last_join = last_join;
  while (window->tail < tail)
    drop_oldest (window);
  return true;
}

void
weir_window_trim (WeirWindow *window, int64_t position)
{
  size_t n = (size_t) (window->head - window->tail), dropped = (size_t) (position - window->tail);

  // The window is longest just before most of it is dropped.
  if (dropped >= n / 2 && n <= window->capacity / 4 && window->capacity > FIRST_CAPACITY)
    index_resize (window, window->capacity / 2);
  while (window->tail < position)
    drop_oldest (window);
}

void
weir_window_drop_before (WeirWindow *window, int64_t position)
{
  while (window->tail < window->head && entry (window, window->tail)->position < position)
    drop_oldest (window);
}
