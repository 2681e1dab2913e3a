// SPDX-License-Identifier: LGPL-2.1-or-later
// Projects a real scalable stream, as RTP, onto each of its layer sets, and compares the result
// with a plain reading of the file.

#include "svc/project.h"

#include <errno.h>

#include "avc.h"
#include "tap.h"

#define MAX_FRAME 512

static Avc avc;

// The output: reassembled units, with the number of their access unit.
typedef struct {
  uint8_t *bytes;
  size_t used;
  AvcNal nals[4000];
  size_t n;
  uint32_t n_packets, n_in;
  int64_t next_seq;
  bool gaps, after_marker, bad_marker, in_fragments;
  unsigned last_au;
  WeirFrame frame;
  WeirSvc svc;
  WeirProjection projection;
} Out;

static Out *
out_new (WeirLayerSet set, WeirOutput output)
{
  Out *out = calloc (1, sizeof *out);

  out->bytes = malloc (4 << 20);
  out->next_seq = -1;
  weir_frame_init (&out->frame, WEIR_CODEC_H264, false);
  weir_svc_init (&out->svc);
  weir_projection_init (&out->projection, WEIR_CODEC_H264, set, output);
  return out;
}

static void
out_free (Out *out)
{
  weir_frame_free (&out->frame);
  weir_svc_free (&out->svc);
  free (out->bytes);
  free (out);
}

static void
begin_nal (Out *out, unsigned au, const uint8_t *data, size_t len)
{
  AvcNal *nal = &out->nals[out->n++];

  *nal = (AvcNal) { .data = out->bytes + out->used, .len = len, .type = data[0] & 31, .au = au };
  memcpy (out->bytes + out->used, data, len);
  out->used += len;
}

static void
depayload (Out *out, unsigned au, const uint8_t *payload, size_t len)
{
  out->in_fragments &= (payload[0] & 31) == 28;
  switch (payload[0] & 31) {
    case 24:
      CHECK (len > 3 + 2 + (size_t) (payload[1] << 8 | payload[2])); // never a single unit
      for (size_t at = 1; at < len;) {
        size_t size = (size_t) (payload[at] << 8 | payload[at + 1]);

        begin_nal (out, au, payload + at + 2, size);
        at += 2 + size;
        CHECK (at <= len);
      }
      break;
    case 28:
      CHECK (payload[1] & 0x80 || out->in_fragments);
      out->in_fragments = !(payload[1] & 0x40);
      if (payload[1] & 0x80) {
        uint8_t header = (uint8_t) ((payload[0] & 0xe0) | (payload[1] & 31));

        begin_nal (out, au, &header, 1);
      }
      memcpy (out->bytes + out->used, payload + 2, len - 2);
      out->used += len - 2;
      out->nals[out->n - 1].len += len - 2;
      break;
    default:
      begin_nal (out, au, payload, len);
      break;
  }
}

static void
take_out (Out *out, const uint8_t *packet, size_t len)
{
  WeirRtp rtp;
  unsigned au;

  CHECK_INT (weir_rtp_parse (packet, len, &rtp), 0);
  au = (rtp.timestamp - 1000) / 3000;
  if (out->next_seq >= 0 && rtp.seq != (uint16_t) out->next_seq) {
    out->gaps = true;
    out->in_fragments = false;
  }
  out->next_seq = (uint16_t) (rtp.seq + 1);
  // The marker is on the last packet of an access unit, and on no other.
  out->bad_marker |= out->n_packets > 0 && out->after_marker != (au != out->last_au);
  out->after_marker = rtp.marker;
  out->last_au = au;
  out->n_packets++;
  depayload (out, au, packet + rtp.payload_offset, rtp.payload_length);
}

static void
project_frame (Out *out)
{
  static WeirProjected how[MAX_FRAME];
  static uint8_t copy[AVC_MTU + 100];

  weir_frame_read (&out->frame);
  weir_svc_note_frame (&out->svc, &out->frame);
  weir_project (&out->projection, &out->svc, &out->frame, how);
  for (size_t i = 0; i < out->frame.n_packets; i++) {
    const WeirFramePacket *packet = &out->frame.packets[i];
    size_t len;

    if (out->projection.sets_len > 0 && i == out->projection.sets_before)
      take_out (out, copy, weir_project_write_sets (&out->projection, &out->frame, copy));
    if (!how[i].keep)
      continue;
    memcpy (copy, packet->data, packet->len);
    len = weir_project_write (&out->projection, &out->svc, &out->frame, i, &how[i], copy);
    CHECK (len <= packet->len);
    if (weir_project_is_same (&out->projection, packet, &how[i]))
      CHECK (len == packet->len && memcmp (copy, packet->data, len) == 0);
    take_out (out, copy, len);
  }
  weir_frame_clear (&out->frame);
}

static WeirAdd
push (Out *out, const AvcPacket *packet)
{
  WeirAdd added = weir_frame_add (&out->frame, packet->data, packet->len, out->n_in);

  out->n_in++;
  if (added == WEIR_ADD_NEXT) {
    project_frame (out);
    added = weir_frame_add (&out->frame, packet->data, packet->len, out->n_in);
  }
  if (added == WEIR_ADD_COMPLETE)
    project_frame (out);
  return added;
}

static void
push_all (Out *out, const AvcRtp *rtp)
{
  for (size_t i = 0; i < rtp->n; i++)
    push (out, &rtp->packets[i]);
}

// ---- the expected output ----

typedef struct {
  int spatial, temporal;
  WeirOutput output;
} Point;

// Returns the index of a parameter set among the sets of its type in its access unit. In this
// stream the index is the spatial layer, for a subset SPS the spatial layer minus one.
static int
order (size_t i)
{
  int n = 0;

  for (size_t j = i; j-- > 0 && avc.nals[j].au == avc.nals[i].au;)
    n += avc.nals[j].type == avc.nals[i].type;
  return n;
}

static bool
is_wanted (size_t i, Point p)
{
  const AvcNal *nal = &avc.nals[i];
  bool alone = p.output != WEIR_OUTPUT_SVC;
  int top = p.output == WEIR_OUTPUT_BASE ? 0 : p.spatial;

  if (nal->temporal > p.temporal)
    return false;
  switch (nal->type) {
    case 7:
      return !alone || top == 0;
    case 15:
      return alone ? order (i) + 1 == top : order (i) < top;
    case 8:
      return alone ? order (i) == top : order (i) <= top;
    case 14:
      return !alone;
    case 20:
      return alone ? top > 0 && nal->spatial == top : nal->spatial <= top;
    default:
      return !alone || top == 0;
  }
}

static bool
is_same (const AvcNal *got, const AvcNal *want, bool rewritten)
{
  if (got->au != want->au)
    return false;
  if (rewritten && want->type == 20)
    return got->type == (want->data[1] & 0x40 ? 5 : 1) && got->len == want->len - 3
           && memcmp (got->data + 1, want->data + 4, got->len - 1) == 0;
  if (rewritten && want->type == 15)
    return got->type == 7;
  return got->len == want->len && memcmp (got->data, want->data, got->len) == 0;
}

static void
check_point (const Out *out, Point p)
{
  size_t n = 0;

  for (size_t i = 0; i < avc.n; i++) {
    if (!is_wanted (i, p))
      continue;
    if (n == out->n || !is_same (&out->nals[n], &avc.nals[i], p.output == WEIR_OUTPUT_AVC)) {
      printf ("# %d.%d output %d: unit %zu of the file, %zu of the output\n", p.spatial, p.temporal,
          p.output, i, n);
      CHECK (!"as in the file");
      return;
    }
    n++;
  }
  CHECK_INT (out->n, n);
  CHECK (n > 0);
  CHECK (!out->gaps);
  CHECK (!out->bad_marker);
  CHECK (out->after_marker);
}

static void
all_points (bool aggregate)
{
  AvcRtp rtp = avc_packetize (&avc, aggregate, 65000);

  for (int spatial = 0; spatial < 3; spatial++) {
    for (int temporal = 0; temporal < 3; temporal++) {
      for (int output = WEIR_OUTPUT_SVC; output <= WEIR_OUTPUT_BASE; output++) {
        WeirLayerSet set = { (int8_t) spatial, (int8_t) temporal, -1 };
        Out *out = out_new (set, (WeirOutput) output);

        push_all (out, &rtp);
        check_point (out, (Point) { spatial, temporal, (WeirOutput) output });
        out_free (out);
      }
    }
  }
  free (rtp.packets);
}

static void
each_layer_set_is_projected (void)
{
  CHECK_INT (avc.n_aus, 120);
  all_points (false);
}

static void
each_layer_set_is_projected_from_aggregates (void)
{
  all_points (true);
}

// A plain SPS has the picture size of its layer, and no extension.
static void
a_rewritten_sps_is_a_plain_sps (void)
{
  static const uint32_t widths[] = { 0, 640, 1280 };

  for (size_t i = 0; i < avc.n && avc.nals[i].au == 0; i++) {
    uint8_t bytes[WEIR_SPS_MAX];
    WeirSps sps, was;
    int n;

    if (avc.nals[i].type != 15)
      continue;
    CHECK_INT (weir_sps_read (avc.nals[i].data, avc.nals[i].len, &was), 0);
    CHECK (was.slice_header_restricted);
    for (int baseline = 0; baseline < 2; baseline++) {
      n = weir_sps_to_avc (avc.nals[i].data, avc.nals[i].len, baseline, bytes, sizeof bytes);
      CHECK (n > 0 && (size_t) n <= avc.nals[i].len);
      CHECK_INT (bytes[0] & 31, 7);
      CHECK_INT (weir_sps_read (bytes, (size_t) n, &sps), 0);
      CHECK_INT (sps.profile, baseline ? 66 : 100);
      CHECK_INT (sps.level, was.level);
      CHECK_INT (sps.id, was.id);
      CHECK_INT (sps.width, widths[order (i) + 1]);
      CHECK_INT (sps.height, sps.width * 9 / 16);
    }
    CHECK_INT (weir_sps_to_avc (avc.nals[i].data, avc.nals[i].len, true, bytes, 4), -ENOSPC);
    CHECK_INT (weir_sps_to_avc (avc.nals[i].data, 6, true, bytes, sizeof bytes), -EBADMSG);
  }
  CHECK_INT (
      weir_sps_to_avc (avc.nals[0].data, avc.nals[0].len, true, (uint8_t[64]) { 0 }, 64), -ENOTSUP);
}

// ---- reordering and loss ----

static uint32_t state;

static uint32_t
draw (uint32_t below)
{
  state = state * 1664525u + 1013904223u;
  return (uint32_t) ((uint64_t) state * below >> 32);
}

// Neighbouring packets of a frame swap places, and packets come twice: the output is the same.
static void
reordering_within_frames_changes_nothing (void)
{
  AvcRtp rtp = avc_packetize (&avc, false, 100);
  Out *out = out_new ((WeirLayerSet) { 1, -1, -1 }, WEIR_OUTPUT_SVC);
  unsigned n_late = 0;

  state = 7;
  for (size_t i = 0; i + 1 < rtp.n; i += 1 + draw (3)) {
    AvcPacket swap = rtp.packets[i];

    if (memcmp (swap.data + 4, rtp.packets[i + 1].data + 4, 4) != 0)
      continue;
    rtp.packets[i] = rtp.packets[i + 1];
    rtp.packets[i + 1] = swap;
  }
  for (size_t i = 0; i < rtp.n; i++) {
    push (out, &rtp.packets[i]);
    if (draw (3) == 0)
      n_late += push (out, &rtp.packets[i - draw (i < 20 ? 1 : 20)]) == WEIR_ADD_LATE;
  }
  CHECK (n_late > 100);
  check_point (out, (Point) { 1, 2, WEIR_OUTPUT_SVC });
  out_free (out);
  free (rtp.packets);
}

// A sender that restarts, with another SSRC or far from its last number, is not taken as late.
static void
a_restarted_sender_is_not_late (void)
{
  for (int way = 0; way < 2; way++) {
    AvcRtp rtp = avc_packetize (&avc, false, 40000), more;
    Out *out = out_new (WEIR_LAYER_SET_ALL, WEIR_OUTPUT_SVC);
    size_t n;

    push_all (out, &rtp);
    n = out->n;
    more = avc_packetize (&avc, false, way == 0 ? 40100 : 20000);
    for (size_t i = 0; i < more.n; i++)
      more.packets[i].data[11] = way == 0 ? 77 : more.packets[i].data[11];
    out->used = 0;
    out->n = 0;
    push_all (out, &more);
    CHECK_INT (out->n, n);
    out_free (out);
    free (rtp.packets);
    free (more.packets);
  }
}

// A frame of more packets than are held goes out in parts, and none is lost.
static void
a_frame_with_too_many_packets_goes_out_in_parts (void)
{
  static uint8_t packets[3000][14];
  WeirFrame frame;
  size_t n = 0;

  weir_frame_init (&frame, WEIR_CODEC_H264, false);
  for (size_t i = 0; i < 3000; i++) {
    const uint8_t packet[14] = { 0x80, 96, (uint8_t) (i >> 8),
      (uint8_t) i, [12] = 0x41, [13] = 0x9a };
    WeirAdd added;

    memcpy (packets[i], packet, 14);
    added = weir_frame_add (&frame, packets[i], 14, i);
    if (added == WEIR_ADD_NEXT) {
      weir_frame_read (&frame);
      n += frame.n_packets;
      weir_frame_clear (&frame);
      added = weir_frame_add (&frame, packets[i], 14, i);
    }
    CHECK_INT (added, WEIR_ADD_OK);
  }
  CHECK_INT (n + frame.n_packets, 3000);
  CHECK (n > 0);
  weir_frame_free (&frame);
}

// Lost packets leave a gap, and no fragment goes out of a unit whose start was lost. A picture that
// has lost its highest layer is not sent at all.
static void
lost_packets_leave_a_gap (void)
{
  AvcRtp rtp = avc_packetize (&avc, false, 100);
  const WeirLayerSet set = { 1, -1, -1 };

  for (uint32_t seed = 1; seed <= 20; seed++) {
    Out *out = out_new (set, WEIR_OUTPUT_SVC);
    bool open = false;

    state = seed;
    for (size_t i = 0; i < rtp.n; i++) {
      if (draw (20) > 0)
        push (out, &rtp.packets[i]);
    }
    project_frame (out);
    CHECK (out->gaps);
    CHECK (out->n > 100);
    for (size_t i = 0; i < out->n; i++) {
      const AvcNal *nal = &out->nals[i];

      CHECK (nal->type != 20 || (nal->data[2] >> 4 & 7) <= 1);
      open |= nal->type == 20;
    }
    CHECK (open);
    out_free (out);
  }
  free (rtp.packets);
}

static void
a_fragment_without_its_start_is_dropped (void)
{
  AvcRtp rtp = avc_packetize (&avc, false, 100);
  Out *out = out_new (WEIR_LAYER_SET_ALL, WEIR_OUTPUT_SVC);
  size_t i = 0;

  while (!((rtp.packets[i].data[12] & 31) == 28 && rtp.packets[i].data[13] & 0x80))
    i++;
  for (size_t j = 0; j < i + 4; j++) {
    if (j != i)
      weir_frame_add (&out->frame, rtp.packets[j].data, rtp.packets[j].len, j);
  }
  weir_frame_read (&out->frame);
  for (size_t j = i; !(rtp.packets[j].data[13] & 0x40); j++)
    CHECK_INT (out->frame.packets[j].form, WEIR_FORM_BAD);
  out_free (out);
  free (rtp.packets);
}

// Without the highest layer, no decoder could use the lower ones until their own IDR.
static void
a_vanished_top_layer_stops_the_stream_until_an_idr (void)
{
  AvcRtp rtp = avc_packetize (&avc, false, 100);
  Out *out = out_new ((WeirLayerSet) { 2, -1, -1 }, WEIR_OUTPUT_SVC);
  unsigned aus[120] = { 0 };

  for (size_t i = 0; i < rtp.n; i++) {
    uint8_t *data = rtp.packets[i].data;
    uint32_t ts = (uint32_t) (data[4] << 24 | data[5] << 16 | data[6] << 8 | data[7]);
    const uint8_t *svc = (data[12] & 31) == 28 ? data + 14 : data + 13;
    static bool in_layer_2;

    if ((data[12] & 31) == 20 || ((data[12] & 31) == 28 && data[13] & 0x80))
      in_layer_2 = (data[12] & 31) == 20 || (data[13] & 31) == 20 ? (svc[1] >> 4 & 7) == 2 : false;
    else if ((data[12] & 31) != 28)
      in_layer_2 = false;
    if ((ts - 1000) / 3000 < 30 || !in_layer_2)
      push (out, &rtp.packets[i]);
    if ((ts - 1000) / 3000 == 40)
      CHECK (out->projection.layers.waiting);
  }
  project_frame (out);
  for (size_t i = 0; i < out->n; i++)
    aus[out->nals[i].au]++;
  for (unsigned au = 0; au < 120; au++)
    CHECK_INT (aus[au] > 0, au < 30 || au >= 60);
  out_free (out);
  free (rtp.packets);
}

// ---- switching layers ----

static int
highest_in (const Out *out, unsigned au)
{
  int highest = -1;

  for (size_t i = 0; i < out->n; i++) {
    const AvcNal *nal = &out->nals[i];
    int spatial = nal->type == 20                    ? nal->data[2] >> 4 & 7
                  : nal->type == 1 || nal->type == 5 ? 0
                                                     : -1;

    if (nal->au == au && spatial > highest)
      highest = spatial;
  }
  return highest;
}

static bool
is_idr (unsigned au)
{
  return au % 60 == 0;
}

// The temporal layers come as 0 2 1 2.
static int
temporal_of (unsigned au)
{
  static const int order_of[] = { 0, 2, 1, 2 };
  return order_of[au % 4];
}

static void
check_schedule (const WeirLayerSet *wanted)
{
  AvcRtp rtp = avc_packetize (&avc, false, 100);
  Out *out = out_new (wanted[0], WEIR_OUTPUT_SVC);
  int spatial = 0, temporal = wanted[0].temporal;

  for (size_t i = 0; i < rtp.n; i++) {
    const uint8_t *data = rtp.packets[i].data;

    out->projection.layers.wanted =
        wanted[((uint32_t) (data[4] << 24 | data[5] << 16 | data[6] << 8 | data[7]) - 1000) / 3000];
    push (out, &rtp.packets[i]);
  }
  for (unsigned au = 0; au < 120; au++) {
    if (is_idr (au))
      spatial = wanted[au].spatial;
    if (wanted[au].temporal < temporal || temporal_of (au) == 0)
      temporal = wanted[au].temporal;
    CHECK_INT (highest_in (out, au), temporal_of (au) > temporal ? -1 : spatial);
  }
  CHECK (!out->gaps && !out->bad_marker);
  out_free (out);
  free (rtp.packets);
}

static void
layers_switch_where_a_decoder_survives (void)
{
  WeirLayerSet wanted[120];

  for (int way = 0; way < 4; way++) {
    for (int au = 0; au < 120; au++) {
      static const int8_t from[] = { 2, 0, 2, 1 }, to[] = { 0, 2, 1, 2 };

      wanted[au] =
          (WeirLayerSet) { au < 30 ? from[way] : to[way], au < 33 ? from[way] : to[way], -1 };
    }
    check_schedule (wanted);
  }
}

static void
layers_can_switch_at_every_frame (void)
{
  WeirLayerSet wanted[120];

  for (int au = 0; au < 120; au++)
    wanted[au] = (WeirLayerSet) { (int8_t) (au % 3), (int8_t) (au / 2 % 3), -1 };
  check_schedule (wanted);
}

static void
layers_can_switch_at_random (void)
{
  WeirLayerSet wanted[120];

  for (uint32_t seed = 1; seed <= 30; seed++) {
    state = seed;
    for (int au = 0; au < 120; au++) {
      wanted[au] = au > 0 ? wanted[au - 1] : (WeirLayerSet) { 2, 2, -1 };
      if (draw (6) == 0)
        wanted[au] = (WeirLayerSet) { (int8_t) draw (3), (int8_t) draw (3), -1 };
    }
    check_schedule (wanted);
  }
}

static void
immediate_switches_do_not_wait (void)
{
  AvcRtp rtp = avc_packetize (&avc, false, 100);
  Out *out = out_new ((WeirLayerSet) { 0, -1, -1 }, WEIR_OUTPUT_SVC);

  out->projection.layers.immediate = true;
  for (size_t i = 0; i < rtp.n; i++) {
    const uint8_t *data = rtp.packets[i].data;

    if (((uint32_t) (data[6] << 8 | data[7]) - 1000) / 3000 == 13)
      out->projection.layers.wanted.spatial = 2;
    push (out, &rtp.packets[i]);
  }
  CHECK_INT (highest_in (out, 12), 0);
  CHECK_INT (highest_in (out, 13), 2);
  out_free (out);
  free (rtp.packets);
}

// The base layer alone needs no other layer, so the loss of another layer takes nothing with it.
static void
the_base_needs_no_other_layer (void)
{
  AvcRtp rtp = avc_packetize (&avc, true, 100);
  Out *out = out_new (WEIR_LAYER_SET_ALL, WEIR_OUTPUT_BASE);

  push_all (out, &rtp);
  check_point (out, (Point) { 0, 2, WEIR_OUTPUT_BASE });
  CHECK_INT (out->projection.now.spatial, 0);
  CHECK (!out->projection.layers.waiting);
  out_free (out);
  free (rtp.packets);
}

// The stream sends its parameter sets once. The sets of a layer that is added later are inserted as
// a packet after the delimiter, and sequence numbers continue.
static void
missing_parameter_sets_are_inserted (void)
{
  static const WeirOutput outputs[] = { WEIR_OUTPUT_SVC, WEIR_OUTPUT_AVC };
  static const uint8_t svc[] = { 9, 7, 15, 8, 8, 14, 5, 20 }, plain[] = { 9, 7, 8, 5 };
  static const uint8_t aud[] = { 0x09, 0xf0 };

  for (size_t way = 0; way < 2; way++) {
    AvcRtp rtp = { .seq = 100 };
    Out *out = out_new ((WeirLayerSet) { 0, -1, -1 }, outputs[way]);
    const uint8_t *wanted = way == 0 ? svc : plain;
    size_t n = way == 0 ? sizeof svc : sizeof plain, at = 0;

    for (size_t i = 0; i < avc.n; i++) {
      const AvcNal *nal = &avc.nals[i];
      bool sets = nal->type == 7 || nal->type == 8 || nal->type == 15;
      bool last = i + 1 == avc.n || avc.nals[i + 1].au != nal->au;

      if (i == 0 || avc.nals[i - 1].au != nal->au)
        avc_append (avc_packet (&rtp, nal->au, false), aud, 2);
      if (sets && nal->au > 0)
        continue;
      if (nal->len <= AVC_MTU)
        avc_append (avc_packet (&rtp, nal->au, last), nal->data, nal->len);
      else
        avc_fragment (&rtp, nal, last);
    }
    for (size_t i = 0; i < rtp.n; i++) {
      const uint8_t *data = rtp.packets[i].data;

      if (((uint32_t) (data[5] << 16 | data[6] << 8 | data[7]) - 1000) / 3000 == 13)
        out->projection.layers.wanted.spatial = 1;
      push (out, &rtp.packets[i]);
    }
    CHECK (!out->gaps && !out->bad_marker);
    while (out->nals[at].au < 60)
      at++;
    for (size_t i = 0; i < n; i++)
      CHECK_INT (out->nals[at + i].type, wanted[i]);
    CHECK_INT (out->nals[at + n].au, 61);
    out_free (out);
    free (rtp.packets);
  }
}

// Parameter sets of a picture that is left out go with the next picture that stays.
static void
parameter_sets_of_a_dropped_picture_go_with_the_next (void)
{
  static const uint8_t wanted[] = { 7, 8, 14, 5 };
  AvcRtp rtp = { .seq = 100 };
  Out *out = out_new ((WeirLayerSet) { 0, 0, -1 }, WEIR_OUTPUT_SVC);
  size_t at = 0;

  for (size_t i = 0; i < avc.n; i++) {
    AvcNal nal = avc.nals[i];
    bool sets = nal.type == 7 || nal.type == 8 || nal.type == 15;
    bool last = i + 1 == avc.n || avc.nals[i + 1].au != nal.au;

    if (nal.au == 60 && sets)
      nal.au = 59;
    if (nal.len <= AVC_MTU)
      avc_append (avc_packet (&rtp, nal.au, last && nal.au != 59), nal.data, nal.len);
    else
      avc_fragment (&rtp, &nal, last && nal.au != 59);
  }
  push_all (out, &rtp);
  while (out->nals[at].au < 60)
    at++;
  for (size_t i = 0; i < sizeof wanted; i++)
    CHECK_INT (out->nals[at + i].type, wanted[i]);
  CHECK_INT (out->nals[at - 1].au, 56);
  CHECK (!out->gaps && !out->bad_marker);
  out_free (out);
  free (rtp.packets);
}

// A new output mode begins at the next key picture; until then the old one continues.
static void
the_output_mode_changes_at_a_key_picture (void)
{
  AvcRtp rtp = avc_packetize (&avc, false, 100);
  Out *out = out_new ((WeirLayerSet) { 1, -1, -1 }, WEIR_OUTPUT_SVC);
  unsigned n[2] = { 0 };

  for (size_t i = 0; i < rtp.n; i++) {
    const uint8_t *data = rtp.packets[i].data;

    if (((uint32_t) (data[5] << 16 | data[6] << 8 | data[7]) - 1000) / 3000 == 13)
      out->projection.output = WEIR_OUTPUT_AVC;
    push (out, &rtp.packets[i]);
  }
  for (size_t i = 0; i < out->n; i++) {
    bool svc = out->nals[i].type == 14 || out->nals[i].type == 15 || out->nals[i].type == 20;

    CHECK (!svc || out->nals[i].au < 60);
    n[out->nals[i].au >= 60] += out->nals[i].type == 1 || out->nals[i].type == 5;
  }
  CHECK_INT (n[0], 60);
  CHECK_INT (n[1], 60);
  CHECK (!out->gaps && !out->bad_marker);
  out_free (out);
  free (rtp.packets);
}

// A layer that is predicted from another cannot be plain H.264; the base layer can.
static void
a_dependent_layer_falls_back_to_the_base (void)
{
  AvcRtp rtp = avc_packetize (&avc, false, 100);
  Out *out = out_new ((WeirLayerSet) { 2, -1, -1 }, WEIR_OUTPUT_AVC);

  for (size_t i = 0; i < rtp.n; i++) {
    uint8_t *data = rtp.packets[i].data;

    if ((data[12] & 31) == 20)
      data[14] &= 0x7f; // no_inter_layer_pred_flag
    else if ((data[12] & 31) == 28 && data[13] & 0x80 && (data[13] & 31) == 20)
      data[15] &= 0x7f;
  }
  push_all (out, &rtp);
  CHECK_INT (out->projection.plain, 0);
  check_point (out, (Point) { 2, 2, WEIR_OUTPUT_BASE });
  out_free (out);
  free (rtp.packets);
}

// Delimiters and SEI of a picture are left out with it.
static void
a_dropped_picture_leaves_no_packets (void)
{
  static const uint8_t aud[] = { 0x09, 0xf0 }, sei[] = { 0x06, 5, 1, 0, 0x80 };
  AvcNal nals[] = { { aud, 2, .type = 9 }, { sei, 5, .type = 6 } };
  AvcRtp rtp = { .seq = 5 };
  Out *out = out_new ((WeirLayerSet) { -1, 0, -1 }, WEIR_OUTPUT_SVC);

  for (size_t i = 0; i < avc.n; i++) {
    AvcNal *nal = &avc.nals[i];
    bool last = i + 1 == avc.n || avc.nals[i + 1].au != nal->au;

    if (i == 0 || avc.nals[i - 1].au != nal->au) {
      for (size_t j = 0; j < 2; j++)
        avc_append (avc_packet (&rtp, nal->au, false), nals[j].data, nals[j].len);
    }
    if (nal->len <= AVC_MTU)
      avc_append (avc_packet (&rtp, nal->au, last), nal->data, nal->len);
    else
      avc_fragment (&rtp, nal, last);
  }
  push_all (out, &rtp);
  CHECK (!out->gaps && !out->bad_marker);
  for (size_t i = 0; i < out->n; i++) {
    bool first = i == 0 || out->nals[i - 1].au != out->nals[i].au;

    CHECK_INT (out->nals[i].au % 4, 0);
    CHECK_INT (out->nals[i].type == 9, first);
  }
  out_free (out);
  free (rtp.packets);
}

// A delimiter alone is not a picture.
static void
a_lone_delimiter_is_not_sent (void)
{
  AvcRtp rtp = { .seq = 5 };
  Out *out = out_new (WEIR_LAYER_SET_ALL, WEIR_OUTPUT_SVC);

  avc_append (avc_packet (&rtp, 0, true), (uint8_t[]) { 0x09, 0xf0 }, 2);
  avc_append (avc_packet (&rtp, 1, true), avc.nals[0].data, avc.nals[0].len);
  push_all (out, &rtp);
  CHECK_INT (out->n, 1);
  CHECK_INT (out->nals[0].type, 7);
  out_free (out);
  free (rtp.packets);
}

// The limit applies to the quality layers of the highest spatial layer. Lower spatial layers keep
// theirs, because higher layers may be predicted from them.
static void
the_quality_limit_applies_to_the_highest_layer (void)
{
  const WeirLayerSet set = { 1, -1, 0 };

  CHECK (weir_layer_set_has (set, 1, 0, 0));
  CHECK (!weir_layer_set_has (set, 1, 1, 0));
  CHECK (weir_layer_set_has (set, 0, 1, 0));
  CHECK (!weir_layer_set_has (set, 2, 0, 0));
  CHECK (weir_layer_set_has (WEIR_LAYER_SET_ALL, 7, 15, 7));
}

// ---- other codecs: packets of one layer each ----

typedef struct {
  uint8_t ts; // timestamp of the picture
  uint8_t payload[8];
  size_t len;
  bool marker;
} Whole;

// Projects the packets and returns the output as text: for each packet the index of its payload
// among `packets`, and an M for the marker. Sequence numbers must be consecutive.
static const char *
project_whole (WeirCodec codec, const Whole *packets, size_t n, WeirLayerSet set, uint8_t *last_id)
{
  static char text[256];
  char *at = text;
  static uint8_t data[64][32];
  WeirProjected how[64];
  WeirFrame frame;
  WeirProjection projection;
  uint16_t seq = 65534;

  weir_frame_init (&frame, codec, false);
  weir_projection_init (&projection, codec, set, WEIR_OUTPUT_SVC);
  for (size_t i = 0; i < n; i++) {
    const uint16_t in = (uint16_t) (65534 + i);
    const uint8_t header[12] = { 0x80, (uint8_t) (packets[i].marker ? 0xe0 : 0x60),
      (uint8_t) (in >> 8), (uint8_t) in, 0, 0, 0, packets[i].ts };

    memcpy (data[i], header, 12);
    memcpy (data[i] + 12, packets[i].payload, packets[i].len);
    if (weir_frame_add (&frame, data[i], 12 + packets[i].len, i) != WEIR_ADD_COMPLETE)
      continue;
    weir_frame_read (&frame);
    weir_project (&projection, NULL, &frame, how);
    for (size_t j = 0; j < frame.n_packets; j++) {
      uint8_t copy[32];

      if (!how[j].keep)
        continue;
      memcpy (copy, frame.packets[j].data, frame.packets[j].len);
      weir_project_write (&projection, NULL, &frame, j, &how[j], copy);
      CHECK_INT (copy[2] << 8 | copy[3], seq);
      seq++;
      *last_id = copy[14];
      at += sprintf (at, "%zu%s ", frame.packets[j].owner, copy[1] & 0x80 ? "M" : "");
    }
    weir_frame_clear (&frame);
  }
  weir_frame_free (&frame);
  *at = '\0';
  return text;
}

#define CHECK_WHOLE(codec, packets, set, expected)                                                 \
  do {                                                                                             \
    const char *got =                                                                              \
        project_whole (codec, packets, sizeof packets / sizeof *packets, set, &last_id);           \
    if (strcmp (got, expected) != 0) {                                                             \
      printf ("# %s:%d: %s\n", __FILE__, __LINE__, got);                                           \
      CHECK (!"expected packets");                                                                 \
    }                                                                                              \
  } while (0)

static const WeirLayerSet temporal_0 = { -1, 0, -1 }, temporal_1 = { -1, 1, -1 };
static const WeirLayerSet spatial_0 = { 0, -1, -1 }, spatial_1 = { 1, -1, -1 };

// Temporal layers 0 2 1 2 0, each picture with its number.
static void
vp8_pictures_are_renumbered (void)
{
  static const Whole packets[] = {
    { 1, { 0x90, 0xe0, 10, 1, 0x20, 0x50 }, 6, false },
    { 1, { 0x80, 0xe0, 10, 1, 0x20, 0x50 }, 6, true },
    { 2, { 0x90, 0xe0, 11, 1, 0x80, 0x51 }, 6, true },
    { 3, { 0x90, 0xe0, 12, 1, 0x60, 0x51 }, 6, true },
    { 4, { 0x90, 0xe0, 13, 1, 0x80, 0x51 }, 6, true },
    { 5, { 0x90, 0xe0, 14, 2, 0x00, 0x51 }, 6, true },
  };
  uint8_t last_id;

  CHECK_WHOLE (WEIR_CODEC_VP8, packets, WEIR_LAYER_SET_ALL, "0 1M 2M 3M 4M 5M ");
  CHECK_INT (last_id, 14);
  CHECK_WHOLE (WEIR_CODEC_VP8, packets, temporal_1, "0 1M 3M 5M ");
  CHECK_INT (last_id, 12);
  CHECK_WHOLE (WEIR_CODEC_VP8, packets, temporal_0, "0 1M 5M ");
  CHECK_INT (last_id, 11);
}

static void
vp9_layers_are_projected (void)
{
  static const Whole packets[] = {
    { 1, { 0xa8, 1, 0x00, 0, 0x82 }, 5, false },
    { 1, { 0xa8, 1, 0x03, 0, 0x82 }, 5, false },
    { 1, { 0xa8, 1, 0x05, 0, 0x82 }, 5, true },
    { 2, { 0xe8, 2, 0x20, 0, 0x86 }, 5, false },
    { 2, { 0xe8, 2, 0x23, 0, 0x86 }, 5, true },
    { 3, { 0xe8, 3, 0x00, 1, 0x86 }, 5, false },
    { 3, { 0xe8, 3, 0x03, 1, 0x86 }, 5, false },
    { 3, { 0xe8, 3, 0x05, 1, 0x86 }, 5, true },
  };
  uint8_t last_id;

  CHECK_WHOLE (WEIR_CODEC_VP9, packets, WEIR_LAYER_SET_ALL, "0 1 2M 3 4M 5 6 7M ");
  CHECK_WHOLE (WEIR_CODEC_VP9, packets, spatial_1, "0 1M 3 4M 5 6M ");
  CHECK_WHOLE (WEIR_CODEC_VP9, packets, spatial_0, "0M 3M 5M ");
  CHECK_WHOLE (WEIR_CODEC_VP9, packets, temporal_0, "0 1 2M 5 6 7M ");
}

// All layers of the key picture can be entered, though only its first packet is marked.
static void
av1_layers_are_projected (void)
{
  static const Whole packets[] = {
    { 1, { 0x18, 0x34, 0x00, 0x10 }, 4, false },
    { 1, { 0x10, 0x34, 0x08, 0x10 }, 4, false },
    { 1, { 0x90, 0x11, 0x22 }, 3, true },
    { 2, { 0x10, 0x34, 0x20, 0x30 }, 4, false },
    { 2, { 0x10, 0x34, 0x28, 0x30 }, 4, true },
    { 3, { 0x10, 0x34, 0x00, 0x30 }, 4, false },
    { 3, { 0x10, 0x34, 0x08, 0x30 }, 4, true },
  };
  uint8_t last_id;

  CHECK_WHOLE (WEIR_CODEC_AV1, packets, spatial_1, "0 1 2M 3 4M 5 6M ");
  CHECK_WHOLE (WEIR_CODEC_AV1, packets, spatial_0, "0M 3M 5M ");
  CHECK_WHOLE (WEIR_CODEC_AV1, packets, temporal_0, "0 1 2M 5 6M ");
}

static void
h265_layers_are_projected (void)
{
  static const Whole packets[] = {
    { 1, { 0x42, 1, 9 }, 3, false },
    { 1, { 0x26, 1, 0xaf }, 3, true },
    { 2, { 0x4e, 2, 9 }, 3, false },
    { 2, { 0x62, 2, 0x80, 0xd0 }, 4, false },
    { 2, { 0x62, 2, 0x40, 0xd0 }, 4, true },
    { 3, { 0x02, 1, 0xd0 }, 3, true },
  };
  uint8_t last_id;

  CHECK_WHOLE (WEIR_CODEC_H265, packets, temporal_1, "0 1M 2 3 4M 5M ");
  CHECK_WHOLE (WEIR_CODEC_H265, packets, temporal_0, "0 1M 5M ");
}

int
main (void)
{
  if (!avc_load (&avc, "svc_3s3t.264")) {
    printf ("1..0 # SKIP no test data\n");
    return 1;
  }
  RUN (each_layer_set_is_projected);
  RUN (each_layer_set_is_projected_from_aggregates);
  RUN (a_rewritten_sps_is_a_plain_sps);
  RUN (reordering_within_frames_changes_nothing);
  RUN (a_restarted_sender_is_not_late);
  RUN (a_frame_with_too_many_packets_goes_out_in_parts);
  RUN (lost_packets_leave_a_gap);
  RUN (a_fragment_without_its_start_is_dropped);
  RUN (a_vanished_top_layer_stops_the_stream_until_an_idr);
  RUN (layers_switch_where_a_decoder_survives);
  RUN (layers_can_switch_at_every_frame);
  RUN (layers_can_switch_at_random);
  RUN (immediate_switches_do_not_wait);
  RUN (the_base_needs_no_other_layer);
  RUN (missing_parameter_sets_are_inserted);
  RUN (parameter_sets_of_a_dropped_picture_go_with_the_next);
  RUN (the_output_mode_changes_at_a_key_picture);
  RUN (a_dependent_layer_falls_back_to_the_base);
  RUN (a_dropped_picture_leaves_no_packets);
  RUN (a_lone_delimiter_is_not_sent);
  RUN (the_quality_limit_applies_to_the_highest_layer);
  RUN (vp8_pictures_are_renumbered);
  RUN (vp9_layers_are_projected);
  RUN (av1_layers_are_projected);
  RUN (h265_layers_are_projected);
  avc_free (&avc);
  return tap_done ();
}
