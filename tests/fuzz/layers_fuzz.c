// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes all code that reads payloads of one codec. The input is a sequence of packets. Each is a
// byte of flags, two bytes of length, and an RTP payload. The whole input is also read as an access
// unit.

#include <string.h>

#include "bits/bytes.h"
#include "codec/h264.h"
#include "fuzz.h"
#include "svc/au.h"
#include "svc/project.h"

enum { MARKER = 1, LOST = 2, BEFORE = 4, NEXT = 8 };
enum { MAX_PACKETS = 64, MAX_PAYLOAD = 4096 };

typedef struct {
  uint8_t *data; // exactly the packet's size, so that a sanitizer sees a read past its end
  size_t len;
} Packet;

static void
project (WeirFrame *frame, WeirSvc *svc, WeirProjection *projection)
{
  static WeirProjected how[MAX_PACKETS];
  WeirSvc *of = CODEC == WEIR_CODEC_H264 ? svc : NULL;

  weir_frame_read (frame);
  weir_svc_note_frame (svc, frame);
  weir_project (projection, of, frame, how);
  for (size_t i = 0; i < frame->n_packets; i++) {
    size_t len = frame->packets[i].len;
    uint8_t *copy;

    if (!how[i].keep)
      continue;
    copy = malloc (len);
    require (copy != NULL);
    memcpy (copy, frame->packets[i].data, len);
    require (weir_project_write (projection, svc, frame, i, &how[i], copy) <= len);
    free (copy);
  }
  weir_frame_clear (frame);
}

static size_t
make_packets (WeirBytes b, Packet *packets)
{
  static const uint8_t header[12] = { 0x80, 96 };
  uint8_t flags;
  uint16_t len, seq = 65500, timestamp = 0;
  const uint8_t *payload;
  size_t n = 0;

  while (n < MAX_PACKETS && weir_bytes_u8 (&b, &flags) && weir_bytes_u16 (&b, &len)) {
    if (len > weir_bytes_left (&b))
      len = (uint16_t) weir_bytes_left (&b);
    weir_bytes_take (&b, len, &payload);
    seq = (uint16_t) (seq + (flags & LOST ? 2 : flags & BEFORE ? -1 : 1));
    packets[n] = (Packet) { malloc (sizeof header + len), sizeof header + len };
    require (packets[n].data != NULL);
    memcpy (packets[n].data, header, sizeof header);
    memcpy (packets[n].data + sizeof header, payload, len);
    if (CODEC == WEIR_CODEC_H264)
      weir_h264_payload_has_svc (packets[n].data + sizeof header, len);
    weir_rtp_set_seq (packets[n].data, seq);
    weir_rtp_set_timestamp (packets[n].data, timestamp);
    packets[n].data[1] |= flags & MARKER ? 0x80 : 0;
    timestamp = (uint16_t) (timestamp + (flags & (MARKER | NEXT) ? 1 : 0));
    n++;
  }
  return n;
}

static void
run_packets (const Packet *packets, size_t n, WeirLayerSet set, WeirOutput output)
{
  WeirLayers layers = { CODEC, .infer_temporal = true };
  WeirFrame frame;
  WeirSvc svc;
  WeirProjection projection;
  WeirLayer layer;

  weir_frame_init (&frame, CODEC, set.spatial == 0);
  weir_svc_init (&svc);
  weir_projection_init (&projection, CODEC, set, output);
  for (size_t i = 0; i < n; i++) {
    WeirAdd added;

    weir_layers_read (&layers, packets[i].data + 12, packets[i].len - 12, &layer);
    added = weir_frame_add (&frame, packets[i].data, packets[i].len, i);
    if (added == WEIR_ADD_NEXT) {
      project (&frame, &svc, &projection);
      added = weir_frame_add (&frame, packets[i].data, packets[i].len, i);
      require (added != WEIR_ADD_NEXT);
    }
    if (added == WEIR_ADD_COMPLETE)
      project (&frame, &svc, &projection);
  }
  project (&frame, &svc, &projection);
  weir_frame_free (&frame);
  weir_svc_free (&svc);
}

static void
run_h264_au (const uint8_t *data, size_t size, unsigned length_size, WeirOutput output)
{
  const WeirLayerSet now = { 1, 1, 0 };
  WeirFrame frame;
  WeirSvc svc;
  uint8_t *out, sps_bytes[WEIR_SPS_MAX];
  size_t room, len;
  WeirSps sps;
  int plain;

  weir_frame_init (&frame, CODEC, true);
  weir_svc_init (&svc);
  weir_frame_read_au (&frame, data, size, length_size);
  weir_svc_note_frame (&svc, &frame);
  plain = weir_svc_plain_layer (&svc, output, now);
  room = size + frame.n_units * 4 + WEIR_SVC_SETS_MAX;
  out = malloc (room + 1);
  require (out != NULL);
  require (weir_svc_write (&svc, &frame, now, plain, true, length_size, out) <= room);
  weir_svc_sps (&svc, now, plain, &sps, sps_bytes, &len);
  free (out);
  weir_frame_free (&frame);
  weir_svc_free (&svc);
}

static void
run_au (const uint8_t *data, size_t size)
{
  static WeirAu au;
  uint8_t *out = malloc (size + WEIR_AU_GROWTH);

  require (out != NULL);
  for (unsigned length_size = 0; length_size <= 4; length_size += 4) {
    if (CODEC == WEIR_CODEC_H264) {
      run_h264_au (data, size, length_size, WEIR_OUTPUT_SVC);
      run_h264_au (data, size, length_size, WEIR_OUTPUT_AVC);
    } else if (weir_au_read (&au, CODEC, data, size, length_size) == 0) {
      require (weir_au_write (&au, (WeirLayerSet) { 1, 1, -1 }, out) <= size + WEIR_AU_GROWTH);
    }
  }
  free (out);
}

static void
run_descriptor (const uint8_t *data, size_t size)
{
  WeirDependency dependency = { 0 };
  WeirLayer layer;

  weir_dependency_read (&dependency, data, size, &layer);
  weir_dependency_read (&dependency, data, size, &layer);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static const struct {
    WeirLayerSet set;
    WeirOutput output;
  } ways[] = { { { -1, -1, -1 }, WEIR_OUTPUT_SVC }, { { 1, 1, 0 }, WEIR_OUTPUT_SVC },
    { { 1, 0, -1 }, WEIR_OUTPUT_AVC }, { { 0, -1, -1 }, WEIR_OUTPUT_BASE } };
  Packet packets[MAX_PACKETS];
  size_t n = make_packets (weir_bytes (data, size), packets);

  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    run_packets (packets, n, ways[i].set, ways[i].output);
  for (size_t i = 0; i < n; i++)
    free (packets[i].data);
  run_au (data, size);
  if (CODEC == WEIR_CODEC_AV1)
    run_descriptor (data, size);
  return 0;
}
