// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fanout/layer_streams.h"

#include <stdlib.h>

void
weir_layer_streams_init (Layers *layers)
{
  weir_frame_init (&layers->frame, WEIR_CODEC_OPAQUE, false);
  layers->top = (WeirLayerSet) { 0, 0, 0 };
}

void
weir_layer_stream_free (LayerStream *stream)
{
  weir_window_free (&stream->window);
  free (stream);
}

void
weir_layer_streams_free (Layers *layers)
{
  for (size_t i = 0; i < layers->n_streams; i++)
    weir_layer_stream_free (layers->streams[i]);
  weir_frame_free (&layers->frame);
  if (layers->input)
    weir_svc_free (&layers->input->svc);
  free (layers->input);
  free (layers->frames);
  free (layers->work);
}

// ---- under the lock ----

WeirLayerSet
weir_layer_streams_normal (const Layers *layers, WeirLayerSet set)
{
  const WeirLayerSet *top = &layers->top;

  if (set.temporal >= top->temporal)
    set.temporal = -1;
  if (set.quality >= top->quality)
    set.quality = -1;
  if (set.spatial >= top->spatial)
    set.spatial = -1;
  // `quality` limits the highest spatial layer, so that layer must be named.
  if (set.quality >= 0 && set.spatial < 0)
    set.spatial = top->spatial;
  return set;
}

LayerStream *
weir_layer_streams_find (const Layers *layers, WeirLayerSet set, int64_t frame)
{
  for (size_t i = 0; i < layers->n_streams; i++) {
    LayerStream *stream = layers->streams[i];

    if (stream->first <= frame && weir_layer_set_equal (stream->set, set))
      return stream;
  }
  return NULL;
}

void
weir_layer_streams_wish (Layers *layers, WeirLayerSet set, int64_t frame)
{
  for (size_t i = 0; i < layers->n_wishes; i++) {
    LayerWish *wish = &layers->wishes[i];

    if (weir_layer_set_equal (wish->set, set)) {
      wish->frame = frame < wish->frame ? frame : wish->frame;
      return;
    }
  }
  if (layers->n_wishes < LAYER_STREAMS)
    layers->wishes[layers->n_wishes++] = (LayerWish) { set, frame };
}

int64_t
weir_layer_streams_frame_at (const Layers *layers, int64_t position)
{
  int64_t from = layers->tail, to = layers->head;

  while (from < to) {
    int64_t middle = from + (to - from) / 2;

    if (layers_frame (layers, middle)->from <= position)
      from = middle + 1;
    else
      to = middle;
  }
  return from > layers->tail ? from - 1 : -1;
}

int64_t
weir_layer_streams_frame_end (const Layers *layers, int64_t frame)
{
  return frame + 1 < layers->head ? layers_frame (layers, frame + 1)->from : layers->covered;
}
