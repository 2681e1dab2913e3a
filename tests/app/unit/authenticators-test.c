// SPDX-License-Identifier: LGPL-2.1-or-later
// What authenticators decide by: the permissions of a token, and external checks and their memory.
#include "access/access.h"
#include "access/check_cache.h"
#include "access/jwt_permissions.h"
#include "web-server.h"

#include <glib/gstdio.h>
#include <unistd.h>

#define CHECKS_MAX 1024

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

// ---- external checks ----

static guint n_requests;
static SoupServerMessage *held; // the first request, which is not answered yet

static void
handle (SoupServer *soup, SoupServerMessage *message, const char *path, GHashTable *query,
    gpointer unused)
{
  n_requests++;
  soup_server_message_set_status (message, 200, NULL);
  soup_server_message_pause (message);
  if (!held)
    held = g_object_ref (message);
}

// Returns the Access of a configuration whose external check is `server`.
static Access *
make_access (WebServer *server)
{
  ProxyConfig *config = proxy_config_new ();
  gchar *file = NULL, *text;
  GError *error = NULL;
  Access *access;

  web_server_start (server, handle);
  text = g_strdup_printf (
      "external-auth: {url: \"http://127.0.0.1:%u/\", timeout: 60s}\n", server->port);
  close (g_file_open_tmp ("weir-authenticators-XXXXXX", &file, NULL));
  g_assert_true (g_file_set_contents (file, text, -1, NULL));
  g_assert_true (proxy_config_load (config, file, &error));
  access = access_new (config);
  proxy_config_free (config);
  g_unlink (file);
  g_free (file);
  g_free (text);
  n_requests = 0;
  held = NULL;
  return access;
}

static void
on_decided (AccessDecision *decided, gpointer n)
{
  g_atomic_int_inc ((gint *) n);
}

static AccessDecision *
ask (Access *access, AccessPeer *peer, gint *n_decided)
{
  const AccessRequest request = { .action = ACCESS_READ, .path = "/cam", .method = "DESCRIBE" };

  return access_ask (access, peer, &request, on_decided, n_decided);
}

static void
the_same_question_is_asked_once_at_a_time (void)
{
  WebServer server;
  Access *access = make_access (&server);
  AccessPeer *peer = access_peer_new ("127.0.0.1", "rtsp");
  AccessPeer *other = access_peer_new ("127.0.0.1", "rtsp");
  gint n_decided = 0;
  AccessDecision *one = ask (access, peer, &n_decided), *same = ask (access, peer, &n_decided);
  AccessDecision *another;

  while (n_requests < 1)
    g_main_context_iteration (NULL, TRUE);
  another = ask (access, other, &n_decided);
  while (n_requests < 2)
    g_main_context_iteration (NULL, TRUE);
  soup_server_message_unpause (held);
  while (g_atomic_int_get (&n_decided) < 2)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (n_requests, ==, 2);
  g_assert_cmpint (access_decision_get_verdict (one), ==, access_decision_get_verdict (same));
  g_assert_cmpint (access_decision_get_verdict (one), ==, ACCESS_ADMITTED);
  g_assert_cmpint (access_decision_get_verdict (another), ==, ACCESS_PENDING);
  access_close (access);
  access_free (access);
  g_assert_cmpint (access_decision_get_verdict (another), ==, ACCESS_BUSY);
  access_decision_unref (one);
  access_decision_unref (same);
  access_decision_unref (another);
  access_peer_unref (peer);
  access_peer_unref (other);
  g_clear_object (&held);
  web_server_end (&server);
}

static void
checks_under_way_have_a_bound (void)
{
  WebServer server;
  Access *access = make_access (&server);
  gint n_decided = 0;

  for (guint i = 0; i < CHECKS_MAX + 10; i++) {
    AccessPeer *peer = access_peer_new ("127.0.0.1", "rtsp");
    AccessDecision *asked = ask (access, peer, &n_decided);

    g_assert_cmpint (
        access_decision_get_verdict (asked), ==, i < CHECKS_MAX ? ACCESS_PENDING : ACCESS_BUSY);
    access_decision_unref (asked);
    access_peer_unref (peer);
  }
  access_close (access);
  access_free (access);
  g_assert_cmpint (n_decided, ==, CHECKS_MAX);
  g_clear_object (&held);
  web_server_end (&server);
}

// Hosts of one IPv6 network are not one client.
static void
a_client_without_a_name_is_its_address (void)
{
  static const gchar *const addresses[][2] = { { "192.0.2.1", "address 192.0.2.1" },
    { "::ffff:192.0.2.1", "address 192.0.2.1" }, { "2001:db8::1", "address 2001:db8::1" },
    { "2001:db8::2", "address 2001:db8::2" } };
  WebServer server;
  Access *access = make_access (&server);
  gint n_decided = 0;

  for (guint i = 0; i < G_N_ELEMENTS (addresses); i++) {
    AccessPeer *peer = access_peer_new (addresses[i][0], "srt");
    AccessDecision *asked = ask (access, peer, &n_decided);
    gchar *identity = access_decision_dup_identity (asked);

    g_assert_cmpstr (identity, ==, addresses[i][1]);
    g_free (identity);
    access_decision_unref (asked);
    access_peer_unref (peer);
  }
  access_close (access);
  access_free (access);
  g_clear_object (&held);
  web_server_end (&server);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/authenticators/permissions-of-a-token-name-actions-and-paths",
      permissions_of_a_token_name_actions_and_paths);
  g_test_add_func ("/authenticators/an-admitted-check-is-remembered-for-its-time",
      an_admitted_check_is_remembered_for_its_time);
  g_test_add_func (
      "/authenticators/the-memory-of-checks-has-a-bound", the_memory_of_checks_has_a_bound);
  g_test_add_func ("/authenticators/the-same-question-is-asked-once-at-a-time",
      the_same_question_is_asked_once_at_a_time);
  g_test_add_func ("/authenticators/checks-under-way-have-a-bound", checks_under_way_have_a_bound);
  g_test_add_func ("/authenticators/a-client-without-a-name-is-its-address",
      a_client_without_a_name_is_its_address);
  return g_test_run ();
}
