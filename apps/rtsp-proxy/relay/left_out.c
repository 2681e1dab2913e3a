// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/left_out.h"

#include "base/log.h"

void
left_out_add (GString *text, guint track, const gchar *why, ...)
{
  va_list values;

  g_string_append_printf (text, "%strack %u: ", text->len > 0 ? "; " : "", track);
  va_start (values, why);
  g_string_append_vprintf (text, why, values);
  va_end (values);
}

const gchar *
left_out_codec (const GstCaps *caps)
{
  const gchar *name = gst_structure_get_string (gst_caps_get_structure (caps, 0), "encoding-name");

  return name ? name : "this codec";
}

void
left_out_log (const gchar *label, const gchar *text)
{
  if (*text)
    log_event ("%s: left out: %s", label, text);
}
