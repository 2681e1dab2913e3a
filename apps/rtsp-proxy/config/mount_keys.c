// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The keys of a mount, and how those are read that are more than one value.

#include "config/mount_config.h"
#include "text/config_error.h"

#include "config/mount_stages.h"
#include "config/proxy_config.h"
#include "sources/kinds.h"
#include "text/layer_choice.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define UPSTREAMS_MAX 8
#define STEPS_MAX 32
#define PARAMS_MAX 64

static const gchar *const transports[] = { "auto", "udp", "tcp", NULL }; // as PullTransport
static const gchar *const joins[] = { "keyframe", "live", NULL };
const gchar *const mount_adapt_names[] = { "off", "fixed", "bandwidth", "aimd", NULL };
static const gchar *const catch_ups[] = { "live", "delay", NULL };

static gboolean
fail_value (
    YamlReader *reader, YamlNode *node, const SchemaKey *key, GError **error, const gchar *text)
{
  return yaml_fail (reader, node, key->name, CONFIG_ERROR_VALUE, error, text);
}

gchar *
mount_config_add_pull (MountConfig *mount, const gchar *uri, PullUriFlags flags)
{
  PullConfig *pull = g_new0 (PullConfig, 1);

  g_ptr_array_add (mount->pulls, pull);
  return kinds_check (uri, flags, pull);
}

void
mount_config_complete_pulls (MountConfig *mount)
{
  for (guint i = 0; i < mount->pulls->len; i++) {
    PullConfig *pull = g_ptr_array_index (mount->pulls, i);

    pull->transport = mount->pull.transport;
    pull->connect_timeout_ms = mount->pull.connect_timeout_ms;
    pull->read_timeout_ms = mount->pull.read_timeout_ms;
    // Credentials beside the URI go before those within it.
    if (mount->pull.user) {
      g_free (pull->user);
      pull->user = g_strdup (mount->pull.user);
    }
    if (mount->pull.password) {
      g_free (pull->password);
      pull->password = g_strdup (mount->pull.password);
    }
  }
}

// One upstream, or a list of them.
static gboolean
read_upstreams (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  gboolean list = g_str_equal (key->name, "upstreams");
  GStrvBuilder *uris;
  YamlNode *item;
  gboolean ok = TRUE;

  g_clear_pointer (&mount->upstreams, g_strfreev);
  g_ptr_array_set_size (mount->pulls, 0);
  if (!node)
    return TRUE;
  if (list && (!yaml_is_sequence (node) || !yaml_item (reader, node, 0)))
    return fail_value (reader, node, key, error, "a list of URIs belongs here");
  uris = g_strv_builder_new ();
  for (guint i = 0; ok && (item = list ? yaml_item (reader, node, i) : node); i++) {
    const gchar *uri = yaml_text (reader, item);
    gchar *wrong = !uri                 ? g_strdup ("a single value belongs here")
                   : i == UPSTREAMS_MAX ? g_strdup_printf ("more than %u upstreams", UPSTREAMS_MAX)
                                        : mount_config_add_pull (mount, uri, mount->uri_flags);

    ok = !wrong;
    if (ok)
      g_strv_builder_add (uris, uri);
    else
      yaml_fail_take (reader, item, key->name, CONFIG_ERROR_VALUE, error, wrong);
    if (!list)
      break;
  }
  mount->upstreams = g_strv_builder_end (uris);
  g_strv_builder_unref (uris);
  return ok;
}

static gboolean
equal_upstreams (gconstpointer a, gconstpointer b)
{
  return g_strv_equal ((const gchar *const *) ((const MountConfig *) a)->upstreams,
      (const gchar *const *) ((const MountConfig *) b)->upstreams);
}

static void
write_upstreams (gconstpointer object, JsonBuilder *builder)
{
  const MountConfig *mount = object;

  json_builder_set_member_name (builder, "upstreams");
  json_builder_begin_array (builder);
  for (guint i = 0; i < mount->pulls->len; i++)
    json_builder_add_string_value (
        builder, ((const PullConfig *) g_ptr_array_index (mount->pulls, i))->uri);
  json_builder_end_array (builder);
}

static gboolean
read_slate (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  const gchar *text = node ? yaml_text (reader, node) : NULL;

  g_clear_pointer (&mount->slate, g_free);
  if (!node)
    return TRUE;
  if (!text)
    return fail_value (reader, node, key, error, "a single value belongs here");
  if (!g_file_test (text, G_FILE_TEST_IS_REGULAR))
    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error,
        g_strdup_printf ("there is no file %s", text));
  mount->slate = g_strdup (text);
  return TRUE;
}

static gboolean
equal_slates (gconstpointer a, gconstpointer b)
{
  return !g_strcmp0 (((const MountConfig *) a)->slate, ((const MountConfig *) b)->slate);
}

static void
write_slate (gconstpointer object, JsonBuilder *builder)
{
  const MountConfig *mount = object;

  if (!mount->slate)
    return;
  json_builder_set_member_name (builder, "slate");
  json_builder_add_string_value (builder, mount->slate);
}

static gboolean
read_layers (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  const gchar *text = node ? yaml_text (reader, node) : NULL;

  mount->layers = WEIR_LAYER_SET_ALL;
  if (node && (!text || !layer_choice_parse (text, &mount->layers)))
    return fail_value (reader, node, key, error,
        "layers belong here, like 1.0.2: spatial, quality, temporal, * for all of a kind");
  return TRUE;
}

static gboolean
equal_layers (gconstpointer a, gconstpointer b)
{
  return weir_layer_set_equal (
      ((const MountConfig *) a)->layers, ((const MountConfig *) b)->layers);
}

static void
write_layers (gconstpointer object, JsonBuilder *builder)
{
  gchar *text = layer_choice_dup_text (((const MountConfig *) object)->layers);

  json_builder_set_member_name (builder, "layers");
  json_builder_add_string_value (builder, text);
  g_free (text);
}

static gboolean
read_params (
    const SchemaKey *key, MountStep *step, YamlReader *reader, YamlNode *node, GError **error)
{
  YamlNode *name, *value;

  if (!yaml_is_mapping (node))
    return fail_value (reader, node, key, error, "parameters with their values belong here");
  for (guint i = 0; yaml_pair (reader, node, i, &name, &value); i++) {
    const gchar *param = yaml_text (reader, name), *text = yaml_text (reader, value);
    guint line, column;

    if (!param || !text)
      return fail_value (reader, param ? value : name, key, error,
          param ? "a single value belongs here" : "a parameter's name is missing");
    if (i == PARAMS_MAX)
      return fail_value (reader, name, key, error, "too many parameters");
    if (yaml_get (reader, node, param) != value)
      return yaml_fail_take (reader, name, key->name, CONFIG_ERROR_KEY, error,
          g_strdup_printf ("\"%s\" is there twice", param));
    yaml_place (value, &line, &column);
    mount_step_add (step, param, text, line, column);
  }
  return TRUE;
}

// A name, or a name with its parameters.
static gboolean
read_step (
    const SchemaKey *key, MountConfig *mount, YamlReader *reader, YamlNode *node, GError **error)
{
  YamlNode *name = node, *params = NULL, *other;
  guint line, column;
  MountStep *step;

  if (yaml_is_mapping (node)
      && (!yaml_pair (reader, node, 0, &name, &params)
          || yaml_pair (reader, node, 1, &other, &other)))
    name = NULL;
  if (!name || !yaml_text (reader, name))
    return fail_value (
        reader, node, key, error, "a stage belongs here: its name, or {name: {parameter: value}}");
  yaml_place (name, &line, &column);
  step = mount_step_new (yaml_text (reader, name), line, column);
  g_ptr_array_add (mount->pipeline, step);
  return !params || read_params (key, step, reader, params, error);
}

static gboolean
read_pipeline (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  YamlNode *item;

  g_ptr_array_set_size (mount->pipeline, 0);
  if (!node)
    return TRUE;
  if (!yaml_is_sequence (node))
    return fail_value (reader, node, key, error, "a list of stages belongs here");
  for (guint i = 0; (item = yaml_item (reader, node, i)); i++) {
    if (i == STEPS_MAX)
      return fail_value (reader, item, key, error, "too many stages");
    if (!read_step (key, mount, reader, item, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
equal_steps (const MountStep *a, const MountStep *b)
{
  if (!g_str_equal (a->name, b->name) || a->params->len != b->params->len)
    return FALSE;
  for (guint i = 0; i < a->params->len; i++) {
    const MountParam *p = g_ptr_array_index (a->params, i), *q = g_ptr_array_index (b->params, i);

    if (!g_str_equal (p->name, q->name) || !g_str_equal (p->value, q->value))
      return FALSE;
  }
  return TRUE;
}

static gboolean
equal_pipelines (gconstpointer a, gconstpointer b)
{
  const MountConfig *from = a, *to = b;
  const GPtrArray *x = from->pipeline, *y = to->pipeline;

  if (x->len != y->len)
    return FALSE;
  for (guint i = 0; i < x->len; i++) {
    if (!equal_steps (g_ptr_array_index (x, i), g_ptr_array_index (y, i)))
      return FALSE;
  }
  return !g_strcmp0 (from->stage_files, to->stage_files);
}

static void
write_pipeline (gconstpointer object, JsonBuilder *builder)
{
  const GPtrArray *pipeline = ((const MountConfig *) object)->pipeline;

  json_builder_set_member_name (builder, "pipeline");
  json_builder_begin_array (builder);
  for (guint i = 0; i < pipeline->len; i++) {
    const MountStep *step = g_ptr_array_index (pipeline, i);

    if (step->params->len == 0) {
      json_builder_add_string_value (builder, step->name);
      continue;
    }
    json_builder_begin_object (builder);
    json_builder_set_member_name (builder, step->name);
    json_builder_begin_object (builder);
    for (guint j = 0; j < step->params->len; j++) {
      const MountParam *param = g_ptr_array_index (step->params, j);

      json_builder_set_member_name (builder, param->name);
      json_builder_add_string_value (builder, param->value);
    }
    json_builder_end_object (builder);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

static gboolean
read_choice (const SchemaKey *key, MountConfig *mount, YamlReader *reader, YamlNode *stage,
    YamlNode *params, GError **error)
{
  const gchar *name = yaml_text (reader, stage);
  GPtrArray *names;
  YamlNode *item;

  if (!name || !yaml_is_sequence (params))
    return fail_value (reader, name ? params : stage, key, error,
        "a stage with a list of parameters belongs here");
  if (g_hash_table_contains (mount->choices, name))
    return yaml_fail_take (reader, stage, key->name, CONFIG_ERROR_KEY, error,
        g_strdup_printf ("\"%s\" is there twice", name));
  names = g_ptr_array_new ();
  for (guint i = 0; (item = yaml_item (reader, params, i)); i++) {
    const gchar *param = yaml_text (reader, item);

    if (!param) {
      g_ptr_array_set_free_func (names, g_free);
      g_ptr_array_unref (names);
      return fail_value (reader, item, key, error, "a parameter's name belongs here");
    }
    g_ptr_array_add (names, g_strdup (param));
  }
  g_ptr_array_add (names, NULL);
  g_hash_table_insert (mount->choices, g_strdup (name), g_ptr_array_free (names, FALSE));
  return TRUE;
}

static gboolean
read_choices (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  YamlNode *stage, *params;

  g_hash_table_remove_all (mount->choices);
  if (!node)
    return TRUE;
  if (!yaml_is_mapping (node))
    return fail_value (reader, node, key, error, "stages with lists of parameters belong here");
  for (guint i = 0; yaml_pair (reader, node, i, &stage, &params); i++) {
    if (!read_choice (key, mount, reader, stage, params, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
equal_choices (gconstpointer a, gconstpointer b)
{
  GHashTable *x = ((const MountConfig *) a)->choices, *y = ((const MountConfig *) b)->choices;
  GHashTableIter iter;
  gpointer stage, params;

  if (g_hash_table_size (x) != g_hash_table_size (y))
    return FALSE;
  g_hash_table_iter_init (&iter, x);
  while (g_hash_table_iter_next (&iter, &stage, &params)) {
    gconstpointer others = g_hash_table_lookup (y, stage);

    if (!others || !g_strv_equal (params, others))
      return FALSE;
  }
  return TRUE;
}

static void
write_choices (gconstpointer object, JsonBuilder *builder)
{
  GHashTableIter iter;
  gpointer stage, params;

  json_builder_set_member_name (builder, "choices");
  json_builder_begin_object (builder);
  g_hash_table_iter_init (&iter, ((const MountConfig *) object)->choices);
  while (g_hash_table_iter_next (&iter, &stage, &params)) {
    json_builder_set_member_name (builder, stage);
    json_builder_begin_array (builder);
    for (gchar **param = params; *param; param++)
      json_builder_add_string_value (builder, *param);
    json_builder_end_array (builder);
  }
  json_builder_end_object (builder);
}

#define AT(field) G_STRUCT_OFFSET (MountConfig, field)

// ---- cache ----

#define CACHE_TIME_MAX_MS (23 * 60 * 60 * 1000) // of fanoutsink's day; it keeps some more
#define CACHE_BYTES (64 << 20)
#define CACHE_BYTES_MIN (1 << 20)
#define CACHE_MEMORY_MAX (G_GUINT64_CONSTANT (2) << 30)
#define CACHE_BYTES_MAX (G_GUINT64_CONSTANT (1) << 40)

// A number with K, M, G or T behind it.
static gboolean
parse_bytes (const gchar *text, guint64 *bytes)
{
  static const gchar units[] = "KMGT";
  gchar *unit = NULL;
  guint64 number = g_ascii_isdigit (*text) ? g_ascii_strtoull (text, &unit, 10) : 0;
  const gchar *found = unit && *unit ? strchr (units, *unit) : NULL;
  guint shift = found ? 10 * (guint) (found - units + 1) : 0;

  if (!unit || (*unit && (!found || unit[1])) || number > G_MAXUINT32)
    return FALSE;
  *bytes = number << shift;
  return *bytes >= CACHE_BYTES_MIN && *bytes <= CACHE_BYTES_MAX;
}

static gboolean
read_bytes (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = node ? yaml_text (reader, node) : NULL;

  if (text && parse_bytes (text, &((MountConfig *) object)->cache.bytes))
    return TRUE;
  return fail_value (reader, node, key, error, "a size from 1M to 1T belongs here, like 64M");
}

static gboolean
read_spill (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  const gchar *text = yaml_text (reader, node);

  if (!text)
    return fail_value (reader, node, key, error, "a single value belongs here");
  if (!g_file_test (text, G_FILE_TEST_IS_DIR) || g_access (text, W_OK | X_OK) < 0)
    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error,
        g_strdup_printf ("there is no folder %s to write to", text));
  g_free (mount->cache.spill);
  mount->cache.spill = g_strdup (text);
  return TRUE;
}

static const SchemaKey cache_keys[] = {
  { "time", SCHEMA_DURATION, AT (cache.time_ms), .min = 1000 },
  { "bytes", SCHEMA_OTHER, .read = read_bytes },
  { "spill", SCHEMA_OTHER, .read = read_spill },
  { NULL },
};

static gboolean
read_cache (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;

  mount->cache.time_ms = 0;
  mount->cache.bytes = CACHE_BYTES;
  g_clear_pointer (&mount->cache.spill, g_free);
  if (!node)
    return TRUE;
  if (!yaml_is_mapping (node) || !yaml_get (reader, node, "time"))
    return fail_value (reader, node, key, error, "{time: 60s, bytes: 64M} belongs here");
  if (!schema_read (cache_keys, mount, reader, node, key->name, SCHEMA_WHOLE, error))
    return FALSE;
  if (mount->cache.time_ms > CACHE_TIME_MAX_MS)
    return fail_value (reader, node, key, error, "its time is 23h at most");
  if (mount->cache.bytes > CACHE_MEMORY_MAX && !mount->cache.spill)
    return fail_value (
        reader, node, key, error, "more bytes than 2G belong in a file (spill: FOLDER)");
  return TRUE;
}

static gboolean
equal_caches (gconstpointer a, gconstpointer b)
{
  const MountConfig *x = a, *y = b;

  return x->cache.time_ms == y->cache.time_ms
         && (x->cache.time_ms == 0
             || (x->cache.bytes == y->cache.bytes && !g_strcmp0 (x->cache.spill, y->cache.spill)));
}

static void
write_cache (gconstpointer object, JsonBuilder *builder)
{
  const MountConfig *mount = object;
  gchar *bytes;

  if (mount->cache.time_ms == 0)
    return;
  json_builder_set_member_name (builder, "cache");
  json_builder_begin_object (builder);
  schema_write (cache_keys, object, builder);
  bytes = g_strdup_printf ("%" G_GUINT64_FORMAT "K", mount->cache.bytes >> 10);
  json_builder_set_member_name (builder, "bytes");
  json_builder_add_string_value (builder, bytes);
  if (mount->cache.spill) {
    json_builder_set_member_name (builder, "spill");
    json_builder_add_string_value (builder, mount->cache.spill);
  }
  json_builder_end_object (builder);
  g_free (bytes);
}

static const SchemaKey mount_keys[] = {
  { "upstream", SCHEMA_OTHER, .form = "URI", .read = read_upstreams, .equal = equal_upstreams,
      .write = write_upstreams,
      .help = "what is pulled: a URI of a kind that `--help` lists; must be there" },
  { "upstreams", SCHEMA_OTHER, .form = "[URI, ...]", .read = read_upstreams,
      .help = "instead of `upstream`: several, in order of preference" },
  { "user", SCHEMA_TEXT, AT (pull.user), .form = "NAME",
      .help = "for the upstream (basic or digest), and one of the next three" },
  { "password", SCHEMA_SECRET, AT (pull.password), .form = "TEXT", .help = "the password" },
  { "password-file", SCHEMA_OTHER, AT (pull.password), .form = "FILE", .read = schema_read_secret,
      .help = "a file that holds it" },
  { "password-env", SCHEMA_OTHER, AT (pull.password), .form = "NAME", .read = schema_read_secret,
      .help = "an environment variable that holds it" },
  { "transport", SCHEMA_INDEX, AT (pull.transport), "auto", .words = transports,
      .help = "`auto`: UDP, and TCP if that brings nothing" },
  { "slate", SCHEMA_OTHER, .form = "FILE", .read = read_slate, .equal = equal_slates,
      .write = write_slate, .help = "a clip that is shown while no upstream is there" },
  { "pipeline", SCHEMA_OTHER, .form = "[STAGE, ...]", .read = read_pipeline,
      .equal = equal_pipelines, .write = write_pipeline,
      .help = "the stages that media goes through; without it, `pull` alone" },
  { "choices", SCHEMA_OTHER, .form = "{STAGE: [NAME, ...]}", .read = read_choices,
      .equal = equal_choices, .write = write_choices,
      .help = "which parameters of which stages a URL may set" },
  { "max-presentations", SCHEMA_NUMBER, AT (max_presentations), "8", 1, 256,
      .help = "how many different choices are served at once" },
  { "interval", SCHEMA_DURATION, AT (interval_ms), "0s",
      .help = "of an upstream that is a stored title, which begins anew for each session: readers "
              "who ask within so long of another share its session, and get the beginning from "
              "memory" },
  { "max-titles", SCHEMA_NUMBER, AT (max_titles), "64", 1, 4096,
      .help = "how many files of a folder are open at once" },
  { "switch-timeout", SCHEMA_DURATION, AT (switch_timeout_ms), "10s", 100,
      .help = "how long a new pipeline may take to replace the one that runs" },
  { "on-demand", SCHEMA_FLAG, AT (on_demand), "yes",
      .help =
          "`yes`: the upstream is started by the first reader; `no`: it always runs, so that the "
          "first one sees a picture at once, too" },
  { "linger", SCHEMA_DURATION, AT (linger_ms), "10s",
      .help = "how long it runs on after the last reader" },
  { "start-timeout", SCHEMA_DURATION, AT (start_timeout_ms), "10s", 100,
      .help = "how long a reader's DESCRIBE may wait for it, and, of a title, its PLAY" },
  { "connect-timeout", SCHEMA_DURATION, AT (pull.connect_timeout_ms), "5s", 100,
      .help = "how long it may take to answer" },
  { "read-timeout", SCHEMA_DURATION, AT (pull.read_timeout_ms), "10s", 100,
      .help = "after how long a silence it is reconnected" },
  { "join", SCHEMA_WORD, AT (join), "keyframe", .words = joins,
      .help =
          "where a reader begins: at the newest keyframe, so that it sees a picture at once, or "
          "`live`" },
  { "catch-up", SCHEMA_WORD, AT (catch_up), "live", .words = catch_ups,
      .help = "a reader that began in the past runs through it and is live; `delay`: it stays "
              "behind" },
  { "cache", SCHEMA_OTHER, .form = "{time: TIME, bytes: SIZE, spill: FOLDER}", .read = read_cache,
      .equal = equal_caches, .write = write_cache,
      .help = "how far back readers can go (see below), how much a track takes for that at most "
              "(`64M`), and where that lies, if not in memory" },
  { "priority", SCHEMA_NUMBER, AT (priority), "4", 0, 7, .was = "class",
      .help = "readers of priority 0 are served first when there is too much to do, of 7 last" },
  { "adapt", SCHEMA_INDEX, AT (adapt), "aimd", .words = mount_adapt_names,
      .help = "of a stream with layers, which a reader gets: `aimd` or `bandwidth`, as its line "
              "carries them; `fixed`: as it chooses; `off`: all, and it can't choose" },
  { "layers", SCHEMA_OTHER, .form = "S.Q.T", .read = read_layers, .equal = equal_layers,
      .write = write_layers,
      .help = "the highest spatial, quality and temporal layer that any reader gets; `*` for all "
              "of a kind" },
  { NULL },
};

#undef AT

const SchemaKey *
mount_config_keys (void)
{
  return mount_keys;
}

// A folder is no stream that could be processed, replaced by another, or run without readers.
static gchar *
check_folders (const MountConfig *mount)
{
  gboolean alone = mount->pulls->len == 1 && mount->pipeline->len == 0 && !mount->slate
                   && g_hash_table_size (mount->choices) == 0 && mount->on_demand;

  for (guint i = 0; i < mount->pulls->len; i++) {
    const PullConfig *pull = g_ptr_array_index (mount->pulls, i);

    if (pull->is_folder && !alone)
      return g_strdup_printf ("%s is a folder: other upstreams, a slate, a pipeline, choices and "
                              "on-demand: no are not for it",
          pull->path);
  }
  return NULL;
}

// Every key that is there has been read.
gboolean
mount_config_finish (
    MountConfig *mount, StageSet *set, YamlReader *reader, YamlNode *node, GError **error)
{
  gboolean copied = mount->pulls->len == 0;
  guint line, column;
  gchar *wrong;

  if (!mount->upstreams || !*mount->upstreams)
    return yaml_fail (reader, node, mount->path, CONFIG_ERROR_KEY, error,
        "its upstream is missing (upstream: rtsp://host/path)");
  // Those of a copy, which was given no others.
  for (gchar **uri = mount->upstreams; copied && *uri; uri++) {
    wrong = mount_config_add_pull (mount, *uri, 0);
    if (wrong)
      return yaml_fail_take (reader, node, mount->path, CONFIG_ERROR_VALUE, error, wrong);
  }
  mount_config_complete_pulls (mount);
  wrong = check_folders (mount);
  if (wrong)
    return yaml_fail_take (reader, node, mount->path, CONFIG_ERROR_VALUE, error, wrong);
  yaml_place (node, &line, &column);
  mount->line = line;
  mount->column = column;
  wrong = mount_stages_make (mount, set, &line, &column);
  if (wrong)
    return yaml_fail_place (reader, line, column, "pipeline", CONFIG_ERROR_VALUE, error, wrong);
  return TRUE;
}
