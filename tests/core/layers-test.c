// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/layers.h"

#include "codec/dependency.h"
#include "codec/h264.h"

#include "tap.h"

// The flags of a WeirLayer as letters: k keyframe, p parameters, d discardable, u switch_up, e
// enter. "!" is a payload that is refused.
typedef struct {
  const char *what;
  uint8_t bytes[40];
  size_t len;
  const char *flags;
  uint8_t spatial, quality, temporal;
} Payload;

static const char *
flags_of (bool ok, const WeirLayer *layer)
{
  static char text[8];
  char *at = text;

  if (!ok)
    *at++ = '!';
  if (layer->keyframe)
    *at++ = 'k';
  if (layer->parameters)
    *at++ = 'p';
  if (layer->discardable)
    *at++ = 'd';
  if (layer->switch_up)
    *at++ = 'u';
  if (layer->enter)
    *at++ = 'e';
  *at = '\0';
  return text;
}

static void
check_in (WeirLayers *self, const Payload *payloads, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    const Payload *p = &payloads[i];
    WeirLayer layer;
    bool ok = weir_layers_read (self, p->bytes, p->len, &layer);

    if (strcmp (flags_of (ok, &layer), p->flags) != 0 || layer.spatial != p->spatial
        || layer.quality != p->quality || layer.temporal != p->temporal) {
      printf ("# %s: \"%s\" %u.%u.%u\n", p->what, flags_of (ok, &layer), layer.spatial,
          layer.quality, layer.temporal);
      CHECK (!"expected flags and layers");
    }
  }
}

#define CHECK_IN(self, payloads) check_in (self, payloads, sizeof payloads / sizeof *payloads)

static void
codecs_are_found_by_name (void)
{
  CHECK_INT (weir_codec_from_sdp ("video", "H264"), WEIR_CODEC_H264);
  CHECK_INT (weir_codec_from_sdp ("video", "h264-svc"), WEIR_CODEC_H264);
  CHECK_INT (weir_codec_from_sdp ("video", "H265"), WEIR_CODEC_H265);
  CHECK_INT (weir_codec_from_sdp ("video", "vp8"), WEIR_CODEC_VP8);
  CHECK_INT (weir_codec_from_sdp ("video", "VP9"), WEIR_CODEC_VP9);
  CHECK_INT (weir_codec_from_sdp ("video", "AV1"), WEIR_CODEC_AV1);
  CHECK_INT (weir_codec_from_sdp ("video", "MPV"), WEIR_CODEC_MPV);
  CHECK_INT (weir_codec_from_sdp ("video", "MP2T"), WEIR_CODEC_OPAQUE);
  CHECK_INT (weir_codec_from_sdp ("video", NULL), WEIR_CODEC_OPAQUE);
  CHECK_INT (weir_codec_from_sdp (NULL, "VP8"), WEIR_CODEC_VP8);
  CHECK_INT (weir_codec_from_sdp ("Audio", "opus"), WEIR_CODEC_AUDIO);
  CHECK_INT (weir_codec_from_sdp ("audio", NULL), WEIR_CODEC_AUDIO);
}

static void
unknown_codecs_have_no_join_points (void)
{
  static const Payload payloads[] = { { "a key frame of VP8", { 0x10, 0x00 }, 2, "" },
    { "nothing", { 0 }, 0, "" } };
  static const Payload sounds[] = { { "sound", { 1 }, 1, "kue" } };

  CHECK_IN (&(WeirLayers) { WEIR_CODEC_OPAQUE }, payloads);
  CHECK_IN (&(WeirLayers) { WEIR_CODEC_AUDIO }, sounds);
}

static void
h264_payloads_are_read (void)
{
  static const Payload payloads[] = {
    { "SPS", { 0x67, 0x42, 0xc0, 0x1f }, 4, "p" },
    { "PPS", { 0x68, 0xce }, 2, "p" },
    { "AUD", { 0x09, 0xf0 }, 2, "" },
    { "IDR", { 0x65, 0x88 }, 2, "kue" },
    { "second slice of an IDR", { 0x65, 0x48 }, 2, "u" },
    { "reference slice", { 0x41, 0x9a }, 2, "u" },
    { "non-reference slice", { 0x01, 0x9a }, 2, "du" },
    { "STAP-A of SPS and PPS", { 0x78, 0, 2, 0x67, 0x42, 0, 2, 0x68, 0xce }, 9, "p" },
    { "STAP-A up to the IDR", { 0x78, 0, 2, 0x67, 0x42, 0, 2, 0x65, 0x88 }, 9, "kpue" },
    { "STAP-A of droppable slices", { 0x18, 0, 2, 0x01, 0x9a, 0, 2, 0x01, 0x48 }, 9, "du" },
    { "STAP-A with a reference slice", { 0x58, 0, 2, 0x01, 0x9a, 0, 2, 0x41, 0x48 }, 9, "u" },
    { "FU-A, start of an IDR", { 0x7c, 0x85, 0x88 }, 3, "kue" },
    { "FU-A, middle", { 0x7c, 0x05, 0x88 }, 3, "" },
    { "FU-A, end", { 0x7c, 0x45, 0x88 }, 3, "" },
    { "FU-A, start of a droppable slice", { 0x1c, 0x81, 0x88 }, 3, "du" },
    { "FU-A, its end", { 0x1c, 0x41, 0x88 }, 3, "d" },
    { "nothing", { 0 }, 0, "!" },
    { "IDR without a byte", { 0x65 }, 1, "!" },
    { "FU-A without a header", { 0x7c }, 1, "!" },
    { "STAP-A with a size beyond the end", { 0x78, 0, 2, 0x67, 0x42, 0, 3, 0x65, 0x88 }, 9, "!" },
    { "STAP-A with half a size", { 0x78, 0, 2, 0x67, 0x42, 0 }, 6, "!" },
    { "STAP-A with an empty unit", { 0x78, 0, 0 }, 3, "!" },
    { "MTAP16 is not read", { 0x7a, 0, 0, 0, 2, 0, 0, 0, 0x65, 0x88 }, 10, "" },
  };

  CHECK_IN (&(WeirLayers) { WEIR_CODEC_H264 }, payloads);
}

static void
h264_svc_payloads_are_read (void)
{
  static const Payload payloads[] = {
    { "subset SPS", { 0x6f, 0x53 }, 2, "p" },
    { "prefix of an IDR", { 0x6e, 0xc0, 0x80, 0x07 }, 4, "kue" },
    { "the IDR", { 0x65, 0x88 }, 2, "kue" },
    { "IDR of layer 1", { 0x74, 0xc0, 0x90, 0x07, 0x88 }, 5, "ue", 1 },
    { "its second slice", { 0x74, 0xc0, 0x90, 0x07, 0x48 }, 5, "u", 1 },
    { "IDR of layer 2, FU-A, start", { 0x7c, 0x94, 0xc0, 0xa0, 0x07, 0x88 }, 6, "ue", 2 },
    { "FU-A, middle", { 0x7c, 0x14, 0x12 }, 3, "", 2 },
    { "FU-A, end", { 0x7c, 0x54, 0x12 }, 3, "", 2 },
    { "prefix, temporal 2, discardable", { 0x0e, 0x80, 0x80, 0x4f }, 4, "d", 0, 0, 2 },
    { "its slice", { 0x01, 0x9a }, 2, "d", 0, 0, 2 },
    { "layer 1, temporal 2, needed above", { 0x14, 0x80, 0x90, 0x47, 0x9a }, 5, "d", 1, 0, 2 },
    { "layer 1, quality 3", { 0x54, 0x80, 0x13, 0x27, 0x9a }, 5, "", 1, 3, 1 },
    { "a slice whose prefix was lost", { 0x41, 0x9a }, 2, "u" },
    { "STAP-A of prefix and two layers",
        { 0x58, 0, 4, 0x4e, 0x80, 0x80, 0x27, 0, 2, 0x41, 0x9a, 0, 5, 0x54, 0x80, 0x90, 0x27,
            0x9a },
        18, "", 0, 0, 1 },
    { "prefix cut short", { 0x6e, 0xc0, 0x80 }, 3, "!" },
    { "prefix of MVC", { 0x6e, 0x40, 0x80, 0x07 }, 4, "!" },
    { "slice without data", { 0x74, 0xc0, 0x90, 0x07 }, 4, "!" },
  };

  CHECK_IN (&(WeirLayers) { WEIR_CODEC_H264 }, payloads);
}

static void
h264_payloads_have_svc_or_not (void)
{
  static const Payload payloads[] = {
    { "SPS", { 0x67, 0x42 }, 2, "" },
    { "IDR", { 0x65, 0x88 }, 2, "" },
    { "FU-A of an IDR", { 0x7c, 0x85, 0x88 }, 3, "" },
    { "STAP-A of SPS and IDR", { 0x78, 0, 2, 0x67, 0x42, 0, 2, 0x65, 0x88 }, 9, "" },
    { "nothing", { 0 }, 0, "" },
    { "FU-A cut short", { 0x7c }, 1, "" },
    { "STAP-A cut short", { 0x78, 0, 9, 0x6f }, 4, "" },
    { "STAP-A with an empty unit", { 0x78, 0, 0 }, 3, "" },
    { "subset SPS", { 0x6f, 0x53 }, 2, "s" },
    { "prefix", { 0x6e, 0xc0, 0x80, 0x07 }, 4, "s" },
    { "slice of layer 1", { 0x74, 0xc0, 0x90, 0x07, 0x88 }, 5, "s" },
    { "its fragment", { 0x7c, 0x14, 0x12 }, 3, "s" },
    { "STAP-A with a prefix", { 0x58, 0, 2, 0x67, 0x42, 0, 4, 0x4e, 0x80, 0x80, 0x27 }, 11, "s" },
    { "PACSI", { 0x7e, 0x80 }, 2, "s" },
  };

  for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++)
    CHECK_INT (weir_h264_payload_has_svc (payloads[i].bytes, payloads[i].len),
        payloads[i].flags[0] == 's');
}

// Four layers with the nal_ref_idc that encoders use: 3, 2, 1, 0.
static void
h264_temporal_layers_are_inferred_from_nri (void)
{
  static const Payload first[] = { { "T0", { 0x65, 0x88 }, 2, "kue" } };
  static const Payload settle[] = { { "T3", { 0x01, 0x9a }, 2, "d", 0, 0, 1 },
    { "T2", { 0x21, 0x9a }, 2, "", 0, 0, 1 }, { "T3", { 0x01, 0x9a }, 2, "d", 0, 0, 2 },
    { "T1", { 0x41, 0x9a }, 2, "", 0, 0, 1 } };
  static const Payload settled[] = { { "T3", { 0x01, 0x9a }, 2, "d", 0, 0, 3 },
    { "T2", { 0x21, 0x9a }, 2, "", 0, 0, 2 }, { "T1", { 0x41, 0x9a }, 2, "", 0, 0, 1 },
    { "T0", { 0x61, 0x9a }, 2, "u" } };
  WeirLayers self = { WEIR_CODEC_H264, .infer_temporal = true };

  CHECK_IN (&self, first);
  CHECK_IN (&self, settle);
  CHECK_IN (&self, settled);
}

static void
h265_payloads_are_read (void)
{
  static const Payload payloads[] = {
    { "VPS", { 0x40, 1, 0x0c }, 3, "p" },
    { "SPS", { 0x42, 1, 0x0c }, 3, "p" },
    { "PPS", { 0x44, 1, 0x0c }, 3, "p" },
    { "SEI", { 0x4e, 1, 0x0c }, 3, "" },
    { "IDR", { 0x26, 1, 0xaf }, 3, "kue" },
    { "its second slice", { 0x26, 1, 0x2f }, 3, "u" },
    { "CRA", { 0x2a, 1, 0xaf }, 3, "kue" },
    { "TRAIL_R", { 0x02, 1, 0xd0 }, 3, "u" },
    { "TRAIL_N, temporal 0 alone", { 0x00, 1, 0xd0 }, 3, "du" },
    { "TSA_N, temporal 1", { 0x04, 2, 0xd0 }, 3, "du", 0, 0, 1 },
    { "TRAIL_N below another layer", { 0x00, 1, 0xd0 }, 3, "u" },
    { "TRAIL_R, temporal 1", { 0x02, 2, 0xd0 }, 3, "", 0, 0, 1 },
    { "AP of parameter sets", { 0x60, 1, 0, 3, 0x42, 1, 7, 0, 3, 0x44, 1, 7 }, 12, "p" },
    { "AP of SPS and IDR", { 0x60, 1, 0, 3, 0x42, 1, 7, 0, 3, 0x26, 1, 0xaf }, 12, "kpue" },
    { "FU, start of an IDR", { 0x62, 1, 0x93, 0xaf }, 4, "kue" },
    { "FU, end", { 0x62, 1, 0x53, 0xaf }, 4, "u" },
    { "FU of TSA_N, temporal 1", { 0x62, 2, 0x82, 0xaf }, 4, "du", 0, 0, 1 },
    { "half a header", { 0x26 }, 1, "!" },
    { "temporal id 0 is forbidden", { 0x26, 0, 0xaf }, 3, "!" },
    { "FU without data", { 0x62, 1, 0x93 }, 3, "!" },
    { "AP with a size beyond the end", { 0x60, 1, 0, 4, 0x42, 1, 7 }, 7, "!" },
    { "AP with a unit of one byte", { 0x60, 1, 0, 1, 0x42 }, 5, "!" },
  };

  CHECK_IN (&(WeirLayers) { WEIR_CODEC_H265 }, payloads);
}

static void
vp8_payloads_are_read (void)
{
  static const Payload payloads[] = {
    { "key frame", { 0x10, 0x50 }, 2, "kue" },
    { "rest of it", { 0x00, 0x50 }, 2, "u" },
    { "start of its second partition", { 0x11, 0x50 }, 2, "u" },
    { "other frame", { 0x10, 0x51 }, 2, "u" },
    { "non-reference frame", { 0x30, 0x51 }, 2, "du" },
    { "key frame, picture id of 15 bits", { 0x90, 0x80, 0x81, 0x23, 0x50 }, 5, "kue" },
    { "temporal 2", { 0x90, 0xe0, 0x11, 7, 0x80, 0x51 }, 6, "", 0, 0, 2 },
    { "temporal 1, layer sync", { 0x90, 0xe0, 0x11, 7, 0x60, 0x51 }, 6, "u", 0, 0, 1 },
    { "KEYIDX without TID", { 0x90, 0x10, 0x6f, 0x51 }, 4, "u" },
    { "nothing", { 0 }, 0, "!" },
    { "extension cut short", { 0x90, 0xe0, 0x91, 7, 0x60 }, 5, "!" },
    { "no frame data", { 0x90, 0x80, 0x11 }, 3, "!" },
  };

  CHECK_IN (&(WeirLayers) { WEIR_CODEC_VP8 }, payloads);
}

static void
vp9_payloads_are_read (void)
{
  static const Payload payloads[] = {
    { "key frame without layers", { 0x08, 0x82 }, 2, "kue" },
    { "rest of it", { 0x00, 0x82 }, 2, "u" },
    { "other frame", { 0x48, 0x86 }, 2, "u" },
    { "key frame, layers", { 0xa8, 0x91, 0x23, 0x00, 0x07, 0x82 }, 6, "kue" },
    { "spatial 1 of it", { 0xa8, 0x91, 0x23, 0x03, 0x07, 0x82 }, 6, "ue", 1 },
    { "temporal 2, spatial 1", { 0xe8, 0x11, 0x43, 0x07, 0x82 }, 5, "", 1, 0, 2 },
    { "temporal 1, up allowed", { 0xe8, 0x11, 0x30, 0x07, 0x82 }, 5, "u", 0, 0, 1 },
    { "flexible mode has no TL0PICIDX", { 0xb8, 0x11, 0x04, 0x82 }, 4, "ue", 2 },
    { "nothing", { 0 }, 0, "!" },
    { "descriptor cut short", { 0xa8, 0x91, 0x23, 0x00 }, 4, "!" },
    { "no frame data", { 0xa8, 0x11, 0x00, 0x07 }, 4, "!" },
  };

  CHECK_IN (&(WeirLayers) { WEIR_CODEC_VP9 }, payloads);
}

static void
av1_payloads_are_read (void)
{
  static const Payload payloads[] = {
    { "new sequence, W=2", { 0x28, 2, 0x08, 0, 0x30, 0x10 }, 6, "kpue" },
    { "a frame", { 0x10, 0x30, 0x10 }, 3, "u" },
    { "temporal 1, spatial 2", { 0x10, 0x34, 0x30, 0x10 }, 4, "", 2, 0, 1 },
    { "the next fragment of it", { 0x90, 0x11, 0x22 }, 3, "", 2, 0, 1 },
    { "W=0, lengths everywhere", { 0x00, 3, 0x34, 0x48, 0, 2, 0x34, 0x50 }, 8, "", 1, 0, 2 },
    { "nothing", { 0 }, 0, "!" },
    { "only an aggregation header", { 0x10 }, 1, "!" },
    { "a length beyond the end", { 0x00, 4, 0x34, 0x48, 0 }, 5, "!" },
    { "a length without end", { 0x00, 0x80, 0x80 }, 3, "!" },
    { "an extension cut off", { 0x10, 0x34 }, 2, "!" },
  };

  CHECK_IN (&(WeirLayers) { WEIR_CODEC_AV1 }, payloads);
}

static void
mpv_payloads_are_read (void)
{
  static const Payload payloads[] = {
    { "I picture with sequence header", { 0, 1, 0x39, 0, 0, 0, 1, 0xb3, 0x12 }, 9, "kpue" },
    { "I picture with a group header", { 0, 1, 0x19, 0, 0, 0, 1, 0xb8, 0x12 }, 9, "kue" },
    { "later slices of it", { 0, 1, 0x19, 0, 0, 0, 1, 0x05, 0x12 }, 9, "u" },
    { "P picture", { 0, 1, 0x1a, 0, 0, 0, 1, 0, 0x12 }, 9, "u" },
    { "B picture", { 0, 1, 0x1b, 0, 0, 0, 1, 0, 0x12 }, 9, "du" },
    { "MPEG-2 extension", { 4, 1, 0x19, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0x12 }, 13, "kue" },
    { "header cut short", { 0, 1, 0x19 }, 3, "!" },
    { "extension cut short", { 4, 1, 0x19, 0, 0, 0, 0 }, 7, "!" },
  };

  CHECK_IN (&(WeirLayers) { WEIR_CODEC_MPV }, payloads);
}

// ---- dependency descriptors ----

typedef struct {
  const char *what;
  uint8_t bytes[16];
  size_t len;
  const char *flags;
  uint8_t temporal;
} Descriptor;

// One spatial layer, three temporal layers, and a decode target for each number of them.
static const uint8_t with_structure[] = { 0xc0, 0, 7, 0x80, 0x02, 0x17, 0xaa, 0xf1, 0x81, 0x4d,
  0x14, 0 };

static void
dependency_descriptors_are_read (void)
{
  static const Descriptor descriptors[] = {
    { "template 1", { 0xc1, 0, 8 }, 3, "u", 0 },
    { "template 2", { 0xc2, 0, 9 }, 3, "u", 1 },
    { "template 3", { 0xc3, 0, 10 }, 3, "d", 2 },
    { "template 3, but needed", { 0xc3, 0, 9, 0x20, 0x60 }, 5, "", 2 },
    { "template 4 is unknown", { 0xc4, 0, 9 }, 3, "!", 0 },
    { "cut short", { 0xc3, 0 }, 2, "!", 0 },
    { "custom, cut short", { 0xc3, 0, 9, 0x20 }, 4, "!", 0 },
  };
  WeirDependency dependency = { 0 };
  WeirLayer layer = { 0 };

  CHECK (!weir_dependency_read (&dependency, descriptors[0].bytes, 3, &layer));
  for (size_t len = 0; len + 1 < sizeof with_structure; len++)
    CHECK (!weir_dependency_read (&dependency, with_structure, len, &layer));
  CHECK (weir_dependency_read (&dependency, with_structure, sizeof with_structure, &layer));
  CHECK (strcmp (flags_of (true, &layer), "kpue") == 0);
  for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; i++) {
    const Descriptor *d = &descriptors[i];
    bool ok;

    layer = (WeirLayer) { 0 };
    ok = weir_dependency_read (&dependency, d->bytes, d->len, &layer);
    if (ok != (d->flags[0] != '!') || strcmp (flags_of (ok, &layer), d->flags) != 0
        || layer.temporal != d->temporal) {
      printf ("# %s: \"%s\" %u\n", d->what, flags_of (ok, &layer), layer.temporal);
      CHECK (!"expected flags and layers");
    }
  }
}

static void
header_extensions_are_found (void)
{
  static const uint8_t one_byte[] = { 0x90, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xde, 0, 2,
    0x10, 7, 0, 0x22, 1, 2, 3, 0, 9 };
  static const uint8_t two_byte[] = { 0x90, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 2, 200, 1,
    7, 0, 2, 2, 5, 6, 9 };
  static const uint8_t beyond[] = { 0x90, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xde, 0, 1, 0x12,
    7, 8, 9, 9 };
  const uint8_t *data;
  size_t len = 0;
  WeirRtp rtp;

  CHECK_INT (weir_rtp_parse (one_byte, sizeof one_byte, &rtp), 0);
  data = weir_rtp_extension (one_byte, &rtp, 2, &len);
  CHECK (data && len == 3 && memcmp (data, one_byte + 20, 3) == 0);
  CHECK (!weir_rtp_extension (one_byte, &rtp, 3, &len));
  CHECK (!weir_rtp_extension (one_byte, &rtp, 0, &len));
  CHECK_INT (weir_rtp_parse (two_byte, sizeof two_byte, &rtp), 0);
  data = weir_rtp_extension (two_byte, &rtp, 2, &len);
  CHECK (data && len == 2 && data[1] == 6);
  data = weir_rtp_extension (two_byte, &rtp, 200, &len);
  CHECK (data && len == 1 && data[0] == 7);
  CHECK_INT (weir_rtp_parse (beyond, sizeof beyond, &rtp), 0);
  data = weir_rtp_extension (beyond, &rtp, 1, &len);
  CHECK (data && len == 3);
  CHECK (!weir_rtp_extension (beyond, &rtp, 9, &len));
}

int
main (void)
{
  RUN (codecs_are_found_by_name);
  RUN (unknown_codecs_have_no_join_points);
  RUN (h264_payloads_are_read);
  RUN (h264_svc_payloads_are_read);
  RUN (h264_payloads_have_svc_or_not);
  RUN (h264_temporal_layers_are_inferred_from_nri);
  RUN (h265_payloads_are_read);
  RUN (vp8_payloads_are_read);
  RUN (vp9_payloads_are_read);
  RUN (av1_payloads_are_read);
  RUN (mpv_payloads_are_read);
  RUN (dependency_descriptors_are_read);
  RUN (header_extensions_are_found);
  return tap_done ();
}
