// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/relay_sets.h"

#include <string.h>

#include "bits/bytes.h"

#define KINDS 3

// The kinds of parameter sets, by codec: the type of their NAL units and the field of caps. Those
// of one field are joined by commas.
typedef struct {
  guint8 types[KINDS]; // 0: none
  const gchar *fields[KINDS];
  guint8 aggregate; // NAL unit type of several units in a packet
  guint64 wanted;   // bits of the types above
  guint8 others[3]; // types that may stand between parameter sets: delimiters and messages
} Codec;

#define BIT(type) (G_GUINT64_CONSTANT (1) << (type))

static const Codec h264 = { { 7, 8 }, { "sprop-parameter-sets", "sprop-parameter-sets" }, 24,
  BIT (7) | BIT (8) | BIT (24), { 9, 6, 6 } };
static const Codec h265 = { { 32, 33, 34 }, { "sprop-vps", "sprop-sps", "sprop-pps" }, 48,
  BIT (32) | BIT (33) | BIT (34) | BIT (48), { 35, 39, 39 } };

struct _RelaySets {
  const Codec *codec;
  GString *texts[KINDS]; // of the picture that is read: in Base64, joined by commas
  gchar level[7];        // profile-level-id of H.264
  gsize bytes;
};

static const Codec *
find_codec (const GstCaps *caps)
{
  const gchar *name = gst_structure_get_string (gst_caps_get_structure (caps, 0), "encoding-name");

  return !g_strcmp0 (name, "H264") ? &h264 : !g_strcmp0 (name, "H265") ? &h265 : NULL;
}

RelaySets *
relay_sets_new (const GstCaps *caps)
{
  const Codec *codec = find_codec (caps);
  RelaySets *self;

  if (!codec)
    return NULL;
  self = g_new0 (RelaySets, 1);
  self->codec = codec;
  for (guint i = 0; i < KINDS; i++)
    self->texts[i] = g_string_new (NULL);
  return self;
}

void
relay_sets_free (RelaySets *self)
{
  for (guint i = 0; self && i < KINDS; i++)
    g_string_free (self->texts[i], TRUE);
  g_free (self);
}

static void
forget (RelaySets *self)
{
  for (guint i = 0; i < KINDS; i++)
    g_string_truncate (self->texts[i], 0);
  self->bytes = 0;
}

static gboolean
is_whole (const RelaySets *self)
{
  for (guint i = 0; i < KINDS; i++) {
    if (self->codec->types[i] && self->texts[i]->len == 0)
      return FALSE;
  }
  return self->bytes <= RELAY_SETS_BYTES_MAX;
}

static void
add (RelaySets *self, guint kind, const guint8 *unit, gsize len)
{
  g_autofree gchar *text = NULL;

  self->bytes += len;
  if (self->bytes > RELAY_SETS_BYTES_MAX)
    return;
  text = g_base64_encode (unit, len);
  g_string_append_printf (self->texts[kind], "%s%s", self->texts[kind]->len > 0 ? "," : "", text);
  if (self->codec == &h264 && kind == 0 && len >= 4)
    g_snprintf (self->level, sizeof self->level, "%02x%02x%02x", unit[1], unit[2], unit[3]);
}

static void
publish (const RelaySets *self, GstCaps **caps)
{
  GString *joined[KINDS] = { NULL };
  gboolean changed = FALSE;
  GstCaps *made;

  for (guint i = 0; i < KINDS; i++) {
    const gchar *field = self->codec->fields[i];
    guint first = i > 0 && field && !g_strcmp0 (field, self->codec->fields[i - 1]) ? i - 1 : i;

    if (!field)
      continue;
    if (!joined[first])
      joined[first] = g_string_new (self->texts[i]->str);
    else
      g_string_append_printf (joined[first], ",%s", self->texts[i]->str);
  }
  made = gst_caps_copy (*caps);
  for (guint i = 0; i < KINDS; i++) {
    const GstStructure *s = gst_caps_get_structure (made, 0);

    if (!joined[i])
      continue;
    changed |=
        g_strcmp0 (gst_structure_get_string (s, self->codec->fields[i]), joined[i]->str) != 0;
    gst_caps_set_simple (made, self->codec->fields[i], G_TYPE_STRING, joined[i]->str, NULL);
    g_string_free (joined[i], TRUE);
  }
  if (changed && self->level[0])
    gst_caps_set_simple (made, "profile-level-id", G_TYPE_STRING, self->level, NULL);
  if (changed)
    gst_caps_replace (caps, made);
  gst_caps_unref (made);
}

// Takes a NAL unit. Returns FALSE if it belongs to the picture itself.
static gboolean
take_unit (RelaySets *self, const guint8 *unit, gsize len)
{
  guint8 type = self->codec == &h264 ? unit[0] & 31 : unit[0] >> 1 & 63;

  for (guint i = 0; i < KINDS; i++) {
    if (type != self->codec->types[i] || type == 0)
      continue;
    if (i == 0 && is_whole (self)) // the sets come once more
      forget (self);
    add (self, i, unit, len);
    return TRUE;
  }
  return memchr (self->codec->others, type, sizeof self->codec->others) != NULL;
}

static gboolean
take_aggregate (RelaySets *self, const guint8 *payload, gsize len)
{
  WeirBytes bytes = weir_bytes (payload, len);
  gboolean only_sets = TRUE;
  const guint8 *unit;
  guint16 size;

  weir_bytes_skip (&bytes, self->codec == &h264 ? 1 : 2);
  while (only_sets && weir_bytes_u16 (&bytes, &size) && weir_bytes_take (&bytes, size, &unit))
    only_sets = size == 0 || take_unit (self, unit, size);
  return only_sets;
}

void
relay_sets_take (RelaySets *self, const guint8 *payload, gsize len, GstCaps **caps)
{
  guint8 type;
  gboolean only_sets;

  if (len == 0)
    return;
  type = self->codec == &h264 ? payload[0] & 31 : payload[0] >> 1 & 63;
  if (self->bytes == 0 && !(self->codec->wanted >> type & 1))
    return;
  only_sets = type == self->codec->aggregate ? take_aggregate (self, payload, len)
                                             : take_unit (self, payload, len);
  if (only_sets || self->bytes == 0)
    return;
  if (is_whole (self))
    publish (self, caps);
  forget (self);
}

// ---- sets that a description has, and no packet ----

static gboolean
is_key_slice (const Codec *codec, guint type)
{
  return codec == &h264 ? type == 5 : type >= 16 && type <= 21;
}

// Reports whether the packet begins with a slice of a keyframe, or the first part of one.
static gboolean
begins_with_slice (const Codec *codec, const guint8 *payload, gsize len)
{
  const gsize head = codec == &h264 ? 1 : 2;
  const guint8 fragment = codec == &h264 ? 28 : 49;
  guint type;

  if (len <= head)
    return FALSE;
  type = codec == &h264 ? payload[0] & 31u : payload[0] >> 1 & 63u;
  if (type == fragment)
    type = payload[head] & (codec == &h264 ? 31u : 63u);
  return is_key_slice (codec, type);
}

// Returns FALSE if it is not Base64.
static gboolean
append_units (GPtrArray *units, const gchar *text)
{
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);
  gboolean ok = TRUE;

  for (gchar **each = parts; *each && ok; each++) {
    gsize len = 0;
    g_autofree guchar *unit = **each ? g_base64_decode (*each, &len) : NULL;

    ok = len > 0 && len <= RELAY_SETS_BYTES_MAX / KINDS;
    if (ok)
      g_ptr_array_add (units, g_bytes_new_take (g_steal_pointer (&unit), len));
  }
  return ok;
}

GPtrArray *
relay_sets_find_missing (
    const GstCaps *caps, const GstCaps *shown, const guint8 *payload, gsize len)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  const Codec *codec = find_codec (caps);
  gboolean same = TRUE, ok;
  GPtrArray *units;

  ok = codec && begins_with_slice (codec, payload, len);
  units = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  for (guint i = 0; ok && i < KINDS; i++) {
    const gchar *field = codec->fields[i],
                *text = field ? gst_structure_get_string (s, field) : NULL;

    if (!field || (i > 0 && g_str_equal (field, codec->fields[i - 1])))
      continue;
    same &= !g_strcmp0 (text, gst_structure_get_string (gst_caps_get_structure (shown, 0), field));
    ok = text && append_units (units, text);
  }
  if (!ok || same)
    g_clear_pointer (&units, g_ptr_array_unref);
  return units;
}

// ---- descriptions ----

static gboolean
is_replaced (const gchar *parameter, const GstStructure *caps)
{
  static const gchar *const names[] = { "sprop-parameter-sets", "sprop-vps", "sprop-sps",
    "sprop-pps", "profile-level-id", NULL };
  g_autofree gchar *name = g_strndup (parameter, strcspn (parameter, "="));

  return g_strv_contains (names, g_strstrip (name)) && gst_structure_has_field (caps, name);
}

void
relay_sets_describe (const GstCaps *caps, GstSDPMedia *media)
{
  static const gchar *const names[] = { "sprop-parameter-sets", "sprop-vps", "sprop-sps",
    "sprop-pps", "profile-level-id" };
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  const gchar *old = gst_sdp_media_get_attribute_val (media, "fmtp");
  g_autoptr (GString) text = NULL;
  g_auto (GStrv) parameters = NULL;

  if (!old || !find_codec (caps))
    return;
  text = g_string_new_len (old, (gssize) strcspn (old, " "));
  parameters = g_strsplit (old + strcspn (old, " "), ";", -1);
  for (gchar **each = parameters; *each; each++) {
    if (*g_strstrip (*each) && !is_replaced (*each, s))
      g_string_append_printf (text, "%c%s", strchr (text->str, ' ') ? ';' : ' ', *each);
  }
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    const gchar *value = gst_structure_get_string (s, names[i]);

    if (value)
      g_string_append_printf (
          text, "%c%s=%s", strchr (text->str, ' ') ? ';' : ' ', names[i], value);
  }
  for (guint i = 0; i < gst_sdp_media_attributes_len (media); i++) {
    GstSDPAttribute attribute;

    if (g_strcmp0 (gst_sdp_media_get_attribute (media, i)->key, "fmtp") != 0)
      continue;
    gst_sdp_attribute_set (&attribute, "fmtp", text->str);
    gst_sdp_media_replace_attribute (media, i, &attribute);
    break;
  }
}
