// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/sdp_offer.h"

#include <gio/gio.h>
#include <gst/rtp/rtp.h>
#include <gst/sdp/sdp.h>
#include <string.h>

#include "webrtc/ice.h"

#define MID_MAX 64

// ---- errors ----

static gboolean fail (GError **error, const gchar *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
fail (GError **error, const gchar *format, ...)
{
  va_list arguments;

  va_start (arguments, format);
  if (error)
    *error = g_error_new_valist (G_IO_ERROR, G_IO_ERROR_INVALID_DATA, format, arguments);
  va_end (arguments);
  return FALSE;
}

// ---- texts ----

// Reads a number of up to `max` at the start of a text. Returns what follows, or NULL.
static const gchar *
read_number (const gchar *text, guint64 max, guint *number)
{
  gchar *end;
  guint64 value;

  if (!g_ascii_isdigit (*text))
    return NULL;
  value = g_ascii_strtoull (text, &end, 10);
  *number = (guint) value;
  return value <= max ? end : NULL;
}

gchar *
sdp_offer_dup_parameter (const gchar *fmtp, const gchar *name)
{
  gchar **parts = g_strsplit (fmtp ? fmtp : "", ";", -1), *found = NULL;
  gsize length = strlen (name);

  for (gchar **part = parts; *part && !found; part++) {
    gchar *text = g_strstrip (*part);

    if (!g_ascii_strncasecmp (text, name, length) && text[length] == '=')
      found = g_strdup (g_strstrip (text + length + 1));
  }
  g_strfreev (parts);
  return found;
}

// ---- the attributes of an m-line ----

static OfferFormat *
find_format (const OfferMedia *self, guint type)
{
  for (guint i = 0; i < self->formats->len; i++) {
    OfferFormat *format = &g_array_index (self->formats, OfferFormat, i);

    if (format->type == type)
      return format;
  }
  return NULL;
}

// Returns the text behind the payload type at the start of an attribute, and sets `format` to the
// one with this type. Returns NULL if the m-line has no such type.
static const gchar *
find_type (OfferMedia *self, const gchar *value, OfferFormat **format)
{
  guint type;
  const gchar *rest = read_number (value, 127, &type);

  if (!rest || *rest != ' ')
    return NULL;
  *format = find_format (self, type);
  return *format ? rest + strspn (rest, " ") : NULL;
}

// Takes ownership of the name.
static void
set_name (OfferFormat *format, gchar *name)
{
  g_free (format->name);
  g_free (format->encoding);
  format->name = name;
  format->encoding = g_ascii_strup (name, -1);
}

static gboolean
read_rtpmap (OfferMedia *self, const gchar *value, GError **error)
{
  OfferFormat *format;
  const gchar *text = find_type (self, value, &format), *slash;
  guint rate, channels = 1;

  if (!text)
    return TRUE; // of a type that the m-line does not name
  slash = strchr (text, '/');
  text = slash ? read_number (slash + 1, G_MAXINT, &rate) : NULL;
  if (text && *text == '/')
    text = read_number (text + 1, 255, &channels);
  if (!text || *text || rate == 0 || channels == 0)
    return fail (error, "the line \"a=rtpmap:%s\" has not the form TYPE NAME/RATE", value);
  text = strchr (value, ' ') + 1;
  set_name (format, g_strstrip (g_strndup (text, (gsize) (slash - text))));
  format->clock_rate = rate;
  format->channels = channels;
  return TRUE;
}

static gboolean
read_fmtp (OfferMedia *self, const gchar *value, GError **error)
{
  OfferFormat *format;
  const gchar *text = find_type (self, value, &format);

  if (text && !format->fmtp)
    format->fmtp = g_strdup (text);
  return TRUE;
}

static void
add_feedback (OfferFormat *format, const gchar *text)
{
  format->nack |= g_str_equal (text, "nack");
  format->pli |= g_str_equal (text, "nack pli");
  format->fir |= g_str_equal (text, "ccm fir");
  format->transport_cc |= g_str_equal (text, "transport-cc");
  format->remb |= g_str_equal (text, "goog-remb");
}

static gboolean
read_feedback (OfferMedia *self, const gchar *value, GError **error)
{
  gchar *copy = g_strchomp (g_strdup (value)); // Pion adds a space
  OfferFormat *format;
  const gchar *text;

  for (guint i = 0; g_str_has_prefix (copy, "* ") && i < self->formats->len; i++)
    add_feedback (&g_array_index (self->formats, OfferFormat, i), copy + 2);
  text = find_type (self, copy, &format);
  if (text)
    add_feedback (format, text);
  g_free (copy);
  return TRUE;
}

// "4 URI" or "4/recvonly URI"
static gboolean
read_extension (OfferMedia *self, const gchar *value, GError **error)
{
  const gchar *uri = strchr (value, ' ');
  static const gchar *const uris[] = { SDP_OFFER_PLAYOUT_DELAY, SDP_OFFER_MID,
    SDP_OFFER_TRANSPORT_CC, SDP_OFFER_RID, SDP_OFFER_REPAIRED_RID };
  guint *const ids[] = { &self->playout_delay, &self->mid_id, &self->transport_id, &self->rid_id,
    &self->repaired_rid_id };
  guint id;

  if (!read_number (value, 255, &id) || id == 0 || !uri)
    return fail (error, "the line \"a=extmap:%s\" has not the form ID URI", value);
  for (guint i = 0; i < G_N_ELEMENTS (uris); i++) {
    if (id < 15 && g_str_equal (uri + 1, uris[i]))
      *ids[i] = id;
  }
  return TRUE;
}

static gboolean
read_attributes (OfferMedia *self, const GstSDPMedia *media, GError **error)
{
  static const struct {
    const gchar *name;
    gboolean (*read) (OfferMedia *self, const gchar *value, GError **error);
  } readers[] = {
    { "rtpmap", read_rtpmap },
    { "fmtp", read_fmtp },
    { "rtcp-fb", read_feedback },
    { "extmap", read_extension },
  };
  gboolean ok = TRUE;

  for (guint i = 0; ok && i < gst_sdp_media_attributes_len (media); i++) {
    const GstSDPAttribute *attribute = gst_sdp_media_get_attribute (media, i);

    for (guint j = 0; ok && j < G_N_ELEMENTS (readers); j++) {
      if (g_str_equal (attribute->key, readers[j].name) && attribute->value)
        ok = readers[j].read (self, attribute->value, error);
    }
  }
  return ok;
}

// ---- m-lines ----

static void
clear_format (gpointer data)
{
  OfferFormat *format = data;

  g_free (format->name);
  g_free (format->encoding);
  g_free (format->fmtp);
}

static void
media_free (gpointer data)
{
  OfferMedia *self = data;

  g_free (self->media);
  g_free (self->proto);
  g_free (self->format);
  g_free (self->mid);
  g_array_unref (self->formats);
  sdp_layers_clear (&self->layers);
  g_free (self);
}

static gboolean
add_formats (OfferMedia *self, const GstSDPMedia *media, GError **error)
{
  guint n = gst_sdp_media_formats_len (media);

  if (n > SDP_OFFER_FORMATS_MAX)
    return fail (error, "a line m=%s has %u payload types; %u are taken", self->media, n,
        SDP_OFFER_FORMATS_MAX);
  for (guint i = 0; i < n; i++) {
    OfferFormat format = { .rtx = -1 };
    const gchar *text = gst_sdp_media_get_format (media, i), *rest;
    const GstRTPPayloadInfo *info;

    rest = read_number (text, 127, &format.type);
    if (!rest || *rest)
      return fail (error, "\"%s\" in a line m=%s is no payload type", text, self->media);
    if (find_format (self, format.type))
      return fail (error, "payload type %u is twice in a line m=%s", format.type, self->media);
    info = format.type < 96 ? gst_rtp_payload_info_for_pt ((guint8) format.type) : NULL;
    set_name (&format, g_strdup (info ? info->encoding_name : ""));
    format.clock_rate = info ? info->clock_rate : 0;
    format.channels = 1;
    g_array_append_val (self->formats, format);
  }
  return TRUE;
}

// Notes which types are the retransmissions of which, and takes these out of the list.
static void
pair_retransmissions (OfferMedia *self)
{
  for (guint i = self->formats->len; i-- > 0;) {
    OfferFormat *rtx = &g_array_index (self->formats, OfferFormat, i), *of;
    gchar *apt;
    guint type;

    if (!g_str_equal (rtx->encoding, "RTX"))
      continue;
    apt = sdp_offer_dup_parameter (rtx->fmtp, "apt");
    of = apt && read_number (apt, 127, &type) ? find_format (self, type) : NULL;
    if (of)
      of->rtx = (gint) rtx->type;
    g_free (apt);
    g_array_remove_index (self->formats, i);
  }
}

// An attribute of the m-line, which may be NULL, or else of the session.
static const gchar *
get_attribute (const GstSDPMessage *sdp, const GstSDPMedia *media, const gchar *name)
{
  const gchar *value = media ? gst_sdp_media_get_attribute_val (media, name) : NULL;

  return value ? value : gst_sdp_message_get_attribute_val (sdp, name);
}

static void
read_direction (OfferMedia *self, const GstSDPMessage *sdp, const GstSDPMedia *media)
{
  static const struct {
    const gchar *name;
    gboolean receives, sends;
  } directions[] = {
    { "sendrecv", TRUE, TRUE },
    { "recvonly", TRUE, FALSE },
    { "sendonly", FALSE, TRUE },
    { "inactive", FALSE, FALSE },
  };

  self->receives = self->sends = TRUE;
  for (guint of_media = 0; of_media < 2; of_media++) {
    for (guint i = 0; i < G_N_ELEMENTS (directions); i++) {
      if (of_media ? gst_sdp_media_get_attribute_val (media, directions[i].name) != NULL
                   : gst_sdp_message_get_attribute_val (sdp, directions[i].name) != NULL) {
        self->receives = directions[i].receives;
        self->sends = directions[i].sends;
      }
    }
  }
}

static gboolean
is_secure_rtp (const gchar *proto)
{
  static const gchar *const protos[] = { "UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP",
    "TCP/DTLS/RTP/SAVPF", "TCP/DTLS/RTP/SAVP", "RTP/SAVPF", "RTP/SAVP", NULL };

  return g_strv_contains (protos, proto);
}

static gboolean
read_mid (OfferMedia *self, const GstSDPMedia *media, GError **error)
{
  self->mid = g_strdup (gst_sdp_media_get_attribute_val (media, "mid"));
  if (!self->mid)
    return TRUE;
  if (!*self->mid || strlen (self->mid) > MID_MAX || strpbrk (self->mid, " \t"))
    return fail (error, "the line \"a=mid:%.*s\" is not a word of 1 to %u characters", MID_MAX,
        self->mid, MID_MAX);
  return TRUE;
}

static gboolean
read_media (OfferMedia *self, const GstSDPMessage *sdp, const GstSDPMedia *media, GError **error)
{
  self->media = g_strdup (gst_sdp_media_get_media (media));
  self->proto = g_strdup (gst_sdp_media_get_proto (media));
  self->format =
      g_strdup (gst_sdp_media_formats_len (media) > 0 ? gst_sdp_media_get_format (media, 0) : NULL);
  if (!self->media || !*self->media || !self->proto || !*self->proto || !self->format)
    return fail (error, "a line m= has not the form MEDIA PORT PROTOCOL FORMAT...");
  self->is_video = g_str_equal (self->media, "video");
  self->is_audio = g_str_equal (self->media, "audio");
  read_direction (self, sdp, media);
  self->rsize = gst_sdp_media_get_attribute_val (media, "rtcp-rsize") != NULL;
  self->is_usable = (self->is_video || self->is_audio) && is_secure_rtp (self->proto)
                    && (gst_sdp_media_get_port (media) != 0
                        || gst_sdp_media_get_attribute_val (media, "bundle-only") != NULL);
  if (!read_mid (self, media, error))
    return FALSE;
  if (!self->is_usable)
    return TRUE;
  if (!get_attribute (sdp, media, "rtcp-mux"))
    return fail (error, "a line m=%s has no line a=rtcp-mux", self->media);
  if (!add_formats (self, media, error) || !read_attributes (self, media, error))
    return FALSE;
  pair_retransmissions (self);
  if (self->rid_id)
    sdp_layers_read (&self->layers, media);
  return TRUE;
}

// ---- the transport ----

// Returns the mids of BUNDLE, or NULL. (transfer full)
static gchar **
split_bundle (const GstSDPMessage *sdp)
{
  const gchar *group;

  for (guint i = 0; (group = gst_sdp_message_get_attribute_val_n (sdp, "group", i)); i++) {
    if (g_str_has_prefix (group, "BUNDLE "))
      return g_strsplit (group + strlen ("BUNDLE "), " ", SDP_OFFER_MEDIA_MAX);
  }
  return NULL;
}

// All m-lines have one transport. Sets `carrier` to the m-line whose attributes describe it.
static gboolean
find_transport (
    SdpOffer *self, const GstSDPMessage *sdp, const GstSDPMedia **carrier, GError **error)
{
  gchar **bundle = split_bundle (sdp);
  guint n = 0;

  *carrier = NULL;
  for (guint i = 0; i < self->media->len; i++) {
    OfferMedia *media = g_ptr_array_index (self->media, i);
    gboolean is_in =
        bundle && media->mid && g_strv_contains ((const gchar *const *) bundle, media->mid);

    media->is_usable &= !bundle || is_in;
    n += media->is_usable;
    if (is_in ? g_str_equal (media->mid, bundle[0]) : media->is_usable && !*carrier)
      *carrier = gst_sdp_message_get_media (sdp, i);
  }
  if (n > 1 && !bundle)
    fail (error, "several m-lines need a line a=group:BUNDLE");
  else if (n == 0 || !*carrier)
    fail (error, "no line m= is of audio or video over DTLS and SRTP, as in "
                 "\"m=video 9 UDP/TLS/RTP/SAVPF 96\"");
  n = bundle || n == 1 ? n : 0;
  g_strfreev (bundle);
  return n > 0 && *carrier;
}

// Takes the user name for ICE. The password is needed by those who check, which the proxy does not.
static gboolean
take_ice (const GstSDPMessage *sdp, const GstSDPMedia *media, gchar **ufrag, GError **error)
{
  const gchar *name = get_attribute (sdp, media, "ice-ufrag");
  const gchar *word = get_attribute (sdp, media, "ice-pwd");

  if (!name || !word)
    return fail (error, "the offer has no line a=%s", name ? "ice-pwd" : "ice-ufrag");
  if (!weir_ice_is_ufrag (name))
    return fail (error, "a=ice-ufrag does not have %d to %d letters, digits, + and /",
        WEIR_ICE_UFRAG_MIN, WEIR_ICE_TEXT_MAX);
  if (!weir_ice_is_password (word))
    return fail (error, "a=ice-pwd does not have %d to %d letters, digits, + and /",
        WEIR_ICE_PASSWORD_MIN, WEIR_ICE_TEXT_MAX);
  *ufrag = g_strdup (name);
  return TRUE;
}

static gboolean
take_fingerprint (
    SdpOffer *self, const GstSDPMessage *sdp, const GstSDPMedia *media, GError **error)
{
  gboolean of_media = gst_sdp_media_get_attribute_val (media, "fingerprint") != NULL;
  const gchar *value;
  guint i = 0;

  do {
    value = of_media ? gst_sdp_media_get_attribute_val_n (media, "fingerprint", i)
                     : gst_sdp_message_get_attribute_val_n (sdp, "fingerprint", i);
    if (!value)
      return fail (error, "the offer has no line a=fingerprint:sha-256 AB:CD:...");
    i++;
  } while (g_ascii_strncasecmp (value, "sha-256 ", strlen ("sha-256 ")));
  value += strlen ("sha-256 ");
  return (strlen (value) == 3 * TLS_FINGERPRINT_BYTES - 1
             && tls_fingerprint_parse (value, self->fingerprint))
         || fail (error, "the line a=fingerprint:sha-256 does not have 32 bytes like AB:CD:...");
}

static gboolean
take_setup (SdpOffer *self, const GstSDPMessage *sdp, const GstSDPMedia *media, GError **error)
{
  const gchar *setup = get_attribute (sdp, media, "setup");

  self->is_passive = setup && g_str_equal (setup, "passive");
  if (setup && !self->is_passive && !g_str_equal (setup, "actpass")
      && !g_str_equal (setup, "active"))
    return fail (error, "the line \"a=setup:%s\" is not one of actpass, active and passive", setup);
  return TRUE;
}

// ---- the whole ----

void
sdp_offer_free (SdpOffer *self)
{
  g_ptr_array_unref (self->media);
  g_free (self->ufrag);
  g_free (self);
}

static gboolean
read_offer (SdpOffer *self, const GstSDPMessage *sdp, GError **error)
{
  const GstSDPMedia *carrier;
  guint n = gst_sdp_message_medias_len (sdp);

  for (guint i = 0; i < n; i++) {
    OfferMedia *media = g_new0 (OfferMedia, 1);

    media->formats = g_array_new (FALSE, TRUE, sizeof (OfferFormat));
    g_array_set_clear_func (media->formats, clear_format);
    g_ptr_array_add (self->media, media);
    if (!read_media (media, sdp, gst_sdp_message_get_media (sdp, i), error))
      return FALSE;
  }
  return find_transport (self, sdp, &carrier, error) && take_ice (sdp, carrier, &self->ufrag, error)
         && take_fingerprint (self, sdp, carrier, error) && take_setup (self, sdp, carrier, error);
}

static gboolean
check_text (const gchar *text, GError **error)
{
  for (const gchar *c = text; *c; c++) {
    if (g_ascii_iscntrl (*c) && !strchr ("\r\n\t", *c))
      return fail (error, "the offer has a control character");
  }
  return TRUE;
}

// The library has no bounds.
static gboolean
parse_lines (GstSDPMessage *sdp, const gchar *text, gsize size, GError **error)
{
  guint n;

  if (gst_sdp_message_parse_buffer ((const guint8 *) text, (guint) size, sdp) != GST_SDP_OK)
    return fail (error, "the description is no SDP");
  n = gst_sdp_message_medias_len (sdp);
  return n <= SDP_OFFER_MEDIA_MAX
         || fail (error, "the offer has %u lines m=; %u are taken", n, SDP_OFFER_MEDIA_MAX);
}

// Returns the description (transfer full), or NULL.
static GstSDPMessage *
parse (const gchar *text, gsize size, GError **error)
{
  GstSDPMessage *sdp = NULL;
  gchar *copy;

  if (size == 0 || size > SDP_OFFER_BYTES_MAX || !g_utf8_validate_len (text, size, NULL)) {
    fail (error, "the description is no UTF-8 text of 1 to %u bytes", SDP_OFFER_BYTES_MAX);
    return NULL;
  }
  copy = g_strndup (text, size);
  if (check_text (copy, error)) {
    gst_sdp_message_new (&sdp);
    if (!parse_lines (sdp, copy, size, error))
      g_clear_pointer (&sdp, gst_sdp_message_free);
  }
  g_free (copy);
  return sdp;
}

SdpOffer *
sdp_offer_new (const gchar *text, gsize size, GError **error)
{
  GstSDPMessage *sdp = NULL;
  SdpOffer *self;

  if (size > 0 && *text != 'v')
    fail (error, "the offer does not begin with the line v=0");
  else
    sdp = parse (text, size, error);
  if (!sdp)
    return NULL;
  self = g_new0 (SdpOffer, 1);
  self->media = g_ptr_array_new_with_free_func (media_free);
  if (!read_offer (self, sdp, error))
    g_clear_pointer (&self, sdp_offer_free);
  gst_sdp_message_free (sdp);
  return self;
}

// ---- fragments ----

static gboolean
has_mid (gconstpointer media, gconstpointer mid)
{
  return !g_strcmp0 (((const OfferMedia *) media)->mid, mid);
}

static gboolean
check_fragment (const SdpOffer *self, const GstSDPMessage *sdp, GError **error)
{
  static const gchar *const names[] = { "ice-ufrag", "candidate", "end-of-candidates" };
  const guint n = gst_sdp_message_medias_len (sdp);
  gboolean is_ice = FALSE;

  for (guint i = 0; i < MAX (n, 1); i++) {
    const GstSDPMedia *media = n > 0 ? gst_sdp_message_get_media (sdp, i) : NULL;
    const gchar *mid = media ? gst_sdp_media_get_attribute_val (media, "mid") : NULL;

    if (mid && !g_ptr_array_find_with_equal_func (self->media, mid, has_mid, NULL)) {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "the offer has no line a=mid:%.*s",
          MID_MAX, mid);
      return FALSE;
    }
    for (guint j = 0; j < G_N_ELEMENTS (names); j++)
      is_ice |= get_attribute (sdp, media, names[j]) != NULL;
  }
  if (!is_ice)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
        "the fragment has neither candidates nor a line a=ice-ufrag");
  return is_ice;
}

gboolean
sdp_offer_read_fragment (
    const SdpOffer *self, const gchar *text, gsize size, gchar **ufrag, GError **error)
{
  GstSDPMessage *sdp = parse (text, size, error);
  const GstSDPMedia *media;
  gboolean ok;

  *ufrag = NULL;
  if (!sdp)
    return FALSE;
  media = gst_sdp_message_medias_len (sdp) > 0 ? gst_sdp_message_get_media (sdp, 0) : NULL;
  ok = check_fragment (self, sdp, error)
       && (!get_attribute (sdp, media, "ice-ufrag") || take_ice (sdp, media, ufrag, error));
  gst_sdp_message_free (sdp);
  return ok;
}
