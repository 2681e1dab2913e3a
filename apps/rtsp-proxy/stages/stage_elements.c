// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stages/stage_elements.h"

#include "base/element.h"
#include "base/fades.h"
#include "stages/stage_text.h"

#include <gst/gst.h>
#include <string.h>

// Tells elements from caps (a/b), properties (a=b), pads (a.) and links (!).
static gboolean
may_be_element (const gchar *word)
{
  return *word && strspn (word, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_-") == strlen (word);
}

// Returns the next element of launch text and advances `*at`, or returns NULL at the end. The
// caller owns it.
static gchar *
next_element (const gchar **at)
{
  gboolean value = FALSE; // the word is the value of a property written "a = b"
  gchar *word;

  while ((word = stage_text_next_word (at))) {
    const gchar *next = *at + strspn (*at, " \t\r\n");

    if (!value && *next != '=' && may_be_element (word))
      return word;
    value = g_str_has_suffix (word, "=");
    g_free (word);
  }
  return NULL;
}

gchar *
stage_elements_find_missing (const gchar *launch)
{
  const gchar *at = launch;
  gchar *element;

  while ((element = next_element (&at))) {
    if (!element_is_there (element))
      return element;
    g_free (element);
  }
  return NULL;
}

static gboolean
is_foreign (const gchar *element)
{
  GstElementFactory *factory = gst_element_factory_find (element);
  const gchar *plugin =
      factory ? gst_plugin_feature_get_plugin_name (GST_PLUGIN_FEATURE (factory)) : NULL;
  gboolean foreign = g_strcmp0 (plugin, "weir") != 0 && g_strcmp0 (plugin, "coreelements") != 0;

  gst_clear_object (&factory);
  return foreign;
}

gboolean
stage_elements_has_foreign (const gchar *launch)
{
  const gchar *at = launch;
  gboolean foreign = FALSE;
  gchar *element;

  while (!foreign && (element = next_element (&at))) {
    foreign = is_foreign (element);
    g_free (element);
  }
  return foreign;
}

// Returns the launch text as it stands in a pipeline: "tee name=t t. ! fakesink t." means nothing
// alone.
static gchar *
dup_whole (const gchar *launch, guint inputs)
{
  GString *whole = g_string_new (inputs ? NULL : "identity ! ");

  for (guint i = 0; i < inputs; i++)
    g_string_append_printf (whole, "identity name=input%u ", i);
  g_string_append_printf (whole, "%s ! fakesink", launch);
  return g_string_free (whole, FALSE);
}

// Returns what is wrong if the output of an element goes nowhere (transfer full), or NULL.
static gchar *
find_second_output (GstElement *bin)
{
  GstPad *pad = gst_bin_find_unlinked_pad (GST_BIN (bin), GST_PAD_SRC);
  GstElement *element = pad ? gst_pad_get_parent_element (pad) : NULL;
  const gchar *name = element ? GST_OBJECT_NAME (element) : "";
  gchar *wrong = NULL;

  if (element && g_str_has_prefix (name, "input"))
    wrong = g_strdup_printf ("the stage does not use its %s; write %s. ! ELEMENT", name, name);
  else if (element)
    wrong = g_strdup_printf ("the stage has two outputs: that of %s goes nowhere", name);
  gst_clear_object (&element);
  gst_clear_object (&pad);
  return wrong;
}

gchar *
stage_elements_check (const gchar *launch, const gchar *fades, guint inputs)
{
  gchar *missing = stage_elements_find_missing (launch), *wrong = NULL, *whole;
  GError *error = NULL;
  GstElement *bin;

  if (missing) {
    wrong = element_missing (missing);
    g_free (missing);
    return wrong;
  }
  whole = dup_whole (launch, inputs);
  bin = gst_parse_bin_from_description_full (
      whole, FALSE, NULL, GST_PARSE_FLAG_FATAL_ERRORS | GST_PARSE_FLAG_PLACE_IN_BIN, &error);
  if (bin) {
    gst_object_ref_sink (bin);
    wrong = error ? NULL : find_second_output (bin);
    if (!wrong && !error && fades)
      fades_begin (bin, fades, &error);
    gst_object_unref (bin);
  }
  if (error) {
    wrong = g_strdup (error->message);
    g_error_free (error);
  }
  g_free (whole);
  return wrong;
}
