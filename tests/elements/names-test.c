// SPDX-License-Identifier: LGPL-2.1-or-later
// Names: default names of elements, names of their statistics, and types in the plugin's
// documentation.
#include <gst/gst.h>

// The name that GStreamer's payloaders use.
#define PAYLOADER_STATS "application/x-rtp-payload-stats"

static void
check_name (const gchar *factory, GstElement *element, guint *number)
{
  gchar *name = gst_object_get_name (GST_OBJECT (element));
  guint64 n;

  g_test_message ("%s", name);
  g_assert_true (g_str_has_prefix (name, factory));
  g_assert_true (g_ascii_string_to_unsigned (name + strlen (factory), 10, 0, G_MAXUINT, &n, NULL));
  *number = (guint) n;
  g_free (name);
}

static void
test_default_names (gconstpointer factory)
{
  GstElement *first = gst_element_factory_make (factory, NULL);
  GstElement *second = gst_parse_launch (factory, NULL);
  GstElement *third = g_object_new (G_OBJECT_TYPE (first), NULL);
  GstElement *named = gst_element_factory_make (factory, "weirfanoutsink0");
  guint numbers[3];

  check_name (factory, first, &numbers[0]);
  check_name (factory, second, &numbers[1]);
  check_name (factory, third, &numbers[2]);
  g_assert_cmpuint (numbers[0], ==, 0);
  g_assert_cmpuint (numbers[1], ==, 1);
  g_assert_cmpuint (numbers[2], ==, 2);
  g_assert_cmpstr (GST_OBJECT_NAME (named), ==, "weirfanoutsink0");
  gst_object_unref (first);
  gst_object_unref (second);
  gst_object_unref (third);
  gst_object_unref (named);
}

// Checks the properties that the type itself defines.
static void
check_stats (GObject *object, const gchar *name)
{
  guint n;
  GParamSpec **specs = g_object_class_list_properties (G_OBJECT_GET_CLASS (object), &n);

  for (guint i = 0; i < n; i++) {
    GstStructure *stats = NULL;

    if (specs[i]->owner_type != G_OBJECT_TYPE (object) || specs[i]->value_type != GST_TYPE_STRUCTURE
        || !g_str_has_suffix (specs[i]->name, "stats"))
      continue;
    g_object_get (object, specs[i]->name, &stats, NULL);
    g_assert_nonnull (stats);
    g_assert_cmpstr (gst_structure_get_name (stats), ==, name);
    gst_structure_free (stats);
  }
  g_free (specs);
}

static void
test_stats (gconstpointer factory)
{
  GstElement *element = gst_element_factory_make (factory, NULL);
  gchar *name = g_str_equal (factory, "rtprelaypay")
                    ? g_strdup (PAYLOADER_STATS)
                    : g_strdup_printf ("application/x-weir-%s-stats", (const gchar *) factory);

  check_stats (G_OBJECT (element), name);
  gst_object_unref (element);
  g_free (name);
}

// A pad of intervalcache is a reader too, with the statistics of intervalcachesrc.
static void
test_stats_of_pads (void)
{
  GstElement *cache = gst_element_factory_make ("intervalcache", NULL);
  GstPad *pad = gst_element_request_pad_simple (cache, "src_%u");

  check_stats (G_OBJECT (pad), "application/x-weir-intervalcachesrc-stats");
  gst_element_release_request_pad (cache, pad);
  gst_object_unref (pad);
  gst_object_unref (cache);
}

static void
check_type (GType type)
{
  type &= ~G_SIGNAL_TYPE_STATIC_SCOPE;
  if (!g_str_has_prefix (g_type_name (type), "Weir"))
    return;
  g_test_message ("%s", g_type_name (type));
  g_assert_true (gst_type_is_plugin_api (type, NULL));
}

static void
check_properties (GObjectClass *klass)
{
  guint n;
  GParamSpec **specs = g_object_class_list_properties (klass, &n);

  for (guint i = 0; i < n; i++)
    check_type (specs[i]->value_type);
  g_free (specs);
}

static void
check_signals (GType type)
{
  guint n;
  guint *ids = g_signal_list_ids (type, &n);

  for (guint i = 0; i < n; i++) {
    GSignalQuery signal;

    g_signal_query (ids[i], &signal);
    check_type (signal.return_type);
    for (guint j = 0; j < signal.n_params; j++)
      check_type (signal.param_types[j]);
  }
  g_free (ids);
}

static void
check_pads (GstElementClass *klass)
{
  for (GList *l = gst_element_class_get_pad_template_list (klass); l; l = l->next) {
    GType type = GST_PAD_TEMPLATE_GTYPE (l->data);
    GObjectClass *pad_class = g_type_class_ref (type != G_TYPE_NONE ? type : GST_TYPE_PAD);

    check_type (G_OBJECT_CLASS_TYPE (pad_class));
    check_properties (pad_class);
    g_type_class_unref (pad_class);
  }
}

static void
test_types (gconstpointer factory)
{
  GstElement *element = gst_element_factory_make (factory, NULL);

  check_properties (G_OBJECT_GET_CLASS (element));
  check_signals (G_OBJECT_TYPE (element));
  check_pads (GST_ELEMENT_GET_CLASS (element));
  gst_object_unref (element);
}

static void
add (const gchar *what, const gchar *element, GTestDataFunc test)
{
  gchar *path = g_strdup_printf ("/%s/%s", what, element);

  g_test_add_data_func_full (path, g_strdup (element), test, g_free);
  g_free (path);
}

static void
add_elements_of (const gchar *plugin)
{
  GList *features = gst_registry_get_feature_list_by_plugin (gst_registry_get (), plugin);

  for (GList *l = features; l; l = l->next) {
    const gchar *name = gst_plugin_feature_get_name (l->data);

    if (!GST_IS_ELEMENT_FACTORY (l->data))
      continue;
    add ("names", name, test_default_names);
    add ("stats", name, test_stats);
    add ("types", name, test_types);
  }
  gst_plugin_feature_list_free (features);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  add_elements_of ("weir");
  add_elements_of ("weiropenh264");
  add_elements_of ("weirstore");
  add_elements_of ("weirswarm");
  g_test_add_func ("/stats/pads-of-intervalcache", test_stats_of_pads);
  return g_test_run ();
}
