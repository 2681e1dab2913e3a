// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The tables of keys: the program treats each key as its row says.

#include "base/file_roots.h"
#include "config/mount_broadcast.h"
#include "config/mount_cache.h"
#include "config/mount_swarm.h"
#include "config/mount_keys.h"
#include "config/mount_read.h"
#include "config/proxy_config.h"
#include "graph/graph.h"
#include "tls/tls_make.h"

#include <glib/gstdio.h>

// Two, because a warm standby needs a second one.
#define FIRST "\"upstreams\": [\"rtsp://192.0.2.7/a\", \"publish\"]"

#define TEN "00112233445566778899"
#define FINGERPRINT TEN TEN TEN "0011"

static StageSet *set;
static gchar *certificate; // a file

static MountConfig *
parse (const MountConfig *base, const gchar *body)
{
  GError *error = NULL;
  YamlReader *reader = yaml_reader_new ("body", body, strlen (body), &error);
  MountConfig *mount = reader ? mount_read_body (set, "/cam", reader, base, &error) : NULL;

  g_clear_pointer (&reader, yaml_reader_free);
  if (!mount)
    g_error ("%s: %s", body, error->message);
  return mount;
}

// Values for the keys that are handled by functions; none is the default.
static gchar *
dup_other_sample (const gchar *key)
{
  const struct {
    const gchar *key, *value;
  } samples[] = {
    { "upstream", "\"rtsp://192.0.2.8/b\"" },
    { "upstreams", "[\"rtsp://192.0.2.7/a\", \"rtsp://192.0.2.8/b\"]" },
    { "slate", "\"/etc/passwd\"" },
    { "pipeline", "[\"pull\", \"restamp\"]" },
    { "source-stages", "[{\"restamp\": {\"limit\": \"1s\"}}]" },
    { "choices", "{\"transcode\": [\"rate\"]}" },
    { "cache", "{\"time\": \"60s\"}" },
    { "layers", "\"1.0.2\"" },
    { "max-pacing-rate", "\"8M\"" },
    { "buffer-size", "\"64K\"" },
    { "push", "[\"udp://239.1.1.1:5000\"]" },
    { "tls-fingerprint", "\"" FINGERPRINT "\"" },
  };

  // These depend on other keys, and have tests of their own.
  if (g_str_equal (key, "broadcast") || g_str_equal (key, "renditions")
      || g_str_equal (key, "inputs"))
    return NULL;
  if (g_str_equal (key, "tls-ca"))
    return g_strdup_printf ("\"%s\"", certificate);
  for (guint i = 0; i < G_N_ELEMENTS (samples); i++) {
    if (g_str_equal (samples[i].key, key))
      return g_strdup (samples[i].value);
  }
  g_error ("this test needs a value for the key %s", key);
}

// Returns a value in JSON that differs from the default.
static gchar *
dup_sample (const SchemaKey *key)
{
  const gchar *word;

  switch (key->type) {
    case SCHEMA_WORD:
    case SCHEMA_INDEX:
      word = key->words[g_str_equal (key->preset, key->words[0])];
      return g_strdup_printf ("\"%s\"", word);
    case SCHEMA_NUMBER:
      return g_strdup_printf ("%" G_GUINT64_FORMAT,
          g_ascii_strtoull (key->preset, NULL, 10) == key->max ? key->min : key->max);
    case SCHEMA_DURATION:
      return g_strdup (key->max > 0 && key->max < 77000 ? "\"777ms\"" : "\"77s\"");
    case SCHEMA_FLAG:
      return g_strdup (g_str_equal (key->preset, "yes") ? "false" : "true");
    case SCHEMA_TEXT:
    case SCHEMA_SECRET:
      return key->check ? dup_other_sample (key->name) : g_strdup ("\"other\"");
    default:
      break;
  }
  return dup_other_sample (key->name);
}

static MountConfig *
parse_with (const MountConfig *base, const gchar *key, const gchar *value)
{
  gchar *body = g_strdup_printf ("{\"%s\": %s}", key, value);
  MountConfig *mount = parse (base, body);

  g_free (body);
  return mount;
}

static void
check_rows (const SchemaKey *keys, const gchar *const *words)
{
  for (const SchemaKey *key = keys; key->name; key++) {
    gchar *form = schema_dup_form (key);

    g_test_message ("%s", key->name);
    g_assert_true (key->help && *key->help);
    g_assert_true (form && *form);
    g_free (form);
    g_assert_cmpuint (key->effect, !=, 0);
    g_assert_nonnull (words[key->effect]);
    g_assert_true (key->type != SCHEMA_OTHER || key->value->read);
    g_assert_true (key->type != SCHEMA_OBJECT || (key->object->keys && key->object->expected));
    if (key->type == SCHEMA_OBJECT)
      check_rows (key->object->keys, words);
  }
}

static void
each_row_is_complete (void)
{
  check_rows (mount_config_keys (), mount_effect_words);
  check_rows (proxy_config_keys (), proxy_effect_words);
}

// The upstream is required, so null does not reset it.
static gboolean
is_upstream (const SchemaKey *key)
{
  return g_str_equal (key->name, "upstream") || g_str_equal (key->name, "upstreams");
}

static void
assert_same (const SchemaKey *expected, const MountConfig *a, const MountConfig *b)
{
  GPtrArray *names = mount_config_differences (a, b);

  for (guint i = 0; i < names->len; i++)
    g_error ("%s: %s differs", expected->name, (const gchar *) g_ptr_array_index (names, i));
  g_assert_true (mount_config_equal (a, b));
  g_ptr_array_unref (names);
}

static void
each_key_is_compared_copied_and_reset (void)
{
  MountConfig *base = parse (NULL, "{" FIRST "}");

  for (const SchemaKey *key = mount_config_keys (); key->name; key++) {
    gchar *value = key->file_only ? NULL : dup_sample (key);
    MountConfig *other, *copy, *back;

    if (!value)
      continue;
    other = parse_with (base, key->name, value);
    g_assert_false (mount_config_equal (base, other));
    copy = parse (other, "{}");
    assert_same (key, other, copy);
    back = is_upstream (key) ? parse (other, "{" FIRST "}") : parse_with (other, key->name, "null");
    assert_same (key, base, back);
    mount_config_unref (back);
    mount_config_unref (copy);
    mount_config_unref (other);
    g_free (value);
  }
  mount_config_unref (base);
}

static void
a_broadcast_is_compared_copied_and_reset (void)
{
  static const gchar *const others[] = { "\"scheme\": \"gdb\"", "\"first\": \"11s\"",
    "\"threshold\": \"60s\"", "\"port\": 6000", "\"ttl\": 2", "\"iface\": \"lo\"",
    "\"rate\": \"1500k\"", "\"cache\": \"64M\"" };
  const gchar *folder = "{\"upstream\": \"file:///tmp/\"}";
  const gchar *groups = "{\"groups\": \"239.1.1.0/28\"}";
  MountConfig *base = parse (NULL, folder);
  MountConfig *simple = parse_with (base, "broadcast", groups), *back;

  g_assert_false (mount_config_equal (base, simple));
  g_assert_cmpuint (mount_config_get_effect (base, simple), ==, MOUNT_EFFECT_NONE);
  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    gchar *value = g_strdup_printf ("{\"groups\": \"239.1.1.0/28\", %s}", others[i]);
    MountConfig *other = parse_with (base, "broadcast", value), *copy = parse (other, "{}");
    JsonBuilder *builder = json_builder_new ();
    JsonNode *node;
    gchar *text;

    g_assert_false (mount_config_equal (simple, other));
    assert_same (mount_broadcast_object.keys, other, copy);
    json_builder_begin_object (builder);
    mount_broadcast_object.write (other, builder);
    json_builder_end_object (builder);
    node = json_builder_get_root (builder);
    text = json_to_string (node, FALSE);
    g_assert_nonnull (strstr (text, "\"239.1.1.0/28\""));
    g_assert_nonnull (strstr (text, strchr (others[i], ':') + 2));
    g_free (text);
    json_node_unref (node);
    g_object_unref (builder);
    mount_config_unref (copy);
    mount_config_unref (other);
    g_free (value);
  }
  back = parse_with (simple, "broadcast", "null");
  assert_same (mount_broadcast_object.keys, base, back);
  mount_config_unref (back);
  mount_config_unref (simple);
  mount_config_unref (base);
}

static void
renditions_are_compared_copied_and_reset (void)
{
  MountConfig *base = parse (NULL, "{" FIRST ", \"choices\": {\"transcode\": [\"size\"]}}");
  MountConfig *one = parse_with (base, "renditions", "[\"size=64x64\"]");
  MountConfig *other = parse_with (one, "renditions", "[\"size=64x66\"]");
  MountConfig *copy = parse (other, "{}"), *back = parse_with (other, "renditions", "null");

  g_assert_false (mount_config_equal (base, one));
  g_assert_false (mount_config_equal (one, other));
  g_assert_cmpuint (mount_config_get_effect (one, other), ==, MOUNT_EFFECT_NONE);
  assert_same (mount_config_keys (), other, copy);
  assert_same (mount_config_keys (), base, back);
  mount_config_unref (back);
  mount_config_unref (copy);
  mount_config_unref (other);
  mount_config_unref (one);
  mount_config_unref (base);
}

static gchar *
dup_graph_key (const MountConfig *config)
{
  return graph_dup_key (config, config->stages, 0);
}

// The graph decides whether a new pipeline starts; the row documents it. Both must agree.
static void
the_effect_in_a_row_agrees_with_the_graph (void)
{
  MountConfig *base = parse (NULL, "{" FIRST "}");
  gchar *before = dup_graph_key (base);

  for (const SchemaKey *key = mount_config_keys (); key->name; key++) {
    gchar *value = key->file_only ? NULL : dup_sample (key);
    gboolean told = key->effect == MOUNT_EFFECT_PIPELINE || key->effect == MOUNT_EFFECT_UPSTREAM;
    gboolean other;
    MountConfig *to;
    gchar *after;

    if (!value || g_str_equal (key->name, "choices")) { // choices are part of a presentation's path
      g_free (value);
      continue;
    }
    to = parse_with (base, key->name, value);
    after = dup_graph_key (to);
    other = !g_str_equal (before, after);
    if (other != told)
      g_error ("%s: the row says %s, but the graph has %s nodes", key->name,
          mount_effect_words[key->effect], other ? "other" : "the same");
    g_assert_cmpuint (mount_config_get_effect (base, to), ==, key->effect);
    mount_config_unref (to);
    g_free (after);
    g_free (value);
  }
  mount_config_unref (base);
  g_free (before);
}

static void
the_strongest_effect_of_several_changes_counts (void)
{
  MountConfig *base = parse (NULL, "{" FIRST "}");
  MountConfig *served =
      parse (base, "{\"priority\": 1, \"linger\": \"1s\", \"layers\": \"1.0.2\"}");
  gchar *folder = g_strdup_printf (
      "{\"priority\": 1, \"transport\": \"tcp\", \"cache\": {\"time\": \"9s\", \"spill\": \"%s\"}}",
      g_get_tmp_dir ());
  MountConfig *spilled = parse (base, folder);

  g_assert_cmpuint (mount_config_get_effect (base, base), ==, MOUNT_EFFECT_NONE);
  g_assert_cmpuint (mount_config_get_effect (base, served), ==, MOUNT_EFFECT_SERVING);
  g_assert_cmpuint (mount_config_get_effect (base, spilled), ==, MOUNT_EFFECT_CLOSES);
  mount_config_unref (base);
  mount_config_unref (served);
  mount_config_unref (spilled);
  g_free (folder);
}

static void
make_certificate (void)
{
  static const gchar *const hosts[] = { "192.0.2.7", NULL };
  gchar *name = g_strdup_printf ("weir-config-test-%d.pem", (int) getpid ()), *print;
  GError *error = NULL;

  certificate = g_build_filename (g_get_tmp_dir (), name, NULL);
  print = tls_make_certificate (hosts, certificate, &error);
  g_assert_no_error (error);
  g_free (print);
  g_free (name);
}

static void
an_object_has_the_strongest_effect_of_its_rows (void)
{
  MountConfig *base = parse (NULL, "{" FIRST ", \"cache\": {\"time\": \"60s\"}}");
  const struct {
    const gchar *cache;
    guint effect;
  } changes[] = {
    { "{\"time\": \"61s\"}", MOUNT_EFFECT_SERVING },
    { "{\"time\": \"60s\", \"bytes\": \"64M\"}", MOUNT_EFFECT_SERVING }, // given, not the default
    { "{\"time\": \"60s\", \"spill\": \"/tmp\"}", MOUNT_EFFECT_CLOSES },
    { "{\"time\": \"61s\", \"spill\": \"/tmp\"}", MOUNT_EFFECT_CLOSES },
  };

  for (guint i = 0; i < G_N_ELEMENTS (changes); i++) {
    MountConfig *other = parse_with (base, "cache", changes[i].cache);

    g_assert_false (mount_config_equal (base, other));
    g_assert_cmpuint (mount_config_get_effect (base, other), ==, changes[i].effect);
    g_assert_true (!other->cache.spill.path || other->cache.spill.is_limited);
    mount_config_unref (other);
  }
  mount_config_unref (base);
}

int
main (int argc, char **argv)
{
  GError *error = NULL;
  int status;

  gst_init (NULL, NULL);
  g_test_init (&argc, &argv, NULL);
  file_roots_set ((gchar *[]) { (gchar *) "/", NULL }); // values are read as those of API clients
  set = stage_set_load_usual (NULL, &error);
  g_assert_no_error (error);
  g_test_add_func ("/config/each-row-is-complete", each_row_is_complete);
  g_test_add_func (
      "/config/each-key-is-compared-copied-and-reset", each_key_is_compared_copied_and_reset);
  g_test_add_func (
      "/config/a-broadcast-is-compared-copied-and-reset", a_broadcast_is_compared_copied_and_reset);
  g_test_add_func (
      "/config/renditions-are-compared-copied-and-reset", renditions_are_compared_copied_and_reset);
  g_test_add_func ("/config/the-effect-in-a-row-agrees-with-the-graph",
      the_effect_in_a_row_agrees_with_the_graph);
  g_test_add_func ("/config/the-strongest-effect-of-several-changes-counts",
      the_strongest_effect_of_several_changes_counts);
  g_test_add_func ("/config/an-object-has-the-strongest-effect-of-its-rows",
      an_object_has_the_strongest_effect_of_its_rows);
  make_certificate ();
  status = g_test_run ();
  g_unlink (certificate);
  g_free (certificate);
  stage_set_unref (set);
  return status;
}
