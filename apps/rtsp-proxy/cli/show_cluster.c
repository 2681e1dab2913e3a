// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/show_cluster.h"

#include <json-glib/json-glib.h>
#include <libsoup/soup.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/json_strict.h"

#define EXIT_USAGE 2
#define DEFAULT_URL "http://127.0.0.1:9554"
#define TIMEOUT_S 10
#define DEPTH_MAX 16

static const gchar summary[] =
    "Asks the API of a member, at URL (default " DEFAULT_URL "), for the members of its\n"
    "cluster, for their streams and their mounts, and prints them.";

// ---- the question ----

static SoupMessage *
new_message (const gchar *base, const gchar *token, GError **error)
{
  g_autofree gchar *url = g_strconcat (base, "/v1/cluster", NULL);
  g_autofree gchar *bearer = token ? g_strconcat ("Bearer ", token, NULL) : NULL;
  SoupMessage *message = soup_message_new ("GET", url);

  if (!message)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
        "%s is not an HTTP URL such as " DEFAULT_URL, base);
  else if (bearer)
    soup_message_headers_replace (
        soup_message_get_request_headers (message), "Authorization", bearer);
  return message;
}

// Returns the answer of the API (transfer full), or NULL and sets `error`.
static JsonObject *
ask (const gchar *base, const gchar *token, GError **error)
{
  g_autoptr (SoupMessage) message = new_message (base, token, error);
  g_autoptr (SoupSession) session =
      soup_session_new_with_options ("timeout", TIMEOUT_S, "user-agent", "rtsp-proxy", NULL);
  g_autoptr (GBytes) body =
      message ? soup_session_send_and_read (session, message, NULL, error) : NULL;
  const gchar *text;
  JsonObject *answer;
  gsize len;

  if (!body)
    return NULL;
  if (soup_message_get_status (message) != SOUP_STATUS_OK) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s answers %u (%s)", base,
        soup_message_get_status (message), soup_message_get_reason_phrase (message));
    return NULL;
  }
  text = g_bytes_get_data (body, &len);
  answer = text ? json_strict_read (text, len, DEPTH_MAX) : NULL;
  if (!answer)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s does not answer with JSON", base);
  return answer;
}

// ---- the answer ----

static const gchar *
get_text (JsonObject *object, const gchar *name)
{
  const gchar *text = json_strict_text (object, name);

  return text ? text : "-";
}

static gdouble
get_number (JsonObject *object, const gchar *name)
{
  gdouble number = 0;

  json_strict_number (object, name, &number);
  return number;
}

static void
print_member (JsonArray *array, guint i, JsonNode *node, gpointer unused)
{
  JsonObject *member = json_node_get_object (node);

  printf ("%-20s %-20s %-9s %8.0f %10.1f %6.2f  %s\n", get_text (member, "name"),
      get_text (member, "address"), get_text (member, "state"), get_number (member, "readers"),
      get_number (member, "rate") / 1e6, get_number (member, "cpu"), get_text (member, "version"));
}

static void
print_reader (JsonArray *array, guint i, JsonNode *node, gpointer unused)
{
  JsonObject *reader = json_node_get_object (node);
  const gchar *from = json_strict_text (reader, "from");

  printf ("  %s from %s", get_text (reader, "member"), from ? from : "its own upstream");
}

static void
print_stream (JsonArray *array, guint i, JsonNode *node, gpointer unused)
{
  JsonObject *stream = json_node_get_object (node);
  JsonArray *readers = json_strict_array (stream, "readers");

  printf ("%-30s %-20s", get_text (stream, "path"), get_text (stream, "owner"));
  if (readers)
    json_array_foreach_element (readers, print_reader, NULL);
  putchar ('\n');
}

static void
print_mount (JsonArray *array, guint i, JsonNode *node, gpointer unused)
{
  JsonObject *mount = json_node_get_object (node);
  const gchar *problem = json_strict_text (mount, "problem");

  printf ("%-30s %-9s%s%s\n", get_text (mount, "path"), get_text (mount, "state"),
      problem ? "  " : "", problem ? problem : "");
}

static void
print_cluster (JsonObject *cluster)
{
  const gchar *problem = json_strict_text (cluster, "problem");
  JsonArray *members = json_strict_array (cluster, "members");
  JsonArray *streams = json_strict_array (cluster, "streams");
  JsonArray *mounts = json_strict_array (cluster, "mounts");

  printf (
      "this member: %s; etcd: %s\n", get_text (cluster, "name"), get_text (cluster, "endpoint"));
  if (problem)
    printf ("problem: %s\n", problem);
  printf ("\n%-20s %-20s %-9s %8s %10s %6s  %s\n", "member", "address", "state", "readers",
      "Mb/s out", "cores", "version");
  if (members)
    json_array_foreach_element (members, print_member, NULL);
  if (streams && json_array_get_length (streams) > 0) {
    printf ("\n%-30s %-20s  readers\n", "stream", "owner");
    json_array_foreach_element (streams, print_stream, NULL);
  }
  if (mounts && json_array_get_length (mounts) > 0) {
    printf ("\n%-30s %s\n", "mount in etcd", "state");
    json_array_foreach_element (mounts, print_mount, NULL);
  }
}

static int
show (const gchar *base, const gchar *token)
{
  GError *error = NULL;
  g_autoptr (JsonObject) cluster = ask (base, token, &error);

  if (!cluster) {
    fprintf (stderr, "rtsp-proxy: %s\n", error->message);
    g_error_free (error);
    return EXIT_FAILURE;
  }
  if (!json_strict_text (cluster, "name")) {
    fprintf (stderr, "rtsp-proxy: the proxy at %s has no key `cluster`\n", base);
    return EXIT_FAILURE;
  }
  print_cluster (cluster);
  return EXIT_SUCCESS;
}

static gboolean
read_token (const gchar *file, gchar **token)
{
  GError *error = NULL;

  if (!file)
    return TRUE;
  if (!g_file_get_contents (file, token, NULL, &error)) {
    fprintf (stderr, "rtsp-proxy: %s\n", error->message);
    g_error_free (error);
    return FALSE;
  }
  g_strchomp (*token);
  return TRUE;
}

int
show_cluster_run (int argc, char **argv)
{
  g_autofree gchar *file = NULL, *token = NULL;
  const GOptionEntry entries[] = {
    { "token-file", 0, 0, G_OPTION_ARG_FILENAME, &file, "File with the token of the API", "FILE" },
    { NULL },
  };
  GOptionContext *context = g_option_context_new ("[URL]");
  GError *error = NULL;
  int status = EXIT_USAGE;

  g_option_context_set_summary (context, summary);
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error)) {
    fprintf (stderr, "rtsp-proxy: %s; see rtsp-proxy cluster --help\n", error->message);
    g_error_free (error);
  } else if (argc > 2) {
    fputs ("rtsp-proxy: expected one URL; see rtsp-proxy cluster --help\n", stderr);
  } else if (read_token (file, &token)) {
    status = show (argc == 2 ? argv[1] : DEFAULT_URL, token);
  }
  g_option_context_free (context);
  return status;
}
