// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/sigv4.h"

#include <gio/gio.h>
#include <glib/gstdio.h>

// The examples in the documentation of Amazon S3, "Authenticating Requests: Using the Authorization
// Header (AWS Signature Version 4)".
static const S3Keys keys = { (gchar *) "AKIAIOSFODNN7EXAMPLE",
  (gchar *) "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", (gchar *) "us-east-1" };

static void
check_signature (const gchar *path, const gchar *query, const gchar *range, const gchar *expected)
{
  S3Request request = { "GET", "examplebucket.s3.amazonaws.com", path, query, range,
    "20130524T000000Z" };
  gchar *header = s3_sign (&keys, &request);
  gchar *end = g_strconcat (",Signature=", expected, NULL);

  g_assert_true (g_str_has_prefix (header,
      "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
      "SignedHeaders=host;"));
  g_assert_true (g_str_has_suffix (header, end));
  g_free (header);
  g_free (end);
}

static void
the_signatures_are_those_of_the_documentation (void)
{
  check_signature ("/test.txt", "", "bytes=0-9",
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  check_signature (
      "/", "lifecycle=", NULL, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  check_signature ("/", "max-keys=2&prefix=J", NULL,
      "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static gchar *
write_file (const gchar *text, int mode)
{
  gchar *path = NULL;
  int fd = g_file_open_tmp ("weir-keys-XXXXXX", &path, NULL);

  g_assert_cmpint (fd, >=, 0);
  g_assert_true (g_close (fd, NULL));
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
  g_assert_cmpint (g_chmod (path, mode), ==, 0);
  return path;
}

static void
check_refused (const gchar *text, int mode, const gchar *why)
{
  gchar *path = write_file (text, mode);
  GError *error = NULL;

  g_assert_null (s3_keys_read (path, &error));
  g_assert_nonnull (strstr (error->message, path));
  g_assert_nonnull (strstr (error->message, why));
  g_clear_error (&error);
  g_unlink (path);
  g_free (path);
}

static void
keys_are_read_from_a_credentials_file (void)
{
  gchar *path =
      write_file ("[default]\naws_access_key_id=ID\naws_secret_access_key=SECRET\n", 0600);
  S3Keys *read = s3_keys_read (path, NULL);

  g_assert_cmpstr (read->access_key, ==, "ID");
  g_assert_cmpstr (read->secret_key, ==, "SECRET");
  g_assert_cmpstr (read->region, ==, "us-east-1");
  s3_keys_free (read);
  g_unlink (path);
  g_free (path);
}

static void
a_bad_file_of_keys_is_refused (void)
{
  GError *error = NULL;

  check_refused ("[default]\naws_access_key_id=ID\n", 0600, "aws_secret_access_key");
  check_refused ("aws_access_key_id\n", 0600, "");
  check_refused ("[default]\n", 0644, "chmod 600");
  g_assert_null (s3_keys_read ("/does/not/exist", &error));
  g_assert_nonnull (strstr (error->message, "/does/not/exist"));
  g_clear_error (&error);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/sigv4/documentation", the_signatures_are_those_of_the_documentation);
  g_test_add_func ("/sigv4/keys", keys_are_read_from_a_credentials_file);
  g_test_add_func ("/sigv4/bad-keys", a_bad_file_of_keys_is_refused);
  return g_test_run ();
}
