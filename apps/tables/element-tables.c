// SPDX-License-Identifier: LGPL-2.1-or-later
// Prints as JSON, for docs/write-reference.py, the pads, properties, signals and enumerations of
// the elements and GObject types that its arguments name. It omits a name that is not registered
// here.
#include "option_table.h"

#include <gst/gst.h>

#define OWN_PREFIX "Weir"

static void
add_string (JsonBuilder *builder, const gchar *name, const gchar *text)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_string_value (builder, text ? text : "");
}

static void
take_string (JsonBuilder *builder, const gchar *name, gchar *text)
{
  add_string (builder, name, text);
  g_free (text);
}

static gboolean
is_own (GType type)
{
  return g_str_has_prefix (g_type_name (type), OWN_PREFIX);
}

// ---- properties ----

// Returns "MIN to MAX" of a numeric property, or NULL. The caller owns the result.
static gchar *
dup_range (GParamSpec *spec)
{
#define RANGE(Type, FORMAT)                                                                        \
  if (G_IS_PARAM_SPEC_##Type (spec))                                                               \
  return g_strdup_printf ("%" FORMAT " to %" FORMAT, G_PARAM_SPEC_##Type (spec)->minimum,          \
      G_PARAM_SPEC_##Type (spec)->maximum)

  RANGE (INT, "d");
  RANGE (UINT, "u");
  RANGE (INT64, G_GINT64_FORMAT);
  RANGE (UINT64, G_GUINT64_FORMAT);
  RANGE (FLOAT, "g");
  RANGE (DOUBLE, "g");
#undef RANGE
  return NULL;
}

// Returns the default value of a property as text, or NULL. The caller owns the result.
static gchar *
dup_default (GParamSpec *spec)
{
  const GValue *value = g_param_spec_get_default_value (spec);

  if (!(spec->flags & G_PARAM_WRITABLE))
    return NULL;
  if (G_VALUE_HOLDS_STRING (value))
    return g_strdup (g_value_get_string (value) ? g_value_get_string (value) : "NULL");
  if (G_VALUE_HOLDS_ENUM (value)) {
    GEnumClass *klass = G_PARAM_SPEC_ENUM (spec)->enum_class;

    return g_strdup (g_enum_get_value (klass, g_value_get_enum (value))->value_nick);
  }
  if (G_VALUE_HOLDS_OBJECT (value) || G_VALUE_HOLDS_BOXED (value))
    return g_strdup ("NULL");
  return gst_value_serialize (value);
}

static const gchar *
get_access (GParamSpec *spec)
{
  if (!(spec->flags & G_PARAM_WRITABLE))
    return "read";
  if (spec->flags & G_PARAM_CONSTRUCT_ONLY)
    return spec->flags & G_PARAM_READABLE ? "read, set at construction" : "set at construction";
  return spec->flags & G_PARAM_READABLE ? "read, write" : "write";
}

// Returns the highest state in which a change takes effect, or NULL if the property does not say.
static const gchar *
get_mutable (GParamSpec *spec)
{
  if (!(spec->flags & G_PARAM_WRITABLE))
    return NULL;
  if (spec->flags & GST_PARAM_MUTABLE_PLAYING)
    return "PLAYING";
  if (spec->flags & GST_PARAM_MUTABLE_PAUSED)
    return "PAUSED";
  return spec->flags & GST_PARAM_MUTABLE_READY ? "READY" : NULL;
}

static void
write_property (JsonBuilder *builder, GParamSpec *spec)
{
  json_builder_begin_object (builder);
  add_string (builder, "name", spec->name);
  add_string (builder, "type", g_type_name (spec->value_type));
  take_string (builder, "range", dup_range (spec));
  take_string (builder, "default", dup_default (spec));
  add_string (builder, "access", get_access (spec));
  add_string (builder, "mutable", get_mutable (spec));
  json_builder_set_member_name (builder, "deprecated");
  json_builder_add_boolean_value (builder, (spec->flags & G_PARAM_DEPRECATED) != 0);
  add_string (builder, "blurb", g_param_spec_get_blurb (spec));
  json_builder_end_object (builder);
}

// Writes the properties that Weir's types define. The properties of GStreamer's base classes vary
// between its versions.
static void
write_properties (JsonBuilder *builder, GObjectClass *klass)
{
  guint n;
  GParamSpec **specs = g_object_class_list_properties (klass, &n);

  json_builder_set_member_name (builder, "properties");
  json_builder_begin_array (builder);
  for (guint i = 0; i < n; i++) {
    if (is_own (specs[i]->owner_type))
      write_property (builder, specs[i]);
  }
  json_builder_end_array (builder);
  g_free (specs);
}

// ---- signals ----

static void
write_signal (JsonBuilder *builder, guint id)
{
  GSignalQuery query;

  g_signal_query (id, &query);
  json_builder_begin_object (builder);
  add_string (builder, "name", query.signal_name);
  json_builder_set_member_name (builder, "action");
  json_builder_add_boolean_value (builder, (query.signal_flags & G_SIGNAL_ACTION) != 0);
  add_string (builder, "returns", g_type_name (query.return_type));
  json_builder_set_member_name (builder, "arguments");
  json_builder_begin_array (builder);
  for (guint i = 0; i < query.n_params; i++)
    json_builder_add_string_value (
        builder, g_type_name (query.param_types[i] & ~G_SIGNAL_TYPE_STATIC_SCOPE));
  json_builder_end_array (builder);
  json_builder_end_object (builder);
}

static void
write_signals (JsonBuilder *builder, GType type)
{
  guint n;
  guint *ids = g_signal_list_ids (type, &n);

  json_builder_set_member_name (builder, "signals");
  json_builder_begin_array (builder);
  for (guint i = 0; i < n; i++)
    write_signal (builder, ids[i]);
  json_builder_end_array (builder);
  g_free (ids);
}

// ---- enumerations ----

static void
write_enum (JsonBuilder *builder, GType type)
{
  GEnumClass *klass;

  if (!G_TYPE_IS_ENUM (type) || !is_own (type))
    return;
  klass = g_type_class_ref (type);
  json_builder_begin_object (builder);
  add_string (builder, "name", g_type_name (type));
  json_builder_set_member_name (builder, "values");
  json_builder_begin_array (builder);
  for (guint i = 0; i < klass->n_values; i++) {
    json_builder_begin_object (builder);
    json_builder_set_member_name (builder, "value");
    json_builder_add_int_value (builder, klass->values[i].value);
    add_string (builder, "nick", klass->values[i].value_nick);
    add_string (builder, "meaning", klass->values[i].value_name);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  g_type_class_unref (klass);
}

// Writes the enumerations that properties and signals use; an enumeration may appear twice.
static void
write_enums (JsonBuilder *builder, GObjectClass *klass)
{
  GType type = G_OBJECT_CLASS_TYPE (klass);
  guint n;
  GParamSpec **specs = g_object_class_list_properties (klass, &n);
  guint *ids;

  json_builder_set_member_name (builder, "enums");
  json_builder_begin_array (builder);
  for (guint i = 0; i < n; i++)
    write_enum (builder, specs[i]->value_type);
  g_free (specs);
  ids = g_signal_list_ids (type, &n);
  for (guint i = 0; i < n; i++) {
    GSignalQuery query;

    g_signal_query (ids[i], &query);
    for (guint k = 0; k < query.n_params; k++)
      write_enum (builder, query.param_types[k] & ~G_SIGNAL_TYPE_STATIC_SCOPE);
  }
  g_free (ids);
  json_builder_end_array (builder);
}

// ---- types ----

static void
write_members (JsonBuilder *builder, GType type)
{
  GObjectClass *klass = g_type_class_ref (type);

  add_string (builder, "type", g_type_name (type));
  write_properties (builder, klass);
  write_signals (builder, type);
  write_enums (builder, klass);
  g_type_class_unref (klass);
}

// Writes a pad template. Pads of one of Weir's types, such as those of intervalcache, have
// properties.
static void
write_pad (JsonBuilder *builder, GstPadTemplate *template)
{
  static const gchar *const presences[] = { "always", "sometimes", "on request" };
  GstCaps *caps = gst_pad_template_get_caps (template);
  GType kind;

  g_object_get (template, "gtype", &kind, NULL);
  json_builder_begin_object (builder);
  add_string (builder, "name", GST_PAD_TEMPLATE_NAME_TEMPLATE (template));
  add_string (
      builder, "direction", GST_PAD_TEMPLATE_DIRECTION (template) == GST_PAD_SRC ? "src" : "sink");
  add_string (builder, "presence", presences[GST_PAD_TEMPLATE_PRESENCE (template)]);
  take_string (builder, "caps", gst_caps_to_string (caps));
  if (is_own (kind))
    write_members (builder, kind);
  json_builder_end_object (builder);
  gst_caps_unref (caps);
}

static void
write_element (JsonBuilder *builder, GstElementFactory *factory)
{
  GstPluginFeature *loaded = gst_plugin_feature_load (GST_PLUGIN_FEATURE (factory));
  GstElementClass *klass;

  if (!loaded)
    g_error ("cannot load the plugin of %s", GST_OBJECT_NAME (factory));
  klass = g_type_class_ref (gst_element_factory_get_element_type (GST_ELEMENT_FACTORY (loaded)));
  json_builder_set_member_name (builder, "pads");
  json_builder_begin_array (builder);
  for (GList *l = gst_element_class_get_pad_template_list (klass); l; l = l->next)
    write_pad (builder, l->data);
  json_builder_end_array (builder);
  write_members (builder, G_TYPE_FROM_CLASS (klass));
  g_type_class_unref (klass);
  gst_object_unref (loaded);
}

static void
write_named (JsonBuilder *builder, const gchar *name)
{
  GstElementFactory *factory = gst_element_factory_find (name);
  GType type = factory ? G_TYPE_INVALID : g_type_from_name (name);

  if (!factory && !type)
    return;
  json_builder_set_member_name (builder, name);
  json_builder_begin_object (builder);
  if (factory)
    write_element (builder, factory);
  else
    write_members (builder, type);
  json_builder_end_object (builder);
  g_clear_object (&factory);
}

int
main (int argc, char **argv)
{
  JsonBuilder *builder = json_builder_new ();
  GstPlugin *plugin;

  gst_init (&argc, &argv);
  plugin = gst_plugin_load_by_name ("weir"); // registers types that are no elements
  g_clear_object (&plugin);
  json_builder_begin_object (builder);
  for (int i = 1; i < argc; i++)
    write_named (builder, argv[i]);
  json_builder_end_object (builder);
  option_table_print (builder);
}
