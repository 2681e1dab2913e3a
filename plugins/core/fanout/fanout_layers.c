// SPDX-License-Identifier: LGPL-2.1-or-later
// Makes the streams of layer sets (layer_streams.h). For the writer's thread.
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fanout/fanout_private.h"

// A stream is removed after this many frames without a reader.
#define UNUSED_FRAMES 100

#define FIRST_FRAMES 32

// ---- the writer: frames ----

static void
note_top (WeirLayerSet *top, const WeirRates *rates)
{
  for (size_t i = 0; i < rates->n; i++) {
    const WeirLayerRate *layer = &rates->layers[i];

    if (layer->spatial > top->spatial)
      top->spatial = (int8_t) layer->spatial;
    if (layer->quality > top->quality)
      top->quality = (int8_t) layer->quality;
    if (layer->temporal > top->temporal)
      top->temporal = (int8_t) layer->temporal;
  }
}

static void
publish_stream (WeirFanout *fanout, WeirWindow *window)
{
  uint64_t lost = 0;

  pthread_mutex_lock (&fanout->lock);
  weir_window_publish (window, &lost);
  pthread_mutex_unlock (&fanout->lock);
}

// Sorts the positions of the frame's packets. Reordered packets go out in the order of their
// sequence numbers, so they get the frame's positions in rising order.
static void
order_positions (const WeirFrame *frame, int64_t *positions)
{
  for (size_t i = 0; i < frame->n_packets; i++) {
    int64_t position = (int64_t) frame->packets[i].owner;
    size_t at = i;

    for (; at > 0 && positions[at - 1] > position; at--)
      positions[at] = positions[at - 1];
    positions[at] = position;
  }
}

static void
stage (WeirFanout *fanout, LayerStream *stream, size_t len, const WeirPacket *as)
{
  if (weir_window_stage_as (&stream->window, len, as) == WEIR_STAGE_FULL)
    publish_stream (fanout, &stream->window);
}

// Writes the packet of parameter sets that goes before packet `i`.
static void
write_sets (WeirFanout *fanout, LayerStream *stream, const WeirFrame *frame, size_t i, bool first)
{
  const unsigned own = WEIR_PACKET_START | WEIR_PACKET_JOIN | WEIR_PACKET_MARKER;
  WeirPacket as = *weir_window_at (&fanout->window, (int64_t) frame->packets[i].owner);
  uint8_t *room = weir_window_reserve (&stream->window, WEIR_RTP_HEADER + WEIR_SVC_SETS_MAX);

  if (!room)
    return;
  as.position = fanout->layers.work->positions[i];
  as.seq = stream->projection.sets_seq;
  as.flags = (uint16_t) ((as.flags & ~own) | WEIR_PACKET_EXTRA | (first ? WEIR_PACKET_START : 0));
  stage (fanout, stream, weir_project_write_sets (&stream->projection, frame, room), &as);
}

static void
write_packet (WeirFanout *fanout, LayerStream *stream, const WeirFrame *frame, size_t i,
    const WeirProjected *how, bool first)
{
  const WeirFramePacket *from = &frame->packets[i];
  const unsigned own = WEIR_PACKET_START | WEIR_PACKET_JOIN | WEIR_PACKET_MARKER;
  WeirPacket as = *weir_window_at (&fanout->window, (int64_t) from->owner);
  uint8_t *room;
  size_t len;

  if (!(room = weir_window_reserve (&stream->window, from->len)))
    return; // no memory
  memcpy (room, from->data, from->len);
  len = weir_project_write (&stream->projection, &fanout->layers.input->svc, frame, i, how, room);
  as.position = fanout->layers.work->positions[i];
  as.seq = how->seq;
  as.flags = (uint16_t) (as.flags & ~own);
  as.flags |= first ? WEIR_PACKET_START : 0;
  as.flags |= how->marker ? WEIR_PACKET_MARKER : 0;
  stage (fanout, stream, len, &as);
}

// Stages the packets of a frame that the stream keeps.
static void
project (WeirFanout *fanout, LayerStream *stream, const WeirFrame *frame)
{
  Layers *layers = &fanout->layers;
  WeirProjection *projection = &stream->projection;
  bool first = true;

  stream->before = (LeftOut) { (uint16_t) projection->left_out, projection->pictures_left_out };
  // Readers that enter the stream here need the parameter sets.
  projection->missed = frame->picture.enter != 0;
  projection->kept = UINT_MAX;
  weir_project (projection, layers->codec == WEIR_CODEC_H264 ? &layers->input->svc : NULL, frame,
      layers->work->how);
  for (size_t i = 0; i < frame->n_packets; i++) {
    if (projection->sets_len > 0 && i == projection->sets_before) {
      write_sets (fanout, stream, frame, i, first);
      first = false;
    }
    if (!layers->work->how[i].keep)
      continue;
    write_packet (fanout, stream, frame, i, &layers->work->how[i], first);
    first = false;
  }
}

static bool
is_unused (LayerStream *stream)
{
  stream->n_unused = stream->n_readers > 0 ? 0 : stream->n_unused + 1;
  return stream->n_unused > UNUSED_FRAMES;
}

// Makes the ring of frames larger if it is full, up to LAYER_FRAMES.
static void
grow_frames (Layers *layers)
{
  int64_t size = 2 * layers->frames_size;
  LayerFrame *frames;

  if (layers->head - layers->tail < layers->frames_size || size > LAYER_FRAMES
      || !(frames = calloc ((size_t) size, sizeof *frames)))
    return;
  for (int64_t f = layers->tail; f < layers->head; f++)
    frames[f % size] = *layers_frame (layers, f);
  free (layers->frames);
  layers->frames = frames;
  layers->frames_size = size;
}

// Under the lock.
static void
add_frame (Layers *layers, int64_t end, WeirLayerSet top)
{
  LayerFrame *frame;

  grow_frames (layers);
  frame = &layers->frames[layers->head % layers->frames_size];
  frame->from = layers->covered;
  frame->picture = layers->frame.picture;
  for (size_t i = 0; i < layers->n_streams; i++) {
    LayerStream *stream = layers->streams[i];
    uint64_t lost = 0;

    weir_window_publish (&stream->window, &lost);
    stream->left_out[layers->head % LAYER_FRAMES] = stream->before;
  }
  if (++layers->head - layers->tail > layers->frames_size)
    layers->tail = layers->head - layers->frames_size;
  layers->covered = end;
  if (!weir_layer_set_equal (layers->top, top)) {
    layers->top = top;
    atomic_fetch_add (&layers->generation, 1);
  }
}

// Moves unused streams from the array to `unused`. Under the lock. Returns how many.
static size_t
take_unused (Layers *layers, LayerStream **unused)
{
  size_t n = 0;

  for (size_t i = 0; i < layers->n_streams;) {
    if (is_unused (layers->streams[i])) {
      unused[n++] = layers->streams[i];
      layers->streams[i] = layers->streams[--layers->n_streams];
      layers->full = false;
    } else {
      i++;
    }
  }
  return n;
}

// Ends the current frame before position `end`.
static void
end_frame (WeirFanout *fanout, int64_t end)
{
  Layers *layers = &fanout->layers;
  LayerStream *unused[LAYER_STREAMS];
  WeirFrame *frame = &layers->frame;
  WeirLayerSet top = layers->top;
  size_t n_unused;

  if (end == layers->covered)
    return;
  weir_frame_read (frame);
  if (layers->codec == WEIR_CODEC_H264)
    weir_svc_note_frame (&layers->input->svc, frame);
  weir_rates_add (&layers->input->rates, frame,
      weir_window_at (&fanout->window, fanout->window.head - 1)->arrival_ns);
  note_top (&top, &layers->input->rates);
  if (layers->n_streams > 0)
    order_positions (frame, layers->work->positions);
  for (size_t i = 0; i < layers->n_streams; i++)
    project (fanout, layers->streams[i], frame);

  pthread_mutex_lock (&fanout->lock);
  add_frame (layers, end, top);
  n_unused = take_unused (layers, unused);
  pthread_mutex_unlock (&fanout->lock);
  while (n_unused > 0)
    weir_layer_stream_free (unused[--n_unused]);
  weir_frame_clear (frame);
}

static void
count_lowest (WeirFanout *fanout, int64_t position)
{
  const WeirPacket *packet = weir_window_at (&fanout->window, position);

  if (packet->spatial == 0 && packet->quality == 0 && packet->temporal == 0)
    weir_rates_add_lowest (&fanout->layers.input->rates, packet->length,
        packet->flags & WEIR_PACKET_KEY, packet->flags & WEIR_PACKET_DISCARDABLE,
        packet->arrival_ns);
}

static WeirAdd
add_packet (const WeirFanout *fanout, WeirFrame *frame, int64_t position)
{
  const WeirPacket *packet = weir_window_at (&fanout->window, position);
  const WeirLayer told = {
    .spatial = packet->spatial,
    .quality = packet->quality,
    .temporal = packet->temporal,
    .discardable = packet->flags & WEIR_PACKET_DISCARDABLE,
    .switch_up = packet->flags & WEIR_PACKET_SWITCH_UP,
    .enter = packet->flags & WEIR_PACKET_ENTER,
  };

  return weir_frame_add_layer (frame, weir_packet_data (packet), packet->length, (size_t) position,
      packet->flags & WEIR_PACKET_TOLD ? &told : NULL);
}

void
weir_layer_streams_end_frame (WeirFanout *fanout)
{
  if (fanout->layers.on)
    end_frame (fanout, fanout->layers.taken);
}

static void
drop_old (WeirFanout *fanout)
{
  Layers *layers = &fanout->layers;
  int64_t tail = fanout->window.tail;

  if (layers->tail == layers->head || layers_frame (layers, layers->tail)->from >= tail)
    return;
  pthread_mutex_lock (&fanout->lock);
  for (size_t i = 0; i < layers->n_streams; i++)
    weir_window_drop_before (&layers->streams[i]->window, tail);
  while (layers->tail < layers->head && layers_frame (layers, layers->tail)->from < tail)
    layers->tail++;
  pthread_mutex_unlock (&fanout->lock);
}

void
weir_layer_streams_take (WeirFanout *fanout)
{
  Layers *layers = &fanout->layers;

  if (!layers->on)
    return;
  drop_old (fanout);
  // A frame that is no longer whole in the window is skipped.
  if (fanout->window.tail > layers->covered) {
    weir_frame_clear (&layers->frame);
    if (layers->taken < fanout->window.tail)
      layers->taken = fanout->window.tail;
    end_frame (fanout, layers->taken);
  }
  for (; layers->taken < fanout->window.head; layers->taken++) {
    WeirAdd added = add_packet (fanout, &layers->frame, layers->taken);

    if (added == WEIR_ADD_NEXT) {
      end_frame (fanout, layers->taken);
      added = add_packet (fanout, &layers->frame, layers->taken);
    }
    count_lowest (fanout, layers->taken);
    if (added == WEIR_ADD_COMPLETE)
      end_frame (fanout, layers->taken + 1);
  }
}

// ---- the writer: streams ----

// Starts the projection. It takes nothing but the set's layers from the first frame on, whether or
// not that is a key picture: readers enter the stream only where they may get these layers
// (change_layers()), and one that gives up a temporal layer has the spatial ones already.
static void
begin_projection (LayerStream *stream, WeirCodec codec)
{
  WeirProjection *projection = &stream->projection;

  weir_projection_init (projection, codec, stream->set, WEIR_OUTPUT_SVC);
  projection->layers.now = stream->set;
  projection->layers.settled = stream->set.spatial >= 0;
}

static LayerStream *
stream_new (Layers *layers, WeirLayerSet set, int64_t first, WeirBlockFile *file)
{
  const WeirWindowBounds unbound = { SIZE_MAX, SIZE_MAX, INT64_MAX / 2, false };
  LayerStream *stream = calloc (1, sizeof *stream);

  if (!stream)
    return NULL;
  if (weir_window_init (&stream->window, unbound, WEIR_CODEC_OPAQUE) < 0) {
    free (stream);
    return NULL;
  }
  weir_window_set_file (&stream->window, file);
  stream->id = ++layers->last_id;
  stream->set = set;
  stream->first = first;
  begin_projection (stream, layers->codec);
  return stream;
}

// Adds an earlier frame, which is still in the window, to a new stream.
static void
project_again (WeirFanout *fanout, LayerStream *stream, WeirFrame *frame, int64_t number)
{
  Layers *layers = &fanout->layers;
  int64_t end = weir_layer_streams_frame_end (layers, number);
  uint64_t lost = 0;

  for (int64_t position = layers_frame (layers, number)->from; position < end; position++)
    add_packet (fanout, frame, position);
  weir_frame_read (frame);
  order_positions (frame, layers->work->positions);
  project (fanout, stream, frame);
  weir_window_publish (&stream->window, &lost);
  stream->left_out[number % LAYER_FRAMES] = stream->before;
  weir_frame_clear (frame);
}

// Returns the first frame of a new stream: the newest join point, or the frame where a reader waits
// if that is earlier. If the set already has a stream, which begins too late, its readers have
// delays and the next one may need any frame: then the oldest frame.
static int64_t
first_frame (const WeirFanout *fanout, WeirLayerSet set, int64_t waiting)
{
  const Layers *layers = &fanout->layers;
  int64_t join = fanout->window.last_join, first = layers->tail;

  if (weir_layer_streams_find (layers, set, layers->head))
    return first;
  if (join != WEIR_NO_POSITION && join < layers->covered)
    first = weir_layer_streams_frame_at (layers, join);
  if (first > waiting)
    first = waiting;
  return first < layers->tail ? layers->tail : first;
}

static bool
make_stream (WeirFanout *fanout, const LayerWish *wish)
{
  Layers *layers = &fanout->layers;
  int64_t first = first_frame (fanout, wish->set, wish->frame);
  LayerStream *stream;
  WeirFrame frame;

  if (weir_layer_streams_find (layers, wish->set, wish->frame))
    return true;
  if (!layers->work)
    layers->work = calloc (1, sizeof *layers->work);
  if (!layers->work || layers->n_streams == LAYER_STREAMS
      || !(stream = stream_new (layers, wish->set, first, fanout->window.file)))
    return false;
  weir_frame_init (&frame, layers->codec, false);
  frame.dependency_id = layers->dependency_id;
  for (int64_t number = first; number < layers->head; number++)
    project_again (fanout, stream, &frame, number);
  weir_frame_free (&frame);

  pthread_mutex_lock (&fanout->lock);
  layers->streams[layers->n_streams++] = stream;
  pthread_mutex_unlock (&fanout->lock);
  return true;
}

bool
weir_layer_streams_grant (WeirFanout *fanout)
{
  Layers *layers = &fanout->layers;
  LayerWish wishes[LAYER_STREAMS];
  bool full = false;
  size_t n;

  pthread_mutex_lock (&fanout->lock);
  n = layers->n_wishes;
  memcpy (wishes, layers->wishes, n * sizeof *wishes);
  layers->n_wishes = 0;
  pthread_mutex_unlock (&fanout->lock);
  for (size_t i = 0; i < n; i++)
    full |= layers->on && !make_stream (fanout, &wishes[i]);
  if (full) {
    pthread_mutex_lock (&fanout->lock);
    layers->full = true;
    pthread_mutex_unlock (&fanout->lock);
  }
  return n > 0;
}

static bool
has_layers (WeirCodec codec)
{
  return codec == WEIR_CODEC_H264 || codec == WEIR_CODEC_H265 || codec == WEIR_CODEC_VP8
         || codec == WEIR_CODEC_VP9 || codec == WEIR_CODEC_AV1;
}

static void
make_input (Layers *layers)
{
  if (!layers->frames) {
    layers->frames = calloc (FIRST_FRAMES, sizeof *layers->frames);
    layers->frames_size = FIRST_FRAMES;
  }
  if (!layers->input && (layers->input = calloc (1, sizeof *layers->input)))
    weir_svc_init (&layers->input->svc);
}

// Restarts the projection; the counts of packets and pictures left out continue.
static void
restart_stream (LayerStream *stream, WeirCodec codec)
{
  int64_t left_out = stream->projection.left_out;
  uint16_t pictures = stream->projection.pictures_left_out;

  begin_projection (stream, codec);
  stream->projection.left_out = left_out;
  stream->projection.pictures_left_out = pictures;
}

void
weir_layer_streams_set_codec (WeirFanout *fanout, WeirCodec codec, uint8_t dependency_id)
{
  Layers *layers = &fanout->layers;

  layers->dependency_id = layers->frame.dependency_id = dependency_id;
  if (codec == layers->codec)
    return;
  weir_layer_streams_end_frame (fanout);
  if (has_layers (codec))
    make_input (layers);

  pthread_mutex_lock (&fanout->lock);
  if (!layers->on) {
    layers->taken = layers->covered = fanout->window.head;
    layers->tail = layers->head;
  }
  layers->codec = codec;
  layers->on = has_layers (codec) && layers->frames && layers->input;
  layers->top = (WeirLayerSet) { 0, 0, 0 };
  for (size_t i = 0; i < layers->n_streams; i++) {
    LayerStream *stream = layers->streams[i];

    // Its readers leave it after the last frame.
    if (!layers->on)
      stream->left_out[layers->head % LAYER_FRAMES] =
          (LeftOut) { (uint16_t) stream->projection.left_out,
            stream->projection.pictures_left_out };
    restart_stream (stream, codec);
  }
  atomic_fetch_add (&layers->generation, 1);
  pthread_mutex_unlock (&fanout->lock);

  weir_frame_free (&layers->frame);
  weir_frame_init (&layers->frame, codec, false);
  layers->frame.dependency_id = dependency_id;
  if (layers->input) {
    weir_svc_free (&layers->input->svc);
    layers->input->rates = (WeirRates) { 0 };
  }
}

void
weir_layer_streams_flush (WeirFanout *fanout)
{
  Layers *layers = &fanout->layers;

  weir_frame_clear (&layers->frame);
  for (size_t i = 0; i < layers->n_streams; i++)
    weir_window_flush (&layers->streams[i]->window);
  layers->taken = layers->covered = fanout->window.head;
  layers->tail = layers->head;
  for (size_t i = 0; i < layers->n_streams; i++)
    layers->streams[i]->first = layers->head;
}

void
weir_layer_streams_set_file (WeirFanout *fanout)
{
  Layers *layers = &fanout->layers;

  for (size_t i = 0; i < layers->n_streams; i++)
    weir_window_set_file (&layers->streams[i]->window, fanout->window.file);
}
