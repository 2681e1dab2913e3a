// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/swarm_wire.h"

#include <fcntl.h>
#include <gio/gio.h>
#include <string.h>
#include <unistd.h>

static WireMessage message;

// ---- jobs ----

static void
test_a_job_comes_as_it_was (void)
{
  const gchar *const properties[] = { "origin", "http://192.0.2.1/films/", "storage", "50%", NULL };
  const SwarmReaderTitle title = { -1, -1, "a.torrent", "b/c.mp4", "films/a", properties };
  SwarmReaderTitle *got;
  guint64 rate;
  guint timeout_s;

  swarm_wire_put_job (&message, &title, G_GUINT64_CONSTANT (10000000000), 15);
  g_assert_false (message.failed);
  got = swarm_wire_read_job (message.data, message.len, &rate, &timeout_s);
  g_assert_nonnull (got);
  g_assert_cmpuint (rate, ==, G_GUINT64_CONSTANT (10000000000));
  g_assert_cmpuint (timeout_s, ==, 15);
  g_assert_cmpstr (got->torrent_name, ==, "a.torrent");
  g_assert_cmpstr (got->file, ==, "b/c.mp4");
  g_assert_cmpstr (got->label, ==, "films/a");
  g_assert_cmpint (got->torrent, ==, -1);
  g_assert_true (g_strv_equal (got->properties, properties));
  swarm_wire_free_title (got);
}

static void
test_a_job_without_a_file_has_none (void)
{
  const gchar *const properties[] = { NULL };
  const SwarmReaderTitle title = { -1, -1, "a.torrent", NULL, "a", properties };
  SwarmReaderTitle *got;
  guint64 rate;
  guint timeout_s;

  swarm_wire_put_job (&message, &title, 0, 5);
  got = swarm_wire_read_job (message.data, message.len, &rate, &timeout_s);
  g_assert_null (got->file);
  g_assert_null (got->properties[0]);
  swarm_wire_free_title (got);
  for (gsize length = 0; length < message.len; length++) {
    got = swarm_wire_read_job (message.data, length, &rate, &timeout_s);
    g_assert_null (got);
  }
  wire_put_text (&message, "a name without a value");
  g_assert_null (swarm_wire_read_job (message.data, message.len, &rate, &timeout_s));
}

// ---- a reader's messages ----

static void
test_messages_come_as_they_were (void)
{
  SwarmWireMessage got;
  GError *error = g_error_new (G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "no such\nfile");

  swarm_wire_put_read (&message, G_GUINT64_CONSTANT (1) << 40, 5000);
  g_assert_true (swarm_wire_read (message.data, message.len, &got));
  g_assert_cmpint (got.type, ==, SWARM_WIRE_READ);
  g_assert_cmpuint (got.number, ==, G_GUINT64_CONSTANT (1) << 40);
  g_assert_cmpuint (got.length, ==, 5000);
  swarm_wire_put_failure (&message, error);
  g_error_free (error);
  g_assert_true (swarm_wire_read (message.data, message.len, &got));
  g_assert_error (got.error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
  g_assert_cmpstr (got.error->message, ==, "no such?file"); // it breaks no line of the log
  g_error_free (got.error);
}

static void
test_codes_that_mean_something_else_are_not_taken (void)
{
  const gint codes[] = { G_IO_ERROR_NO_SPACE, G_IO_ERROR_BUSY, G_IO_ERROR_TIMED_OUT, -1, 100000 };

  for (guint i = 0; i < G_N_ELEMENTS (codes); i++) {
    SwarmWireMessage got;
    GError *error = g_error_new (G_IO_ERROR, codes[i], "x");

    swarm_wire_put_failure (&message, error);
    g_error_free (error);
    g_assert_true (swarm_wire_read (message.data, message.len, &got));
    g_assert_error (got.error, G_IO_ERROR, G_IO_ERROR_PROXY_FAILED);
    g_error_free (got.error);
  }
}

static void
test_malformed_messages_are_refused (void)
{
  static const struct {
    const gchar *bytes;
    gsize length;
  } cases[] = { { "", 0 }, { "\0", 1 }, { "\x06", 1 }, { "\xff\0\0\0", 4 },
    { "\x01\0\0\0\0\0\0\0\0\0\0\0", 12 }, { "\x01\0\0\0\0\0\0\0\0\0\0\0\0\0", 14 }, { "\x02\0", 2 },
    { "\x03\0\0\0\0\0\0\0", 8 }, { "\x03\0\0\0\0\0\0\0\0\0", 10 }, { "\x05\0\0\0\0", 5 },
    { "\x05\0\0\0\0\0\x05xxxx", 11 }, { "\x05\0\0\0\0\0\x01xx", 9 },
    { "\x05\0\0\0\0\0\x03x\0x", 10 } };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    SwarmWireMessage got;

    g_assert_false (swarm_wire_read ((const guint8 *) cases[i].bytes, cases[i].length, &got));
    g_assert_null (got.error);
  }
}

static void
test_figures_come_through_a_page_that_nobody_can_cut (void)
{
  const StoreSwarmTitle figures = { .peers = 7, .size = 1000, .starts_us = G_MAXUINT64 };
  StoreSwarmTitle got;
  gint file;
  SwarmPage *ours = swarm_page_new (&file), *theirs;

  g_assert_nonnull (ours);
  theirs = swarm_page_map (file);
  g_assert_nonnull (theirs);
  swarm_page_put (theirs, &figures);
  swarm_page_beat (theirs);
  swarm_page_get (ours, &got);
  g_assert_cmpmem (&got, sizeof got, &figures, sizeof figures);
  g_assert_cmpuint (swarm_page_get_beats (ours), ==, 1);
  g_assert_cmpint (ftruncate (file, 0), <, 0);
  g_assert_cmpint (ftruncate (file, 1 << 20), <, 0);
  swarm_page_free (theirs);
  swarm_page_free (ours);
  close (file);
}

static void
test_other_files_are_no_pages (void)
{
  gint file = open ("/dev/null", O_RDWR | O_CLOEXEC);

  g_assert_null (swarm_page_map (file));
  close (file);
  g_assert_null (swarm_page_map (-1));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/swarm-wire/job", test_a_job_comes_as_it_was);
  g_test_add_func ("/swarm-wire/job-without-file", test_a_job_without_a_file_has_none);
  g_test_add_func ("/swarm-wire/messages", test_messages_come_as_they_were);
  g_test_add_func ("/swarm-wire/codes", test_codes_that_mean_something_else_are_not_taken);
  g_test_add_func ("/swarm-wire/malformed", test_malformed_messages_are_refused);
  g_test_add_func ("/swarm-wire/page", test_figures_come_through_a_page_that_nobody_can_cut);
  g_test_add_func ("/swarm-wire/no-page", test_other_files_are_no_pages);
  return g_test_run ();
}
