// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_read.h"

#include "config/mount_broadcast.h"
#include "config/mount_cache.h"
#include "config/mount_inputs.h"
#include "config/mount_instance.h"
#include "config/mount_pattern.h"
#include "config/mount_keys.h"
#include "config/mount_stages.h"
#include "config/mount_upstreams.h"
#include "sources/pull.h"
#include "text/config_error.h"

#include <string.h>

#define CACHE_MEMORY_MAX (G_GUINT64_CONSTANT (2) << 30)

// Two HTTP servers serve one folder.
static gboolean
are_origins (const MountConfig *mount)
{
  for (guint i = 0; i < mount->pulls->len; i++) {
    if (((PullConfig *) g_ptr_array_index (mount->pulls, i))->titles != PULL_TITLES_ORIGIN)
      return FALSE;
  }
  return mount->pulls->len <= 2;
}

// A folder cannot pass through stages, be replaced by another upstream, or run without readers.
static gchar *
check_folders (const MountConfig *mount)
{
  gboolean alone = (mount->pulls->len == 1 || are_origins (mount)) && mount->pipeline->len == 0
                   && !mount->slate.path && g_hash_table_size (mount->choices) == 0
                   && mount->on_demand;

  for (guint i = 0; i < mount->pulls->len; i++) {
    const PullConfig *pull = g_ptr_array_index (mount->pulls, i);

    if (pull->titles && !alone)
      return g_strdup_printf ("%s is a folder: remove other upstreams, slate, pipeline, choices "
                              "and on-demand: no from this mount",
          pull->path);
  }
  return NULL;
}

// ---- checks of several keys ----

// A mount whose keys were read.
typedef struct {
  MountConfig *mount;
  StageSet *set;
  YamlReader *reader;
  YamlNode *place, *mapping; // of its path, and its keys
  GError **error;
} Reading;

// Returns the value of a key, or NULL if it is not set.
static YamlNode *
find_value (const Reading *self, const gchar *name)
{
  YamlNode *value = yaml_get (self->reader, self->mapping, name);

  return value && !yaml_is_null (value) ? value : NULL;
}

// Sets the error `wrong`, unless it is NULL, for a key of the mount, or for the mount if the key is
// not set. Returns whether nothing is wrong.
static gboolean
note_wrong (const Reading *self, const gchar *name, const gchar *wrong)
{
  YamlNode *value = wrong ? find_value (self, name) : NULL;

  return !wrong
         || yaml_fail (self->reader, value ? value : self->place, name, CONFIG_ERROR_VALUE,
             self->error, wrong);
}

// Checks the mount as a whole, without what depends on keys that are wrong.
static gboolean
check_upstreams (const Reading *self)
{
  MountConfig *mount = self->mount;
  gchar *wrong;

  if (mount_has_inputs (mount)) {
    if (find_value (self, "upstream") || find_value (self, "upstreams"))
      return note_wrong (self, "inputs", "set upstream or inputs, not both");
    mount_inputs_apply (mount);
  }
  if (!mount->upstreams
      || (!*mount->upstreams && !mount_has_inputs (mount))) // perhaps by a misspelled key
    return yaml_is_wrong (self->reader, self->mapping)
           || yaml_fail (self->reader, self->place, mount->path, CONFIG_ERROR_KEY, self->error,
               "the upstream is missing; add upstream: URI");
  wrong = mount_upstreams_apply (mount);
  return !wrong
         || yaml_fail_take (
             self->reader, self->place, mount->path, CONFIG_ERROR_VALUE, self->error, wrong);
}

static gboolean
check_titles (const Reading *self)
{
  gchar *wrong = check_folders (self->mount);

  return !wrong
         || yaml_fail_take (
             self->reader, self->place, self->mount->path, CONFIG_ERROR_VALUE, self->error, wrong);
}

static void
add_stage_mistake (
    gpointer data, const gchar *key, guint line, guint column, ConfigError code, gchar *text)
{
  const Reading *self = data;
  // Messages about other keys begin with their names.
  gboolean of_other = g_str_has_prefix (text, "choices: ") || g_str_has_prefix (text, "inputs: ")
                      || g_str_has_prefix (text, "renditions: ");

  yaml_fail_place (self->reader, line, column, of_other ? NULL : key, code, self->error, text);
}

static gboolean
check_stages (const Reading *self)
{
  MountConfig *mount = self->mount;

  yaml_place (self->place, &mount->line, &mount->column);
  return mount_stages_make (
      mount, self->set, mount->line, mount->column, add_stage_mistake, (gpointer) self);
}

static gboolean
check_source_stages (const Reading *self)
{
  const MountConfig *mount = self->mount;
  const gchar *wrong = NULL;

  if (mount->source_steps->len == 0)
    return TRUE;
  if (mount_has_inputs (mount))
    wrong = "a mount with inputs has no upstream; set source-stages of the mounts that are its "
            "inputs";
  else if (mount_config_get_titles (mount) || mount->interval_ms > 0)
    wrong = "this mount has no live stream: it serves stored titles";
  return note_wrong (self, "source-stages", wrong);
}

// A window that keeps the past would begin with the first reader.
static gboolean
check_fan_out (const Reading *self)
{
  const MountConfig *mount = self->mount;
  const gchar *wrong = NULL;

  if (mount->fan_out == MOUNT_FAN_OUT_ENGINE)
    return TRUE;
  if (mount_config_get_titles (mount) || mount->interval_ms > 0)
    wrong = "elements is for live streams, but this mount serves stored titles";
  else if (mount->cache.time_ms > 0)
    wrong = "elements serves at the live edge only; remove cache";
  return note_wrong (self, "fan-out", wrong);
}

static gboolean
check_standby (const Reading *self)
{
  const gboolean alone = self->mount->standby == MOUNT_STANDBY_WARM && self->mount->pulls->len < 2;

  return note_wrong (
      self, "standby", alone ? "warm needs a second upstream; set upstreams: [URI, URI]" : NULL);
}

// What a cache is for depends on the upstream.
static gboolean
check_cache (const Reading *self)
{
  const MountConfig *mount = self->mount;
  const gboolean stored = mount_config_get_titles (mount) == PULL_TITLES_BLOCK_STORE;
  const gboolean is_origin = mount_config_get_titles (mount) == PULL_TITLES_ORIGIN;
  const gchar *wrong = NULL;

  if (!find_value (self, "cache"))
    return TRUE;
  if (is_origin && mount->cache.spill.is_limited)
    wrong = "for an HTTP server, spill is allowed in the configuration file only";
  else if (stored && (mount->cache.time_ms > 0 || mount->cache.spill.path))
    wrong = "for a block store, expected {bytes: SIZE}: the memory for its blocks, such as 1G";
  else if (!stored && mount->cache.time_ms == 0 && !is_origin)
    wrong = MOUNT_CACHE_EXPECTED;
  else if (!stored && mount->cache.size.bytes > CACHE_MEMORY_MAX && !mount->cache.spill.path)
    wrong = "more than 2G of bytes needs a file on disk; add spill: FOLDER";
  return note_wrong (self, "cache", wrong);
}

static gboolean
check_swarm (const Reading *self)
{
  const gboolean useless =
      find_value (self, "swarm") && mount_config_get_titles (self->mount) != PULL_TITLES_SWARM;

  return note_wrong (self, "swarm",
      useless ? "this mount has no folder of torrents; set upstream: swarm:///DIR/" : NULL);
}

static gboolean
check_record (const Reading *self)
{
  const MountConfig *mount = self->mount;
  const gboolean useless = find_value (self, "record") && mount->record.folder
                           && (mount_config_get_titles (mount) || mount->interval_ms > 0);

  return note_wrong (
      self, "record", useless ? "this mount has no single stream: it serves stored titles" : NULL);
}

static gboolean
check_insert (const Reading *self)
{
  const MountConfig *mount = self->mount;
  const gboolean useless = find_value (self, "insert") && mount->insert.folder
                           && (mount_config_get_titles (mount) || mount->interval_ms > 0);

  return note_wrong (
      self, "insert", useless ? "this mount has no live stream: it serves stored titles" : NULL);
}

static gboolean
check_takeover (const Reading *self)
{
  const gboolean useless =
      find_value (self, "takeover") && self->mount->takeover
      && !g_strv_contains ((const gchar *const *) self->mount->upstreams, "publish");

  return note_wrong (
      self, "takeover", useless ? "nobody publishes to this mount; set upstream: publish" : NULL);
}

static gboolean
check_pattern (const Reading *self)
{
  static const gchar *const keys[] = { "hosts", "max-instances" };
  const gchar *key, *wrong;

  if (mount_is_pattern (self->mount)) {
    wrong = mount_instance_find_wrong (self->mount, &key);
    return note_wrong (self, key, wrong);
  }
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    if (find_value (self, keys[i]))
      return note_wrong (self, keys[i], "this is for a path with variables, such as /live/{key}");
  }
  return TRUE;
}

static gboolean
check_broadcast (const Reading *self)
{
  return mount_broadcast_check (self->mount, self->reader, self->place, self->mapping, self->error);
}

// Each check, with the keys that it looks at. It has no meaning while one of them is wrong, or
// while it needs an upstream and there is none. The first one makes the upstreams.
static const struct {
  gboolean (*check) (const Reading *self);
  const gchar *keys[9];
} checks[] = {
  { check_upstreams, { "upstream", "upstreams", "inputs" } },
  { check_titles, { "upstream", "upstreams", "slate", "pipeline", "choices", "on-demand" } },
  { check_stages, { "source-stages", "pipeline", "inputs", "choices", "renditions",
                      "max-presentations", "interval", "layers" } },
  { check_source_stages, { "upstream", "upstreams", "inputs", "source-stages", "interval" } },
  { check_fan_out, { "upstream", "upstreams", "fan-out", "cache", "interval" } },
  { check_standby, { "upstream", "upstreams", "standby" } },
  { check_cache, { "upstream", "upstreams", "cache" } },
  { check_swarm, { "upstream", "upstreams", "swarm" } },
  { check_record, { "upstream", "upstreams", "record", "interval" } },
  { check_insert, { "upstream", "upstreams", "insert", "interval" } },
  { check_takeover, { "upstream", "upstreams", "takeover" } },
  { check_pattern, { "upstream", "upstreams", "inputs", "hosts", "broadcast" } },
  { check_broadcast, { "upstream", "upstreams", "broadcast", "interval", "on-demand" } },
};

static gboolean
is_possible (const Reading *self, const gchar *const *keys)
{
  for (guint i = 0; keys[i]; i++) {
    const YamlNode *value = yaml_get (self->reader, self->mapping, keys[i]);

    if (value && yaml_is_wrong (self->reader, value))
      return FALSE;
  }
  return self->mount->pulls->len > 0 || keys == checks[0].keys
         || !g_str_equal (keys[0], "upstream");
}

gboolean
mount_read (MountConfig *mount, StageSet *set, YamlReader *reader, YamlNode *place,
    YamlNode *mapping, SchemaMode mode, GError **error)
{
  const Reading reading = { mount, set, reader, place, mapping, error };
  gboolean ok = yaml_check_alternatives (
      reader, mapping, "upstream", "set upstream or upstreams, not both", error);

  ok = yaml_check_alternatives (reader, mapping, "password",
           "set only one of password, password-file and password-env", error)
       && ok;
  ok = schema_read (mount_config_keys (), mount, reader, mapping, mount->path, mode, error) && ok;
  if (!yaml_is_mapping (mapping))
    return FALSE;
  if (!is_possible (&reading, checks[0].keys))
    g_ptr_array_set_size (mount->pulls, 0); // they may be unfinished
  for (guint i = 0; i < G_N_ELEMENTS (checks); i++)
    ok = (!is_possible (&reading, checks[i].keys) || checks[i].check (&reading)) && ok;
  return ok;
}

static void
ignore_mistake (
    gpointer unused, const gchar *key, guint line, guint column, ConfigError code, gchar *text)
{
  g_free (text);
}

// Replaces a mount that was not read to its end by one that is down, for the reason `lack`.
static void
hold (MountConfig **mount, StageSet *set, const gchar *lack)
{
  MountConfig *held = mount_config_new ((*mount)->path);
  PullConfig *pull = g_new0 (PullConfig, 1);

  held->upstreams = g_strdupv ((*mount)->upstreams);
  if (!held->upstreams)
    held->upstreams = g_new0 (gchar *, 1);
  held_pull_init (pull, held->upstreams[0] ? held->upstreams[0] : "", lack);
  g_ptr_array_add (held->pulls, pull);
  held->lack = g_strdup (lack);
  held->on_demand = FALSE;
  mount_stages_make (held, set, 0, 0, ignore_mistake, NULL);
  mount_config_unref (*mount);
  *mount = held;
}

gboolean
mount_read_file (MountConfig **mount, gboolean strict, StageSet *set, YamlReader *reader,
    YamlNode *place, YamlNode *mapping, GError **error)
{
  const guint n_mistakes = yaml_n_mistakes (reader);
  g_autoptr (GError) before = error && *error ? g_error_copy (*error) : NULL;
  gboolean ok = mount_read (*mount, set, reader, place, mapping, SCHEMA_WHOLE, error);
  g_autofree gchar *lack = ok || strict ? NULL : yaml_forgive_absences (reader, n_mistakes);

  if (lack) {
    hold (mount, set, lack);
    g_clear_error (error);
    if (before)
      g_propagate_error (error, g_steal_pointer (&before));
  }
  ok |= lack != NULL;
  return ok;
}

MountConfig *
mount_read_body (
    StageSet *set, const gchar *path, YamlReader *body, const MountConfig *base, GError **error)
{
  gchar *wrong = mount_check_path (path);
  YamlNode *root = yaml_root (body);
  MountConfig *mount;

  if (wrong) {
    g_set_error_literal (error, CONFIG_ERROR, CONFIG_ERROR_KEY, wrong);
    g_free (wrong);
    return NULL;
  }
  mount = base ? mount_config_copy (base) : mount_config_new (path);
  mount->from_api = TRUE;
  if (!mount_read (mount, set, body, root, root, base ? SCHEMA_PATCH : SCHEMA_BODY, error))
    g_clear_pointer (&mount, mount_config_unref);
  return mount;
}

static void
keep_first (
    gpointer data, const gchar *key, guint line, guint column, ConfigError code, gchar *text)
{
  gchar **first = data;

  if (*first)
    g_free (text);
  else
    *first = text;
}

gchar *
mount_read_uri (MountConfig *mount, StageSet *set, const gchar *uri)
{
  gchar *wrong;

  mount->upstreams = g_strdupv ((gchar *[]) { (gchar *) uri, NULL });
  wrong = mount_upstreams_apply (mount);
  if (!wrong)
    mount_stages_make (mount, set, 0, 0, keep_first, &wrong);
  return wrong;
}
