// SPDX-License-Identifier: LGPL-2.1-or-later
#include "srtp.h"

#include <string.h>

#include "config.h"

#define PREFIX "srtp-"
#define TOKEN_BYTES 16

gboolean
weir_srtp_is_token (const gchar *host)
{
  return g_str_has_prefix (host, PREFIX)
         && strspn (host + strlen (PREFIX), "0123456789abcdef") == 2 * TOKEN_BYTES
         && strlen (host) == strlen (PREFIX) + 2 * TOKEN_BYTES;
}

guint16
weir_srtp_map_seq (const gchar *host, guint16 seq)
{
  WeirProtect protect;
  gchar *destination = weir_srtp_is_token (host) ? weir_srtp_lookup (host, &protect) : NULL;

  if (!destination)
    return seq;
  seq = protect.next_seq (protect.data, seq);
  protect.release (protect.data);
  g_free (destination);
  return seq;
}

#ifdef HAVE_SRTP

#include <pthread.h>
#include <srtp2/srtp.h>
#include <sys/random.h>

#define WINDOW 1024   // packets; RTCP of the reader that is older is refused
#define RTCP_HEADER 8 // bytes, with the SSRC of the sender
#define RTP_HEADER 12 // bytes

// The keys of a WeirSrtp. Readers of sinks have references, which may outlive the object.
typedef struct {
  gatomicrefcount refs;
  gchar *destination;

  // Not a GMutex: ThreadSanitizer does not see GLib's locks in threads that GLib did not create.
  pthread_mutex_t lock;  // guards all below
  srtp_t sent, received; // each has RTP and RTCP; libsrtp needs some 50 KiB for one
  gboolean used;         // a packet was protected
  guint16 last;          // sequence number of the newest one
  gboolean heard;
  guint32 from; // the SSRC in the last authentic RTCP, in network byte order
} Keys;

typedef struct {
  GObject parent;
  gchar *destination;
  GBytes *send_key, *receive_key;
  Keys *keys; // NULL if the construction failed
  gchar *token;
} WeirSrtp;

typedef struct {
  GObjectClass parent_class;
} WeirSrtpClass;

GType weir_srtp_get_type (void);
G_DEFINE_TYPE (WeirSrtp, weir_srtp, G_TYPE_OBJECT)

// ---- keys ----

static void
keys_unref (void *data)
{
  Keys *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  if (self->sent)
    srtp_dealloc (self->sent);
  if (self->received)
    srtp_dealloc (self->received);
  pthread_mutex_destroy (&self->lock);
  g_free (self->destination);
  g_free (self);
}

static gboolean
open_session (srtp_t *session, srtp_ssrc_type_t direction, GBytes *key)
{
  guint8 copy[WEIR_SRTP_KEY_BYTES];
  // A packet that found no room in the socket is protected again, with the same bytes.
  srtp_policy_t policy = {
    .ssrc = { .type = direction },
    .key = copy,
    .window_size = WINDOW,
    .allow_repeat_tx = 1,
  };
  gboolean ok;

  if (!key || g_bytes_get_size (key) != sizeof copy)
    return FALSE;
  memcpy (copy, g_bytes_get_data (key, NULL), sizeof copy);
  srtp_crypto_policy_set_rtp_default (&policy.rtp);
  srtp_crypto_policy_set_rtcp_default (&policy.rtcp);
  ok = srtp_create (session, &policy) == srtp_err_status_ok;
  explicit_bzero (copy, sizeof copy);
  return ok;
}

static Keys *
keys_new (const gchar *destination, GBytes *send_key, GBytes *receive_key)
{
  Keys *self = g_new0 (Keys, 1);

  g_atomic_ref_count_init (&self->refs);
  pthread_mutex_init (&self->lock, NULL);
  self->destination = g_strdup (destination);
  if (destination && open_session (&self->sent, ssrc_any_outbound, send_key)
      && open_session (&self->received, ssrc_any_inbound, receive_key))
    return self;
  keys_unref (self);
  return NULL;
}

// The number never comes twice, because the key stream of a packet depends on it. The first half of
// the numbers leaves time until the rollover counter changes (RFC 3711, 3.3.1).
static uint16_t
next_seq (void *data, uint16_t seq)
{
  Keys *self = data;

  pthread_mutex_lock (&self->lock);
  seq = self->used ? (uint16_t) (self->last + 1) : seq & 0x7fff;
  pthread_mutex_unlock (&self->lock);
  return seq;
}

static gboolean
protect_rtp (Keys *self, guint8 *packet, int *len)
{
  guint16 seq;

  if (*len < RTP_HEADER || srtp_protect (self->sent, packet, len) != srtp_err_status_ok)
    return FALSE;
  seq = (guint16) (packet[2] << 8 | packet[3]); // the packet may be at an odd address
  if (!self->used || (gint16) (seq - self->last) > 0)
    self->last = seq;
  self->used = TRUE;
  return TRUE;
}

static gboolean
is_rtcp (const guint8 *packet, gsize len)
{
  return len >= RTCP_HEADER && packet[0] >> 6 == 2 && packet[1] >= 192 && packet[1] <= 223;
}

static size_t
protect (void *data, uint8_t *packet, size_t len, bool rtp)
{
  Keys *self = data;
  int now = (int) len;
  gboolean ok;

  pthread_mutex_lock (&self->lock);
  if (rtp)
    ok = protect_rtp (self, packet, &now);
  else
    ok =
        is_rtcp (packet, len) && srtp_protect_rtcp (self->sent, packet, &now) == srtp_err_status_ok;
  pthread_mutex_unlock (&self->lock);
  return ok ? (size_t) now : 0;
}

// libsrtp keeps a stream for each SSRC. Only the last is kept here, so that a reader with many
// takes no memory.
static void
note_ssrc (Keys *self, guint32 ssrc)
{
  if (self->heard && self->from != ssrc)
    srtp_remove_stream (self->received, self->from);
  self->heard = TRUE;
  self->from = ssrc;
}

static gint
unprotect (Keys *self, guint8 *packet, guint size)
{
  int len = (int) size;
  guint32 ssrc;

  if (size > G_MAXUINT16 || !is_rtcp (packet, size))
    return -1;
  memcpy (&ssrc, packet + 4, sizeof ssrc);
  pthread_mutex_lock (&self->lock);
  if (srtp_unprotect_rtcp (self->received, packet, &len) == srtp_err_status_ok)
    note_ssrc (self, ssrc);
  else
    len = -1;
  pthread_mutex_unlock (&self->lock);
  return len;
}

// ---- the table ----

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *table; // token -> Keys, without a reference

gchar *
weir_srtp_lookup (const gchar *token, WeirProtect *out)
{
  gchar *destination = NULL;
  Keys *keys;

  pthread_mutex_lock (&table_lock);
  keys = table ? g_hash_table_lookup (table, token) : NULL;
  if (keys) {
    g_atomic_ref_count_inc (&keys->refs);
    *out = (WeirProtect) { keys, next_seq, protect, keys_unref };
    destination = g_strdup (keys->destination);
  }
  pthread_mutex_unlock (&table_lock);
  return destination;
}

static gchar *
add_to_table (Keys *keys)
{
  guint8 random[TOKEN_BYTES];
  GString *token = g_string_new (PREFIX);

  while (getrandom (random, sizeof random, 0) != sizeof random)
    ;
  for (guint i = 0; i < TOKEN_BYTES; i++)
    g_string_append_printf (token, "%02x", random[i]);
  pthread_mutex_lock (&table_lock);
  if (!table)
    table = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_hash_table_insert (table, g_strdup (token->str), keys);
  pthread_mutex_unlock (&table_lock);
  return g_string_free (token, FALSE);
}

// ---- the class ----

enum { PROP_0, PROP_DESTINATION, PROP_SEND_KEY, PROP_RECEIVE_KEY, PROP_TOKEN, N_PROPS };

static guint
next_seq_action (WeirSrtp *self, guint seq)
{
  return self->keys ? next_seq (self->keys, (guint16) seq) : seq;
}

static gint
unprotect_action (WeirSrtp *self, gpointer data, guint size)
{
  return self->keys ? unprotect (self->keys, data, size) : -1;
}

static void
weir_srtp_constructed (GObject *object)
{
  WeirSrtp *self = (WeirSrtp *) object;

  G_OBJECT_CLASS (weir_srtp_parent_class)->constructed (object);
  self->keys = keys_new (self->destination, self->send_key, self->receive_key);
  if (self->keys)
    self->token = add_to_table (self->keys);
  g_clear_pointer (&self->send_key, g_bytes_unref);
  g_clear_pointer (&self->receive_key, g_bytes_unref);
}

static void
weir_srtp_finalize (GObject *object)
{
  WeirSrtp *self = (WeirSrtp *) object;

  if (self->keys) {
    pthread_mutex_lock (&table_lock);
    g_hash_table_remove (table, self->token);
    pthread_mutex_unlock (&table_lock);
    keys_unref (self->keys);
  }
  g_free (self->destination);
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
    case PROP_SEND_KEY:
      self->send_key = g_value_dup_boxed (value);
      break;
    case PROP_RECEIVE_KEY:
      self->receive_key = g_value_dup_boxed (value);
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
}

static void
weir_srtp_class_init (WeirSrtpClass *klass)
{
  const GParamFlags given = G_PARAM_WRITABLE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS;
  const GSignalFlags action = G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION;
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GParamSpec *props[N_PROPS] = { NULL };

  // Not when the plugin is loaded: it tests all ciphers, and may load another library. It fails if
  // the program or another plugin has called it before; then it is not needed.
  srtp_init ();
  object_class->constructed = weir_srtp_constructed;
  object_class->finalize = weir_srtp_finalize;
  object_class->set_property = weir_srtp_set_property;
  object_class->get_property = weir_srtp_get_property;
  props[PROP_DESTINATION] = g_param_spec_string ("destination", "Destination",
      "IP address of the reader, or the token of its WeirConnection", NULL, given);
  props[PROP_SEND_KEY] = g_param_spec_boxed (
      "send-key", "Send key", "Master key and salt of the sender, 30 bytes", G_TYPE_BYTES, given);
  props[PROP_RECEIVE_KEY] = g_param_spec_boxed ("receive-key", "Receive key",
      "Master key and salt of the reader, 30 bytes", G_TYPE_BYTES, given);
  props[PROP_TOKEN] = g_param_spec_string ("token", "Token",
      "Names the reader to fanoutsink elements, in place of a host", NULL,
      G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPS, props);

  /**
   * WeirSrtp::next-seq:
   * @seq: sequence number of the stream's packet at which the reader begins
   *
   * Returns: the sequence number with which the reader gets that packet
   */
  g_signal_new_class_handler ("next-seq", G_TYPE_FROM_CLASS (klass), action,
      G_CALLBACK (next_seq_action), NULL, NULL, NULL, G_TYPE_UINT, 1, G_TYPE_UINT);
  /**
   * WeirSrtp::unprotect:
   * @data: an SRTCP packet, which is decrypted in place
   * @size: its length in bytes
   *
   * Returns: the length of the RTCP packet, or -1 if it is not authentic or was received before
   */
  g_signal_new_class_handler ("unprotect", G_TYPE_FROM_CLASS (klass), action,
      G_CALLBACK (unprotect_action), NULL, NULL, NULL, G_TYPE_INT, 2, G_TYPE_POINTER, G_TYPE_UINT);
}

void
weir_srtp_register (void)
{
  g_type_ensure (weir_srtp_get_type ());
}

#else

void
weir_srtp_register (void)
{
}

gchar *
weir_srtp_lookup (const gchar *token, WeirProtect *protect)
{
  return NULL;
}

#endif
