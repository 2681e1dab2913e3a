// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/jwt.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "jose.h"

#define NOW 1800000000
#define HEADER "{\"alg\":\"EdDSA\",\"kid\":\"a\"}"

// The keys and tokens of RFC 7515, A.2 and A.3, and of RFC 8037, A.4.
#define RFC_RSA                                                                                    \
  "{\"kty\":\"RSA\",\"n\":\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Va"   \
  "w-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0"  \
  "LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5Zw"   \
  "Kh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ\","  \
  "\"e\":\"AQAB\"}"
#define RFC_EC                                                                                     \
  "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","       \
  "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}"
#define RFC_ED                                                                                     \
  "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}"
#define RFC_CLAIMS                                                                                 \
  "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
#define RFC_RSA_TOKEN                                                                              \
  "eyJhbGciOiJSUzI1NiJ9." RFC_CLAIMS                                                               \
  ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5"  \
  "jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L" \
  "07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUi" \
  "pUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
#define RFC_EC_TOKEN                                                                               \
  "eyJhbGciOiJFUzI1NiJ9." RFC_CLAIMS                                                               \
  ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
#define RFC_ED_TEXT "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
#define RFC_ED_SIGNATURE                                                                           \
  "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"

static const JwtRules no_rules = { NULL, NULL };
static JoseKey keys[3]; // RS256, ES256, EdDSA

// Returns a set with `keys`, whose ids are "r", "e" and "a".
static Jwks *
make_set (void)
{
  gchar *r = jose_jwk_begin (&keys[0]), *e = jose_jwk_begin (&keys[1]);
  gchar *a = jose_jwk_begin (&keys[2]);
  gchar *text = g_strdup_printf (
      "{\"keys\":[%s,\"kid\":\"r\"},%s,\"kid\":\"e\"},%s,\"kid\":\"a\"}]}", r, e, a);
  GError *error = NULL;
  Jwks *set = jwks_new (text, strlen (text), &error);

  g_assert_no_error (error);
  g_assert_cmpuint (jwks_count (set), ==, 3);
  g_free (r);
  g_free (e);
  g_free (a);
  g_free (text);
  return set;
}

static Jwks *
read_set (const gchar *text, GError **error)
{
  return jwks_new (text, strlen (text), error);
}

static const gchar *wrong; // of the last verify()

static JsonObject *
verify (const Jwks *set, const gchar *token, const JwtRules *rules, gint64 now_s)
{
  JsonObject *claims = jwt_verify (set, token, rules, now_s, &wrong);

  g_assert_cmpint (claims == NULL, ==, wrong != NULL);
  return claims;
}

// ---- signatures ----

static void
the_tokens_of_the_rfcs_are_good (void)
{
  Jwks *set = read_set ("{\"keys\":[" RFC_RSA "," RFC_EC "," RFC_ED "]}", NULL);
  const gchar *const tokens[] = { RFC_RSA_TOKEN, RFC_EC_TOKEN };
  gsize len;
  guint8 *signature = jwks_decode (RFC_ED_SIGNATURE, strlen (RFC_ED_SIGNATURE), &len);

  for (guint i = 0; i < G_N_ELEMENTS (tokens); i++) {
    JsonObject *claims = verify (set, tokens[i], &no_rules, 1300819379);

    g_assert_nonnull (claims);
    g_assert_cmpstr (json_object_get_string_member (claims, "iss"), ==, "joe");
    json_object_unref (claims);
  }
  g_assert_cmpint (
      jwks_verify (set, "EdDSA", NULL, RFC_ED_TEXT, strlen (RFC_ED_TEXT), signature, len), ==,
      JWKS_GOOD);
  g_free (signature);
  jwks_unref (set);
}

static void
each_algorithm_signs_and_a_changed_character_is_found (void)
{
  static const gchar *const headers[] = { "{\"alg\":\"RS256\",\"kid\":\"r\"}",
    "{\"alg\":\"ES256\",\"kid\":\"e\"}", HEADER };
  Jwks *set = make_set ();

  for (guint i = 0; i < 3; i++) {
    gchar *token = jose_sign (&keys[i], headers[i], "{\"sub\":\"x\",\"exp\":1800000001}");
    JsonObject *claims = verify (set, token, &no_rules, NOW);

    g_assert_nonnull (claims);
    json_object_unref (claims);
    for (gsize at = 0; at < strlen (token); at += 7) {
      gchar was = token[at];

      if (was == '.')
        continue;
      token[at] = was == 'A' ? 'B' : 'A';
      g_assert_null (verify (set, token, &no_rules, NOW));
      token[at] = was;
    }
    g_free (token);
  }
  jwks_unref (set);
}

static void
a_key_serves_its_own_algorithm_and_id_only (void)
{
  static const struct {
    const gchar *header;
    guint key;
    gboolean unknown_key;
  } cases[] = {
    { "{\"alg\":\"none\",\"kid\":\"a\"}", 2, FALSE },
    { "{\"alg\":\"HS256\",\"kid\":\"r\"}", 0, FALSE },
    { "{\"alg\":\"RS512\",\"kid\":\"r\"}", 0, FALSE },
    { "{\"alg\":\"eddsa\",\"kid\":\"a\"}", 2, FALSE },
    { "{\"kid\":\"a\"}", 2, FALSE },
    { "{\"alg\":\"EdDSA\",\"kid\":7}", 2, FALSE },
    { "{\"alg\":\"EdDSA\",\"kid\":\"a\",\"crit\":[\"exp\"]}", 2, FALSE },
    { "{\"alg\":\"EdDSA\",\"alg\":\"EdDSA\",\"kid\":\"a\"}", 2, FALSE },
    { "[\"EdDSA\"]", 2, FALSE },
    { "{\"alg\":\"EdDSA\",\"kid\":\"other\"}", 2, TRUE },
    { "{\"alg\":\"EdDSA\",\"kid\":\"r\"}", 2, TRUE },
    { "{\"alg\":\"RS256\",\"kid\":\"a\"}", 0, TRUE },
    { "{\"alg\":\"ES256\",\"kid\":\"e\"}", 0, FALSE },
  };
  Jwks *set = make_set ();

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *token = jose_sign (&keys[cases[i].key], cases[i].header, "{\"exp\":1800000001}");

    g_test_message ("%s", cases[i].header);
    g_assert_null (verify (set, token, &no_rules, NOW));
    g_assert_cmpint (wrong == jwt_unknown_key, ==, cases[i].unknown_key);
    g_free (token);
  }
  jwks_unref (set);
}

static void
a_token_without_id_needs_a_set_with_one_key_for_it (void)
{
  gchar *a = jose_jwk_begin (&keys[2]);
  gchar *one = g_strdup_printf ("{\"keys\":[%s}," RFC_EC "]}", a);
  gchar *two = g_strdup_printf ("{\"keys\":[%s}," RFC_ED "]}", a);
  gchar *token = jose_sign (&keys[2], "{\"alg\":\"EdDSA\"}", "{\"exp\":1800000001}");
  Jwks *set = read_set (one, NULL), *doubtful = read_set (two, NULL);
  JsonObject *claims = verify (set, token, &no_rules, NOW);

  g_assert_nonnull (claims);
  g_assert_null (verify (doubtful, token, &no_rules, NOW));
  g_assert_true (wrong == jwt_unknown_key);
  json_object_unref (claims);
  jwks_unref (set);
  jwks_unref (doubtful);
  g_free (a);
  g_free (one);
  g_free (two);
  g_free (token);
}

// ---- claims ----

static void
times_issuer_and_audience_are_checked (void)
{
  static const struct {
    const gchar *claims;
    gboolean good;
  } cases[] = {
    { "{\"exp\":1800000001,\"iss\":\"i\",\"aud\":\"a\"}", TRUE },
    { "{\"exp\":1800000001.5,\"iss\":\"i\",\"aud\":[\"b\",7,null,[\"a\"],\"a\"]}", TRUE },
    { "{\"exp\":1799999971,\"iss\":\"i\",\"aud\":\"a\"}", TRUE }, // within 30 s
    { "{\"exp\":1799999970,\"iss\":\"i\",\"aud\":\"a\"}", FALSE },
    { "{\"exp\":0,\"iss\":\"i\",\"aud\":\"a\"}", FALSE },
    { "{\"exp\":-1,\"iss\":\"i\",\"aud\":\"a\"}", FALSE },
    { "{\"iss\":\"i\",\"aud\":\"a\"}", FALSE },
    { "{\"exp\":\"1800000001\",\"iss\":\"i\",\"aud\":\"a\"}", FALSE },
    { "{\"exp\":null,\"iss\":\"i\",\"aud\":\"a\"}", FALSE },
    { "{\"exp\":1800000001,\"nbf\":1800000030,\"iss\":\"i\",\"aud\":\"a\"}", TRUE },
    { "{\"exp\":1800000099,\"nbf\":1800000031,\"iss\":\"i\",\"aud\":\"a\"}", FALSE },
    { "{\"exp\":1800000001,\"nbf\":\"0\",\"iss\":\"i\",\"aud\":\"a\"}", FALSE },
    { "{\"exp\":1800000001,\"iat\":1800000030,\"iss\":\"i\",\"aud\":\"a\"}", TRUE },
    { "{\"exp\":1800000099,\"iat\":1800000031,\"iss\":\"i\",\"aud\":\"a\"}", FALSE },
    { "{\"exp\":1800000001,\"iat\":{},\"iss\":\"i\",\"aud\":\"a\"}", FALSE },
    { "{\"exp\":1800000001,\"iss\":\"other\",\"aud\":\"a\"}", FALSE },
    { "{\"exp\":1800000001,\"iss\":[\"i\"],\"aud\":\"a\"}", FALSE },
    { "{\"exp\":1800000001,\"aud\":\"a\"}", FALSE },
    { "{\"exp\":1800000001,\"iss\":\"i\",\"aud\":\"b\"}", FALSE },
    { "{\"exp\":1800000001,\"iss\":\"i\",\"aud\":[]}", FALSE },
    { "{\"exp\":1800000001,\"iss\":\"i\"}", FALSE },
    { "{\"exp\":1,\"exp\":1800000001,\"iss\":\"i\",\"aud\":\"a\"}", FALSE },
    { "{\"exp\":1800000001,\"iss\":\"i\",\"aud\":\"a\"", FALSE },
    { "{\"exp\":1800000001,\"iss\":\"i\",\"aud\":\"a\"}{}", FALSE },
    { "{\"exp\":1800000001,/**/\"iss\":\"i\",\"aud\":\"a\"}", FALSE },
    { "{\"exp\":1800000001,\"iss\":\"i\\u0000\",\"aud\":\"a\"}", FALSE },
    { "{\"exp\":1800000001,\"iss\":\"i\",\"aud\":\"a\",\"x\":[[[[[[[1]]]]]]]}", TRUE },
    { "{\"exp\":1800000001,\"iss\":\"i\",\"aud\":\"a\",\"x\":[[[[[[[[1]]]]]]]]}", FALSE },
  };
  const JwtRules rules = { "i", "a" };
  Jwks *set = make_set ();

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *token = jose_sign (&keys[2], HEADER, cases[i].claims);
    JsonObject *claims = verify (set, token, &rules, NOW);

    g_test_message ("%s", cases[i].claims);
    g_assert_cmpint (claims != NULL, ==, cases[i].good);
    g_clear_pointer (&claims, json_object_unref);
    g_free (token);
  }
  jwks_unref (set);
}

static void
a_text_that_is_no_token_is_refused (void)
{
  gchar *padding = g_strnfill (3400, 'x'), *deep = g_strnfill (2900, '[');
  gchar *large = g_strdup_printf ("{\"exp\":1800000001,\"x\":\"%s\"}", padding);
  gchar *nested = g_strdup_printf ("{\"exp\":1800000001,\"x\":%s}", deep);
  gchar *good = jose_sign (&keys[2], HEADER, "{\"exp\":1800000001}");
  gchar *tokens[] = { g_strdup (""), g_strdup ("."), g_strdup (".."), g_strdup ("..."),
    g_strdup ("a.b"), g_strdup ("a.b.c"), g_strconcat (good, ".", NULL),
    g_strconcat (good, "=", NULL), g_strconcat (" ", good, NULL), g_strconcat (good, "A", NULL),
    g_strndup (good, (gsize) (strrchr (good, '.') - good + 1)), jose_sign (&keys[2], HEADER, large),
    jose_sign (&keys[2], HEADER, nested) };
  Jwks *set = make_set ();

  for (guint i = 0; i < G_N_ELEMENTS (tokens); i++) {
    g_assert_null (verify (set, tokens[i], &no_rules, NOW));
    g_free (tokens[i]);
  }
  jwks_unref (set);
  g_free (padding);
  g_free (deep);
  g_free (large);
  g_free (nested);
  g_free (good);
}

// ---- key sets ----

static void
wrong_key_sets_are_refused_with_a_reason (void)
{
  static const struct {
    const gchar *text, *reason;
  } cases[] = {
    { "", "not a JSON Web Key Set" },
    { "[]", "not a JSON Web Key Set" },
    { "{\"keys\":{}}", "not a JSON Web Key Set" },
    { "{\"keys\":[]}", "no public key" },
    { "{\"keys\":[],\"keys\":[" RFC_EC "]}", "not a JSON Web Key Set" },
    { "{\"keys\":[7]}", "key 1: not an object" },
    { "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-384\"}]}", "no public key" },
    { "{\"keys\":[" RFC_EC ",{\"kty\":\"oct\",\"k\":\"AyM1\"}]}", "key 2: a secret" },
    { "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"d\":\"AA\",\"x\":\"AA\"}]}", "a secret" },
    { "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}", "2048 to 8192 bits" },
    { "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AA\"}]}", "32 bytes" },
    { "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\"}]}", "32 bytes" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GError *error = NULL;

    g_test_message ("%s", cases[i].text);
    g_assert_null (read_set (cases[i].text, &error));
    g_assert_nonnull (strstr (error->message, cases[i].reason));
    g_error_free (error);
  }
}

static void
keys_for_other_purposes_are_skipped (void)
{
  static const gchar *const others[] = { "\"use\":\"enc\"", "\"alg\":\"RSA-OAEP\"",
    "\"alg\":\"RS512\"", "\"key_ops\":[\"sign\"]" };
  static const gchar *const ours[] = { "\"use\":\"sig\"", "\"alg\":\"RS256\"",
    "\"key_ops\":[\"sign\",\"verify\"]" };
  gchar *key = jose_jwk_begin (&keys[0]);

  for (guint i = 0; i < G_N_ELEMENTS (others) + G_N_ELEMENTS (ours); i++) {
    gboolean used = i >= G_N_ELEMENTS (others);
    gchar *text = g_strdup_printf (
        "{\"keys\":[" RFC_EC ",%s,%s}]}", key, used ? ours[i - G_N_ELEMENTS (others)] : others[i]);
    Jwks *set = read_set (text, NULL);

    g_test_message ("%s", text);
    g_assert_cmpuint (jwks_count (set), ==, used ? 2 : 1);
    jwks_unref (set);
    g_free (text);
  }
  g_free (key);
}

static void
a_key_set_has_bounds (void)
{
  GString *text = g_string_new ("{\"keys\":[" RFC_EC);
  GError *error = NULL;
  gchar *blanks = g_strnfill (JWKS_SIZE_MAX, ' ');

  for (guint i = 0; i < 64; i++)
    g_string_append (text, "," RFC_EC);
  g_string_append (text, "]}");
  g_assert_null (read_set (text->str, &error));
  g_assert_nonnull (strstr (error->message, "more than 64 keys"));
  g_clear_error (&error);
  g_string_assign (text, "{\"keys\":[" RFC_EC "]}");
  g_string_append (text, blanks);
  g_assert_null (read_set (text->str, &error));
  g_assert_nonnull (error);
  g_error_free (error);
  g_string_free (text, TRUE);
  g_free (blanks);
}

static void
a_key_set_is_read_from_a_regular_file_only (void)
{
  gchar *folder = g_dir_make_tmp ("weir-jwt-XXXXXX", NULL);
  gchar *file = g_build_filename (folder, "jwks.json", NULL);
  gchar *fifo = g_build_filename (folder, "fifo", NULL);
  const gchar *const wrong_files[] = { folder, fifo, "/dev/zero", "/nonexistent" };
  GError *error = NULL;
  Jwks *set, *same;

  g_assert_true (g_file_set_contents (file, "{\"keys\":[" RFC_EC "]}", -1, NULL));
  g_assert_cmpint (mkfifo (fifo, 0600), ==, 0);
  set = jwks_load (file, &error);
  g_assert_no_error (error);
  same = read_set ("{\"keys\":[" RFC_EC "]}", NULL);
  g_assert_true (jwks_equal (set, same));
  for (guint i = 0; i < G_N_ELEMENTS (wrong_files); i++) {
    g_assert_null (jwks_load (wrong_files[i], &error));
    g_assert_nonnull (strstr (error->message, wrong_files[i]));
    g_clear_error (&error);
  }
  g_assert_true (g_file_set_contents (file, "{}", -1, NULL));
  g_assert_null (jwks_load (file, &error));
  g_assert_nonnull (strstr (error->message, file));
  g_error_free (error);
  jwks_unref (set);
  jwks_unref (same);
  g_unlink (file);
  g_unlink (fifo);
  g_rmdir (folder);
  g_free (file);
  g_free (fifo);
  g_free (folder);
}

static void
base64url_has_one_form_for_each_value (void)
{
  static const struct {
    const gchar *text, *bytes;
  } cases[] = { { "", "" }, { "QQ", "A" }, { "QUI", "AB" }, { "QUJD", "ABC" },
    { "_-8", "\xff\xef" }, { "Q", NULL }, { "QR", NULL }, { "QUJ", NULL }, { "QQ==", NULL },
    { "Q Q", NULL }, { "+/8", NULL }, { "QUJDR", NULL } };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gsize len;
    guint8 *bytes = jwks_decode (cases[i].text, strlen (cases[i].text), &len);

    g_test_message ("%s", cases[i].text);
    g_assert_cmpstr ((gchar *) bytes, ==, cases[i].bytes);
    g_free (bytes);
  }
}

int
main (int argc, char **argv)
{
  static const gchar *const algorithms[] = { "RS256", "ES256", "EdDSA" };
  int status;

  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < 3; i++)
    keys[i] = jose_key_new (algorithms[i]);
  g_test_add_func ("/jwt/the-tokens-of-the-rfcs-are-good", the_tokens_of_the_rfcs_are_good);
  g_test_add_func ("/jwt/each-algorithm-signs-and-a-changed-character-is-found",
      each_algorithm_signs_and_a_changed_character_is_found);
  g_test_add_func ("/jwt/a-key-serves-its-own-algorithm-and-id-only",
      a_key_serves_its_own_algorithm_and_id_only);
  g_test_add_func ("/jwt/a-token-without-id-needs-a-set-with-one-key-for-it",
      a_token_without_id_needs_a_set_with_one_key_for_it);
  g_test_add_func (
      "/jwt/times-issuer-and-audience-are-checked", times_issuer_and_audience_are_checked);
  g_test_add_func ("/jwt/a-text-that-is-no-token-is-refused", a_text_that_is_no_token_is_refused);
  g_test_add_func (
      "/jwt/wrong-key-sets-are-refused-with-a-reason", wrong_key_sets_are_refused_with_a_reason);
  g_test_add_func ("/jwt/keys-for-other-purposes-are-skipped", keys_for_other_purposes_are_skipped);
  g_test_add_func ("/jwt/a-key-set-has-bounds", a_key_set_has_bounds);
  g_test_add_func ("/jwt/a-key-set-is-read-from-a-regular-file-only",
      a_key_set_is_read_from_a_regular_file_only);
  g_test_add_func (
      "/jwt/base64url-has-one-form-for-each-value", base64url_has_one_form_for_each_value);
  status = g_test_run ();
  for (guint i = 0; i < 3; i++)
    gnutls_privkey_deinit (keys[i].key);
  return status;
}
