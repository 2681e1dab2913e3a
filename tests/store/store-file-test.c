// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/storefile.h"

#include "stores.h"

#define ID "0123456789abcdef0123456789abcdef"
#define HEAD "version: 1\nid: " ID "\npolicy: rda\nslice: 5s\n"

static WeirStoreFile *
read_text (const gchar *text, GError **error)
{
  TestStore t = test_folders (0);
  g_autofree gchar *path = g_build_filename (t.top, WEIR_STORE_FILE, NULL);
  WeirStoreFile *file;

  g_assert_true (g_file_set_contents (path, text, -1, NULL));
  file = weir_store_file_read (t.top, error);
  test_store_free (&t, NULL);
  return file;
}

static void
a_file_is_read (void)
{
  GError *error = NULL;
  WeirStoreFile *file = read_text (HEAD "disks:\n- number: 4\n  path: \"/srv/a \\\"b\\\"\"\n"
                                        "- {path: /srv/b, number: 0, removing: true}\n",
      &error);
  const WeirStoreFileDisk *disks;

  g_assert_no_error (error);
  g_assert_cmpstr (file->id, ==, ID);
  g_assert_cmpint (file->policy, ==, WEIR_PLACEMENT_RDA);
  g_assert_cmpint (file->slice_ns, ==, 5 * SECOND);
  g_assert_cmpuint (file->disks->len, ==, 2);
  disks = (const WeirStoreFileDisk *) (gpointer) file->disks->data;
  g_assert_cmpstr (disks[0].path, ==, "/srv/a \"b\"");
  g_assert_cmpuint (disks[0].number, ==, 4);
  g_assert_false (disks[0].removing);
  g_assert_true (disks[1].removing);
  weir_store_file_free (file);
}

static void
what_is_written_is_read (void)
{
  TestStore t = test_folders (0);
  WeirStoreFile *file = weir_store_file_new (), *read;
  GError *error = NULL;

  g_strlcpy (file->id, ID, sizeof file->id);
  file->policy = WEIR_PLACEMENT_RAID1;
  file->slice_ns = SECOND / 2;
  g_assert_cmpuint (weir_store_file_add_disk (file, "/a\\b \"c\"\n: #\xc3\xa4"), ==, 0);
  g_assert_cmpuint (weir_store_file_add_disk (file, "/b"), ==, 1);
  weir_store_file_write (file, t.top, &error);
  g_assert_no_error (error);
  read = weir_store_file_read (t.top, &error);
  g_assert_no_error (error);
  g_assert_cmpint (read->slice_ns, ==, SECOND / 2);
  g_assert_cmpstr (
      g_array_index (read->disks, WeirStoreFileDisk, 0).path, ==, "/a\\b \"c\"\n: #\xc3\xa4");
  // A number that is free is used again, so that a mirror can be replaced.
  g_array_remove_index (read->disks, 0);
  g_assert_cmpuint (weir_store_file_add_disk (read, "/c"), ==, 0);
  weir_store_file_free (file);
  weir_store_file_free (read);
  test_store_free (&t, NULL);
}

static void
errors_name_their_place (void)
{
  static const struct {
    const gchar *text, *problem;
  } cases[] = {
    { "", ":1:1: a document is expected here" },
    { "[1]", ":1:1: a key such as 'policy' is expected here" },
    { HEAD "disks: 3\n", ":5:8: disks: a list of disks is expected here" },
    { HEAD "disks: []\n", "version, id, slice or disks are missing" },
    { HEAD "disks:\n- /srv/a\n", ":6:3: disks: a disk with number and path is expected here" },
    { HEAD "disks:\n- number: 1\n", "this disk needs a number and a path" },
    { HEAD "disks:\n- number: 65535\n", ":6:11: number: '65535' is not a number from 0 to 65534" },
    { HEAD "disks:\n- path: a\n", ":6:9: path: 'a' is not an absolute path" },
    { HEAD "disks:\n- {number: 1, path: /a}\n- {number: 1, path: /b}\n",
        ":7:23: disks: number 1 appears twice" },
    { HEAD "disks:\n- {number: 1, path: /a}\n- {number: 2, path: /a}\n",
        ":7:23: disks: path '/a' appears twice" },
    { HEAD "disks:\n- {number: 1, path: /a, removing: no}\n",
        ":6:35: removing: 'no' is neither true nor false" },
    { HEAD "disks:\n- {number: 1, size: 4}\n", "unknown key 'size'" },
    { HEAD "disks:\n- {[a]: 4}\n", "disks: a key is expected here" },
    { "version: 1\npolicy: raid5\n", ":2:9: policy: 'raid5' is none of naive" },
    { "version: 1\nslice: 61s\n", ":2:8: slice: '61s' is not a time from 100ms to 60s" },
    { "version: 1\nslice: nan s\n", ":2:8: slice: 'nan s' is not" },
    { "version: 1\nid: 12\n", ":2:5: id: '12' has not 32 hexadecimal digits" },
    { "version: 0\n", ":1:10: version: 0 is not a version" },
    { "version:\n", "version: a value is expected here" },
    { "colour: red\n", ":1:1: unknown key 'colour'" },
    { "version: [\n", "store.yaml:1:10: version: a value is expected here" },
    { "\"a", ":1:3: found unexpected end of stream" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GError *error = NULL;

    g_assert_null (read_text (cases[i].text, &error));
    g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NO_STORE);
    if (!strstr (error->message, cases[i].problem))
      g_error ("'%s' is not in '%s'", cases[i].problem, error->message);
    g_error_free (error);
  }
}

static void
a_newer_version_is_told_apart (void)
{
  GError *error = NULL;

  g_assert_null (read_text ("version: 2\nwarp: 9\n", &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NEWER);
  g_assert_nonnull (strstr (error->message, ":1:10: version 2 of the store is newer"));
  g_error_free (error);
}

static void
deep_nesting_is_refused_at_once (void)
{
  g_autofree gchar *text = g_strnfill (1000000, '[');
  GError *error = NULL;

  g_assert_null (read_text (text, &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NO_STORE);
  g_error_free (error);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/store-file/a-file-is-read", a_file_is_read);
  g_test_add_func ("/store-file/what-is-written-is-read", what_is_written_is_read);
  g_test_add_func ("/store-file/errors-name-their-place", errors_name_their_place);
  g_test_add_func ("/store-file/a-newer-version-is-told-apart", a_newer_version_is_told_apart);
  g_test_add_func ("/store-file/deep-nesting-is-refused-at-once", deep_nesting_is_refused_at_once);
  return g_test_run ();
}
