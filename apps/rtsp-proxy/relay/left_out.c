// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/left_out.h"

#include "base/log.h"

#define TEXT_MAX 1024 // bytes, about: a file may have any number of streams

void
left_out_add (GString *text, guint track, const gchar *why, ...)
{
  va_list values;

  if (text->len >= TEXT_MAX)
    return;
  g_string_append_printf (text, "%strack %u: ", text->len > 0 ? "; " : "", track);
  va_start (values, why);
  g_string_append_vprintf (text, why, values);
  va_end (values);
}

void
left_out_add_stream (GString *text, guint stream, const GstCaps *caps)
{
  if (gst_caps_is_any (caps) || gst_caps_is_empty (caps))
    left_out_add (text, stream, "its kind is unknown");
  else
    left_out_add (text, stream, "RTP here has no form for %s",
        gst_structure_get_name (gst_caps_get_structure (caps, 0)));
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
