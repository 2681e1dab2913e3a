// SPDX-License-Identifier: LGPL-2.1-or-later
// Chooses a reader's stream (all layers or a layer set), and where it changes streams.
#include "fanout/fanout_private.h"

// Returns the layers that the reader asked for, or the base layers while it lags.
static uint32_t
get_wanted_layers (const WeirReader *reader)
{
  uint32_t wanted = atomic_load_explicit (&reader->wanted_layers, memory_order_relaxed);

  return reader_is (reader, WEIR_READER_OK) ? wanted : BASE_LAYERS;
}

bool
weir_reader_is_steady (const WeirFanout *fanout, const WeirReader *reader)
{
  uint32_t wanted = get_wanted_layers (reader);

  return reader->steady && reader->steady_layers == wanted
         && (wanted == ALL_LAYERS
             || reader->steady_generation
                    == atomic_load_explicit (&fanout->layers.generation, memory_order_relaxed));
}

// All functions below need the lock.

static void
enter_stream (WeirReader *reader, LayerStream *stream, int64_t frame)
{
  LayerStream *old = atomic_load_explicit (&reader->stream, memory_order_relaxed);
  LeftOut before = layer_stream_left_out (old, frame), now = layer_stream_left_out (stream, frame);

  if (old == stream)
    return;
  reader->seq_delta = (uint16_t) (reader->seq_delta + now.packets - before.packets);
  if (reader->layers_codec == WEIR_CODEC_VP8)
    reader->picture_delta = (uint16_t) (reader->picture_delta + now.pictures - before.pictures);
  if (old)
    old->n_readers--;
  if (stream)
    stream->n_readers++;
  atomic_store_explicit (&reader->stream, stream, memory_order_relaxed);
}

// A reader that got packets before layers were known got all layers.
static void
begin_layers (WeirReader *reader, const Layers *layers, WeirLayerSet wanted)
{
  bool got_all = reader->layers_codec == WEIR_CODEC_OPAQUE
                 && atomic_load_explicit (&reader->due, memory_order_relaxed) > 0;

  weir_switch_init (&reader->layers, layers->codec, got_all ? WEIR_LAYER_SET_ALL : wanted);
  reader->layers_codec = layers->codec;
}

static void
set_steady (const Layers *layers, WeirReader *reader)
{
  const WeirSwitch *at = &reader->layers;

  reader->steady = weir_layer_set_equal (
      weir_layer_streams_normal (layers, at->now), weir_layer_streams_normal (layers, at->wanted));
  reader->steady_layers = pack_layers (at->wanted);
  reader->steady_generation = atomic_load_explicit (&layers->generation, memory_order_relaxed);
  atomic_store_explicit (&reader->current_layers, pack_layers (at->now), memory_order_relaxed);
}

// Chooses the reader's layers at the start of a frame. Returns false if their stream has to be made
// first.
static bool
change_layers (WeirFanout *fanout, WeirReader *reader, int64_t frame)
{
  const WeirLayerSet everything = WEIR_LAYER_SET_ALL;
  Layers *layers = &fanout->layers;
  WeirLayerSet wanted = unpack_layers (get_wanted_layers (reader));
  LayerStream *stream = NULL;
  WeirLayerSet set;
  WeirSwitch next;

  if (reader->layers_codec != layers->codec)
    begin_layers (reader, layers, wanted);
  next = reader->layers;
  next.wanted = wanted;
  weir_switch_picture (&next, &layers_frame (layers, frame)->picture);
  set = weir_layer_streams_normal (layers, next.now);
  if (!weir_layer_set_equal (set, everything)
      && !(stream = weir_layer_streams_find (layers, set, frame))) {
    if (!layers->full)
      weir_layer_streams_wish (layers, set, frame);
    return layers->full;
  }
  enter_stream (reader, stream, frame);
  if (!weir_layer_set_equal (reader->layers.now, next.now))
    atomic_load (&reader->shard)->has_strays = true;
  reader->layers = next;
  set_steady (layers, reader);
  if (!reader->steady && next.waiting)
    atomic_store_explicit (&layers->key_wanted, true, memory_order_relaxed);
  return true;
}

static bool
reader_has_stream (const WeirReader *reader)
{
  return atomic_load_explicit (&reader->stream, memory_order_relaxed) != NULL;
}

int64_t
weir_choose_stream (const Pass *pass, WeirReader *reader, int64_t cursor)
{
  WeirFanout *fanout = pass->fanout;
  const Layers *layers = &fanout->layers;
  int64_t head = pass->head < fanout->window.head ? pass->head : fanout->window.head;
  int64_t frame;

  if (!layers->on) {
    // The stream's frames made before are still there.
    if (reader_has_stream (reader) && cursor < layers->covered)
      return layers->covered;
    enter_stream (reader, NULL, layers->head);
    return head;
  }
  if (!weir_reader_is_steady (fanout, reader)) {
    if (cursor >= layers->covered)
      return cursor;
    frame = weir_layer_streams_frame_at (layers, cursor);
    if (frame < 0)
      return layers->tail < layers->head ? layers_frame (layers, layers->tail)->from
                                         : layers->covered;
    if (layers_frame (layers, frame)->from == cursor && !reader->past_extra
        && !change_layers (fanout, reader, frame))
      return cursor;
    if (!weir_reader_is_steady (fanout, reader))
      return weir_layer_streams_frame_end (layers, frame);
  }
  return reader_has_stream (reader) ? layers->covered : head;
}
