// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/srtp.h"

#include "weir-rtsp.h"

#include <string.h>
#include <sys/random.h>

#define PLAIN "RTP/AVP"
#define SECURE "RTP/SAVP"

// Qdata of a client.
typedef struct {
  gpointer media;  // that was described last; only compared
  GPtrArray *keys; // GBytes by the index of the track; NULL for one that is in use
  gchar *asked;    // the header Transport of the current SETUP, if that asks for SRTP
  GBytes *receive; // the client's key in that SETUP, or NULL
} Srtp;

static void
forget_setup (Srtp *self)
{
  g_clear_pointer (&self->asked, g_free);
  g_clear_pointer (&self->receive, g_bytes_unref);
}

static void
srtp_free (gpointer data)
{
  Srtp *self = data;

  forget_setup (self);
  g_ptr_array_unref (self->keys);
  g_free (self);
}

static void
key_free (gpointer key)
{
  if (key)
    g_bytes_unref (key);
}

static Srtp *
get (GstRTSPClient *client)
{
  GQuark quark = g_quark_from_static_string ("rtsp-proxy-srtp");
  Srtp *self = g_object_get_qdata (G_OBJECT (client), quark);

  if (!self) {
    self = g_new0 (Srtp, 1);
    self->keys = g_ptr_array_new_with_free_func (key_free);
    g_object_set_qdata_full (G_OBJECT (client), quark, self, srtp_free);
  }
  return self;
}

static GBytes *
make_key (void)
{
  guint8 key[MIKEY_KEY_BYTES];
  GBytes *bytes;

  // A signal can interrupt the call until the kernel has seeded its generator.
  while (getrandom (key, sizeof key, 0) != sizeof key)
    ;
  bytes = g_bytes_new (key, sizeof key);
  explicit_bzero (key, sizeof key);
  return bytes;
}

static gchar *
write_key (GBytes *key, GstRTSPStream *stream)
{
  guint ssrc = 0;

  gst_rtsp_stream_get_ssrc (stream, &ssrc);
  return mikey_write (key, ssrc);
}

// ---- DESCRIBE ----

static void
offer (Srtp *self, GstRTSPStream *stream, GstSDPMedia *track)
{
  GBytes *key = make_key ();
  g_autofree gchar *message = NULL, *value = NULL;

  g_ptr_array_add (self->keys, key);
  message = write_key (key, stream);
  value = g_strconcat ("mikey ", message, NULL);
  gst_sdp_media_set_proto (track, SECURE);
  gst_sdp_media_add_attribute (track, "key-mgmt", value);
}

void
srtp_describe (GstRTSPClient *client, GstRTSPMedia *media, GstSDPMessage *sdp)
{
  guint n = gst_sdp_message_medias_len (sdp);
  Srtp *self;

  if (n != gst_rtsp_media_n_streams (media))
    return;
  for (guint i = 0; i < n; i++) {
    if (!weir_client_can_use_srtp (client, gst_rtsp_media_get_stream (media, i)))
      return;
  }
  self = get (client);
  self->media = media;
  g_ptr_array_set_size (self->keys, 0);
  for (guint i = 0; i < n; i++)
    offer (self, gst_rtsp_media_get_stream (media, i),
        (GstSDPMedia *) gst_sdp_message_get_media (sdp, i));
}

// ---- sessions ----

guint64
srtp_count_refused (void)
{
  return weir_srtp_get_refused ();
}

// ---- SETUP ----

MikeyVerdict
srtp_begin_setup (GstRTSPContext *ctx, const gchar *transport)
{
  Srtp *self = get (ctx->client);
  gchar *header;

  forget_setup (self);
  self->asked = g_strdup (transport);
  if (gst_rtsp_message_get_header (ctx->request, GST_RTSP_HDR_KEYMGMT, &header, 0) != GST_RTSP_OK)
    return MIKEY_NONE;
  return mikey_read_header (header, &self->receive);
}

void
srtp_begin_plain (GstRTSPContext *ctx)
{
  forget_setup (get (ctx->client));
}

gboolean
srtp_is_asked (GstRTSPClient *client)
{
  return get (client)->asked != NULL;
}

gboolean
srtp_has_begun (GstRTSPContext *ctx, const gchar *transport)
{
  return weir_client_was_deferred (ctx->client, ctx)
         && g_strcmp0 (get (ctx->client)->asked, transport) == 0;
}

// Returns the key that the description names for a track (transfer full), the first time, and a new
// one after that.
static GBytes *
take_key (Srtp *self, gpointer media, guint track)
{
  GBytes *key = NULL;

  if (self->media == media && track < self->keys->len)
    key = g_steal_pointer (&g_ptr_array_index (self->keys, track));
  return key ? key : make_key ();
}

static void
add_key (GstRTSPContext *ctx, GstRTSPMessage *answer, GBytes *key)
{
  gchar *uri = gst_rtsp_url_get_request_uri (ctx->uri), *query = strchr (uri, '?');
  g_autofree gchar *message = write_key (key, ctx->stream);

  if (query)
    *query = '\0';
  gst_rtsp_message_take_header (answer, GST_RTSP_HDR_KEYMGMT,
      g_strdup_printf ("prot=mikey;uri=\"rtsps%s\";data=\"%s\"", strchr (uri, ':'), message));
  g_free (uri);
}

static void
secure_header (GstRTSPMessage *answer)
{
  gchar *header;

  if (gst_rtsp_message_get_header (answer, GST_RTSP_HDR_TRANSPORT, &header, 0) != GST_RTSP_OK
      || !g_str_has_prefix (header, PLAIN))
    return;
  header = g_strconcat (SECURE, header + strlen (PLAIN), NULL);
  gst_rtsp_message_remove_header (answer, GST_RTSP_HDR_TRANSPORT, -1);
  gst_rtsp_message_take_header (answer, GST_RTSP_HDR_TRANSPORT, header);
}

void
srtp_answer (GstRTSPContext *ctx, GstRTSPMessage *answer)
{
  Srtp *self = get (ctx->client);
  g_autoptr (GBytes) key = NULL;

  if (!self->asked) {
    weir_transport_clear_srtp (ctx->trans);
    return;
  }
  key = take_key (self, ctx->media, gst_rtsp_stream_get_index (ctx->stream));
  weir_transport_set_srtp (ctx->client, ctx->trans, key, self->receive ? self->receive : key);
  secure_header (answer);
  add_key (ctx, answer, key);
  forget_setup (self);
}
