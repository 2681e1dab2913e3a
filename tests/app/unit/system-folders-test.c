// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What --check-system says about the folders that a configuration writes to.

#include "config.h"

#include "system/checks.h"

#include <glib/gstdio.h>
#include <gst/gst.h>
#include <string.h>
#include <unistd.h>

#include "store/blockstore.h"

#define UNIT "/usr/lib/systemd/system/rtsp-proxy.service"
#define DROP_IN "/etc/systemd/system/rtsp-proxy.service.d/"
#define WRITE "folders that the service may write"

static gchar *root; // a made-up system, which has also the folders of the configurations

static void
put (const gchar *path, const gchar *text)
{
  gchar *whole = g_strconcat (root, path, NULL), *folder = g_path_get_dirname (whole);

  g_assert_cmpint (g_mkdir_with_parents (folder, 0700), ==, 0);
  g_assert_true (g_file_set_contents (whole, text, -1, NULL));
  g_free (folder);
  g_free (whole);
}

static gchar *
make_folder (const gchar *name)
{
  gchar *path = g_build_filename (root, name, NULL);

  g_assert_cmpint (g_mkdir_with_parents (path, 0700), ==, 0);
  return path;
}

static void
remove_tree (const gchar *path)
{
  GDir *dir = g_dir_open (path, 0, NULL);
  const gchar *name;

  while (dir && (name = g_dir_read_name (dir))) {
    gchar *child = g_build_filename (path, name, NULL);

    remove_tree (child);
    g_free (child);
  }
  g_clear_pointer (&dir, g_dir_close);
  g_remove (path);
}

// Returns what the checks find for `mounts`, YAML in which @ stands for the root, on a system that
// `change` may have changed.
static Report *
check (const gchar *mounts, void (*change) (System *))
{
  ProxyConfig *config = proxy_config_new ();
  GString *text = g_string_new (mounts);
  gchar *file = g_build_filename (root, "proxy.yaml", NULL);
  Report *report = report_new ();
  System *system = system_new (root);
  SystemNeeds *needs;
  GError *error = NULL;

  g_string_replace (text, "@", root, 0);
  g_string_prepend (text, "mounts:\n");
  g_assert_true (g_file_set_contents (file, text->str, -1, NULL));
  g_assert_cmpint (g_chmod (file, 0600), ==, 0);
  proxy_config_load (config, file, &error);
  g_assert_no_error (error);
  if (change)
    change (system);
  needs = system_needs_new (config, &(Expectation) { 8000000, 0 });
  checks_folders (system, needs, report);
  system_needs_free (needs);
  system_free (system);
  proxy_config_free (config);
  g_string_free (text, TRUE);
  g_free (file);
  return report;
}

// Returns the finding whose name begins with `name` and a path of the root, or is `name`.
static const Finding *
find (const Report *report, const gchar *name)
{
  const Finding *found = NULL;

  for (guint i = 0; i < report->findings->len; i++) {
    const Finding *each = g_ptr_array_index (report->findings, i);

    if (g_str_has_prefix (each->name, name)) {
      g_assert_null (found);
      found = each;
    }
  }
  return found;
}

// Returns the MiB that a disk has to have.
static guint64
wanted (const Report *report)
{
  const Finding *disk = find (report, "disk of ");
  const gchar *number;

  g_assert_nonnull (disk);
  number = strstr (disk->state, disk->kind == FINDING_GOOD ? "free, " : "at least ");
  return g_ascii_strtoull (strpbrk (number, "0123456789"), NULL, 10);
}

// ---- room ----

static void
recordings_and_caches_of_a_disk_are_added (void)
{
  gchar *films = make_folder ("films"), *spill = make_folder ("spill");
  Report *report;
  const Finding *disk;

  report = check (
      "  /a: {upstream: 'rtsp://192.0.2.7/a', record: {folder: @/films, limit: 400G}}\n"
      "  /b: {upstream: 'rtsp://192.0.2.7/b', record: {folder: @/films, limit: 900T, keep: "
      "1000s}}\n"
      "  /c: {upstream: 'rtsp://192.0.2.7/c', record: {folder: @/films/, keep: 0s, limit: 100T}}\n"
      "  /d: {upstream: 'rtsp://192.0.2.7/d', cache: {time: 1h, bytes: 64M, spill: @/spill}}\n",
      NULL);
  disk = find (report, "disk of ");
  g_assert_nonnull (disk);
  g_assert_nonnull (strstr (disk->name, films));
  g_assert_nonnull (strstr (disk->name, spill));
  // 1000 s of 8 Mb/s are 953 MiB.
  g_assert_cmpuint (wanted (report), ==, (400 << 10) + 953 + (100 << 20) + 64 + 1);
  g_assert_cmpint (disk->kind, ==, FINDING_BINDS);
  g_assert_nonnull (strstr (disk->lasting, "`keep` or `limit`"));
  report_free (report);
  g_free (films);
  g_free (spill);
}

static void
what_is_recorded_counts_against_the_limit (void)
{
  const gchar *mounts =
      "  /a: {upstream: 'rtsp://192.0.2.7/a', record: {folder: @/films, limit: 32M}}\n";
  gchar *films = make_folder ("films"), *text = g_strnfill (20 << 20, 'x');
  Report *before = check (mounts, NULL), *after;

  put ("/films/a/2026/1.mp4", text);
  put ("/films/other/1.mp4", text);
  after = check (mounts, NULL);
  g_assert_cmpuint (wanted (before), ==, 32 + 1);
  g_assert_cmpuint (wanted (after), >=, 12);
  g_assert_cmpuint (wanted (after), <=, 13);
  report_free (before);
  report_free (after);
  g_free (films);
  g_free (text);
}

static void
recordings_without_an_end_are_a_hint (void)
{
  gchar *films = make_folder ("films");
  Report *report =
      check ("  /a: {upstream: 'rtsp://192.0.2.7/a', record: {folder: @/films, keep: 0s}}\n", NULL);
  const Finding *hint = find (report, "recordings in ");

  g_assert_nonnull (hint);
  g_assert_cmpint (hint->kind, ==, FINDING_HINT);
  g_assert_false (report_binds (report));
  report_free (report);
  g_free (films);
}

// ---- the service ----

#define RECORD "  /a: {upstream: 'rtsp://192.0.2.7/a', record: {folder: @/films, limit: 16M}}\n"
#define SPILL                                                                                      \
  "  /d: {upstream: 'rtsp://192.0.2.7/d', cache: {time: 1s, bytes: 1M, spill: '@/a spill'}}\n"

static void
the_unit_must_let_the_service_write (void)
{
  gchar *films = make_folder ("films"), *spill = make_folder ("a spill");
  gchar *drop_in = g_strdup_printf ("ReadWritePaths=%s \"%s\"", films, spill);
  gchar *parent = g_strdup_printf ("[Service]\nReadWritePaths=/x -%s/\n", root);
  Report *report = check (RECORD SPILL, NULL);
  const Finding *found;

  g_assert_null (find (report, WRITE)); // no unit is installed
  report_free (report);

  put (UNIT, "[Service]\nStateDirectory=rtsp-proxy\nCacheDirectory=rtsp-proxy\n");
  report = check (RECORD SPILL, NULL);
  found = find (report, WRITE);
  g_assert_cmpint (found->kind, ==, FINDING_BINDS);
  g_assert_true (g_str_has_prefix (found->lasting, drop_in));
  g_assert_true (g_str_has_suffix (found->lasting, "with systemctl edit rtsp-proxy"));
  report_free (report);

  // What was printed suffices, and so does a folder above.
  for (guint i = 0; i < 2; i++) {
    gchar *text = g_strdup_printf ("[Service]\n%s\n", i ? parent : drop_in);

    put (DROP_IN "override.conf", text);
    report = check (RECORD SPILL, NULL);
    g_assert_cmpint (find (report, WRITE)->kind, ==, FINDING_GOOD);
    report_free (report);
    g_free (text);
  }

  // An empty value removes what was there before; a folder that begins alike is another.
  put (DROP_IN "override.conf", "ReadWritePaths=/\nReadWritePaths=\nReadWritePaths=/x\n");
  report = check (RECORD, NULL);
  g_assert_cmpint (find (report, WRITE)->kind, ==, FINDING_BINDS);
  report_free (report);
  g_free (parent);
  parent = g_strdup_printf ("ReadWritePaths=%s-old %s/deeper", films, films);
  put (DROP_IN "override.conf", parent);
  report = check (RECORD, NULL);
  g_assert_cmpint (find (report, WRITE)->kind, ==, FINDING_BINDS);
  report_free (report);
  g_free (parent);
  g_free (drop_in);
  g_free (films);
  g_free (spill);
}

static void
be_us (System *system)
{
  system->has_service_user = TRUE;
  system->service_uid = getuid ();
  system->service_gid = getgid ();
}

static void
be_another (System *system)
{
  be_us (system);
  system->service_uid++;
  system->service_gid++;
}

static void
the_services_user_must_own_the_folders (void)
{
  gchar *films = make_folder ("films");
  gchar *command = g_strdup_printf ("chown -R " SYSTEM_SERVICE_USER ": '%s'", films);
  Report *report;
  const Finding *found;

  put (UNIT, "[Service]\nReadWritePaths=/\n");
  report = check (RECORD, be_us);
  g_assert_null (find (report, "owner of "));
  g_assert_false (report_binds (report));
  report_free (report);

  report = check (RECORD, be_another);
  found = find (report, "owner of ");
  g_assert_cmpint (found->kind, ==, FINDING_BINDS);
  g_assert_cmpstr (found->now, ==, command);
  report_free (report);

  g_assert_cmpint (g_chmod (films, 0707), ==, 0);
  report = check (RECORD, be_another);
  g_assert_null (find (report, "owner of "));
  report_free (report);
  g_free (command);
  g_free (films);
}

static void
the_disks_of_a_store_are_written_too (void)
{
  gchar *store = make_folder ("store"), *disk = make_folder ("disk 1");
  GError *error = NULL;
  const Finding *found;
  Report *report;

  weir_block_store_init (
      store, (const gchar *[]) { disk, NULL }, WEIR_PLACEMENT_RAID0, 5 * GST_SECOND, NULL, &error);
  g_assert_no_error (error);
  put (UNIT, "[Service]\n");
  report = check ("  /vod: {upstream: 'store://@/store'}\n", NULL);
  found = find (report, WRITE);
  g_assert_cmpint (found->kind, ==, FINDING_BINDS);
  g_assert_nonnull (strstr (found->lasting, store));
  g_assert_nonnull (strstr (found->lasting, disk));
  g_assert_null (find (report, "disk of "));
  report_free (report);
  g_free (disk);
  g_free (store);
}

// Each test has an empty system.
static void
begin (gpointer *fixture, gconstpointer data)
{
  root = g_dir_make_tmp ("folders-XXXXXX", NULL);
}

static void
end (gpointer *fixture, gconstpointer data)
{
  remove_tree (root);
  g_clear_pointer (&root, g_free);
}

static void
call (gpointer *fixture, gconstpointer data)
{
  ((void (*) (void)) data) ();
}

int
main (int argc, char **argv)
{
  gst_init (NULL, NULL);
  g_test_init (&argc, &argv, NULL);
#define ADD(name, function)                                                                        \
  g_test_add ("/folders/" name, gpointer, (gconstpointer) function, begin, call, end)
  ADD ("recordings-and-caches-of-a-disk-are-added", recordings_and_caches_of_a_disk_are_added);
  ADD ("what-is-recorded-counts-against-the-limit", what_is_recorded_counts_against_the_limit);
  ADD ("recordings-without-an-end-are-a-hint", recordings_without_an_end_are_a_hint);
  ADD ("the-unit-must-let-the-service-write", the_unit_must_let_the_service_write);
  ADD ("the-services-user-must-own-the-folders", the_services_user_must_own_the_folders);
  if (WITH_STORE)
    ADD ("the-disks-of-a-store-are-written-too", the_disks_of_a_store_are_written_too);
  return g_test_run ();
}
