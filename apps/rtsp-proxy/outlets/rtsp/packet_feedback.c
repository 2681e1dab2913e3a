// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/packet_feedback.h"

#include "weir-rtsp.h"

#define NUMBERS "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
#define EXTENSION "extmap-" // of caps
#define ID_MAX 14           // of the one-byte form (RFC 8285)

// ---- the id ----

static gboolean
is_numbers (const GValue *value)
{
  // A string, or an array of the direction, the URI and attributes.
  if (G_VALUE_HOLDS_STRING (value))
    return g_strcmp0 (g_value_get_string (value), NUMBERS) == 0;
  for (guint i = 0; GST_VALUE_HOLDS_ARRAY (value) && i < gst_value_array_get_size (value); i++) {
    if (is_numbers (gst_value_array_get_value (value, i)))
      return TRUE;
  }
  return FALSE;
}

static gboolean
has_numbers (const GstStructure *caps)
{
  for (gint i = 0; i < gst_structure_n_fields (caps); i++) {
    const gchar *name = gst_structure_nth_field_name (caps, (guint) i);

    if (g_str_has_prefix (name, EXTENSION) && is_numbers (gst_structure_get_value (caps, name)))
      return TRUE;
  }
  return FALSE;
}

static guint
find_free (const GstStructure *caps)
{
  for (guint id = ID_MAX; id > 0; id--) {
    g_autofree gchar *name = g_strdup_printf (EXTENSION "%u", id);

    if (!gst_structure_has_field (caps, name))
      return id;
  }
  return 0;
}

// Returns the id that the numbers have in a stream, or 0 if it is not video or has none to spare.
static guint
find_id (GstRTSPStream *stream)
{
  g_autoptr (GstCaps) caps = gst_rtsp_stream_get_caps (stream);
  const GstStructure *fields =
      caps && gst_caps_get_size (caps) > 0 ? gst_caps_get_structure (caps, 0) : NULL;

  if (!fields || g_strcmp0 (gst_structure_get_string (fields, "media"), "video") != 0
      || has_numbers (fields))
    return 0;
  return find_free (fields);
}

// ---- requests ----

void
packet_feedback_describe (GstRTSPMedia *media, GstSDPMessage *sdp)
{
  guint n = gst_sdp_message_medias_len (sdp);

  if (n != gst_rtsp_media_n_streams (media))
    return;
  for (guint i = 0; i < n; i++) {
    guint id = find_id (gst_rtsp_media_get_stream (media, i));
    g_autofree gchar *value = g_strdup_printf ("%u " NUMBERS, id);
    GstSDPMedia *track = (GstSDPMedia *) gst_sdp_message_get_media (sdp, i);

    if (id == 0)
      continue;
    gst_sdp_media_add_attribute (track, "extmap", value);
    gst_sdp_media_add_attribute (track, "rtcp-fb", "* transport-cc");
  }
}

void
packet_feedback_begin (GstRTSPContext *ctx)
{
  guint id = find_id (ctx->stream);

  if (id > 0)
    weir_transport_set_feedback (ctx->client, ctx->trans, id);
}
