// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/element.h"

#include "base/element_home.h"

#include <string.h>

gboolean
element_is_there (const gchar *element)
{
  g_autoptr (GstElementFactory) factory = gst_element_factory_find (element);

  return factory != NULL;
}

gchar *
element_missing (const gchar *element)
{
  const gchar *advice = element_home_find (element);

  return g_strdup_printf (
      "GStreamer has no element \"%s\"%s%s", element, advice ? "; " : "", advice ? advice : "");
}

GstElement *
element_make (const gchar *element, GError **error)
{
  GstElement *made = gst_element_factory_make (element, NULL);
  g_autofree gchar *missing = NULL;

  if (!made) {
    missing = element_missing (element);
    g_set_error_literal (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN, missing);
  }
  return made;
}

void
element_explain_error (GError *error, const gchar *debug)
{
  const gchar *details = debug ? strchr (debug, '\n') : NULL;

  if (!details || !g_error_matches (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FAILED))
    return;
  g_free (error->message);
  error->message = g_strdelimit (g_strstrip (g_strdup (details)), "\n", ' ');
}
