// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/fades.h"

#include "base/clock.h"

#include <gst/controller/gstdirectcontrolbinding.h>
#include <gst/controller/gstinterpolationcontrolsource.h>
#include <string.h>

typedef struct {
  gint64 begin, end; // running times; may be negative
  gdouble from, to;
} Fade;

// Returns the object of ELEMENT or ELEMENT.PAD, or NULL. (transfer full)
static GstObject *
find_object (GstElement *pipeline, const gchar *name)
{
  gchar **names = g_strsplit (name, ".", 2);
  GstElement *element = names[0] ? gst_bin_get_by_name (GST_BIN (pipeline), names[0]) : NULL;
  GstObject *object = GST_OBJECT (element);

  if (element && names[1]) {
    object = GST_OBJECT (gst_element_get_static_pad (element, names[1]));
    gst_object_unref (element);
  }
  g_strfreev (names);
  return object;
}

// Splits ELEMENT.PROPERTY or ELEMENT.PAD::PROPERTY. Returns the property and ends `target` before
// it; NULL if there is none.
static gchar *
split_property (gchar *target)
{
  gchar *end = strstr (target, "::"), *property = end ? end + 2 : NULL;

  if (!end && (end = strchr (target, '.')))
    property = end + 1;
  if (end)
    *end = '\0';
  return property;
}

static gdouble
value_at (const Fade *self, gint64 time)
{
  if (time >= self->end)
    return self->to;
  return time <= self->begin ? self->from
                             : self->from
                                   + (self->to - self->from) * (gdouble) (time - self->begin)
                                         / (gdouble) (self->end - self->begin);
}

static void
set_point (GstControlSource *source, const Fade *fade, gint64 time)
{
  if (time >= 0)
    gst_timed_value_control_source_set (
        GST_TIMED_VALUE_CONTROL_SOURCE (source), (GstClockTime) time, value_at (fade, time));
}

static gboolean
begin (GstElement *pipeline, const gchar *word, const Fade *fade)
{
  gchar *target = g_strdup (word), *property = split_property (target);
  GstObject *object = property ? find_object (pipeline, target) : NULL;
  GParamSpec *spec =
      object ? g_object_class_find_property (G_OBJECT_GET_CLASS (object), property) : NULL;
  gboolean ok = spec && spec->flags & GST_PARAM_CONTROLLABLE && spec->value_type == G_TYPE_DOUBLE;

  if (ok) {
    GstControlSource *source = gst_interpolation_control_source_new ();

    g_object_set (source, "mode", GST_INTERPOLATION_MODE_LINEAR, NULL);
    set_point (source, fade, 0);
    set_point (source, fade, fade->begin);
    set_point (source, fade, fade->end);
    gst_object_add_control_binding (
        object, gst_direct_control_binding_new_absolute (object, property, source));
    gst_object_unref (source);
  }
  gst_clear_object (&object);
  g_free (target);
  return ok;
}

gboolean
fades_begin (GstElement *pipeline, const gchar *fades, GError **error)
{
  g_auto (GStrv) words = g_strsplit (fades, " ", -1);
  const guint n = g_strv_length (words);
  const gint64 zero = (gint64) gst_element_get_base_time (pipeline) - clock_now ()
                      + g_get_real_time () * (gint64) GST_USECOND;
  gboolean ok = TRUE;

  for (guint i = 2; ok && i + 2 < n; i += 3) {
    Fade fade = { .begin = g_ascii_strtoll (words[0], NULL, 10) - zero,
      .from = g_ascii_strtod (words[i + 1], NULL),
      .to = g_ascii_strtod (words[i + 2], NULL) };

    fade.end = fade.begin + MIN (g_ascii_strtoll (words[1], NULL, 10), G_MAXINT64 / 2);
    ok = begin (pipeline, words[i], &fade);
    if (!ok)
      g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_FAILED,
          "fade: there is no %s, or it is no number that can change by the time", words[i]);
  }
  return ok;
}
