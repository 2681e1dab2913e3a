// SPDX-License-Identifier: LGPL-2.1-or-later
//
// GnuTLS checks the signatures. Of the libraries that Debian 12, Debian 13 and Ubuntu 24.04 have in
// common it alone knows all three algorithms and takes keys by their numbers.

#include "text/jwks.h"

#include "text/json_strict.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEYS_MAX 64
#define DEPTH_MAX 8
#define RSA_BYTES_MIN (2048 / 8)
#define RSA_BYTES_MAX (8192 / 8)
#define EXPONENT_BYTES_MAX 8
#define COORDINATE_BYTES 32 // of P-256 and Ed25519

typedef struct {
  const gchar *name; // "alg" of a token
  const gchar *type; // "kty" of a key
  const gchar *curve;
  gnutls_sign_algorithm_t sign;
} Algorithm;

static const Algorithm algorithms[] = {
  { "RS256", "RSA", NULL, GNUTLS_SIGN_RSA_SHA256 },
  { "ES256", "EC", "P-256", GNUTLS_SIGN_ECDSA_SHA256 },
  { "EdDSA", "OKP", "Ed25519", GNUTLS_SIGN_EDDSA_ED25519 },
};

typedef struct {
  const Algorithm *algorithm;
  gchar *id; // or NULL
  gnutls_pubkey_t key;
} Key;

struct _Jwks {
  gatomicrefcount refs;
  gchar *checksum; // of the text
  GPtrArray *keys; // of Key
};

// ---- base64url ----

guint8 *
jwks_decode (const gchar *text, gsize text_len, gsize *len)
{
  static const gchar alphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  guint8 *bytes = g_malloc (text_len / 4 * 3 + 4);
  guint32 bits = 0;
  guint n_bits = 0;

  *len = 0;
  for (gsize i = 0; i < text_len; i++) {
    const gchar *found = text[i] ? strchr (alphabet, text[i]) : NULL;

    if (!found) {
      g_free (bytes);
      return NULL;
    }
    bits = bits << 6 | (guint32) (found - alphabet);
    n_bits += 6;
    if (n_bits >= 8) {
      n_bits -= 8;
      bytes[(*len)++] = (guint8) (bits >> n_bits);
    }
  }
  // Bits that are left over must be zero, so that each value has one form only.
  if (n_bits >= 6 || (bits & ((1u << n_bits) - 1)) != 0) {
    g_free (bytes);
    return NULL;
  }
  bytes[*len] = '\0';
  return bytes;
}

// Decodes a number of a key that has `min` to `max` bytes. Returns FALSE if it has not.
static gboolean
read_number (JsonObject *key, const gchar *name, gsize min, gsize max, gnutls_datum_t *number)
{
  const gchar *text = json_strict_text (key, name);
  gsize len = 0;

  number->data = text ? jwks_decode (text, strlen (text), &len) : NULL;
  number->size = (unsigned) len;
  return number->data && len >= min && len <= max;
}

// ---- keys ----

static void
key_free (gpointer data)
{
  Key *self = data;

  if (self->key)
    gnutls_pubkey_deinit (self->key);
  g_free (self->id);
  g_free (self);
}

// Returns what is wrong, or NULL.
static const gchar *
import_rsa (gnutls_pubkey_t key, JsonObject *object)
{
  gnutls_datum_t n = { NULL, 0 }, e = { NULL, 0 };
  const gchar *wrong = NULL;

  if (!read_number (object, "n", RSA_BYTES_MIN, RSA_BYTES_MAX, &n) || n.data[0] == 0)
    wrong = "\"n\" is not a number of 2048 to 8192 bits";
  else if (!read_number (object, "e", 1, EXPONENT_BYTES_MAX, &e) || e.data[e.size - 1] % 2 == 0
           || (e.size == 1 && e.data[0] == 1))
    wrong = "\"e\" is not an odd number from 3 to 64 bits";
  else if (gnutls_pubkey_import_rsa_raw (key, &n, &e) < 0)
    wrong = "not an RSA key";
  g_free (n.data);
  g_free (e.data);
  return wrong;
}

static const gchar *
import_curve (gnutls_pubkey_t key, JsonObject *object, gboolean has_y)
{
  gnutls_datum_t x = { NULL, 0 }, y = { NULL, 0 };
  gnutls_ecc_curve_t curve = has_y ? GNUTLS_ECC_CURVE_SECP256R1 : GNUTLS_ECC_CURVE_ED25519;
  const gchar *wrong = NULL;

  if (!read_number (object, "x", COORDINATE_BYTES, COORDINATE_BYTES, &x))
    wrong = "\"x\" is not a number of 32 bytes";
  else if (has_y && !read_number (object, "y", COORDINATE_BYTES, COORDINATE_BYTES, &y))
    wrong = "\"y\" is not a number of 32 bytes";
  else if (gnutls_pubkey_import_ecc_raw (key, curve, &x, has_y ? &y : NULL) < 0)
    wrong = "not a point of the curve";
  g_free (x.data);
  g_free (y.data);
  return wrong;
}

static gboolean
has_operation (JsonArray *operations, const gchar *wanted)
{
  for (guint i = 0; i < json_array_get_length (operations); i++) {
    JsonNode *node = json_array_get_element (operations, i);

    if (g_strcmp0 (JSON_NODE_HOLDS_VALUE (node) ? json_node_get_string (node) : NULL, wanted) == 0)
      return TRUE;
  }
  return FALSE;
}

// Returns the algorithm for which a key may be used, or NULL if the key is to be skipped.
static const Algorithm *
find_algorithm (JsonObject *key)
{
  const gchar *type = json_strict_text (key, "kty"), *curve = json_strict_text (key, "crv");
  const gchar *name = json_strict_text (key, "alg"), *use = json_strict_text (key, "use");
  JsonArray *operations = json_strict_array (key, "key_ops");

  if ((use && !g_str_equal (use, "sig")) || (operations && !has_operation (operations, "verify")))
    return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (algorithms); i++) {
    const Algorithm *algorithm = &algorithms[i];

    if (g_strcmp0 (type, algorithm->type) == 0
        && (!algorithm->curve || g_strcmp0 (curve, algorithm->curve) == 0)
        && (!name || g_str_equal (name, algorithm->name)))
      return algorithm;
  }
  return NULL;
}

// Adds a key to `keys` unless it is to be skipped. Returns what is wrong with it, or NULL.
static const gchar *
add_key (GPtrArray *keys, JsonObject *object)
{
  const Algorithm *algorithm = find_algorithm (object);
  const gchar *wrong;
  Key *key;

  if (json_object_has_member (object, "d") || json_object_has_member (object, "k"))
    return "a secret; keep only public keys in the set";
  if (!algorithm)
    return NULL;
  key = g_new0 (Key, 1);
  key->algorithm = algorithm;
  key->id = g_strdup (json_strict_text (object, "kid"));
  if (gnutls_pubkey_init (&key->key) < 0)
    wrong = "out of memory";
  else if (!algorithm->curve)
    wrong = import_rsa (key->key, object);
  else
    wrong = import_curve (key->key, object, algorithm->sign == GNUTLS_SIGN_ECDSA_SHA256);
  if (wrong)
    key_free (key);
  else
    g_ptr_array_add (keys, key);
  return wrong;
}

// ---- the set ----

static gboolean
add_keys (Jwks *self, JsonArray *array, GError **error)
{
  const gchar *wrong = NULL;

  for (guint i = 0; i < json_array_get_length (array); i++) {
    JsonNode *node = json_array_get_element (array, i);

    wrong = JSON_NODE_HOLDS_OBJECT (node) ? add_key (self->keys, json_node_get_object (node))
                                          : "not an object";
    if (wrong) {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "key %u: %s", i + 1, wrong);
      return FALSE;
    }
  }
  return TRUE;
}

Jwks *
jwks_new (const gchar *text, gsize len, GError **error)
{
  JsonObject *root = len <= JWKS_SIZE_MAX ? json_strict_read (text, len, DEPTH_MAX) : NULL;
  JsonArray *array = root ? json_strict_array (root, "keys") : NULL;
  Jwks *self = g_new0 (Jwks, 1);
  gboolean ok = FALSE;

  g_atomic_ref_count_init (&self->refs);
  self->checksum = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) text, len);
  self->keys = g_ptr_array_new_with_free_func (key_free);
  if (!array)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
        "not a JSON Web Key Set of at most %u KiB, such as {\"keys\": [...]}",
        JWKS_SIZE_MAX / 1024);
  else if (json_array_get_length (array) > KEYS_MAX)
    g_set_error (
        error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "the set has more than %u keys", KEYS_MAX);
  else if (add_keys (self, array, error))
    ok = self->keys->len > 0;
  if (!ok && error && !*error)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
        "the set has no public key for signatures by RS256, ES256 or EdDSA (Ed25519)");
  g_clear_pointer (&root, json_object_unref);
  if (!ok)
    g_clear_pointer (&self, jwks_unref);
  return self;
}

// Reads up to `size` bytes of a regular file. Returns the number of bytes, or -1 with errno.
static gssize
read_file (const gchar *file, gchar *text, gsize size)
{
  int fd = open (file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat st;
  gssize len = -1;

  if (fd < 0 || fstat (fd, &st) < 0)
    len = -1;
  else if (!S_ISREG (st.st_mode))
    errno = EINVAL;
  else
    len = read (fd, text, size);
  if (fd >= 0) {
    int saved = errno;

    close (fd);
    errno = saved;
  }
  return len;
}

Jwks *
jwks_load (const gchar *file, GError **error)
{
  g_autofree gchar *text = g_malloc (JWKS_SIZE_MAX + 1);
  gssize len = read_file (file, text, JWKS_SIZE_MAX + 1);
  Jwks *self = NULL;

  if (len < 0)
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "cannot read %s: %s", file,
        errno == EINVAL ? "not a regular file" : g_strerror (errno));
  else {
    self = jwks_new (text, (gsize) len, error);
    if (!self)
      g_prefix_error (error, "%s: ", file);
  }
  return self;
}

Jwks *
jwks_ref (Jwks *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
jwks_unref (Jwks *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_ptr_array_unref (self->keys);
  g_free (self->checksum);
  g_free (self);
}

guint
jwks_count (const Jwks *self)
{
  return self->keys->len;
}

gboolean
jwks_equal (const Jwks *self, const Jwks *other)
{
  return g_str_equal (self->checksum, other->checksum);
}

// ---- signatures ----

// Returns the key, or NULL if there is none, or if `id` is NULL and there are several.
static const Key *
find_key (const Jwks *self, const Algorithm *algorithm, const gchar *id)
{
  const Key *found = NULL;

  for (guint i = 0; i < self->keys->len; i++) {
    const Key *key = g_ptr_array_index (self->keys, i);

    if (key->algorithm != algorithm || (id && g_strcmp0 (key->id, id) != 0))
      continue;
    if (id)
      return key;
    if (found)
      return NULL;
    found = key;
  }
  return found;
}

// JWS has the two numbers of an ECDSA signature side by side; GnuTLS takes them as ASN.1.
static gboolean
verify_ecdsa (const Key *key, const gnutls_datum_t *text, const gnutls_datum_t *signature)
{
  gnutls_datum_t r = { signature->data, COORDINATE_BYTES };
  gnutls_datum_t s = { signature->data + COORDINATE_BYTES, COORDINATE_BYTES };
  gnutls_datum_t encoded = { NULL, 0 };
  gboolean good;

  if (signature->size != 2 * COORDINATE_BYTES || gnutls_encode_rs_value (&encoded, &r, &s) < 0)
    return FALSE;
  good = gnutls_pubkey_verify_data2 (key->key, key->algorithm->sign, 0, text, &encoded) >= 0;
  gnutls_free (encoded.data);
  return good;
}

JwksVerdict
jwks_verify (const Jwks *self, const gchar *algorithm, const gchar *id, const gchar *signed_text,
    gsize signed_len, const guint8 *signature, gsize signature_len)
{
  gnutls_datum_t text = { (unsigned char *) signed_text, (unsigned) signed_len };
  gnutls_datum_t given = { (unsigned char *) signature, (unsigned) signature_len };
  const Algorithm *known = NULL;
  gboolean good;
  const Key *key;

  for (guint i = 0; i < G_N_ELEMENTS (algorithms) && !known; i++)
    known = g_str_equal (algorithm, algorithms[i].name) ? &algorithms[i] : NULL;
  if (!known)
    return JWKS_UNKNOWN_ALGORITHM;
  key = find_key (self, known, id);
  if (!key)
    return JWKS_UNKNOWN_KEY;
  if (known->sign == GNUTLS_SIGN_ECDSA_SHA256)
    good = verify_ecdsa (key, &text, &given);
  else
    good = gnutls_pubkey_verify_data2 (key->key, known->sign, 0, &text, &given) >= 0;
  return good ? JWKS_GOOD : JWKS_BAD;
}
