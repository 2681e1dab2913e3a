// SPDX-License-Identifier: LGPL-2.1-or-later
#include "srtp.h"

#include <pthread.h>
#include <string.h>

#include "connection.h"
#include "srtpsession.h"

#define PREFIX "srtp-"
#define STREAMS_MAX 32 // of one object, which add-stream made
#define PT_MAX 127

typedef struct {
  GObject parent;
  gchar *profile;
  GBytes *send_key, *receive_key;
  guint transport_id;
  SrtpSession *session; // NULL if the construction failed
  gchar *token;

  // Under `table_lock`.
  gchar *destination;
  GHashTable *streams; // token -> SrtpStream, with a reference
} WeirSrtp;

typedef struct {
  GObjectClass parent_class;
} WeirSrtpClass;

GType weir_srtp_get_type (void);
G_DEFINE_TYPE (WeirSrtp, weir_srtp, G_TYPE_OBJECT)

// Not a GMutex: ThreadSanitizer does not see GLib's locks in threads that GLib did not create.
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *table; // token -> WeirSrtp, without a reference

// ---- tokens ----

gboolean
weir_srtp_is_token (const gchar *host)
{
  return g_str_has_prefix (host, PREFIX) && weir_connection_is_token (host + strlen (PREFIX));
}

gchar *
weir_srtp_lookup (const gchar *token, WeirProtect *out, WeirFraming *framing)
{
  gchar *destination = NULL;
  const WeirSrtp *owner;

  pthread_mutex_lock (&table_lock);
  owner = table ? g_hash_table_lookup (table, token) : NULL;
  if (owner) {
    *out = srtp_stream_get_protect (g_hash_table_lookup (owner->streams, token));
    *framing =
        g_strcmp0 (token, owner->token) == 0 ? WEIR_FRAMING_INTERLEAVED : WEIR_FRAMING_RFC4571;
    destination = g_strdup (owner->destination);
  }
  pthread_mutex_unlock (&table_lock);
  return destination;
}

guint16
weir_srtp_map_seq (const gchar *host, guint16 seq)
{
  gchar *destination = NULL;
  WeirProtect protect;
  WeirFraming framing;

  if (weir_srtp_is_token (host))
    destination = weir_srtp_lookup (host, &protect, &framing);
  if (!destination)
    return seq;
  seq = protect.next_seq (protect.data, seq);
  protect.release (protect.data);
  g_free (destination);
  return seq;
}

static gchar *
make_token (void)
{
  gchar *digits = weir_connection_make_token (), *token = g_strconcat (PREFIX, digits, NULL);

  g_free (digits);
  return token;
}

// ---- streams. Under the lock of the table ----

// Returns the token of a new stream (transfer full), or NULL if there is no memory. With `look`
// NULL its packets keep their headers.
static gchar *
add_stream (WeirSrtp *self, const WeirLook *look)
{
  SrtpStream *stream = srtp_stream_new (self->session, look);
  gchar *token;

  if (!stream)
    return NULL;
  token = make_token ();
  if (!table)
    table = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_hash_table_insert (self->streams, g_strdup (token), stream);
  g_hash_table_insert (table, g_strdup (token), self);
  return token;
}

// Reports whether another stream has the SSRC. Streams that had the same would share a key stream.
static gboolean
has_ssrc (const WeirSrtp *self, guint32 ssrc)
{
  GHashTableIter at;
  gpointer stream;

  g_hash_table_iter_init (&at, self->streams);
  while (g_hash_table_iter_next (&at, NULL, &stream)) {
    if (srtp_stream_has_ssrc (stream, ssrc))
      return TRUE;
  }
  return FALSE;
}

static gboolean
may_add (const WeirSrtp *self, const WeirLook *look)
{
  return g_hash_table_size (self->streams) <= STREAMS_MAX && !has_ssrc (self, look->ssrc)
         && !has_ssrc (self, look->rtx_ssrc);
}

// ---- actions ----

static gboolean
read_extensions (const GstStructure *stream, WeirLook *look)
{
  const GValue *value = gst_structure_get_value (stream, "extensions");
  const guint8 *data = NULL;
  guint transport_id = 0;
  GBytes *bytes;
  gsize len = 0;

  if (value) {
    bytes = G_VALUE_HOLDS (value, G_TYPE_BYTES) ? g_value_get_boxed (value) : NULL;
    if (!bytes)
      return FALSE;
    data = g_bytes_get_data (bytes, &len);
  }
  gst_structure_get_uint (stream, "transport-id", &transport_id);
  return weir_look_set_extensions (look, data, len, transport_id) == 0;
}

static gboolean
read_look (const GstStructure *stream, WeirLook *look)
{
  guint ssrc, pt, rtx_ssrc = 0, rtx_pt = 0;

  if (!gst_structure_get_uint (stream, "ssrc", &ssrc)
      || !gst_structure_get_uint (stream, "payload-type", &pt))
    return FALSE;
  gst_structure_get_uint (stream, "rtx-ssrc", &rtx_ssrc);
  gst_structure_get_uint (stream, "rtx-payload-type", &rtx_pt);
  if (ssrc == 0 || pt > PT_MAX || rtx_pt > PT_MAX || rtx_ssrc == ssrc)
    return FALSE;
  *look = (WeirLook) { .ssrc = ssrc, .pt = (guint8) pt, .rtx_pt = (guint8) rtx_pt };
  look->rtx_ssrc = rtx_pt > 0 ? rtx_ssrc : 0;
  return read_extensions (stream, look);
}

static gchar *
add_stream_action (WeirSrtp *self, const GstStructure *stream)
{
  gchar *token = NULL;
  WeirLook look;

  if (!self->session || !stream || !read_look (stream, &look))
    return NULL;
  pthread_mutex_lock (&table_lock);
  if (may_add (self, &look))
    token = add_stream (self, &look);
  pthread_mutex_unlock (&table_lock);
  return token;
}

static void
set_destination_action (WeirSrtp *self, const gchar *destination)
{
  g_return_if_fail (destination != NULL);
  pthread_mutex_lock (&table_lock);
  g_free (self->destination);
  self->destination = g_strdup (destination);
  pthread_mutex_unlock (&table_lock);
}

static guint
next_seq_action (WeirSrtp *self, guint seq)
{
  return self->token ? weir_srtp_map_seq (self->token, (guint16) seq) : seq;
}

static gint
protect_action (WeirSrtp *self, gpointer data, guint size, guint room)
{
  return self->session ? srtp_session_protect_rtcp (self->session, data, size, room) : -1;
}

static gint
unprotect_action (WeirSrtp *self, gpointer data, guint size)
{
  return self->session ? srtp_session_unprotect_rtcp (self->session, data, size) : -1;
}

static gint
unprotect_rtp_action (WeirSrtp *self, gpointer data, guint size)
{
  return self->session ? srtp_session_unprotect_rtp (self->session, data, size) : -1;
}

static SrtpLine *
find_line (const WeirSrtp *self)
{
  return self->session ? srtp_session_get_line (self->session) : NULL;
}

static void
feedback_action (WeirSrtp *self, gconstpointer data, guint size, guint64 now)
{
  SrtpLine *line = find_line (self);

  if (line)
    srtp_line_take (line, data, size, (gint64) now);
}

static gboolean
read_estimate_action (WeirSrtp *self, gpointer view, guint64 now)
{
  SrtpLine *line = find_line (self);

  if (line)
    *(WeirEstimateView *) view = srtp_line_view (line, (gint64) now);
  return line != NULL;
}

// ---- the class ----

enum {
  PROP_0,
  PROP_DESTINATION,
  PROP_PROFILE,
  PROP_SEND_KEY,
  PROP_RECEIVE_KEY,
  PROP_TRANSPORT_ID,
  PROP_TOKEN,
  N_PROPS
};

static SrtpSession *
make_session (const WeirSrtp *self)
{
  static const gchar *const names[] = {
    [WEIR_SRTP_CM_SHA1_80] = "AES_CM_128_HMAC_SHA1_80",
    [WEIR_SRTP_GCM_128] = "AEAD_AES_128_GCM",
  };

  if (self->destination && g_strcmp0 (self->profile, "none") == 0)
    return srtp_session_new_plain ();
  for (guint i = 0; self->destination && i < G_N_ELEMENTS (names); i++) {
    if (g_strcmp0 (self->profile, names[i]) == 0)
      return srtp_session_new ((WeirSrtpProfile) i, self->send_key, self->receive_key);
  }
  return NULL;
}

static void
weir_srtp_constructed (GObject *object)
{
  WeirSrtp *self = (WeirSrtp *) object;
  WeirLook look = { 0 };

  G_OBJECT_CLASS (weir_srtp_parent_class)->constructed (object);
  self->session = make_session (self);
  g_clear_pointer (&self->send_key, g_bytes_unref);
  g_clear_pointer (&self->receive_key, g_bytes_unref);
  if (!self->session || weir_look_set_extensions (&look, NULL, 0, self->transport_id) < 0)
    return;
  pthread_mutex_lock (&table_lock);
  self->token = add_stream (self, self->transport_id > 0 ? &look : NULL);
  pthread_mutex_unlock (&table_lock);
}

static void
weir_srtp_finalize (GObject *object)
{
  WeirSrtp *self = (WeirSrtp *) object;
  GHashTableIter at;
  gpointer token;

  pthread_mutex_lock (&table_lock);
  g_hash_table_iter_init (&at, self->streams);
  while (g_hash_table_iter_next (&at, &token, NULL))
    g_hash_table_remove (table, token);
  pthread_mutex_unlock (&table_lock);
  g_hash_table_unref (self->streams);
  g_clear_pointer (&self->session, srtp_session_unref);
  g_free (self->destination);
  g_free (self->profile);
  g_free (self->token);
  G_OBJECT_CLASS (weir_srtp_parent_class)->finalize (object);
}

static void
weir_srtp_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirSrtp *self = (WeirSrtp *) object;

  switch (id) {
    case PROP_DESTINATION:
      self->destination = g_value_dup_string (value);
      break;
    case PROP_PROFILE:
      self->profile = g_value_dup_string (value);
      break;
    case PROP_SEND_KEY:
      self->send_key = g_value_dup_boxed (value);
      break;
    case PROP_RECEIVE_KEY:
      self->receive_key = g_value_dup_boxed (value);
      break;
    case PROP_TRANSPORT_ID:
      self->transport_id = g_value_get_uint (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
weir_srtp_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  if (id == PROP_TOKEN)
    g_value_set_string (value, ((WeirSrtp *) object)->token);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
weir_srtp_init (WeirSrtp *self)
{
  self->streams = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, srtp_stream_unref);
}

static void
install_properties (GObjectClass *klass)
{
  const GParamFlags given = G_PARAM_WRITABLE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS;
  GParamSpec *props[N_PROPS] = { NULL };

  props[PROP_DESTINATION] = g_param_spec_string ("destination", "Destination",
      "IP address of the reader, or the token of its WeirConnection", NULL, given);
  props[PROP_PROFILE] = g_param_spec_string ("profile", "Profile",
      "AES_CM_128_HMAC_SHA1_80, AEAD_AES_128_GCM or none", "AES_CM_128_HMAC_SHA1_80", given);
  props[PROP_SEND_KEY] = g_param_spec_boxed ("send-key", "Send key",
      "Master key and salt of the sender, 30 bytes, or 28 with GCM", G_TYPE_BYTES, given);
  props[PROP_RECEIVE_KEY] = g_param_spec_boxed ("receive-key", "Receive key",
      "Master key and salt of the reader, 30 bytes, or 28 with GCM", G_TYPE_BYTES, given);
  props[PROP_TRANSPORT_ID] = g_param_spec_uint ("transport-id", "Transport id",
      "Id of the header extension with the transport-wide number; 0: packets have none", 0, 14, 0,
      given);
  props[PROP_TOKEN] = g_param_spec_string ("token", "Token",
      "Names the reader to fanoutsink elements, in place of a host", NULL,
      G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (klass, N_PROPS, props);
}

// The header describes them.
static void
install_actions (GType type)
{
  const GSignalFlags action = G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION;

  g_signal_new_class_handler ("next-seq", type, action, G_CALLBACK (next_seq_action), NULL, NULL,
      NULL, G_TYPE_UINT, 1, G_TYPE_UINT);
  g_signal_new_class_handler ("add-stream", type, action, G_CALLBACK (add_stream_action), NULL,
      NULL, NULL, G_TYPE_STRING, 1, GST_TYPE_STRUCTURE);
  g_signal_new_class_handler ("set-destination", type, action, G_CALLBACK (set_destination_action),
      NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
  g_signal_new_class_handler ("protect", type, action, G_CALLBACK (protect_action), NULL, NULL,
      NULL, G_TYPE_INT, 3, G_TYPE_POINTER, G_TYPE_UINT, G_TYPE_UINT);
  g_signal_new_class_handler ("unprotect", type, action, G_CALLBACK (unprotect_action), NULL, NULL,
      NULL, G_TYPE_INT, 2, G_TYPE_POINTER, G_TYPE_UINT);
  g_signal_new_class_handler ("feedback", type, action, G_CALLBACK (feedback_action), NULL, NULL,
      NULL, G_TYPE_NONE, 3, G_TYPE_POINTER, G_TYPE_UINT, G_TYPE_UINT64);
  g_signal_new_class_handler ("read-estimate", type, action, G_CALLBACK (read_estimate_action),
      NULL, NULL, NULL, G_TYPE_BOOLEAN, 2, G_TYPE_POINTER, G_TYPE_UINT64);
  g_signal_new_class_handler ("unprotect-rtp", type, action, G_CALLBACK (unprotect_rtp_action),
      NULL, NULL, NULL, G_TYPE_INT, 2, G_TYPE_POINTER, G_TYPE_UINT);
}

static void
weir_srtp_class_init (WeirSrtpClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->constructed = weir_srtp_constructed;
  object_class->finalize = weir_srtp_finalize;
  object_class->set_property = weir_srtp_set_property;
  object_class->get_property = weir_srtp_get_property;
  install_properties (object_class);
  install_actions (G_TYPE_FROM_CLASS (klass));
}

void
weir_srtp_register (void)
{
  g_type_ensure (weir_srtp_get_type ());
}
