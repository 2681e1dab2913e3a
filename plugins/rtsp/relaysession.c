// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relaysession.h"

#include "rtpbuffer.h"
#include "weir.h"

struct _WeirRelaySession {
  GObject parent;
  GMutex lock; // guards `counts`
  WeirRelayCounts counts;
};

typedef struct {
  GObjectClass parent_class;
} WeirRelaySessionClass;

enum {
  SESSION_PROP_0,
  SESSION_PROP_INTERNAL_SSRC,
  SESSION_PROP_SDES,
  SESSION_PROP_DISABLE_SR_TIMESTAMP
};

GType weir_relay_session_get_type (void);
G_DEFINE_TYPE (WeirRelaySession, weir_relay_session, G_TYPE_OBJECT)

const gchar *
weir_relay_session_get_cname (void)
{
  static gsize cname;

  // A random name for the life of the process (RFC 7022, section 4.2).
  if (g_once_init_enter (&cname))
    g_once_init_leave (
        &cname, (gsize) g_strdup_printf ("weir-%08x%08x", g_random_int (), g_random_int ()));
  return (const gchar *) cname;
}

static void
session_get_property (GObject *object, guint id, GValue *value, GParamSpec *spec)
{
  WeirRelaySession *self = (WeirRelaySession *) object;

  if (id == SESSION_PROP_INTERNAL_SSRC) {
    g_mutex_lock (&self->lock);
    g_value_set_uint (value, self->counts.ssrc);
    g_mutex_unlock (&self->lock);
  } else if (id == SESSION_PROP_SDES) {
    g_value_take_boxed (value, gst_structure_new ("application/x-rtp-source-sdes", "cname",
                                   G_TYPE_STRING, weir_relay_session_get_cname (), NULL));
  } else {
    g_value_set_boolean (value, FALSE);
  }
}

// GstRTSPStream sets `disable-sr-timestamp` for streams without rate control; a relay has none.
static void
session_set_property (GObject *object, guint id, const GValue *value, GParamSpec *spec)
{
}

static void
session_finalize (GObject *object)
{
  g_mutex_clear (&((WeirRelaySession *) object)->lock);
  G_OBJECT_CLASS (weir_relay_session_parent_class)->finalize (object);
}

static void
weir_relay_session_init (WeirRelaySession *self)
{
  g_mutex_init (&self->lock);
}

static void
weir_relay_session_class_init (WeirRelaySessionClass *klass)
{
  static const gchar *const signals[] = { "on-new-ssrc", "on-ssrc-sdes", "on-ssrc-active",
    "on-bye-ssrc", "on-bye-timeout", "on-timeout", "on-new-sender-ssrc", "on-sender-ssrc-active" };
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = session_get_property;
  object_class->set_property = session_set_property;
  object_class->finalize = session_finalize;
  g_object_class_install_property (object_class, SESSION_PROP_INTERNAL_SSRC,
      g_param_spec_uint ("internal-ssrc", "SSRC", "SSRC of the stream", 0, G_MAXUINT, 0,
          G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
  // gst_rtsp_sdp_make_media() reads the CNAME.
  g_object_class_install_property (object_class, SESSION_PROP_SDES,
      g_param_spec_boxed ("sdes", "SDES", "The CNAME", GST_TYPE_STRUCTURE,
          G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
  g_object_class_install_property (object_class, SESSION_PROP_DISABLE_SR_TIMESTAMP,
      g_param_spec_boolean ("disable-sr-timestamp", "No timestamps", "Ignored", FALSE,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS));
  for (guint i = 0; i < G_N_ELEMENTS (signals); i++)
    g_signal_new (signals[i], G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
        G_TYPE_NONE, 1, G_TYPE_OBJECT);
}

WeirRelaySession *
weir_relay_session_new (void)
{
  return g_object_new (weir_relay_session_get_type (), NULL);
}

// Adds the packets of a buffer, up to one that is not RTP. Returns FALSE if there is one.
static gboolean
add_packets (WeirRelayCounts *counts, GstBuffer *buffer)
{
  guint n = 1;
  const guint16 *lengths = weir_buffer_get_packets (buffer, &n);
  gsize at = 0, size = gst_buffer_get_size (buffer);
  WeirRtp rtp;

  for (guint i = 0; i < n; i++) {
    if (!weir_rtp_buffer_read_part (buffer, at, lengths ? lengths[i] : size, &rtp))
      return FALSE;
    at += lengths ? lengths[i] : size;
    counts->n_packets++;
    counts->n_octets += (guint32) rtp.payload_length;
  }
  counts->ssrc = rtp.ssrc;
  counts->timestamp = rtp.timestamp;
  return TRUE;
}

gboolean
weir_relay_session_count (WeirRelaySession *self, GstBuffer *buffer, gint64 now)
{
  gboolean counted;

  g_mutex_lock (&self->lock);
  counted = add_packets (&self->counts, buffer);
  if (counted)
    self->counts.arrival = now;
  g_mutex_unlock (&self->lock);
  return counted;
}

void
weir_relay_session_set_ssrc (WeirRelaySession *self, guint32 ssrc)
{
  g_mutex_lock (&self->lock);
  self->counts.ssrc = ssrc;
  g_mutex_unlock (&self->lock);
}

void
weir_relay_session_get_counts (WeirRelaySession *self, WeirRelayCounts *counts)
{
  g_mutex_lock (&self->lock);
  *counts = self->counts;
  g_mutex_unlock (&self->lock);
}
