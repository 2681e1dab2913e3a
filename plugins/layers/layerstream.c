// SPDX-License-Identifier: LGPL-2.1-or-later
#include "layerstream.h"

#include "layermeta.h"

typedef struct {
  GstBuffer *buffer;
  GstMapInfo map;
} Held;

void
layer_stream_init (LayerStream *self)
{
  memset (self, 0, sizeof *self);
  self->held = g_array_new (FALSE, FALSE, sizeof (Held));
  self->fates = g_array_new (FALSE, FALSE, sizeof (WeirProjected));
  self->settings.limit = WEIR_LAYER_SET_ALL;
  weir_frame_init (&self->frame, WEIR_CODEC_OPAQUE, FALSE);
  weir_svc_init (&self->svc);
}

void
layer_stream_clear (LayerStream *self)
{
  layer_stream_flush (self);
  weir_frame_free (&self->frame);
  weir_svc_free (&self->svc);
  g_array_unref (self->held);
  g_array_unref (self->fates);
}

void
layer_stream_start (LayerStream *self, WeirCodec codec, gboolean rtp, guint length_size,
    guint clock_rate, const LayerSettings *settings)
{
  layer_stream_flush (self);
  weir_frame_free (&self->frame);
  weir_frame_init (&self->frame, codec, settings->infer_temporal);
  weir_svc_free (&self->svc);
  self->codec = codec;
  self->rtp = rtp;
  self->length_size = length_size;
  self->clock_rate = clock_rate;
  self->settings = *settings;
  self->rates = (WeirRates) { 0 };
  self->tagger = (WeirLayers) { .codec = codec, .infer_temporal = settings->infer_temporal };
  self->fits = TRUE;
  self->key_at = GST_CLOCK_TIME_NONE;
  self->last_ts = WEIR_UNWRAP_START;
  weir_projection_init (&self->projection, codec, settings->limit, settings->output);
  self->projection.layers.immediate = settings->immediate;
}

// ---- layer selection ----

static gboolean
one_layer_alone (const LayerStream *self)
{
  return self->settings.output == WEIR_OUTPUT_AVC;
}

static void
choose_wanted (LayerStream *self, gboolean measured)
{
  WeirLayerSet *wanted = &self->projection.layers.wanted, limit = self->settings.limit;

  if (self->settings.output == WEIR_OUTPUT_BASE)
    limit.spatial = 0;
  if (self->settings.target_bitrate == 0) {
    *wanted = limit;
    self->fits = TRUE;
  } else if (measured) {
    bool fits;

    *wanted = weir_rates_choose (&self->rates, self->settings.limit, self->settings.target_bitrate,
        one_layer_alone (self), &fits);
    self->fits = fits;
  }
}

void
layer_stream_set (LayerStream *self, const LayerSettings *settings)
{
  gboolean target_changed = self->settings.target_bitrate != settings->target_bitrate;

  self->settings = *settings;
  self->frame.reader.infer_temporal = settings->infer_temporal;
  self->tagger.infer_temporal = settings->infer_temporal;
  self->projection.output = settings->output;
  self->projection.layers.immediate = settings->immediate;
  choose_wanted (self, target_changed && self->rates.periods > 0);
}

gboolean
layer_stream_wants_key (LayerStream *self)
{
  if (!self->projection.layers.waiting
      || (GST_CLOCK_TIME_IS_VALID (self->key_at) && self->now >= self->key_at
          && self->now - self->key_at < GST_SECOND))
    return FALSE;
  self->key_at = self->now;
  self->counts.key_requests++;
  return TRUE;
}

static void
decide (LayerStream *self, gboolean measured)
{
  choose_wanted (self, measured);
  if (self->codec == WEIR_CODEC_H264)
    weir_svc_note_frame (&self->svc, &self->frame);
  g_array_set_size (self->fates, (guint) self->frame.n_packets);
  weir_project (&self->projection, self->codec == WEIR_CODEC_H264 ? &self->svc : NULL, &self->frame,
      (WeirProjected *) self->fates->data);
  self->counts.frames_in += self->frame.picture.any;
}

// ---- RTP ----

gboolean
layer_stream_push (LayerStream *self, GstBuffer *packet, gboolean *again)
{
  Held held = { packet };
  WeirAdd added = WEIR_ADD_BAD;

  *again = FALSE;
  if (gst_buffer_map (packet, &held.map, GST_MAP_READ)) {
    added = weir_frame_add (&self->frame, held.map.data, held.map.size, self->held->len);
    if (added == WEIR_ADD_OK || added == WEIR_ADD_COMPLETE) {
      g_array_append_val (self->held, held);
      return added == WEIR_ADD_COMPLETE;
    }
    gst_buffer_unmap (packet, &held.map);
  }
  if (added == WEIR_ADD_NEXT) {
    *again = TRUE;
    return TRUE;
  }
  self->counts.in++;
  self->counts.late += added == WEIR_ADD_LATE;
  self->counts.bad += added == WEIR_ADD_BAD;
  gst_buffer_unref (packet);
  return FALSE;
}

gboolean
layer_stream_read (LayerStream *self)
{
  gint64 ts;

  if (self->frame.n_packets == 0)
    return FALSE;
  ts = weir_unwrap32 (&self->last_ts, self->frame.packets[0].rtp.timestamp);
  self->now = gst_util_uint64_scale (
      (guint64) MAX (ts, 0), GST_SECOND, self->clock_rate ? self->clock_rate : 90000);
  weir_frame_read (&self->frame);
  decide (self, weir_rates_add (&self->rates, &self->frame, (int64_t) self->now));
  return TRUE;
}

static void
count_dropped (LayerStream *self, const WeirFramePacket *packet)
{
  if (packet->form == WEIR_FORM_BAD)
    self->counts.bad++;
  else if (self->projection.verdict == WEIR_PICTURE_BROKEN)
    self->counts.unfit++;
  else
    self->counts.left_out++;
}

// Returns the outgoing packet `i` of the frame: the held buffer if it needs no change, else a
// rewritten one. Takes the buffer out of `held`. (transfer full)
static GstBuffer *
make_packet (LayerStream *self, gsize i, Held *held)
{
  const WeirFramePacket *packet = &self->frame.packets[i];
  const WeirProjected *how = &g_array_index (self->fates, WeirProjected, i);
  GstBuffer *buffer = held->buffer;
  GstMapInfo map;
  gsize len;

  held->buffer = NULL;
  gst_buffer_unmap (buffer, &held->map);
  if (weir_project_is_same (&self->projection, packet, how))
    return buffer;
  buffer = gst_buffer_make_writable (buffer);
  if (!gst_buffer_map (buffer, &map, GST_MAP_READWRITE)) {
    gst_buffer_unref (buffer);
    return NULL;
  }
  len = weir_project_write (&self->projection, &self->svc, &self->frame, i, how, map.data);
  gst_buffer_unmap (buffer, &map);
  if (len != packet->len) {
    gst_buffer_set_size (buffer, (gssize) len);
    self->counts.cut++;
  }
  return buffer;
}

static void
release (Held *held)
{
  if (!held->buffer)
    return;
  gst_buffer_unmap (held->buffer, &held->map);
  gst_buffer_unref (held->buffer);
}

static void
clear_frame (LayerStream *self)
{
  for (guint i = 0; i < self->held->len; i++)
    release (&g_array_index (self->held, Held, i));
  g_array_set_size (self->held, 0);
  weir_frame_clear (&self->frame);
}

// Appends a packet of parameter sets with the times of `held`, the packet that follows.
static void
add_sets (LayerStream *self, Held *held, GstBufferList *list)
{
  guint8 packet[WEIR_RTP_HEADER + WEIR_SVC_SETS_MAX];
  gsize len = weir_project_write_sets (&self->projection, &self->frame, packet);
  GstBuffer *buffer = gst_buffer_new_memdup (packet, len);

  gst_buffer_copy_into (buffer, held->buffer, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  gst_buffer_list_insert (list, -1, buffer);
}

GstBufferList *
layer_stream_pop (LayerStream *self)
{
  GstBufferList *list = gst_buffer_list_new_sized ((guint) self->frame.n_packets);
  guint n_out = 0;

  for (gsize i = 0; i < self->frame.n_packets; i++) {
    const WeirFramePacket *packet = &self->frame.packets[i];
    GstBuffer *buffer = NULL;

    if (self->projection.sets_len > 0 && i == self->projection.sets_before)
      add_sets (self, &g_array_index (self->held, Held, packet->owner), list);
    if (g_array_index (self->fates, WeirProjected, i).keep)
      buffer = make_packet (self, i, &g_array_index (self->held, Held, packet->owner));
    if (buffer) {
      gst_buffer_list_insert (list, -1, buffer);
      n_out++;
    } else {
      count_dropped (self, packet);
    }
  }
  self->counts.in += self->held->len;
  self->counts.out += n_out;
  self->counts.put_in += gst_buffer_list_length (list) - n_out;
  clear_frame (self);
  self->counts.frames_out += gst_buffer_list_length (list) > 0;
  if (gst_buffer_list_length (list) == 0)
    g_clear_pointer (&list, gst_buffer_list_unref);
  return list;
}

void
layer_stream_flush (LayerStream *self)
{
  self->counts.in += self->held->len;
  self->counts.flushed += self->held->len;
  clear_frame (self);
  self->frame.started = FALSE;
  self->frame.last_seq = WEIR_UNWRAP_START;
}

// ---- access units ----

static gboolean
measure_au (LayerStream *self)
{
  gboolean ended = FALSE;

  for (gsize i = 0; i < self->au.n; i++) {
    const WeirAuPart *part = &self->au.parts[i];
    WeirLayer layer = { .spatial = part->spatial, .temporal = self->au.picture.temporal };

    ended |= weir_rates_add_packet (
        &self->rates, &layer, part->len, part->layered || self->au.n == 1, (gint64) self->now);
  }
  return ended;
}

gboolean
layer_stream_read_au (LayerStream *self, GstBuffer *au, const GstMapInfo *map)
{
  GstClockTime time = GST_BUFFER_DTS_OR_PTS (au);
  gboolean measured;

  self->counts.in++;
  if (GST_CLOCK_TIME_IS_VALID (time))
    self->now = time;
  if (self->codec == WEIR_CODEC_H264) {
    if (weir_frame_read_au (&self->frame, map->data, map->size, self->length_size) < 0)
      return FALSE;
    measured = weir_rates_add (&self->rates, &self->frame, (gint64) self->now);
  } else {
    if (weir_au_read (&self->au, self->codec, map->data, map->size, self->length_size) < 0)
      return FALSE;
    self->frame.picture = self->au.picture;
    measured = measure_au (self);
  }
  decide (self, measured);
  return TRUE;
}

static gboolean
lacks_sets (const LayerStream *self)
{
  const WeirProjection *p = &self->projection;
  guint8 sets[WEIR_SVC_SETS_MAX];

  return p->renew
         && weir_svc_write_missing (
                &self->svc, &self->frame, p->now, p->plain, self->length_size, sets, sizeof sets)
                > 0;
}

// Returns whether the access unit leaves unchanged, in part, or not at all.
static WeirRest
rest_of_au (const LayerStream *self)
{
  const WeirProjection *p = &self->projection;
  WeirRest rest;

  if (p->verdict != WEIR_PICTURE_KEEP)
    return WEIR_REST_NOTHING;
  if (self->codec == WEIR_CODEC_H264) {
    rest = weir_svc_rest (&self->svc, &self->frame, p->now, p->plain);
    return rest == WEIR_REST_ALL && lacks_sets (self) ? WEIR_REST_PART : rest;
  }
  for (gsize i = 0; i < self->au.n; i++) {
    const WeirAuPart *part = &self->au.parts[i];

    if (part->layered && !weir_layer_set_has (p->now, part->spatial, 0, part->temporal))
      return WEIR_REST_PART;
  }
  return self->au.n > 0 ? WEIR_REST_ALL : WEIR_REST_NOTHING;
}

static GstBuffer *
write_au (LayerStream *self, GstBuffer *au)
{
  const WeirProjection *p = &self->projection;
  gsize room =
            gst_buffer_get_size (au) + self->frame.n_units * 4 + WEIR_AU_GROWTH + WEIR_SVC_SETS_MAX,
        len;
  GstBuffer *out = gst_buffer_new_allocate (NULL, room, NULL);
  GstMapInfo map;

  if (!out || !gst_buffer_map (out, &map, GST_MAP_WRITE)) {
    g_clear_pointer (&out, gst_buffer_unref);
    return NULL;
  }
  if (self->codec == WEIR_CODEC_H264)
    len = weir_svc_write (
        &self->svc, &self->frame, p->now, p->plain, p->renew, self->length_size, map.data);
  else
    len = weir_au_write (&self->au, p->now, map.data);
  gst_buffer_unmap (out, &map);
  if (len == 0) {
    gst_buffer_unref (out);
    return NULL;
  }
  gst_buffer_set_size (out, (gssize) len);
  gst_buffer_copy_into (out, au, GST_BUFFER_COPY_METADATA, 0, -1);
  self->counts.cut++;
  return out;
}

GstBuffer *
layer_stream_pop_au (LayerStream *self, GstBuffer *au, GstMapInfo *map)
{
  WeirRest rest = rest_of_au (self);
  GstBuffer *out = NULL;

  if (rest == WEIR_REST_PART)
    out = write_au (self, au);
  gst_buffer_unmap (au, map);
  if (rest == WEIR_REST_ALL)
    out = gst_buffer_ref (au);
  gst_buffer_unref (au);
  if (out) {
    self->counts.out++;
    self->counts.frames_out++;
  } else if (self->projection.verdict == WEIR_PICTURE_BROKEN) {
    self->counts.unfit++;
  } else {
    self->counts.left_out++;
  }
  weir_frame_clear (&self->frame);
  return out;
}

void
layer_stream_drop_au (LayerStream *self, GstBuffer *au, GstMapInfo *map)
{
  gst_buffer_unmap (au, map);
  gst_buffer_unref (au);
  weir_frame_clear (&self->frame);
  self->counts.bad++;
}

// ---- tags ----

// Returns the layer of an access unit: its temporal id, and its lowest spatial layer.
static WeirLayer
layer_of_au (LayerStream *self, GstBuffer *au, const GstMapInfo *map)
{
  const WeirPicture *picture = &self->frame.picture;
  WeirLayer layer;

  layer_stream_read_au (self, au, map);
  layer = (WeirLayer) { .temporal = picture->temporal,
    .keyframe = picture->enter & 1,
    .enter = picture->enter & 1,
    .parameters = picture->parameters,
    .switch_up = picture->switch_up };
  weir_frame_clear (&self->frame);
  return layer;
}

static void
tag_packet (LayerStream *self, const GstMapInfo *map, WeirLayer *layer)
{
  WeirRtp rtp;
  gint64 last = self->last_ts, ts;

  if (weir_rtp_parse (map->data, map->size, &rtp) < 0)
    return;
  weir_layers_read (&self->tagger, map->data + rtp.payload_offset, rtp.payload_length, layer);
  weir_frame_read_descriptor (&self->frame, map->data, &rtp, layer);
  ts = weir_unwrap32 (&self->last_ts, rtp.timestamp);
  self->now = gst_util_uint64_scale (
      (guint64) MAX (ts, 0), GST_SECOND, self->clock_rate ? self->clock_rate : 90000);
  weir_rates_add_packet (&self->rates, layer, rtp.payload_length, ts != last, (gint64) self->now);
}

GstBuffer *
layer_stream_tag (LayerStream *self, GstBuffer *buffer)
{
  WeirLayer layer = { 0 };
  GstMapInfo map;

  if (gst_buffer_map (buffer, &map, GST_MAP_READ)) {
    if (self->rtp) {
      self->counts.in++;
      tag_packet (self, &map, &layer);
    } else {
      layer = layer_of_au (self, buffer, &map);
    }
    gst_buffer_unmap (buffer, &map);
  }
  buffer = gst_buffer_make_writable (buffer);
  weir_buffer_add_layer_meta (buffer, &layer);
  self->counts.out++;
  return buffer;
}
