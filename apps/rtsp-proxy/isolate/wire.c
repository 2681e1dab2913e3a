// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/wire.h"

#include <string.h>

#include "relay/relay.h"
#include "relay/relay_caps.h"

#define FIELD_NAME_MAX 64
#define FIELD_VALUE_MAX 8192
#define RTP_MAX 65000
#define NAMES_MAX 1024 // of fields, from all workers

// ---- writing ----

void
wire_begin (WireMessage *self, WireType type)
{
  self->len = 0;
  self->failed = FALSE;
  wire_put (self, type, 1);
}

void
wire_put (WireMessage *self, guint64 number, guint n_bytes)
{
  if (self->len + n_bytes > WIRE_MAX) {
    self->failed = TRUE;
    return;
  }
  for (guint i = n_bytes; i-- > 0;)
    self->data[self->len++] = (guint8) (number >> 8 * i);
}

void
wire_put_text (WireMessage *self, const gchar *text)
{
  gsize len = text ? strlen (text) : 0;

  if (len > G_MAXUINT16 || self->len + 2 + len > WIRE_MAX) {
    self->failed = TRUE;
    return;
  }
  wire_put (self, len, 2);
  if (len)
    memcpy (self->data + self->len, text, len);
  self->len += len;
}

static gboolean
put_field (GQuark name, const GValue *value, gpointer self)
{
  wire_put_text (self, g_quark_to_string (name));
  if (G_VALUE_HOLDS_STRING (value)) {
    wire_put (self, 's', 1);
    wire_put_text (self, g_value_get_string (value));
  } else if (G_VALUE_HOLDS_INT (value)) {
    wire_put (self, 'i', 1);
    wire_put (self, (guint32) g_value_get_int (value), 4);
  } else {
    wire_put (self, 'u', 1);
    wire_put (self, g_value_get_uint (value), 4);
  }
  return TRUE;
}

static gboolean
is_readable (GQuark name, GValue *value, gpointer unused)
{
  const gchar *text = G_VALUE_HOLDS_STRING (value) ? g_value_get_string (value) : NULL;

  return strlen (g_quark_to_string (name)) <= FIELD_NAME_MAX
         && (G_VALUE_HOLDS_INT (value) || G_VALUE_HOLDS_UINT (value)
             || (text && strlen (text) <= FIELD_VALUE_MAX && relay_caps_is_printable (text)));
}

void
wire_put_caps (WireMessage *self, const GstCaps *caps)
{
  g_autoptr (GstStructure) s = gst_structure_copy (gst_caps_get_structure (caps, 0));

  gst_structure_filter_and_map_in_place (s, is_readable, NULL);
  wire_put (self, (guint64) gst_structure_n_fields (s), 1);
  gst_structure_foreach (s, put_field, self);
}

void
wire_put_track (WireMessage *self, const GstCaps *caps)
{
  g_autoptr (GstCaps) published = relay_caps_publish (caps, 0);

  wire_put_caps (self, published);
}

void
wire_put_tracks (WireMessage *self, GPtrArray *caps)
{
  wire_put (self, caps->len, 1);
  for (guint i = 0; i < caps->len; i++)
    wire_put_track (self, g_ptr_array_index (caps, i));
}

void
wire_put_cue (WireMessage *self, const WeirCue *cue)
{
  wire_put (self, cue->event, 4);
  wire_put (self, (cue->cancel ? 1 : 0) | (cue->out ? 2 : 0), 1);
  wire_put (self, (guint64) cue->delay, 8);
  wire_put (self, (guint64) cue->duration, 8);
}

gboolean
wire_put_packet (WireMessage *self, const GstBuffer *packet, gint64 now, guint64 base)
{
  gsize len = gst_buffer_get_size ((GstBuffer *) packet);

  if (len > RTP_MAX || self->len + 18 + len > WIRE_MAX)
    return FALSE;
  wire_put (self, (guint64) now, 8);
  wire_put (self, base, 8);
  wire_put (self, len, 2);
  gst_buffer_extract ((GstBuffer *) packet, 0, self->data + self->len, len);
  self->len += len;
  return TRUE;
}

// ---- reading ----

gchar *
wire_dup_text (WeirBytes *b, gsize max)
{
  const guint8 *text;
  guint16 len;

  weir_bytes_u16 (b, &len);
  if (len > max || !weir_bytes_take (b, len, &text)) {
    b->failed = TRUE;
    return NULL;
  }
  if (memchr (text, 0, len)) {
    b->failed = TRUE;
    return NULL;
  }
  return g_strndup ((const gchar *) text, len);
}

// GLib may keep each name of a field forever, so a worker may bring a limited number of them.
static gboolean
may_name (const gchar *name)
{
  static GMutex lock;
  static GHashTable *known; // protected by `lock`
  gboolean may;

  if (!*name || !relay_caps_is_printable (name))
    return FALSE;
  g_mutex_lock (&lock);
  if (!known)
    known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  may = g_hash_table_contains (known, name);
  if (!may && g_hash_table_size (known) < NAMES_MAX)
    may = g_hash_table_add (known, g_strdup (name));
  g_mutex_unlock (&lock);
  return may;
}

// Reads the value of a field into `s`.
static void
read_value (WeirBytes *b, GstStructure *s, const gchar *name)
{
  g_autofree gchar *text = NULL;
  guint32 number;
  guint8 type;

  weir_bytes_u8 (b, &type);
  if (type == 's') {
    text = wire_dup_text (b, FIELD_VALUE_MAX);
    if (!text || !relay_caps_is_printable (text))
      b->failed = TRUE;
    else
      gst_structure_set (s, name, G_TYPE_STRING, text, NULL);
    return;
  }
  weir_bytes_u32 (b, &number);
  if (b->failed || (type != 'i' && type != 'u'))
    b->failed = TRUE;
  else if (type == 'i')
    gst_structure_set (s, name, G_TYPE_INT, (gint) number, NULL);
  else
    gst_structure_set (s, name, G_TYPE_UINT, (guint) number, NULL);
}

GstCaps *
wire_read_caps (WeirBytes *b)
{
  GstStructure *s = gst_structure_new_empty ("application/x-rtp");
  GstCaps *caps = gst_caps_new_empty ();
  guint8 n_fields;
  gint rate = 0;

  weir_bytes_u8 (b, &n_fields);
  if (n_fields > WIRE_FIELDS_MAX)
    b->failed = TRUE;
  for (guint i = 0; i < n_fields && !b->failed; i++) {
    g_autofree gchar *name = wire_dup_text (b, FIELD_NAME_MAX);

    if (name && may_name (name))
      read_value (b, s, name);
    else
      b->failed = TRUE;
  }
  gst_structure_get_int (s, "clock-rate", &rate);
  if (rate <= 0 || !gst_structure_get_string (s, "media"))
    b->failed = TRUE;
  gst_caps_append_structure (caps, s);
  if (b->failed)
    gst_clear_caps (&caps);
  return caps;
}

static void
read_tracks (WeirBytes *b, const WireHandler *handler, gpointer owner)
{
  g_autoptr (GPtrArray) all = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  guint8 n;

  weir_bytes_u8 (b, &n);
  if (n < 1 || n > RELAY_MAX_TRACKS)
    b->failed = TRUE;
  for (guint i = 0; i < n && !b->failed; i++) {
    GstCaps *caps = wire_read_caps (b);

    if (caps)
      g_ptr_array_add (all, caps);
  }
  if (!b->failed && weir_bytes_left (b) == 0)
    handler->tracks (owner, all);
}

static void
read_packets (WeirBytes *b, guint n_tracks, const WireHandler *handler, gpointer owner)
{
  guint8 track;

  weir_bytes_u8 (b, &track);
  if (track >= n_tracks)
    b->failed = TRUE;
  while (weir_bytes_left (b) > 0) {
    WirePacket packet;
    guint64 now;
    guint16 len;

    weir_bytes_u64 (b, &now);
    weir_bytes_u64 (b, &packet.base);
    weir_bytes_u16 (b, &len);
    weir_bytes_take (b, len, &packet.data);
    if (len > RTP_MAX || (packet.base > G_MAXUINT32 && packet.base != RELAY_NO_BASE))
      b->failed = TRUE;
    if (b->failed)
      return;
    packet.len = len;
    packet.now = (gint64) now;
    packet.more = weir_bytes_left (b) > 0;
    handler->packet (owner, track, &packet);
  }
}

static void
read_ntp (WeirBytes *b, guint n_tracks, const WireHandler *handler, gpointer owner)
{
  WeirNtpMap map = { .known = TRUE };
  guint8 track;

  weir_bytes_u8 (b, &track);
  weir_bytes_u64 (b, &map.ntp);
  weir_bytes_u32 (b, &map.timestamp);
  weir_bytes_u32 (b, &map.ssrc);
  if (track >= n_tracks)
    b->failed = TRUE;
  if (!b->failed)
    handler->mapped (owner, track, &map);
}

static void
read_track (WeirBytes *b, guint n_tracks, const WireHandler *handler, gpointer owner)
{
  g_autoptr (GstCaps) caps = NULL;
  guint8 track;

  weir_bytes_u8 (b, &track);
  caps = wire_read_caps (b);
  if (track >= n_tracks || weir_bytes_left (b) > 0)
    b->failed = TRUE;
  if (!b->failed)
    handler->track (owner, track, caps);
}

// Reads the number of a track, which is all of the message, and passes it to `function`.
static void
read_index (WeirBytes *b, guint n_tracks, void (*function) (gpointer, guint), gpointer owner)
{
  guint8 track;

  weir_bytes_u8 (b, &track);
  if (track >= n_tracks || weir_bytes_left (b) > 0)
    b->failed = TRUE;
  if (!b->failed)
    function (owner, track);
}

gchar *
wire_dup_message (WeirBytes *b, gsize max)
{
  gchar *text = wire_dup_text (b, max), *valid;

  if (!text)
    return NULL;
  valid = g_utf8_make_valid (text, -1);
  for (gchar *c = valid; *c; c++) {
    if ((guchar) *c < 0x20 || *c == 0x7f)
      *c = '?';
  }
  g_free (text);
  return valid;
}

static void
read_reason (WeirBytes *b, void (*function) (gpointer, const gchar *), gpointer owner)
{
  g_autofree gchar *reason = wire_dup_message (b, WIRE_TEXT_MAX);

  if (reason)
    function (owner, reason);
}

// The times of cues have 33 bits of 90 kHz.
#define CUE_TIME_MAX ((guint64) (WEIR_SCTE35_TIMES / 90000 + 1) * GST_SECOND)

static void
read_cue (WeirBytes *b, const WireHandler *handler, gpointer owner)
{
  WeirCue cue = { 0 };
  guint64 delay, duration;
  guint8 flags;

  weir_bytes_u32 (b, &cue.event);
  weir_bytes_u8 (b, &flags);
  weir_bytes_u64 (b, &delay);
  weir_bytes_u64 (b, &duration);
  if (delay > CUE_TIME_MAX || duration > CUE_TIME_MAX || weir_bytes_left (b) > 0)
    b->failed = TRUE;
  cue.cancel = flags & 1;
  cue.out = (flags & 2) != 0;
  cue.delay = (gint64) delay;
  cue.duration = (gint64) duration;
  if (!b->failed)
    handler->cue (owner, &cue);
}

static void
read_lasts (WeirBytes *b, const WireHandler *handler, gpointer owner)
{
  guint64 length;

  weir_bytes_u64 (b, &length);
  if (length > G_MAXINT64)
    b->failed = TRUE;
  if (!b->failed)
    handler->lasts (owner, (gint64) length);
}

// Reports whether the handler takes a message of this type.
static gboolean
is_taken (const WireHandler *handler, guint8 type)
{
  switch (type) {
    case WIRE_ALIVE:
      return TRUE;
    case WIRE_TRACKS:
      return handler->tracks != NULL;
    case WIRE_PACKETS:
      return handler->packet != NULL;
    case WIRE_NTP:
      return handler->mapped != NULL;
    case WIRE_OVERFLOW:
      return handler->overflowed != NULL;
    case WIRE_ENDED:
      return handler->ended != NULL;
    case WIRE_TRACK:
      return handler->track != NULL;
    case WIRE_FLOWS:
      return handler->flows != NULL;
    case WIRE_ASKED:
      return handler->asked != NULL;
    case WIRE_UNFIT:
      return handler->unfit != NULL;
    case WIRE_LASTS:
      return handler->lasts != NULL;
    case WIRE_CUE:
      return handler->cue != NULL;
    default:
      return FALSE;
  }
}

gboolean
wire_read (
    const guint8 *data, gsize len, guint n_tracks, const WireHandler *handler, gpointer owner)
{
  WeirBytes b = weir_bytes (data, len);
  guint32 n;
  guint8 type;

  weir_bytes_u8 (&b, &type);
  if (b.failed || !is_taken (handler, type))
    return FALSE;
  switch (type) {
    case WIRE_TRACKS:
      read_tracks (&b, handler, owner);
      break;
    case WIRE_PACKETS:
      read_packets (&b, n_tracks, handler, owner);
      break;
    case WIRE_NTP:
      read_ntp (&b, n_tracks, handler, owner);
      break;
    case WIRE_OVERFLOW:
      if (weir_bytes_u32 (&b, &n))
        handler->overflowed (owner, n);
      break;
    case WIRE_ENDED:
      read_reason (&b, handler->ended, owner);
      break;
    case WIRE_TRACK:
      read_track (&b, n_tracks, handler, owner);
      break;
    case WIRE_FLOWS:
      read_index (&b, n_tracks, handler->flows, owner);
      break;
    case WIRE_ASKED:
      read_index (&b, n_tracks, handler->asked, owner);
      break;
    case WIRE_UNFIT:
      read_reason (&b, handler->unfit, owner);
      break;
    case WIRE_LASTS:
      read_lasts (&b, handler, owner);
      break;
    case WIRE_CUE:
      read_cue (&b, handler, owner);
      break;
    default:
      break;
  }
  return !b.failed && weir_bytes_left (&b) == 0;
}
