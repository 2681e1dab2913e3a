// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "control/api_handlers.h"

#include "config/mount_keys.h"
#include "control/api_shared.h"
#include "control/broadcast_figures.h"
#include "control/disk_figures.h"
#include "control/ingest_figures.h"
#include "control/recording_figures.h"
#include "control/swarm_figures.h"
#include "config/mount_read.h"

#include "readers/readers.h"
#include "sources/publication.h"

#include <string.h>

static guint
count_readers (const gchar *path)
{
  g_autoptr (GPtrArray) readers = readers_dup_all ();
  guint n = 0;

  for (guint i = 0; i < readers->len; i++)
    n += g_str_equal (reader_get_mount (g_ptr_array_index (readers, i)), path);
  return n;
}

static GHashTable *
count_all_readers (void)
{
  GHashTable *counts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GPtrArray) readers = readers_dup_all ();

  for (guint i = 0; i < readers->len; i++) {
    const gchar *path = reader_get_mount (g_ptr_array_index (readers, i));
    guint n = GPOINTER_TO_UINT (g_hash_table_lookup (counts, path));

    g_hash_table_insert (counts, g_strdup (path), GUINT_TO_POINTER (n + 1));
  }
  return counts;
}

static void
write_config (JsonBuilder *builder, const MountConfig *config)
{
  json_builder_set_member_name (builder, "config");
  json_builder_begin_object (builder);
  schema_write (mount_config_keys (), config, builder);
  json_builder_end_object (builder);
}

static void
write_presentation (JsonBuilder *builder, Presentation *presentation)
{
  g_autofree gchar *problem = presentation_dup_problem (presentation);

  json_builder_begin_object (builder);
  api_add_text (builder, "url", presentation_get_label (presentation));
  api_add_text (builder, "state", presentation_get_state_name (presentation));
  api_add_number (builder, "connections", presentation_n_users (presentation));
  json_builder_set_member_name (builder, "switching");
  json_builder_add_boolean_value (builder, presentation_is_switching (presentation));
  if (problem)
    api_add_text (builder, "problem", problem);
  json_builder_end_object (builder);
}

static void
write_presentations (JsonBuilder *builder, Mount *mount)
{
  g_autoptr (GPtrArray) all = mount_dup_presentations (mount);

  json_builder_set_member_name (builder, "presentations");
  json_builder_begin_array (builder);
  for (guint i = 0; i < all->len; i++) {
    if (!presentation_follows (g_ptr_array_index (all, i)))
      write_presentation (builder, g_ptr_array_index (all, i));
  }
  json_builder_end_array (builder);
}

// The mount's upstreams, in order of preference; none while the mount is idle.
static void
write_upstreams (JsonBuilder *builder, Presentation *main)
{
  Node *node = presentation_get_node (main);

  while (node && node_get_input (node))
    node = node_get_input (node);
  json_builder_set_member_name (builder, "upstreams");
  json_builder_begin_array (builder);
  for (guint i = 0; node && i < node_n_inlets (node); i++) {
    NodeInlet inlet = node_get_inlet (node, i);

    json_builder_begin_object (builder);
    api_add_text (builder, "uri", inlet.uri);
    api_add_text (builder, "state", node_inlet_state_name (&inlet));
    api_add_number (builder, "failures", inlet.n_failures);
    if (inlet.reason) {
      api_add_text (builder, "reason", inlet.reason);
      api_add_time (builder, "failed", inlet.failed_us);
    }
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

static void
write_publisher (JsonBuilder *builder, const gchar *path)
{
  PublisherFacts facts;

  if (!publication_find (path, &facts))
    return;
  json_builder_set_member_name (builder, "publisher");
  json_builder_begin_object (builder);
  api_add_text (builder, "peer", facts.peer);
  api_add_text (builder, "transport", facts.transport);
  api_add_time (builder, "since", facts.since);
  if (facts.layer)
    api_add_text (builder, "layer", facts.layer);
  json_builder_end_object (builder);
  g_free (facts.peer);
  g_free (facts.layer);
}

// Returns who has set the mount's configuration.
static const gchar *
get_source (Api *api, const MountConfig *config)
{
  if (config->pattern || reload_is_as_in_file (api->reload, config))
    return "file";
  return config->from_api && cluster_get_mounts (api->cluster) ? "cluster" : "api";
}

static void
write_mount (Api *api, JsonBuilder *builder, Mount *mount, guint n_readers)
{
  const MountConfig *config = mount_get_config (mount);
  Presentation *main = mount_dup_main (mount);
  Relay *relay = presentation_get_relay (main);
  RelayStats stats;

  relay_get_stats (relay, &stats);
  json_builder_begin_object (builder);
  api_add_text (builder, "path", config->path);
  if (config->pattern)
    api_add_text (builder, "pattern", mount_get_pattern (mount));
  api_add_text (builder, "state", presentation_get_state_name (main));
  api_add_text (builder, "source", get_source (api, config));
  api_add_number (builder, "readers", n_readers);
  api_add_number (builder, "tracks", relay_n_tracks (relay));
  json_builder_set_member_name (builder, "ingest");
  json_builder_begin_object (builder);
  ingest_figures_write (builder, &stats);
  api_add_number (builder, "switches", (gint64) stats.n_switches);
  api_add_number (builder, "failovers", (gint64) presentation_get_failovers (main));
  json_builder_end_object (builder);
  write_upstreams (builder, main);
  presentation_unref (main);
  write_publisher (builder, config->path);
  write_presentations (builder, mount);
  if (WITH_STORE)
    disk_figures_write (builder, mount);
  if (WITH_BROADCAST)
    broadcast_figures_write (builder, mount);
  recording_figures_write (builder, mount);
  if (WITH_SWARM)
    swarm_figures_write (builder, mount);
  write_config (builder, config);
  json_builder_end_object (builder);
}

// Writes the paths with variables.
static void
write_patterns (Api *api, JsonBuilder *builder)
{
  Mounts *mounts = proxy_get_mounts (api->proxy);
  g_autoptr (GPtrArray) patterns = mounts_dup_patterns (mounts);

  json_builder_set_member_name (builder, "patterns");
  json_builder_begin_array (builder);
  for (guint i = 0; i < patterns->len; i++) {
    const MountConfig *pattern = g_ptr_array_index (patterns, i);

    json_builder_begin_object (builder);
    api_add_text (builder, "path", pattern->path);
    api_add_number (builder, "instances", mounts_count_instances (mounts, pattern->pattern));
    api_add_number (builder, "max-instances", pattern->max_instances);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

void
api_list_mounts (ApiRequest *request)
{
  g_autoptr (GPtrArray) mounts = mounts_dup_all (proxy_get_mounts (request->api->proxy));
  g_autoptr (GHashTable) counts = count_all_readers ();
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "mounts");
  json_builder_begin_array (builder);
  for (guint i = 0; i < mounts->len; i++) {
    Mount *mount = g_ptr_array_index (mounts, i);

    write_mount (request->api, builder, mount,
        GPOINTER_TO_UINT (g_hash_table_lookup (counts, mount_get_path (mount))));
  }
  json_builder_end_array (builder);
  write_patterns (request->api, builder);
  json_builder_end_object (builder);
  api_answer (request->message, SOUP_STATUS_OK, builder);
}

// Returns the mount that the request names. If there is none, answers 404 and returns NULL.
// (transfer full)
static Mount *
find (ApiRequest *request)
{
  Mount *mount = mounts_get (proxy_get_mounts (request->api->proxy), request->rest);

  if (!mount)
    api_fail (request->message, SOUP_STATUS_NOT_FOUND, NULL, "there is no mount %s", request->rest);
  return mount;
}

void
api_get_mount (ApiRequest *request)
{
  g_autoptr (Mount) mount = find (request);
  SharedMountView shared;
  JsonBuilder *builder;

  if (!mount)
    return;
  if (api_find_shared (request, &shared) && shared.state == SHARED_MOUNT_SERVED)
    api_set_revision (request->message, shared.revision);
  builder = json_builder_new ();
  write_mount (request->api, builder, mount, count_readers (request->rest));
  api_answer (request->message, SOUP_STATUS_OK, builder);
}

// ---- changes ----

static void
write_keys (JsonBuilder *builder, const MountConfig *from, const MountConfig *to)
{
  g_autoptr (GPtrArray) keys =
      from && to ? mount_config_differences (from, to) : g_ptr_array_new ();

  json_builder_set_member_name (builder, "keys");
  json_builder_begin_array (builder);
  for (guint i = 0; i < keys->len; i++)
    json_builder_add_string_value (builder, g_ptr_array_index (keys, i));
  json_builder_end_array (builder);
}

static gchar *
dup_effect (Proxy *proxy, const gchar *path, const MountConfig *from, const MountConfig *to)
{
  g_autoptr (Mount) mount = from && to ? mounts_get (proxy_get_mounts (proxy), path) : NULL;

  if (!mount)
    return g_strdup (to ? "the mount is added" : "the mount is removed and its readers are closed");
  return mount_dup_effect (mount, to);
}

static void
write_change (Api *api, JsonBuilder *builder, const gchar *path, const MountConfig *from,
    const MountConfig *to)
{
  g_autofree gchar *effect = dup_effect (api->proxy, path, from, to);

  json_builder_begin_object (builder);
  api_add_text (builder, "path", path);
  api_add_text (builder, "change", !to ? "removed" : !from ? "added" : "changed");
  write_keys (builder, from, to);
  api_add_text (builder, "effect", effect);
  api_add_number (builder, "readers", count_readers (path));
  json_builder_end_object (builder);
}

// Returns the answer to a change. Call before the change is made, because it counts the readers.
// (transfer full)
static JsonBuilder *
describe_change (ApiRequest *request, const MountConfig *from, const MountConfig *to, gboolean dry)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "dry-run");
  json_builder_add_boolean_value (builder, dry);
  json_builder_set_member_name (builder, "change");
  write_change (request->api, builder, request->rest, from, to);
  if (to)
    write_config (builder, to);
  json_builder_end_object (builder);
  return builder;
}

// Makes the change, unless it is a dry run, and answers. `json` is what `to` was read from.
static void
make_change (ApiRequest *request, const MountConfig *from, MountConfig *to, const gchar *json)
{
  const gboolean dry = api_is_dry_run (request);
  JsonBuilder *builder = describe_change (request, from, to, dry);
  gboolean same = from && mount_config_equal (from, to), added = !from && !dry;
  SharedMountView shared;
  GError *error = NULL;

  if (api_shares_mounts (request) && !dry) {
    added = !api_find_shared (request, &shared);
    api_change_shared (request, json, added ? SOUP_STATUS_CREATED : SOUP_STATUS_OK, builder);
    return;
  }
  if (dry || same || proxy_put_mount (request->api->proxy, to, &error)) {
    api_answer (request->message, added ? SOUP_STATUS_CREATED : SOUP_STATUS_OK, builder);
    return;
  }
  api_fail_error (request->message, SOUP_STATUS_INTERNAL_SERVER_ERROR, error);
  g_error_free (error);
  g_object_unref (builder);
}

// Answers 400 and returns FALSE if the path of the request is not valid for a mount.
static gboolean
check_path (ApiRequest *request)
{
  gchar *wrong = mount_check_path (request->rest);

  if (wrong)
    api_fail (request->message, SOUP_STATUS_BAD_REQUEST, "path", "%s", wrong);
  g_free (wrong);
  return !wrong;
}

static gboolean
check_request (ApiRequest *request)
{
  return api_check_query (request, "dry-run", NULL) && check_path (request)
         && (!api_shares_mounts (request) || api_check_shared (request));
}

// Applies `body`, which it frees, to `base`, or to the defaults if it is NULL, and makes the
// change. `json` is the text of `body`. `from` is the mount's present configuration; NULL if the
// mount does not exist.
static void
change (ApiRequest *request, YamlReader *body, const gchar *json, const MountConfig *base,
    const MountConfig *from)
{
  MountConfig *to;
  GError *error = NULL;
  gchar *wrong;

  to = mount_read_body (proxy_get_stages (request->api->proxy), request->rest, body, base, &error);
  yaml_reader_free (body);
  if (!to) {
    api_fail_error (request->message, SOUP_STATUS_BAD_REQUEST, error);
    g_error_free (error);
    return;
  }
  wrong = proxy_check_mount (request->api->proxy, to);
  if (wrong) {
    api_fail (request->message, SOUP_STATUS_BAD_REQUEST, "body", "%s", wrong);
    g_free (wrong);
    mount_config_unref (to);
    return;
  }
  make_change (request, from, to, json);
  mount_config_unref (to);
}

void
api_put_mount (ApiRequest *request)
{
  g_autoptr (Mount) mount = mounts_get (proxy_get_mounts (request->api->proxy), request->rest);

  YamlReader *body = check_request (request) ? api_read_body (request) : NULL;

  if (body)
    change (request, body, soup_server_message_get_request_body (request->message)->data, NULL,
        mount ? mount_get_config (mount) : NULL);
}

// The whole mount is read anew, because etcd has only what was given for it.
static void
patch_shared (ApiRequest *request)
{
  g_autoptr (Mount) mount = mounts_get (proxy_get_mounts (request->api->proxy), request->rest);
  YamlReader *body = check_request (request) ? api_read_body (request) : NULL;
  g_autofree gchar *json = body ? api_patch_shared (request) : NULL;
  g_autoptr (GError) error = NULL;

  g_clear_pointer (&body, yaml_reader_free);
  if (!json)
    return;
  body = yaml_reader_new ("body", json, strlen (json), &error);
  if (body)
    change (request, body, json, NULL, mount ? mount_get_config (mount) : NULL);
  else
    api_fail_error (request->message, SOUP_STATUS_BAD_REQUEST, error);
}

static void
patch (ApiRequest *request)
{
  g_autoptr (Mount) mount = find (request);
  YamlReader *body;

  if (!mount)
    return;
  if (mount_lacks (mount))
    api_fail (request->message, SOUP_STATUS_CONFLICT, NULL,
        "the mount is down, because this machine lacks something that the file names (%s); use PUT "
        "to replace the mount, or mend that",
        mount_get_config (mount)->lack);
  else if (check_request (request) && (body = api_read_body (request)))
    change (request, body, NULL, mount_get_config (mount), mount_get_config (mount));
}

void
api_patch_mount (ApiRequest *request)
{
  if (api_shares_mounts (request))
    patch_shared (request);
  else
    patch (request);
}

// Answers 409 and returns FALSE if another mount has this one as an input.
static gboolean
check_unused (ApiRequest *request)
{
  gchar *user = proxy_dup_input_user (request->api->proxy, request->rest);

  if (user)
    api_fail (request->message, SOUP_STATUS_CONFLICT, NULL,
        "the mount is an input of %s; remove that mount, or change its inputs, first", user);
  g_free (user);
  return !user;
}

// A mount that is wrong is in etcd only.
static void
delete_shared (ApiRequest *request)
{
  g_autoptr (Mount) mount = mounts_get (proxy_get_mounts (request->api->proxy), request->rest);
  SharedMountView shared;
  JsonBuilder *builder;

  if (!check_path (request) || !api_check_shared (request))
    return;
  if (!api_find_shared (request, &shared)) {
    api_fail (request->message, SOUP_STATUS_NOT_FOUND, NULL, "the cluster has no mount %s",
        request->rest);
    return;
  }
  if (!check_unused (request))
    return;
  builder = describe_change (
      request, mount ? mount_get_config (mount) : NULL, NULL, api_is_dry_run (request));
  if (api_is_dry_run (request))
    api_answer (request->message, SOUP_STATUS_OK, builder);
  else
    api_change_shared (request, NULL, SOUP_STATUS_OK, builder);
}

void
api_delete_mount (ApiRequest *request)
{
  gboolean dry = api_is_dry_run (request);
  JsonBuilder *builder;
  g_autofree gchar *reason = NULL;
  g_autoptr (Mount) mount = NULL;

  if (!api_check_query (request, "dry-run", "reason", NULL))
    return;
  if (api_shares_mounts (request)) {
    delete_shared (request);
    return;
  }
  mount = find (request);
  if (!mount)
    return;
  if (!check_unused (request))
    return;
  builder = describe_change (request, mount_get_config (mount), NULL, dry);
  reason = api_dup_reason (request, "the mount was removed through the API");
  if (!dry)
    proxy_remove_mount (request->api->proxy, request->rest, reason);
  api_answer (request->message, SOUP_STATUS_OK, builder);
}

// ---- reload ----

// Answers with the changes, and applies them unless it is a dry run. `notes` in the answer names
// the changes that failed.
static void
finish_reload (ApiRequest *request, ReloadPlan *plan, gboolean dry)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "dry-run");
  json_builder_add_boolean_value (builder, dry);
  json_builder_set_member_name (builder, "changes");
  json_builder_begin_array (builder);
  for (guint i = 0; i < plan->changes->len; i++) {
    const ReloadChange *c = g_ptr_array_index (plan->changes, i);

    write_change (request->api, builder, c->path, c->from, c->to);
  }
  json_builder_end_array (builder);
  api_add_number (builder, "unchanged", plan->n_unchanged);
  if (!dry)
    reload_apply (request->api->reload, plan);
  json_builder_set_member_name (builder, "notes");
  json_builder_begin_array (builder);
  for (guint i = 0; i < plan->notes->len; i++)
    json_builder_add_string_value (builder, g_ptr_array_index (plan->notes, i));
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  api_answer (request->message, SOUP_STATUS_OK, builder);
}

void
api_reload (ApiRequest *request)
{
  gboolean dry = api_is_dry_run (request);
  GError *error = NULL;
  ReloadPlan *plan;

  if (!api_check_query (request, "dry-run", NULL))
    return;
  plan = reload_plan (request->api->reload, &error);
  if (!plan) {
    api_fail_error (request->message, SOUP_STATUS_CONFLICT, error);
    if (!dry)
      reload_log_failure (error);
    g_error_free (error);
    return;
  }
  finish_reload (request, plan, dry);
  reload_plan_free (plan);
}
