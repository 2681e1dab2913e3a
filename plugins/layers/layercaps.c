// SPDX-License-Identifier: LGPL-2.1-or-later
#include "layercaps.h"

#include "core/bits/bytes.h"

#include <gst/pbutils/pbutils.h>

#include <string.h>

#define AVCC_HEADER 5 // bytes before the first parameter set's count

static WeirCodec
codec_of_media_type (const gchar *name)
{
  static const struct {
    const gchar *name;
    WeirCodec codec;
  } names[] = {
    { "video/x-h264", WEIR_CODEC_H264 },
    { "video/x-h265", WEIR_CODEC_H265 },
    { "video/x-vp8", WEIR_CODEC_VP8 },
    { "video/x-vp9", WEIR_CODEC_VP9 },
    { "video/x-av1", WEIR_CODEC_AV1 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    if (g_str_equal (name, names[i].name))
      return names[i].codec;
  }
  return WEIR_CODEC_OPAQUE;
}

// Returns the size of the NAL unit lengths in bytes, from avcC (H.264) or hvcC (H.265); 0 for start
// codes.
static guint
read_length_size (GstStructure *s, WeirCodec codec)
{
  const gchar *format = gst_structure_get_string (s, "stream-format");
  const GValue *value = gst_structure_get_value (s, "codec_data");
  guint8 byte = 3;

  if (!format || g_str_equal (format, "byte-stream"))
    return 0;
  if (value && GST_VALUE_HOLDS_BUFFER (value))
    gst_buffer_extract (gst_value_get_buffer (value), codec == WEIR_CODEC_H264 ? 4 : 21, &byte, 1);
  return (byte & 3u) + 1;
}

gboolean
layer_caps_read (
    GstCaps *caps, WeirCodec *codec, gboolean *rtp, guint *length_size, guint *clock_rate)
{
  GstStructure *s = gst_caps_get_structure (caps, 0);
  gint rate = 0;

  *length_size = *clock_rate = 0;
  *rtp = gst_structure_has_name (s, "application/x-rtp");
  if (*rtp) {
    *codec = weir_codec_from_sdp (
        gst_structure_get_string (s, "media"), gst_structure_get_string (s, "encoding-name"));
    if (gst_structure_get_int (s, "clock-rate", &rate) && rate > 0)
      *clock_rate = (guint) rate;
    return *codec != WEIR_CODEC_OPAQUE;
  }
  *codec = codec_of_media_type (gst_structure_get_name (s));
  if (*codec == WEIR_CODEC_H264 || *codec == WEIR_CODEC_H265)
    *length_size = read_length_size (s, *codec);
  return *codec != WEIR_CODEC_OPAQUE;
}

static const gchar *
extension_uri (const GValue *value)
{
  // An extmap with a direction or attributes is an array of three, with the URI in the middle.
  if (GST_VALUE_HOLDS_ARRAY (value) && gst_value_array_get_size (value) == 3)
    value = gst_value_array_get_value (value, 1);
  return G_VALUE_HOLDS_STRING (value) ? g_value_get_string (value) : NULL;
}

guint8
layer_caps_dependency_id (GstCaps *caps)
{
  GstStructure *s = gst_caps_get_structure (caps, 0);

  for (gint i = 0; i < gst_structure_n_fields (s); i++) {
    const gchar *name = gst_structure_nth_field_name (s, (guint) i);
    guint64 id;

    if (g_str_has_prefix (name, "extmap-")
        && g_strcmp0 (extension_uri (gst_structure_get_value (s, name)), WEIR_DEPENDENCY_URI) == 0
        && g_ascii_string_to_unsigned (name + strlen ("extmap-"), 10, 1, 255, &id, NULL))
      return (guint8) id;
  }
  return 0;
}

// ---- parameter sets from caps ----

static void
note_array (WeirBytes *b, guint n, LayerStream *stream)
{
  const uint8_t *nal;
  uint16_t len;

  while (n-- > 0 && weir_bytes_u16 (b, &len) && weir_bytes_take (b, len, &nal))
    weir_svc_note (&stream->svc, nal, len);
}

static void
note_codec_data (GstBuffer *codec_data, LayerStream *stream)
{
  GstMapInfo map;
  WeirBytes b;
  guint8 n;

  if (!gst_buffer_map (codec_data, &map, GST_MAP_READ))
    return;
  b = weir_bytes (map.data, map.size);
  weir_bytes_skip (&b, AVCC_HEADER);
  weir_bytes_u8 (&b, &n);
  note_array (&b, n & 31, stream);
  weir_bytes_u8 (&b, &n);
  note_array (&b, n, stream);
  gst_buffer_unmap (codec_data, &map);
}

static void
note_sprop (const gchar *sprop, LayerStream *stream)
{
  gchar **sets = g_strsplit (sprop, ",", 0);

  for (guint i = 0; sets[i]; i++) {
    gsize len = 0;
    guchar *nal = g_base64_decode (sets[i], &len);

    if (len > 0)
      weir_svc_note (&stream->svc, nal, len);
    g_free (nal);
  }
  g_strfreev (sets);
}

void
layer_caps_note (GstCaps *caps, LayerStream *stream)
{
  GstStructure *s = gst_caps_get_structure (caps, 0);
  const GValue *codec_data = gst_structure_get_value (s, "codec_data");
  const gchar *sprop = gst_structure_get_string (s, "sprop-parameter-sets");

  if (stream->codec != WEIR_CODEC_H264)
    return;
  if (codec_data && GST_VALUE_HOLDS_BUFFER (codec_data))
    note_codec_data (gst_value_get_buffer (codec_data), stream);
  if (sprop)
    note_sprop (sprop, stream);
}

// ---- parameter sets into caps ----

typedef struct {
  const LayerStream *stream;
  WeirSps sps;
  guint8 bytes[WEIR_SPS_MAX]; // SPS of the highest layer in the output
  gsize len;
} Highest;

typedef void (*SetFunc) (gpointer data, const guint8 *nal, gsize len);

static void
each_sps (const Highest *highest, SetFunc func, gpointer data)
{
  const WeirSvc *svc = &highest->stream->svc;
  const WeirProjection *p = &highest->stream->projection;

  if (p->plain > 0) {
    func (data, highest->bytes, highest->len);
    return;
  }
  for (guint i = 0; i < 32; i++) {
    if (svc->sps[i].len > 0)
      func (data, svc->sps[i].bytes, svc->sps[i].len);
  }
  for (guint i = 0; i < 32; i++) {
    if (svc->subset[i].len > 0 && weir_svc_has_subset (svc, (int) i, p->now, p->plain))
      func (data, svc->subset[i].bytes, svc->subset[i].len);
  }
}

static void
each_pps (const Highest *highest, SetFunc func, gpointer data)
{
  const WeirSvc *svc = &highest->stream->svc;
  const WeirProjection *p = &highest->stream->projection;

  for (guint i = 0; i < 256; i++) {
    if (svc->pps[i].len > 0 && weir_svc_has_pps (svc, (int) i, p->now, p->plain))
      func (data, svc->pps[i].bytes, svc->pps[i].len);
  }
}

static void
count_set (gpointer data, const guint8 *nal, gsize len)
{
  (*(guint *) data)++;
}

static void
append_set (gpointer data, const guint8 *nal, gsize len)
{
  const guint8 size[2] = { (guint8) (len >> 8), (guint8) len };

  g_byte_array_append (data, size, 2);
  g_byte_array_append (data, nal, (guint) len);
}

// avcC, ISO/IEC 14496-15, 5.2.4.1.
static GstBuffer *
make_codec_data (const Highest *highest)
{
  const WeirSps *sps = &highest->sps;
  const guint8 header[AVCC_HEADER] = { 1, sps->profile, sps->constraints, sps->level,
    (guint8) (0xfc | (highest->stream->length_size - 1)) };
  GByteArray *bytes = g_byte_array_new ();
  guint n = 0;
  guint8 count;
  gsize len;

  g_byte_array_append (bytes, header, sizeof header);
  each_sps (highest, count_set, &n);
  count = (guint8) (0xe0 | MIN (n, 31));
  g_byte_array_append (bytes, &count, 1);
  each_sps (highest, append_set, bytes);
  n = 0;
  each_pps (highest, count_set, &n);
  count = (guint8) MIN (n, 255);
  g_byte_array_append (bytes, &count, 1);
  each_pps (highest, append_set, bytes);
  len = bytes->len;
  return gst_buffer_new_wrapped (g_byte_array_free (bytes, FALSE), len);
}

// Skips subset SPS, which few SDP parsers understand. They stay in the stream.
static void
append_sprop (gpointer data, const guint8 *nal, gsize len)
{
  GString *text = data;
  gchar *base64;

  if ((nal[0] & 31) == WEIR_H264_SUBSET_SPS)
    return;
  base64 = g_base64_encode (nal, len);
  g_string_append_printf (text, "%s%s", text->len > 0 ? "," : "", base64);
  g_free (base64);
}

static void
set_rtp_fields (GstStructure *s, const Highest *highest)
{
  GString *sprop = g_string_new (NULL);
  gchar *id = g_strdup_printf (
      "%02x%02x%02x", highest->sps.profile, highest->sps.constraints, highest->sps.level);

  each_sps (highest, append_sprop, sprop);
  each_pps (highest, append_sprop, sprop);
  gst_structure_set (s, "sprop-parameter-sets", G_TYPE_STRING, sprop->str, "profile-level-id",
      G_TYPE_STRING, id, NULL);
  if (highest->stream->projection.plain >= 0)
    gst_structure_set (s, "encoding-name", G_TYPE_STRING, "H264", NULL);
  g_free (id);
  g_string_free (sprop, TRUE);
}

static void
set_profile (GstStructure *s, const Highest *highest)
{
  const gchar *profile =
      gst_codec_utils_h264_get_profile (highest->bytes + 1, (guint) highest->len - 1);
  const gchar *level =
      gst_codec_utils_h264_get_level (highest->bytes + 1, (guint) highest->len - 1);

  gst_structure_remove_fields (s, "profile", "level", NULL);
  if (profile)
    gst_structure_set (s, "profile", G_TYPE_STRING, profile, NULL);
  if (level)
    gst_structure_set (s, "level", G_TYPE_STRING, level, NULL);
}

static void
set_picture_fields (GstStructure *s, const Highest *highest)
{
  gst_structure_set (s, "width", G_TYPE_INT, (gint) highest->sps.width, "height", G_TYPE_INT,
      (gint) highest->sps.height, NULL);
  set_profile (s, highest);
  if (highest->stream->length_size > 0) {
    GstBuffer *codec_data = make_codec_data (highest);

    gst_structure_set (s, "codec_data", GST_TYPE_BUFFER, codec_data, NULL);
    gst_buffer_unref (codec_data);
  }
}

GstCaps *
layer_caps_make (GstCaps *in, const LayerStream *stream)
{
  const WeirProjection *p = &stream->projection;
  GstCaps *caps = gst_caps_copy (in);
  GstStructure *s = gst_caps_get_structure (caps, 0);
  Highest highest = { .stream = stream };

  if (stream->codec != WEIR_CODEC_H264
      || !weir_svc_sps (&stream->svc, p->now, p->plain, &highest.sps, highest.bytes, &highest.len))
    return caps;
  if (stream->rtp)
    set_rtp_fields (s, &highest);
  else
    set_picture_fields (s, &highest);
  return caps;
}
