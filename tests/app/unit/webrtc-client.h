// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A WebRTC peer for tests, over UDP: STUN by stun-messages.h and DTLS by OpenSSL on a socket, so
// that nothing of it is the proxy's. It waits at most 10 s for anything, and aborts then.

#include <arpa/inet.h>
#include <gio/gio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "stun-messages.h"

#define CLIENT_UFRAG "clnt"
#define CLIENT_WAIT_S 10
#define CLIENT_SRTP "EXTRACTOR-dtls_srtp"

typedef struct {
  const gchar *profiles; // NULL: CM before GCM, as browsers offer them; "": no SRTP
  gboolean is_server;    // of DTLS
  gboolean has_no_certificate;
  guint mtu; // 0: of the socket
} ClientSettings;

typedef struct {
  SSL_CTX *context;
  SSL *ssl;
  guint8 fingerprint[32];
  int fd;
  gchar *ufrag, *password; // of the session
} Client;

static inline void
client_make_certificate (Client *self)
{
  EVP_PKEY *key = EVP_EC_gen ("P-256");
  X509 *certificate = X509_new ();

  ASN1_INTEGER_set (X509_get_serialNumber (certificate), 1);
  X509_gmtime_adj (X509_getm_notBefore (certificate), 0);
  X509_gmtime_adj (X509_getm_notAfter (certificate), 3600);
  X509_NAME_add_entry_by_txt (X509_get_subject_name (certificate), "CN", MBSTRING_ASC,
      (const unsigned char *) "client", -1, -1, 0);
  X509_set_issuer_name (certificate, X509_get_subject_name (certificate));
  X509_set_pubkey (certificate, key);
  g_assert_cmpint (X509_sign (certificate, key, EVP_sha256 ()), >, 0);
  g_assert_cmpint (X509_digest (certificate, EVP_sha256 (), self->fingerprint, NULL), ==, 1);
  SSL_CTX_use_certificate (self->context, certificate);
  SSL_CTX_use_PrivateKey (self->context, key);
  X509_free (certificate);
  EVP_PKEY_free (key);
}

static inline int
client_accept_any (int ok, X509_STORE_CTX *store)
{
  return 1;
}

// Opens a socket to a port of this host.
static inline int
client_open (const gchar *host, guint16 port)
{
  struct timeval wait = { CLIENT_WAIT_S, 0 };
  GSocketAddress *address = g_inet_socket_address_new_from_string (host, port);
  struct sockaddr_storage native;
  gssize size = g_socket_address_get_native_size (address);
  int fd;

  g_assert_true (g_socket_address_to_native (address, &native, sizeof native, NULL));
  fd = socket (native.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  g_assert_cmpint (connect (fd, (struct sockaddr *) &native, (socklen_t) size), ==, 0);
  setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  g_object_unref (address);
  return fd;
}

static inline Client *
client_new (ClientSettings settings)
{
  Client *self = g_new0 (Client, 1);
  const gchar *profiles =
      settings.profiles ? settings.profiles : "SRTP_AES128_CM_SHA1_80:SRTP_AEAD_AES_128_GCM";

  self->context = SSL_CTX_new (DTLS_method ());
  self->fd = -1;
  if (!settings.has_no_certificate)
    client_make_certificate (self);
  if (*profiles)
    g_assert_cmpint (SSL_CTX_set_tlsext_use_srtp (self->context, profiles), ==, 0);
  SSL_CTX_set_verify (self->context, SSL_VERIFY_PEER, client_accept_any);
  self->ssl = SSL_new (self->context);
  if (settings.mtu) {
    SSL_set_options (self->ssl, SSL_OP_NO_QUERY_MTU);
    SSL_set_mtu (self->ssl, settings.mtu);
  }
  if (settings.is_server)
    SSL_set_accept_state (self->ssl);
  else
    SSL_set_connect_state (self->ssl);
  return self;
}

static inline void
client_free (Client *self)
{
  SSL_free (self->ssl);
  SSL_CTX_free (self->context);
  if (self->fd >= 0)
    close (self->fd);
  g_free (self->ufrag);
  g_free (self->password);
  g_free (self);
}

// Goes on from another port of the host.
static inline void
client_move (Client *self, const gchar *host, guint16 port)
{
  GInetAddress *inet = g_inet_address_new_from_string (host);
  const gboolean is_v6 = g_inet_address_get_family (inet) == G_SOCKET_FAMILY_IPV6;
  struct timeval wait = { CLIENT_WAIT_S, 0 };
  BIO_ADDR *peer = BIO_ADDR_new ();
  BIO *bio;

  if (self->fd >= 0)
    close (self->fd);
  self->fd = client_open (host, port);
  bio = BIO_new_dgram (self->fd, BIO_NOCLOSE);
  BIO_ADDR_rawmake (peer, is_v6 ? AF_INET6 : AF_INET, g_inet_address_to_bytes (inet),
      g_inet_address_get_native_size (inet), htons (port));
  BIO_ctrl (bio, BIO_CTRL_DGRAM_SET_CONNECTED, 0, peer);
  BIO_ADDR_free (peer);
  g_object_unref (inet);
  BIO_ctrl (bio, BIO_CTRL_DGRAM_SET_RECV_TIMEOUT, 0, &wait);
  SSL_set_bio (self->ssl, bio, bio);
}

// Sends a check with USE-CANDIDATE.
static inline void
client_send_check (Client *self, const gchar *peer_ufrag)
{
  gchar *username = g_strconcat (self->ufrag, ":", peer_ufrag, NULL);
  StunMessage message;

  stun_begin (&message, WEIR_STUN_REQUEST);
  stun_add (&message, 0x0006, username, strlen (username));
  stun_add (&message, 0x0025, NULL, 0);
  stun_add (&message, 0x0024, "\x6e\0\1\xff", 4);
  stun_add_integrity (&message, self->password);
  stun_add_fingerprint (&message);
  g_assert_cmpint (send (self->fd, message.bytes, message.len, 0), ==, message.len);
  g_free (username);
}

// Checks, and waits for the answer.
static inline void
client_check (Client *self, const gchar *peer_ufrag)
{
  uint8_t answer[2048];
  WeirStun stun;
  ssize_t n;

  client_send_check (self, peer_ufrag);
  do {
    n = recv (self->fd, answer, sizeof answer, 0);
    g_assert_cmpint (n, >, 0);
  } while (answer[0] > 3);
  g_assert_cmpint (weir_stun_read (answer, (size_t) n, &stun), ==, 0);
  g_assert_cmpint (stun.type, ==, WEIR_STUN_SUCCESS);
  g_assert_true (
      weir_stun_is_authentic (&stun, self->password, strlen (self->password), stun_hmac));
}

// Returns FALSE if DTLS fails.
static inline gboolean
client_shake_hands (Client *self)
{
  const gint64 end = g_get_monotonic_time () + CLIENT_WAIT_S * G_USEC_PER_SEC;
  int r, why;

  do {
    r = SSL_do_handshake (self->ssl);
    why = SSL_get_error (self->ssl, r);
    g_assert_cmpint (g_get_monotonic_time (), <, end);
  } while (r != 1 && (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE));
  if (r != 1)
    g_test_message ("DTLS: %s", ERR_reason_error_string (ERR_peek_error ()));
  ERR_clear_error ();
  return r == 1;
}

// Reports whether the client's keys are those of the session.
static inline gboolean
client_has_keys (Client *self, GBytes *of_client, GBytes *of_server)
{
  const gboolean is_gcm =
      strcmp (SSL_get_selected_srtp_profile (self->ssl)->name, "SRTP_AEAD_AES_128_GCM") == 0;
  const gsize salt = is_gcm ? 12 : 14, size = 16 + salt;
  guint8 all[60], client[30], server[30];
  GBytes *a, *b;
  gboolean same;

  g_assert_cmpint (SSL_export_keying_material (
                       self->ssl, all, 2 * size, CLIENT_SRTP, strlen (CLIENT_SRTP), NULL, 0, 0),
      ==, 1);
  memcpy (client, all, 16);
  memcpy (server, all + 16, 16);
  memcpy (client + 16, all + 32, salt);
  memcpy (server + 16, all + 32 + salt, salt);
  a = g_bytes_new (client, size);
  b = g_bytes_new (server, size);
  same = g_bytes_equal (a, of_client) && g_bytes_equal (b, of_server);
  g_bytes_unref (a);
  g_bytes_unref (b);
  return same;
}
