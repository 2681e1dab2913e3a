// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_keys.h"

#include "config/mount_cache.h"
#include "config/mount_pipeline.h"
#include "config/mount_upstreams.h"
#include "text/config_error.h"
#include "text/layer_choice.h"

static const gchar *const transports[] = { "auto", "udp", "tcp", NULL }; // as PullTransport
static const gchar *const joins[] = { "keyframe", "live", NULL };
const gchar *const mount_adapt_names[] = { "off", "fixed", "bandwidth", "aimd", NULL };
static const gchar *const catch_ups[] = { "live", "delay", NULL };

const gchar *const mount_effect_words[] = { NULL, "unnoticed", "layers", "serving", "pipeline",
  "upstream", "closes" };

// ---- slate ----

static void
clear_slate (gpointer object)
{
  g_clear_pointer (&((MountConfig *) object)->slate, g_free);
}

static void
reset_slate (const SchemaKey *key, gpointer object)
{
  clear_slate (object);
}

static gboolean
read_slate (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  const gchar *text = yaml_text (reader, node);

  clear_slate (mount);
  if (!text)
    return schema_fail (reader, node, key, error, "a single value belongs here");
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

static void
copy_slate (gpointer to, gconstpointer from)
{
  ((MountConfig *) to)->slate = g_strdup (((const MountConfig *) from)->slate);
}

static const SchemaValue slate_value = { read_slate, reset_slate, equal_slates, write_slate,
  copy_slate, clear_slate, NULL };

// ---- layers ----

static void
reset_layers (const SchemaKey *key, gpointer object)
{
  ((MountConfig *) object)->layers = WEIR_LAYER_SET_ALL;
}

static gboolean
read_layers (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  const gchar *text = yaml_text (reader, node);

  if (!text || !layer_choice_parse (text, &mount->layers))
    return schema_fail (reader, node, key, error,
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

static void
copy_layers (gpointer to, gconstpointer from)
{
  ((MountConfig *) to)->layers = ((const MountConfig *) from)->layers;
}

static const SchemaValue layers_value = { read_layers, reset_layers, equal_layers, write_layers,
  copy_layers, NULL, NULL };

// ---- the table ----

#define AT(field) G_STRUCT_OFFSET (MountConfig, field)

static const SchemaKey mount_keys[] = {
  { "upstream", SCHEMA_OTHER, .form = "URI", .value = &mount_upstreams_value,
      .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "what is pulled: a URI of a kind that `--help` lists; must be there" },
  { "upstreams", SCHEMA_OTHER, .form = "[URI, ...]", .value = &mount_upstreams_list_value,
      .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "instead of `upstream`: several, in order of preference" },
  { "user", SCHEMA_TEXT, AT (pull.user), .form = "NAME", .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "for the upstream (basic or digest), and one of the next three" },
  { "password", SCHEMA_SECRET, AT (pull.password), .form = "TEXT", .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "the password" },
  { "password-file", SCHEMA_OTHER, AT (pull.password), .form = "FILE",
      .value = &schema_secret_elsewhere, .effect = MOUNT_EFFECT_UPSTREAM, .file_only = TRUE,
      .help = "a file that holds it" },
  { "password-env", SCHEMA_OTHER, AT (pull.password), .form = "NAME",
      .value = &schema_secret_elsewhere, .effect = MOUNT_EFFECT_UPSTREAM, .file_only = TRUE,
      .help = "an environment variable that holds it" },
  { "transport", SCHEMA_INDEX, AT (pull.transport), "auto", .words = transports,
      .effect = MOUNT_EFFECT_UPSTREAM, .help = "`auto`: UDP, and TCP if that brings nothing" },
  { "slate", SCHEMA_OTHER, .form = "FILE", .value = &slate_value, .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "a clip that is shown while no upstream is there" },
  { "pipeline", SCHEMA_OTHER, .form = "[STAGE, ...]", .value = &mount_pipeline_value,
      .effect = MOUNT_EFFECT_PIPELINE,
      .help = "the stages that media goes through; without it, `pull` alone" },
  { "choices", SCHEMA_OTHER, .form = "{STAGE: [NAME, ...]}", .value = &mount_choices_value,
      .effect = MOUNT_EFFECT_PIPELINE, .help = "which parameters of which stages a URL may set" },
  { "max-presentations", SCHEMA_NUMBER, AT (max_presentations), "8", 1, 256,
      .effect = MOUNT_EFFECT_NONE, .help = "how many different choices are served at once" },
  { "interval", SCHEMA_DURATION, AT (interval_ms), "0s", .effect = MOUNT_EFFECT_NONE,
      .help = "of an upstream that is a stored title, which begins anew for each session: readers "
              "who ask within so long of another share its session, and get the beginning from "
              "memory" },
  { "max-titles", SCHEMA_NUMBER, AT (max_titles), "64", 1, 4096, .effect = MOUNT_EFFECT_NONE,
      .help = "how many files of a folder are open at once" },
  { "switch-timeout", SCHEMA_DURATION, AT (switch_timeout_ms), "10s", 100,
      .effect = MOUNT_EFFECT_NONE,
      .help = "how long a new pipeline may take to replace the one that runs" },
  { "on-demand", SCHEMA_FLAG, AT (on_demand), "yes", .effect = MOUNT_EFFECT_NONE,
      .help =
          "`yes`: the upstream is started by the first reader; `no`: it always runs, so that the "
          "first one sees a picture at once, too" },
  { "linger", SCHEMA_DURATION, AT (linger_ms), "10s", .effect = MOUNT_EFFECT_NONE,
      .help = "how long it runs on after the last reader" },
  { "start-timeout", SCHEMA_DURATION, AT (start_timeout_ms), "10s", 100,
      .effect = MOUNT_EFFECT_NONE,
      .help = "how long a reader's DESCRIBE may wait for it, and, of a title, its PLAY" },
  { "connect-timeout", SCHEMA_DURATION, AT (pull.connect_timeout_ms), "5s", 100,
      .effect = MOUNT_EFFECT_UPSTREAM, .help = "how long it may take to answer" },
  { "read-timeout", SCHEMA_DURATION, AT (pull.read_timeout_ms), "10s", 100,
      .effect = MOUNT_EFFECT_UPSTREAM, .help = "after how long a silence it is reconnected" },
  { "join", SCHEMA_WORD, AT (join), "keyframe", .words = joins, .effect = MOUNT_EFFECT_SERVING,
      .help =
          "where a reader begins: at the newest keyframe, so that it sees a picture at once, or "
          "`live`" },
  { "catch-up", SCHEMA_WORD, AT (catch_up), "live", .words = catch_ups,
      .effect = MOUNT_EFFECT_SERVING,
      .help = "a reader that began in the past runs through it and is live; `delay`: it stays "
              "behind" },
  { "cache", SCHEMA_OTHER, .form = "{time: TIME, bytes: SIZE, spill: FOLDER}",
      .value = &mount_cache_value, .effect = MOUNT_EFFECT_SERVING,
      .help = "how far back readers can go, how much a track takes for that at most "
              "(`64M`), and where that lies, if not in memory" },
  { "priority", SCHEMA_NUMBER, AT (priority), "4", 0, 7, .was = "class",
      .effect = MOUNT_EFFECT_SERVING,
      .help = "readers of priority 0 are served first when there is too much to do, of 7 last" },
  { "adapt", SCHEMA_INDEX, AT (adapt), "aimd", .words = mount_adapt_names,
      .effect = MOUNT_EFFECT_LAYERS,
      .help = "of a stream with layers, which a reader gets: `aimd` or `bandwidth`, as its line "
              "carries them; `fixed`: as it chooses; `off`: all, and it can't choose" },
  { "layers", SCHEMA_OTHER, .form = "S.Q.T", .value = &layers_value, .effect = MOUNT_EFFECT_LAYERS,
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
