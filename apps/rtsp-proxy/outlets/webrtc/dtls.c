// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/dtls.h"

#include <gio/gio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <string.h>

#include "outlets/webrtc/dtls_alerts.h"

#define DAY_S (24 * 60 * 60L)
#define VALID_DAYS 3650L // the fingerprint counts, so nobody renews it while the proxy runs
#define SERIAL_BITS 64
#define MESSAGE_MAX (16 * 1024) // bytes of a peer's certificates
#define SALT_MAX 14
#define KEY 16
#define EXPORTER "EXTRACTOR-dtls_srtp"
#define TIMER_FIRST_US 100000 // until a flight is sent again, twice as long each time
#define TIMER_LAST_US 1000000

// By preference. OpenSSL's names, those of WeirSrtp, and the bytes of a salt.
static const struct {
  const gchar *openssl, *name;
  gsize salt;
} profiles[] = {
  { "SRTP_AEAD_AES_128_GCM", "AEAD_AES_128_GCM", 12 },
  { "SRTP_AES128_CM_SHA1_80", "AES_CM_128_HMAC_SHA1_80", 14 },
};

struct _DtlsContext {
  SSL_CTX *ssl;
  BIO_METHOD *datagrams;
  gchar *fingerprint;
};

struct _Dtls {
  DtlsContext *context;
  SSL *ssl; // NULL: settled
  guint8 fingerprint[TLS_FINGERPRINT_BYTES];
  DtlsSend send;
  gpointer data;
  const guint8 *datagram; // the one to be read, or NULL
  gsize size;
  DtlsState state;
  gchar *problem;

  gboolean settles;  // what is to be sent becomes `farewell`
  GBytes *farewell;  // tells the peer of the end; NULL: it was sent, or not made yet
  DtlsAlerts alerts; // settled: of the peer
};

// ---- datagrams ----

// A BIO of memory would join datagrams, and DTLS needs to see where each ends.
static int
bio_read (BIO *bio, char *out, int room)
{
  Dtls *self = BIO_get_data (bio);
  gsize n;

  BIO_clear_retry_flags (bio);
  if (!self->datagram) {
    BIO_set_retry_read (bio);
    return -1;
  }
  n = MIN (self->size, (gsize) room);
  memcpy (out, self->datagram, n);
  self->datagram = NULL;
  return (int) n;
}

static int
bio_write (BIO *bio, const char *datagram, int size)
{
  Dtls *self = BIO_get_data (bio);

  if (self->settles && !self->farewell)
    self->farewell = g_bytes_new (datagram, (gsize) size);
  else if (!self->settles)
    self->send (self->data, (const guint8 *) datagram, (gsize) size);
  return size;
}

static long
bio_ctrl (BIO *bio, int command, long number, void *pointer)
{
  return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *
make_datagrams (void)
{
  BIO_METHOD *method = BIO_meth_new (BIO_get_new_index () | BIO_TYPE_SOURCE_SINK, "datagrams");

  if (!method)
    return NULL;
  BIO_meth_set_read (method, bio_read);
  BIO_meth_set_write (method, bio_write);
  BIO_meth_set_ctrl (method, bio_ctrl);
  return method;
}

// ---- the certificate ----

// Returns OpenSSL's first error, and forgets all of the thread.
static gchar *
take_openssl_error (void)
{
  const gchar *text = ERR_reason_error_string (ERR_peek_error ());
  gchar *copy = g_strdup (text ? text : "unknown error");

  ERR_clear_error ();
  return copy;
}

static gboolean
name_and_sign (X509 *certificate, EVP_PKEY *key)
{
  X509_NAME *name = X509_get_subject_name (certificate);
  BIGNUM *serial = BN_new ();
  gboolean ok = serial && BN_rand (serial, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY)
                && BN_to_ASN1_INTEGER (serial, X509_get_serialNumber (certificate))
                && X509_set_version (certificate, 2)
                && X509_gmtime_adj (X509_getm_notBefore (certificate), -DAY_S)
                && X509_gmtime_adj (X509_getm_notAfter (certificate), VALID_DAYS * DAY_S)
                && X509_NAME_add_entry_by_txt (
                    name, "CN", MBSTRING_ASC, (const unsigned char *) "WebRTC", -1, -1, 0)
                && X509_set_issuer_name (certificate, name) && X509_set_pubkey (certificate, key)
                && X509_sign (certificate, key, EVP_sha256 ()) > 0;

  BN_free (serial);
  return ok;
}

static gboolean
make_certificate (DtlsContext *self)
{
  EVP_PKEY *key = EVP_EC_gen ("P-256");
  X509 *certificate = X509_new ();
  guint8 digest[EVP_MAX_MD_SIZE];
  gboolean ok = key && certificate && name_and_sign (certificate, key)
                && X509_digest (certificate, EVP_sha256 (), digest, NULL)
                && SSL_CTX_use_certificate (self->ssl, certificate) == 1
                && SSL_CTX_use_PrivateKey (self->ssl, key) == 1;

  if (ok)
    self->fingerprint = tls_fingerprint_to_text (digest);
  X509_free (certificate);
  EVP_PKEY_free (key);
  return ok;
}

// ---- the context ----

// The fingerprint is checked when the handshake is complete, instead of the issuers.
static int
accept_any (int ok, X509_STORE_CTX *store)
{
  return 1;
}

static gboolean
set_up (DtlsContext *self)
{
  gchar *names = g_strjoin (":", profiles[0].openssl, profiles[1].openssl, NULL);
  gboolean ok = SSL_CTX_set_min_proto_version (self->ssl, DTLS1_2_VERSION)
                && SSL_CTX_set_cipher_list (self->ssl, "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES")
                && SSL_CTX_set_tlsext_use_srtp (self->ssl, names) == 0; // 0 is success

  SSL_CTX_set_options (self->ssl, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_QUERY_MTU
                                      | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode (self->ssl, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode (self->ssl, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_verify (self->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, accept_any);
  SSL_CTX_set_max_cert_list (self->ssl, MESSAGE_MAX);
  g_free (names);
  return ok;
}

DtlsContext *
dtls_context_new (GError **error)
{
  DtlsContext *self = g_new0 (DtlsContext, 1);

  self->ssl = SSL_CTX_new (DTLS_method ());
  self->datagrams = make_datagrams ();
  if (!self->ssl || !self->datagrams || !set_up (self) || !make_certificate (self)) {
    gchar *why = take_openssl_error ();

    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot set up DTLS: %s", why);
    g_free (why);
    g_clear_pointer (&self, dtls_context_free);
  }
  return self;
}

void
dtls_context_free (DtlsContext *self)
{
  SSL_CTX_free (self->ssl);
  BIO_meth_free (self->datagrams);
  g_free (self->fingerprint);
  g_free (self);
}

const gchar *
dtls_context_get_fingerprint (DtlsContext *self)
{
  return self->fingerprint;
}

// ---- an association ----

// Media wait for the handshake, and a peer may not be ready for the first flight, such as FFmpeg:
// so the first second of RFC 6347 (4.2.4.1) is too long.
static unsigned int
lengthen_timer (SSL *ssl, unsigned int us)
{
  return us == 0 ? TIMER_FIRST_US : MIN (2 * us, TIMER_LAST_US);
}

Dtls *
dtls_new (DtlsContext *context, gboolean is_client, const guint8 fingerprint[TLS_FINGERPRINT_BYTES],
    DtlsSend send, gpointer data)
{
  Dtls *self = g_new0 (Dtls, 1);
  BIO *bio;

  self->context = context;
  self->send = send;
  self->data = data;
  memcpy (self->fingerprint, fingerprint, sizeof self->fingerprint);
  self->ssl = SSL_new (context->ssl);
  bio = self->ssl ? BIO_new (context->datagrams) : NULL;
  if (!bio) {
    ERR_clear_error ();
    dtls_free (self);
    return NULL;
  }
  BIO_set_data (bio, self);
  BIO_set_init (bio, 1);
  SSL_set_bio (self->ssl, bio, bio);
  SSL_set_mtu (self->ssl, DTLS_MTU);
  DTLS_set_timer_cb (self->ssl, lengthen_timer);
  if (is_client)
    SSL_set_connect_state (self->ssl);
  else
    SSL_set_accept_state (self->ssl);
  return self;
}

void
dtls_free (Dtls *self)
{
  SSL_free (self->ssl);
  g_clear_pointer (&self->farewell, g_bytes_unref);
  OPENSSL_cleanse (&self->alerts, sizeof self->alerts);
  g_free (self->problem);
  g_free (self);
}

static void
fail (Dtls *self, const gchar *why)
{
  self->state = DTLS_FAILED;
  self->problem = g_strdup (why);
}

static gboolean
has_fingerprint (Dtls *self)
{
  X509 *certificate = SSL_get1_peer_certificate (self->ssl);
  guint8 digest[EVP_MAX_MD_SIZE];
  gboolean ok = certificate && X509_digest (certificate, EVP_sha256 (), digest, NULL)
                && memcmp (digest, self->fingerprint, sizeof self->fingerprint) == 0;

  X509_free (certificate);
  return ok;
}

static void
check_peer (Dtls *self)
{
  if (!has_fingerprint (self))
    fail (self, "the peer's certificate does not have the fingerprint of its description");
  else if (!SSL_get_selected_srtp_profile (self->ssl))
    fail (self, "the peer has no profile of SRTP in common");
  else
    self->state = DTLS_CONNECTED;
}

static void
fail_by_openssl (Dtls *self)
{
  gchar *why = take_openssl_error ();

  fail (self, why);
  g_free (why);
}

static void
shake_hands (Dtls *self)
{
  int r = SSL_do_handshake (self->ssl);
  int why = r == 1 ? SSL_ERROR_NONE : SSL_get_error (self->ssl, r);

  if (r == 1)
    check_peer (self);
  else if (why == SSL_ERROR_ZERO_RETURN)
    self->state = DTLS_CLOSED;
  else if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
    fail_by_openssl (self);
  ERR_clear_error ();
}

// Reads what comes after the handshake. OpenSSL answers a flight that comes again; data of the peer
// are dropped, as nobody offered it any channel for them.
static void
read_on (Dtls *self)
{
  guint8 unused[64];
  int r, why;

  SSL_alloc_buffers (self->ssl);
  do {
    r = SSL_read (self->ssl, unused, sizeof unused);
  } while (r > 0);
  why = SSL_get_error (self->ssl, r);
  if (why == SSL_ERROR_ZERO_RETURN)
    self->state = DTLS_CLOSED;
  else if (why == SSL_ERROR_SSL)
    fail_by_openssl (self);
  ERR_clear_error ();
}

DtlsState
dtls_begin (Dtls *self)
{
  if (self->state == DTLS_OPENING)
    shake_hands (self);
  return self->state;
}

DtlsState
dtls_take (Dtls *self, const guint8 *datagram, gsize size)
{
  if (!self->ssl) {
    if (dtls_alerts_are_last (&self->alerts, datagram, size))
      self->state = DTLS_CLOSED;
    ERR_clear_error ();
    return self->state;
  }
  self->datagram = datagram;
  self->size = size;
  if (self->state == DTLS_OPENING)
    shake_hands (self);
  if (self->state == DTLS_CONNECTED)
    read_on (self);
  // Each buffer has 16 KiB, and nothing may come for hours.
  if (self->state == DTLS_CONNECTED)
    SSL_free_buffers (self->ssl);
  self->datagram = NULL;
  return self->state;
}

DtlsState
dtls_tick (Dtls *self)
{
  if (self->state == DTLS_OPENING && DTLSv1_handle_timeout (self->ssl) < 0)
    fail (self, "the peer does not answer in DTLS");
  ERR_clear_error ();
  return self->state;
}

gint64
dtls_get_due (Dtls *self)
{
  struct timeval left;

  if (self->state != DTLS_OPENING || !DTLSv1_get_timeout (self->ssl, &left))
    return DTLS_NEVER;
  return left.tv_sec * G_GINT64_CONSTANT (1000000000) + left.tv_usec * G_GINT64_CONSTANT (1000);
}

const gchar *
dtls_get_problem (Dtls *self)
{
  return self->problem;
}

const gchar *
dtls_get_keys (Dtls *self, guint8 send[DTLS_KEY_MAX], guint8 receive[DTLS_KEY_MAX], gsize *size)
{
  const SRTP_PROTECTION_PROFILE *chosen = SSL_get_selected_srtp_profile (self->ssl);
  guint8 all[2 * (KEY + SALT_MAX)];
  gboolean is_server = SSL_is_server (self->ssl);
  guint8 *client = is_server ? receive : send, *server = is_server ? send : receive;

  for (guint i = 0; chosen && i < G_N_ELEMENTS (profiles); i++) {
    const gsize salt = profiles[i].salt;

    if (strcmp (chosen->name, profiles[i].openssl) != 0
        || SSL_export_keying_material (
               self->ssl, all, 2 * (KEY + salt), EXPORTER, strlen (EXPORTER), NULL, 0, 0)
               != 1)
      continue;
    memcpy (client, all, KEY);
    memcpy (server, all + KEY, KEY);
    memcpy (client + KEY, all + 2 * KEY, salt);
    memcpy (server + KEY, all + 2 * KEY + salt, salt);
    OPENSSL_cleanse (all, sizeof all);
    *size = KEY + salt;
    return profiles[i].name;
  }
  ERR_clear_error ();
  return NULL;
}

// The farewell has the number of the next record, so nothing may be sent before it.
gboolean
dtls_settle (Dtls *self)
{
  if (self->state != DTLS_CONNECTED || !self->ssl || !dtls_alerts_init (&self->alerts, self->ssl)) {
    ERR_clear_error ();
    return FALSE;
  }
  self->settles = TRUE;
  dtls_close (self);
  self->settles = FALSE;
  g_clear_pointer (&self->ssl, SSL_free);
  return TRUE;
}

static void
say_farewell (Dtls *self)
{
  GBytes *farewell = g_steal_pointer (&self->farewell);
  gsize size;
  const guint8 *datagram = g_bytes_get_data (farewell, &size);

  self->send (self->data, datagram, size);
  g_bytes_unref (farewell);
}

void
dtls_close (Dtls *self)
{
  if (!self->ssl) {
    if (self->farewell)
      say_farewell (self);
    return;
  }
  if (SSL_is_init_finished (self->ssl) && SSL_alloc_buffers (self->ssl))
    SSL_shutdown (self->ssl);
  ERR_clear_error ();
}
