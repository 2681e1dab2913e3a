// SPDX-License-Identifier: LGPL-2.1-or-later
// What elements are called for whom no name is given: as in launch lines, like those of GStreamer.
#include <gst/gst.h>

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

static void
add_elements_of (const gchar *plugin)
{
  GList *features = gst_registry_get_feature_list_by_plugin (gst_registry_get (), plugin);

  for (GList *l = features; l; l = l->next) {
    const gchar *name = gst_plugin_feature_get_name (l->data);
    gchar *path = g_strconcat ("/names/", name, NULL);

    if (GST_IS_ELEMENT_FACTORY (l->data))
      g_test_add_data_func_full (path, g_strdup (name), test_default_names, g_free);
    g_free (path);
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
  return g_test_run ();
}
