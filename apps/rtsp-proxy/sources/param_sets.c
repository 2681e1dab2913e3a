// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/param_sets.h"

#include <string.h>

#include "bits/bytes.h"
#include "bits/startcode.h"
#include "codec/h264.h"

#define LENGTH_SIZE_AT 4 // in the avcC box (ISO/IEC 14496-15, 5.3.3.1), the low two bits

// The units of a picture before its first slice.
typedef struct {
  gboolean has_sps, has_pps;
  gboolean keyframe;
  gsize slice; // where the slice begins, with its length or start code
} Head;

// Returns FALSE if the picture's slices have been reached.
static gboolean
take_unit (Head *head, guint8 first_byte, gsize at)
{
  guint type = first_byte & 31;

  head->has_sps |= type == WEIR_H264_SPS;
  head->has_pps |= type == WEIR_H264_PPS;
  head->keyframe = type == WEIR_H264_IDR;
  head->slice = at;
  return !weir_h264_is_slice ((guint8) type);
}

static void
read_lengths (WeirBytes b, guint length_size, Head *head)
{
  const guint8 *begin = b.at, *unit;
  gboolean more = TRUE;
  guint64 len;

  while (more && weir_bytes_left (&b) > 0) {
    gsize at = (gsize) (b.at - begin);

    if (!weir_bytes_number (&b, length_size, &len) || !weir_bytes_take (&b, len, &unit))
      return;
    more = len == 0 || take_unit (head, *unit, at);
  }
}

static void
read_start_codes (WeirBytes b, Head *head)
{
  const guint8 *begin = b.at;

  while (weir_start_code_find (&b) && weir_bytes_left (&b) > WEIR_START_CODE) {
    gsize at = (gsize) (b.at - begin);

    if (!take_unit (head, b.at[WEIR_START_CODE], at))
      return;
    weir_bytes_skip (&b, WEIR_START_CODE);
  }
}

// Returns the size of the length before each unit, or 0 if start codes are.
static guint
get_length_size (GstPad *pad)
{
  GstCaps *caps = gst_pad_get_current_caps (pad);
  const GValue *value =
      caps ? gst_structure_get_value (gst_caps_get_structure (caps, 0), "codec_data") : NULL;
  guint size = 0;
  guint8 byte;

  if (value && GST_VALUE_HOLDS_BUFFER (value)
      && gst_buffer_extract (gst_value_get_buffer (value), LENGTH_SIZE_AT, &byte, 1) == 1)
    size = (byte & 3) + 1;
  gst_clear_caps (&caps);
  return size;
}

// Returns the parameter sets that the payloader describes in its caps, or NULL.
static gchar *
dup_sets (GstElement *payloader)
{
  GstPad *pad = gst_element_get_static_pad (payloader, "src");
  GstCaps *caps = gst_pad_get_current_caps (pad);
  gchar *sets = caps ? g_strdup (gst_structure_get_string (
                           gst_caps_get_structure (caps, 0), "sprop-parameter-sets"))
                     : NULL;

  gst_clear_caps (&caps);
  gst_object_unref (pad);
  return sets;
}

// Writes those of `sets` that the picture lacks.
static GByteArray *
write_missing (const gchar *sets, const Head *head, guint length_size)
{
  GByteArray *out = g_byte_array_new ();
  gchar **each = g_strsplit (sets, ",", -1);

  for (guint i = 0; each[i]; i++) {
    gsize len;
    guchar *unit = g_base64_decode (each[i], &len);
    guint32 prefix = GUINT32_TO_BE (length_size ? (guint32) len : 1);
    guint size = length_size ? length_size : sizeof prefix;
    guint type = len ? unit[0] & 31 : 0;
    gboolean fits = (guint64) len >> 8 * size == 0;

    if (fits
        && (type == WEIR_H264_SPS ? !head->has_sps : type == WEIR_H264_PPS && !head->has_pps)) {
      g_byte_array_append (out, (const guint8 *) &prefix + sizeof prefix - size, size);
      g_byte_array_append (out, unit, (guint) len);
    }
    g_free (unit);
  }
  g_strfreev (each);
  return out;
}

// Returns the picture with these bytes at `at`. Takes ownership of both.
static GstBuffer *
insert (GstBuffer *picture, gsize at, GByteArray *bytes)
{
  GstBuffer *out = gst_buffer_new ();
  const gsize size = bytes->len;

  gst_buffer_copy_into (out, picture, GST_BUFFER_COPY_METADATA, 0, (gsize) -1);
  gst_buffer_copy_into (out, picture, GST_BUFFER_COPY_MEMORY, 0, at);
  if (size > 0)
    gst_buffer_append (out, gst_buffer_new_wrapped (g_byte_array_steal (bytes, NULL), size));
  g_byte_array_unref (bytes);
  gst_buffer_copy_into (out, picture, GST_BUFFER_COPY_MEMORY, at, (gsize) -1);
  gst_buffer_unref (picture);
  return out;
}

static GstPadProbeReturn
on_picture (GstPad *pad, GstPadProbeInfo *info, gpointer payloader)
{
  GstBuffer *picture = GST_PAD_PROBE_INFO_BUFFER (info);
  guint length_size = get_length_size (pad);
  g_autofree gchar *sets = NULL;
  Head head = { 0 };
  GstMapInfo map;

  if (!gst_buffer_map (picture, &map, GST_MAP_READ))
    return GST_PAD_PROBE_OK;
  if (length_size)
    read_lengths (weir_bytes (map.data, map.size), length_size, &head);
  else
    read_start_codes (weir_bytes (map.data, map.size), &head);
  gst_buffer_unmap (picture, &map);
  if (head.keyframe && !(head.has_sps && head.has_pps) && (sets = dup_sets (payloader)))
    info->data = insert (picture, head.slice, write_missing (sets, &head, length_size));
  return GST_PAD_PROBE_OK;
}

void
param_sets_add (GstElement *payloader)
{
  GstPad *pad = gst_element_get_static_pad (payloader, "sink");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_picture, payloader, NULL);
  gst_object_unref (pad);
}
