// SPDX-License-Identifier: LGPL-2.1-or-later
// Requests to a server in this process: the HTTP client, and the source of key sets.
#include "base/http_client.h"
#include "access/jwks_source.h"
#include "web-server.h"

#include <glib/gstdio.h>
#include <string.h>

#define LONG_MS 60000 // a test that waits for this fails by its own time limit
#define SIZE_MAX_BYTES 1000

#define KEY(x)                                                                                     \
  "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"" x "\","                                        \
  "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}"
#define ONE_KEY "{\"keys\":[" KEY ("a") "]}"
#define TWO_KEYS "{\"keys\":[" KEY ("a") "," KEY ("b") "]}"

static WebServer server;
static gchar *base; // "http://127.0.0.1:PORT"
static const gchar *key_set = ONE_KEY;
static guint key_status = 200, n_requests;

static void
handle (SoupServer *soup, SoupServerMessage *message, const char *path, GHashTable *query,
    gpointer unused)
{
  gchar *large;

  n_requests++;
  if (g_str_equal (path, "/hang")) {
    soup_server_message_pause (message);
  } else if (g_str_equal (path, "/redirect")) {
    soup_server_message_set_redirect (message, 302, "/ok");
  } else if (g_str_equal (path, "/large")) {
    large = g_strnfill (SIZE_MAX_BYTES + 1, 'x');
    soup_server_message_set_status (message, 200, NULL);
    soup_server_message_set_response (
        message, "text/plain", SOUP_MEMORY_TAKE, large, SIZE_MAX_BYTES + 1);
  } else if (g_str_equal (path, "/keys")) {
    soup_server_message_set_status (message, key_set ? key_status : 500, NULL);
    if (key_set)
      soup_server_message_set_response (
          message, "application/json", SOUP_MEMORY_COPY, key_set, strlen (key_set));
  } else {
    SoupMessageBody *body = soup_server_message_get_request_body (message);

    soup_server_message_set_status (message, 201, NULL);
    soup_server_message_set_response (
        message, "text/plain", SOUP_MEMORY_COPY, body->data, (gsize) body->length);
  }
}

// ---- the client ----

typedef struct {
  gboolean done;
  guint status;
  gchar *body;
  gint code; // of the error, or -1
} Result;

static void
on_done (const HttpAnswer *answer, gpointer data)
{
  Result *result = data;
  gsize size;
  gconstpointer body;

  g_assert_false (result->done);
  result->done = TRUE;
  result->status = answer->status;
  result->code = answer->error ? answer->error->code : -1;
  if (answer->body) {
    body = g_bytes_get_data (answer->body, &size);
    result->body = g_strndup (body ? body : "", size);
  }
}

static void
send (HttpClient *client, const gchar *path, const gchar *json, guint timeout_ms, Result *result)
{
  gchar *url = g_strconcat (base, path, NULL);
  GBytes *bytes = json ? g_bytes_new (json, strlen (json)) : NULL;

  *result = (Result) { 0 };
  http_client_send (client, url, bytes, timeout_ms, SIZE_MAX_BYTES, on_done, result);
  g_clear_pointer (&bytes, g_bytes_unref);
  g_free (url);
}

static void
wait_for (const gboolean *done)
{
  while (!*done)
    g_main_context_iteration (NULL, TRUE);
}

static void
an_answer_has_status_and_body (void)
{
  HttpClient *client = http_client_new (2);
  Result result;

  send (client, "/ok", "{\"a\":1}", LONG_MS, &result);
  wait_for (&result.done);
  g_assert_cmpint (result.code, ==, -1);
  g_assert_cmpuint (result.status, ==, 201);
  g_assert_cmpstr (result.body, ==, "{\"a\":1}");
  g_free (result.body);
  http_client_free (client);
}

static void
a_redirect_is_not_followed (void)
{
  HttpClient *client = http_client_new (2);
  Result result;

  n_requests = 0;
  send (client, "/redirect", "{}", LONG_MS, &result);
  wait_for (&result.done);
  g_assert_cmpuint (result.status, ==, 302);
  g_assert_cmpuint (n_requests, ==, 1);
  g_free (result.body);
  http_client_free (client);
}

static void
a_large_answer_is_an_error (void)
{
  HttpClient *client = http_client_new (2);
  Result result;

  send (client, "/large", NULL, LONG_MS, &result);
  wait_for (&result.done);
  g_assert_cmpint (result.code, ==, G_IO_ERROR_MESSAGE_TOO_LARGE);
  g_assert_null (result.body);
  http_client_free (client);
}

static void
the_deadline_counts_while_a_request_waits_for_a_connection (void)
{
  HttpClient *client = http_client_new (1);
  Result hanging, waiting;

  send (client, "/hang", NULL, LONG_MS, &hanging);
  send (client, "/ok", NULL, 100, &waiting);
  wait_for (&waiting.done);
  g_assert_cmpint (waiting.code, ==, G_IO_ERROR_TIMED_OUT);
  g_assert_false (hanging.done);
  http_client_free (client);
  g_assert_cmpint (hanging.code, ==, G_IO_ERROR_CANCELLED);
}

static void
a_server_that_does_not_answer_or_does_not_listen_is_an_error (void)
{
  HttpClient *client = http_client_new (2);
  GSocketListener *listener = g_socket_listener_new ();
  guint16 port = g_socket_listener_add_any_inet_port (listener, NULL, NULL);
  gchar *url = g_strdup_printf ("http://127.0.0.1:%u/", port);
  Result result;

  send (client, "/hang", "{}", 100, &result);
  wait_for (&result.done);
  g_assert_cmpint (result.code, ==, G_IO_ERROR_TIMED_OUT);
  g_object_unref (listener);
  result = (Result) { 0 };
  http_client_send (client, url, NULL, LONG_MS, SIZE_MAX_BYTES, on_done, &result);
  wait_for (&result.done);
  g_assert_cmpint (result.code, ==, G_IO_ERROR_CONNECTION_REFUSED);
  http_client_free (client);
  g_free (url);
}

// ---- the source of keys ----

static void
on_loaded (gpointer data, gpointer unused)
{
  *(gboolean *) data = TRUE;
}

static guint
count (JwksSource *source)
{
  Jwks *keys = jwks_source_dup_keys (source);
  guint n = keys ? jwks_count (keys) : 0;

  g_clear_pointer (&keys, jwks_unref);
  return n;
}

static void
load (JwksSource *source)
{
  gboolean done = FALSE;

  g_assert_true (jwks_source_load (source, on_loaded, &done));
  wait_for (&done);
}

static void
keys_rotate_and_the_old_ones_stay_after_a_failure (void)
{
  static const gchar *const failures[] = { NULL, "", "{\"keys\":[]}", "[]", "{\"keys\":[7]}" };
  HttpClient *client = http_client_new (2);
  gchar *url = g_strconcat (base, "/keys", NULL);
  JwksSource *source = jwks_source_new (url, NULL, client, 0);

  load (source); // joins the first load
  g_assert_cmpuint (count (source), ==, 1);
  key_set = TWO_KEYS;
  load (source);
  g_assert_cmpuint (count (source), ==, 2);
  for (guint i = 0; i < G_N_ELEMENTS (failures); i++) {
    key_set = failures[i];
    load (source);
    g_assert_cmpuint (count (source), ==, 2);
  }
  key_set = ONE_KEY;
  key_status = 404;
  load (source);
  g_assert_cmpuint (count (source), ==, 2);
  key_status = 200;
  load (source);
  g_assert_cmpuint (count (source), ==, 1);
  jwks_source_free (source);
  http_client_free (client);
  g_free (url);
}

static void
unknown_keys_load_a_set_once_in_the_quiet_time (void)
{
  HttpClient *client = http_client_new (2);
  gchar *url = g_strconcat (base, "/keys", NULL);
  JwksSource *source;

  n_requests = 0;
  source = jwks_source_new (url, NULL, client, LONG_MS);
  load (source);
  for (guint i = 0; i < 1000; i++)
    g_assert_false (jwks_source_load (source, NULL, NULL));
  g_assert_cmpuint (n_requests, ==, 1);
  jwks_source_free (source);
  http_client_free (client);
  g_free (url);
}

static void
the_end_of_a_source_calls_what_waits_for_it (void)
{
  HttpClient *client = http_client_new (2);
  gchar *url = g_strconcat (base, "/hang", NULL);
  JwksSource *source = jwks_source_new (url, NULL, client, LONG_MS);
  gboolean done = FALSE;

  g_assert_true (jwks_source_load (source, on_loaded, &done));
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_false (done);
  jwks_source_free (source);
  g_assert_true (done);
  http_client_free (client);
  g_free (url);
}

static void
a_file_is_read_again (void)
{
  HttpClient *client = http_client_new (2);
  gchar *folder = g_dir_make_tmp ("weir-fetch-XXXXXX", NULL);
  gchar *file = g_build_filename (folder, "jwks.json", NULL);
  JwksSource *source;
  Jwks *keys;

  g_assert_true (g_file_set_contents (file, ONE_KEY, -1, NULL));
  keys = jwks_load (file, NULL);
  source = jwks_source_new (file, keys, client, 0);
  g_assert_cmpuint (count (source), ==, 1);
  g_assert_true (g_file_set_contents (file, TWO_KEYS, -1, NULL));
  load (source);
  g_assert_cmpuint (count (source), ==, 2);
  g_unlink (file);
  load (source);
  g_assert_cmpuint (count (source), ==, 2);
  jwks_source_free (source);
  jwks_unref (keys);
  http_client_free (client);
  g_rmdir (folder);
  g_free (file);
  g_free (folder);
}

int
main (int argc, char **argv)
{
  int status;

  g_test_init (&argc, &argv, NULL);
  web_server_start (&server, handle);
  base = g_strdup_printf ("http://127.0.0.1:%u", server.port);
  g_test_add_func ("/fetch/an-answer-has-status-and-body", an_answer_has_status_and_body);
  g_test_add_func ("/fetch/a-redirect-is-not-followed", a_redirect_is_not_followed);
  g_test_add_func ("/fetch/a-large-answer-is-an-error", a_large_answer_is_an_error);
  g_test_add_func ("/fetch/the-deadline-counts-while-a-request-waits-for-a-connection",
      the_deadline_counts_while_a_request_waits_for_a_connection);
  g_test_add_func ("/fetch/a-server-that-does-not-answer-or-does-not-listen-is-an-error",
      a_server_that_does_not_answer_or_does_not_listen_is_an_error);
  g_test_add_func ("/fetch/keys-rotate-and-the-old-ones-stay-after-a-failure",
      keys_rotate_and_the_old_ones_stay_after_a_failure);
  g_test_add_func ("/fetch/unknown-keys-load-a-set-once-in-the-quiet-time",
      unknown_keys_load_a_set_once_in_the_quiet_time);
  g_test_add_func ("/fetch/the-end-of-a-source-calls-what-waits-for-it",
      the_end_of_a_source_calls_what_waits_for_it);
  g_test_add_func ("/fetch/a-file-is-read-again", a_file_is_read_again);
  status = g_test_run ();
  web_server_end (&server);
  g_free (base);
  return status;
}
