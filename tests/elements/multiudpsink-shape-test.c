// SPDX-License-Identifier: LGPL-2.1-or-later
// fanoutsink has every property, signal and default of multiudpsink.
#include <gst/base/gstbasesink.h>
#include <gst/gst.h>

static GObjectClass *
class_of (const gchar *name)
{
  GstElement *element = gst_element_factory_make (name, NULL);
  GObjectClass *klass;

  g_assert_nonnull (element);
  klass = g_type_class_ref (G_OBJECT_TYPE (element));
  gst_object_unref (element);
  return klass;
}

static gchar *
range_of (GParamSpec *pspec)
{
  if (G_IS_PARAM_SPEC_INT (pspec))
    return g_strdup_printf (
        "%d..%d", G_PARAM_SPEC_INT (pspec)->minimum, G_PARAM_SPEC_INT (pspec)->maximum);
  if (G_IS_PARAM_SPEC_UINT64 (pspec))
    return g_strdup_printf ("%" G_GUINT64_FORMAT "..%" G_GUINT64_FORMAT,
        G_PARAM_SPEC_UINT64 (pspec)->minimum, G_PARAM_SPEC_UINT64 (pspec)->maximum);
  g_assert_true (G_IS_PARAM_SPEC_BOOLEAN (pspec) || G_IS_PARAM_SPEC_STRING (pspec)
                 || G_IS_PARAM_SPEC_OBJECT (pspec));
  return g_strdup ("");
}

static void
test_has_all_properties (void)
{
  GObjectClass *stock = class_of ("multiudpsink"), *ours = class_of ("fanoutsink");
  guint n, n_own = 0;
  GParamSpec **pspecs = g_object_class_list_properties (stock, &n);

  for (guint i = 0; i < n; i++) {
    GParamSpec *theirs = pspecs[i];
    GParamSpec *own = g_object_class_find_property (ours, theirs->name);
    gchar *range, *own_range;

    g_test_message ("%s", theirs->name);
    g_assert_nonnull (own);
    g_assert_cmpstr (g_type_name (own->value_type), ==, g_type_name (theirs->value_type));
    g_assert_cmpint (own->flags, ==, theirs->flags);
    if (theirs->owner_type != G_TYPE_FROM_CLASS (stock))
      continue;
    n_own++;
    g_assert_cmpint (g_param_values_cmp (own, g_param_spec_get_default_value (own),
                         g_param_spec_get_default_value (theirs)),
        ==, 0);
    range = range_of (theirs);
    own_range = range_of (own);
    g_assert_cmpstr (own_range, ==, range);
    g_free (range);
    g_free (own_range);
  }
  g_assert_cmpuint (n_own, >=, 19);
  g_free (pspecs);
  g_type_class_unref (stock);
  g_type_class_unref (ours);
}

// The values of a new element, which may differ from the defaults of the class.
static void
test_new_elements_have_the_same_values (void)
{
  GstElement *stock = gst_element_factory_make ("multiudpsink", NULL);
  GstElement *ours = gst_element_factory_make ("fanoutsink", NULL);
  guint n;
  GParamSpec **pspecs = g_object_class_list_properties (G_OBJECT_GET_CLASS (stock), &n);

  for (guint i = 0; i < n; i++) {
    GValue a = G_VALUE_INIT, b = G_VALUE_INIT;

    if (!(pspecs[i]->flags & G_PARAM_READABLE) || g_str_equal (pspecs[i]->name, "name")
        || pspecs[i]->value_type == GST_TYPE_STRUCTURE)
      continue;
    g_object_get_property (G_OBJECT (stock), pspecs[i]->name, &a);
    g_object_get_property (G_OBJECT (ours), pspecs[i]->name, &b);
    if (g_param_values_cmp (pspecs[i], &a, &b) != 0)
      g_test_message ("%s differs", pspecs[i]->name);
    g_assert_cmpint (g_param_values_cmp (pspecs[i], &a, &b), ==, 0);
    g_value_unset (&a);
    g_value_unset (&b);
  }
  g_free (pspecs);
  gst_object_unref (stock);
  gst_object_unref (ours);
}

static void
test_has_all_signals (void)
{
  GObjectClass *stock = class_of ("multiudpsink"), *ours = class_of ("fanoutsink");
  guint n;
  guint *ids = g_signal_list_ids (G_TYPE_FROM_CLASS (stock), &n);

  g_assert_cmpuint (n, ==, 6);
  for (guint i = 0; i < n; i++) {
    GSignalQuery theirs, own;
    guint id;

    g_signal_query (ids[i], &theirs);
    g_test_message ("%s", theirs.signal_name);
    id = g_signal_lookup (theirs.signal_name, G_TYPE_FROM_CLASS (ours));
    g_assert_cmpuint (id, !=, 0);
    g_signal_query (id, &own);
    g_assert_cmpint (own.signal_flags, ==, theirs.signal_flags);
    g_assert_cmpstr (g_type_name (own.return_type), ==, g_type_name (theirs.return_type));
    g_assert_cmpuint (own.n_params, ==, theirs.n_params);
    for (guint p = 0; p < own.n_params; p++)
      g_assert_cmpstr (g_type_name (own.param_types[p]), ==, g_type_name (theirs.param_types[p]));
  }
  g_free (ids);
  g_type_class_unref (stock);
  g_type_class_unref (ours);
}

// Both elements return the same statistics fields of a reader.
static void
test_get_stats_has_the_same_fields (void)
{
  const gchar *const names[] = { "multiudpsink", "fanoutsink" };
  GstStructure *stats[2];

  for (guint i = 0; i < 2; i++) {
    GstElement *sink = gst_element_factory_make (names[i], NULL);

    g_signal_emit_by_name (sink, "get-stats", "127.0.0.1", 5000, &stats[i]);
    g_assert_cmpint (gst_structure_n_fields (stats[i]), ==, 0);
    gst_structure_free (stats[i]);
    g_signal_emit_by_name (sink, "add", "127.0.0.1", 5000);
    g_signal_emit_by_name (sink, "get-stats", "127.0.0.1", 5000, &stats[i]);
    gst_object_unref (sink);
  }
  g_assert_cmpstr (gst_structure_get_name (stats[0]), ==, gst_structure_get_name (stats[1]));
  for (gint f = 0; f < gst_structure_n_fields (stats[0]); f++) {
    const gchar *field = gst_structure_nth_field_name (stats[0], (guint) f);

    g_assert_cmpstr (g_type_name (gst_structure_get_field_type (stats[1], field)), ==,
        g_type_name (gst_structure_get_field_type (stats[0], field)));
  }
  gst_structure_free (stats[0]);
  gst_structure_free (stats[1]);
}

// Registers fanoutsink under the name multiudpsink, which makes gst-rtsp-server use it. This is the
// last test because the registration is permanent.
static void
test_can_be_registered_as_multiudpsink (void)
{
  GstElement *sink = gst_element_factory_make ("fanoutsink", NULL);
  GType type = G_OBJECT_TYPE (sink);
  GstPlugin *udp = gst_plugin_load_by_name ("udp");
  GstPlugin *weir = gst_plugin_load_by_name ("weir");

  gst_object_unref (sink);
  g_assert_nonnull (udp);
  g_assert_nonnull (weir);
  g_assert_true (gst_element_register (weir, "multiudpsink", GST_RANK_NONE, type));
  sink = gst_element_factory_make ("multiudpsink", NULL);
  g_assert_cmpstr (G_OBJECT_TYPE_NAME (sink), ==, "WeirFanoutSink");
  gst_object_unref (sink);
  sink = gst_element_factory_make ("udpsink", NULL);
  g_assert_nonnull (sink);
  gst_object_unref (sink);
  gst_object_unref (udp);
  gst_object_unref (weir);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/multiudpsink-shape/has-all-properties", test_has_all_properties);
  g_test_add_func ("/multiudpsink-shape/new-elements-have-the-same-values",
      test_new_elements_have_the_same_values);
  g_test_add_func ("/multiudpsink-shape/has-all-signals", test_has_all_signals);
  g_test_add_func (
      "/multiudpsink-shape/get-stats-has-the-same-fields", test_get_stats_has_the_same_fields);
  g_test_add_func ("/multiudpsink-shape/can-be-registered-as-multiudpsink",
      test_can_be_registered_as_multiudpsink);
  return g_test_run ();
}
