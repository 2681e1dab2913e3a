// SPDX-License-Identifier: LGPL-2.1-or-later
// What judges decide by: the permissions of a token, and the memory of external checks.
#include "access/check_cache.h"
#include "access/jwt_permissions.h"

static void
permissions_of_a_token_name_actions_and_paths (void)
{
  static const struct {
    const gchar *claims;
    AccessAction action;
    const gchar *path, *mount;
    gboolean permitted;
  } cases[] = {
    { "{\"p\":[{\"action\":\"read\",\"path\":\"/cam\"}]}", ACCESS_READ, "/cam", "/cam", TRUE },
    { "{\"p\":[{\"action\":\"read\",\"path\":\"/cam\"}]}", ACCESS_READ, "/cam/x", "/cam", TRUE },
    { "{\"p\":[{\"action\":\"read\",\"path\":\"/cam\"}]}", ACCESS_READ, "/camera", "/camera",
        FALSE },
    { "{\"p\":[{\"action\":\"read\",\"path\":\"/cam\"}]}", ACCESS_PLAYBACK, "/cam", "/cam", FALSE },
    { "{\"p\":[{\"action\":\"read\",\"path\":\"/c*m\"}]}", ACCESS_READ, "/cam", NULL, TRUE },
    { "{\"p\":[{\"action\":\"read\",\"path\":\"/cam/*\"}]}", ACCESS_READ, "/cam", NULL, FALSE },
    { "{\"p\":[{\"action\":\"read\"}]}", ACCESS_READ, "/cam", NULL, TRUE },
    { "{\"p\":[{\"action\":\"api\"}]}", ACCESS_API, "/v1/readers", NULL, TRUE },
    { "{\"p\":[{\"action\":\"playback\"},{\"action\":\"read\"}]}", ACCESS_READ, "/cam", NULL,
        TRUE },
    // as MediaMTX writes them
    { "{\"p\":[{\"action\":\"read\",\"path\":\"\"}]}", ACCESS_READ, "/cam", NULL, TRUE },
    { "{\"p\":[{\"action\":\"read\",\"path\":\"cam\"}]}", ACCESS_READ, "/cam", NULL, TRUE },
    { "{\"p\":[{\"action\":\"read\",\"path\":\"~^c.m$\"}]}", ACCESS_READ, "/cam", NULL, TRUE },
    { "{\"p\":[{\"action\":\"read\",\"path\":\"~^c.m$\"}]}", ACCESS_READ, "/cams", NULL, FALSE },
    { "{\"p\":[{\"action\":\"read\",\"path\":\"~(\"}]}", ACCESS_READ, "/cam", NULL, FALSE },
    { "{\"p\":\"[{\\\"action\\\":\\\"read\\\",\\\"path\\\":\\\"cam\\\"}]\"}", ACCESS_READ, "/cam",
        NULL, TRUE },
    // what permits nothing
    { "{}", ACCESS_READ, "/cam", NULL, FALSE },
    { "{\"p\":[]}", ACCESS_READ, "/cam", NULL, FALSE },
    { "{\"p\":[\"read\"]}", ACCESS_READ, "/cam", NULL, FALSE },
    { "{\"p\":{\"action\":\"read\"}}", ACCESS_READ, "/cam", NULL, FALSE },
    { "{\"p\":[{\"action\":\"read\",\"path\":7}]}", ACCESS_READ, "/cam", NULL, FALSE },
    { "{\"p\":[{\"action\":\"read\",\"path\":null}]}", ACCESS_READ, "/cam", NULL, FALSE },
    { "{\"p\":[{\"action\":[\"read\"]}]}", ACCESS_READ, "/cam", NULL, FALSE },
    { "{\"p\":\"read\"}", ACCESS_READ, "/cam", NULL, FALSE },
    { "{\"p\":\"[],\\\"list\\\":[{\\\"action\\\":\\\"read\\\"}]\"}", ACCESS_READ, "/cam", NULL,
        FALSE },
    { "{\"q\":[{\"action\":\"read\"}]}", ACCESS_READ, "/cam", NULL, FALSE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    JsonNode *node = json_from_string (cases[i].claims, NULL);

    g_test_message ("%s %s", cases[i].claims, cases[i].path);
    g_assert_cmpint (jwt_permits (json_node_get_object (node), "p", cases[i].action, cases[i].path,
                         cases[i].mount),
        ==, cases[i].permitted);
    json_node_unref (node);
  }
}

static void
an_admitted_check_is_remembered_for_its_time (void)
{
  CheckCache *cache = check_cache_new (4, 10);

  g_assert_false (check_cache_has (cache, "a", 100));
  check_cache_add (cache, "a", 100);
  g_assert_true (check_cache_has (cache, "a", 109));
  g_assert_false (check_cache_has (cache, "b", 109));
  check_cache_add (cache, "a", 105); // an answer does not prolong the one before
  g_assert_false (check_cache_has (cache, "a", 110));
  check_cache_add (cache, "a", 110);
  check_cache_clear (cache);
  g_assert_false (check_cache_has (cache, "a", 110));
  check_cache_free (cache);
}

static void
the_memory_of_checks_has_a_bound (void)
{
  CheckCache *cache = check_cache_new (4, 1000);

  for (guint i = 0; i < 100; i++) {
    gchar *key = g_strdup_printf ("%u", i);

    check_cache_add (cache, key, i);
    g_assert_true (check_cache_has (cache, key, i));
    g_free (key);
  }
  g_assert_false (check_cache_has (cache, "95", 100));
  g_assert_true (check_cache_has (cache, "96", 100));
  check_cache_free (cache);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/judges/permissions-of-a-token-name-actions-and-paths",
      permissions_of_a_token_name_actions_and_paths);
  g_test_add_func ("/judges/an-admitted-check-is-remembered-for-its-time",
      an_admitted_check_is_remembered_for_its_time);
  g_test_add_func ("/judges/the-memory-of-checks-has-a-bound", the_memory_of_checks_has_a_bound);
  return g_test_run ();
}
