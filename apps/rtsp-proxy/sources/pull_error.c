// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/pull_error.h"

#include <string.h>

// souphttpsrc gives no reason if it cannot connect, or if the server breaks off.
static gboolean
lost_http_server (GstMessage *message, const GError *error)
{
  GstElementFactory *factory =
      GST_IS_ELEMENT (GST_MESSAGE_SRC (message))
          ? gst_element_get_factory (GST_ELEMENT (GST_MESSAGE_SRC (message)))
          : NULL;

  return factory && g_str_equal (GST_OBJECT_NAME (factory), "souphttpsrc")
         && g_error_matches (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FAILED);
}

gchar *
pull_error_dup_reason (GstMessage *message, const GError *error, const gchar *debug)
{
  const gchar *why;

  why = debug ? strrchr (debug, '\n') : NULL;
  if (lost_http_server (message, error))
    return g_strdup ("the server cannot be reached, or closed the connection");
  return why ? g_strdup_printf ("%s (%s)", error->message, why + 1) : g_strdup (error->message);
}
