// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_memory.h"

#include <string.h>

#define HOUR_US (3600 * G_GINT64_CONSTANT (1000000))

static void
assert_target (HlsMemory *memory, const gchar *id, gint64 now_us, const gchar *wanted)
{
  gchar *target = hls_memory_dup (memory, id, now_us);

  g_assert_cmpstr (target, ==, wanted);
  g_free (target);
}

static void
a_session_is_remembered_for_a_time (void)
{
  HlsMemory *memory = hls_memory_new (4, HOUR_US);

  assert_target (memory, "a", 0, NULL);
  hls_memory_put (memory, "a", "/cam?token=x", 10);
  hls_memory_put (memory, "b", "/other", HOUR_US / 2);
  assert_target (memory, "a", HOUR_US + 10, "/cam?token=x");
  assert_target (memory, "a", HOUR_US + 11, NULL);
  assert_target (memory, "b", HOUR_US + 11, "/other");
  // It came back, and was silent again.
  hls_memory_put (memory, "b", "/other", HOUR_US);
  assert_target (memory, "b", 2 * HOUR_US, "/other");
  assert_target (memory, "b", 2 * HOUR_US + 1, NULL);
  hls_memory_free (memory);
}

static void
a_session_that_is_forgotten_does_not_resume (void)
{
  HlsMemory *memory = hls_memory_new (4, HOUR_US);

  hls_memory_forget (memory, "a");
  hls_memory_put (memory, "a", "/cam", 0);
  hls_memory_forget (memory, "a");
  assert_target (memory, "a", 0, NULL);
  hls_memory_free (memory);
}

static void
the_memory_is_bounded (void)
{
  HlsMemory *memory = hls_memory_new (3, HOUR_US);
  gchar *longest = g_strnfill (HLS_MEMORY_TARGET, 'x');
  gchar *longer = g_strnfill (HLS_MEMORY_TARGET + 1, 'x');

  for (guint i = 0; i < 1000; i++) {
    gchar id[] = { (gchar) ('a' + i % 5), 0 };

    hls_memory_put (memory, id, i < 999 ? "/cam" : longest, i);
  }
  assert_target (memory, "a", 1000, NULL);
  assert_target (memory, "b", 1000, NULL);
  assert_target (memory, "c", 1000, "/cam");
  assert_target (memory, "d", 1000, "/cam");
  assert_target (memory, "e", 1000, longest);
  hls_memory_put (memory, "f", longer, 1000);
  assert_target (memory, "f", 1000, NULL);
  assert_target (memory, "c", 1000, "/cam");
  hls_memory_free (memory);
  g_free (longest);
  g_free (longer);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func (
      "/hls-memory/a-session-is-remembered-for-a-time", a_session_is_remembered_for_a_time);
  g_test_add_func ("/hls-memory/a-session-that-is-forgotten-does-not-resume",
      a_session_that_is_forgotten_does_not_resume);
  g_test_add_func ("/hls-memory/the-memory-is-bounded", the_memory_is_bounded);
  return g_test_run ();
}
