// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/api_shared.h"

#include "base/log.h"
#include "text/json_strict.h"

#include <string.h>

#define DEPTH_MAX 16

gboolean
api_shares_mounts (const ApiRequest *request)
{
  return cluster_get_mounts (request->api->cluster) != NULL;
}

gboolean
api_find_shared (const ApiRequest *request, SharedMountView *view)
{
  SharedMounts *mounts = cluster_get_mounts (request->api->cluster);

  return mounts && shared_mounts_find (mounts, request->rest, view);
}

void
api_set_revision (SoupServerMessage *message, gint64 revision)
{
  g_autofree gchar *tag = g_strdup_printf ("\"%" G_GINT64_FORMAT "\"", revision);

  soup_message_headers_replace (soup_server_message_get_response_headers (message), "ETag", tag);
}

// ---- conditions ----

// Reports whether one of the tags of a header is that of the mount.
static gboolean
has_tag (const gchar *header, const SharedMountView *mount)
{
  GSList *tags = soup_header_parse_list (header);
  g_autofree gchar *own =
      mount ? g_strdup_printf ("\"%" G_GINT64_FORMAT "\"", mount->revision) : NULL;
  gboolean found = FALSE;

  for (GSList *tag = tags; tag && own; tag = tag->next)
    found |= g_str_equal (tag->data, "*") || g_str_equal (tag->data, own);
  soup_header_free_list (tags);
  return found;
}

gboolean
api_check_shared (const ApiRequest *request)
{
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (request->message);
  const gchar *match = soup_message_headers_get_list (headers, "If-Match");
  const gchar *other = soup_message_headers_get_list (headers, "If-None-Match");
  g_autoptr (Mount) here = mounts_get (proxy_get_mounts (request->api->proxy), request->rest);
  SharedMountView view;
  const gboolean exists = api_find_shared (request, &view);

  if (here && !mount_get_config (here)->from_api && !mount_get_pattern (here)) {
    api_fail (request->message, SOUP_STATUS_CONFLICT, NULL,
        "the file of this member has the mount, and wins here; change the file");
    return FALSE;
  }
  if ((match && !has_tag (match, exists ? &view : NULL))
      || (other && has_tag (other, exists ? &view : NULL))) {
    if (exists)
      api_set_revision (request->message, view.revision);
    api_fail (request->message, SOUP_STATUS_PRECONDITION_FAILED,
        match ? "If-Match" : "If-None-Match",
        exists ? "the mount is another one by now; get it again" : "the cluster has no such mount");
    return FALSE;
  }
  return TRUE;
}

// ---- PATCH ----

// Keys of which a mount has one at most.
static const gchar *const alternatives[][4] = {
  { "upstream", "upstreams" },
  { "password", "password-file", "password-env" },
};

static void
remove_alternatives (JsonObject *object, const gchar *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (alternatives); i++) {
    for (guint j = 0; g_strv_contains (alternatives[i], name) && alternatives[i][j]; j++)
      json_object_remove_member (object, alternatives[i][j]);
  }
}

static void
patch_member (JsonObject *patch, const gchar *name, JsonNode *node, gpointer object)
{
  if (JSON_NODE_HOLDS_NULL (node)) {
    json_object_remove_member (object, name);
    return;
  }
  remove_alternatives (object, name);
  json_object_set_member (object, name, json_node_copy (node));
}

gchar *
api_patch_shared (const ApiRequest *request)
{
  const SoupMessageBody *body = soup_server_message_get_request_body (request->message);
  g_autoptr (JsonObject) patch = NULL, object = NULL;
  g_autoptr (JsonNode) root = NULL;
  SharedMountView view;

  if (!api_find_shared (request, &view)) {
    api_fail (request->message, SOUP_STATUS_NOT_FOUND, NULL, "the cluster has no mount %s",
        request->rest);
    return NULL;
  }
  patch = json_strict_read (body->data, (gsize) body->length, DEPTH_MAX);
  object = view.value ? json_strict_read (view.value, strlen (view.value), DEPTH_MAX) : NULL;
  if (!patch || !object) {
    api_fail (request->message, patch ? SOUP_STATUS_CONFLICT : SOUP_STATUS_BAD_REQUEST, "body",
        patch ? "etcd has no JSON object for this mount; use PUT to replace it"
              : "the body is no JSON object, or has a member twice");
    return NULL;
  }
  json_object_foreach_member (patch, patch_member, object);
  root = json_node_init_object (json_node_alloc (), object);
  return json_to_string (root, FALSE);
}

// ---- the change ----

typedef struct {
  SoupServerMessage *message;
  GCancellable *ending; // of the API
  gchar *path;
  guint status;
  JsonBuilder *answer;
  gboolean has_condition, is_removal;
  gulong on_finished;
  gboolean left; // the client has
} Changing;

static void
on_finished (SoupServerMessage *message, gpointer changing)
{
  ((Changing *) changing)->left = TRUE;
}

static void
changing_free (Changing *self)
{
  g_signal_handler_disconnect (self->message, self->on_finished);
  g_object_unref (self->message);
  g_object_unref (self->ending);
  g_clear_object (&self->answer);
  g_free (self->path);
  g_free (self);
}

static void
fail_change (Changing *self, gint64 revision, const GError *error)
{
  if (!g_error_matches (error, G_IO_ERROR, G_IO_ERROR_EXISTS)) {
    api_fail (self->message, SOUP_STATUS_SERVICE_UNAVAILABLE, NULL,
        "etcd has not confirmed the change: %s", error->message);
    return;
  }
  if (revision)
    api_set_revision (self->message, revision);
  api_fail (self->message,
      self->has_condition ? SOUP_STATUS_PRECONDITION_FAILED : SOUP_STATUS_CONFLICT, NULL,
      "%s; get it again", error->message);
}

static void
on_changed (gint64 revision, const GError *error, gpointer data)
{
  Changing *self = data;

  if (!self->left && !g_cancellable_is_cancelled (self->ending)) {
    if (error) {
      fail_change (self, revision, error);
    } else {
      if (!self->is_removal)
        api_set_revision (self->message, revision);
      api_answer (self->message, self->status, g_steal_pointer (&self->answer));
    }
    log_event ("api: %s %s: %u", soup_server_message_get_method (self->message), self->path,
        soup_server_message_get_status (self->message));
    soup_server_message_unpause (self->message);
  }
  changing_free (self);
}

void
api_change_shared (const ApiRequest *request, const gchar *value, guint status, JsonBuilder *answer)
{
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (request->message);
  Changing *self = g_new0 (Changing, 1);
  SharedMountView view;
  const gint64 revision = api_find_shared (request, &view) ? view.revision : 0;

  self->message = g_object_ref (request->message);
  self->ending = g_object_ref (request->api->ending);
  self->path = g_strconcat ("/v1/mounts", request->rest, NULL);
  self->status = status;
  self->answer = answer;
  self->is_removal = !value;
  self->has_condition = soup_message_headers_get_one (headers, "If-Match")
                        || soup_message_headers_get_one (headers, "If-None-Match");
  self->on_finished = g_signal_connect (self->message, "finished", G_CALLBACK (on_finished), self);
  soup_server_message_pause (self->message);
  shared_mounts_change (
      cluster_get_mounts (request->api->cluster), request->rest, value, revision, on_changed, self);
}
