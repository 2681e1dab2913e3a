// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

// Reports whether GStreamer has the element.
gboolean element_is_there (const gchar *element);

// Returns a message that says that GStreamer lacks `element`, and how to install it, if known. The
// caller owns the result.
gchar *element_missing (const gchar *element);

// Makes an element of the factory `element` (transfer floating). Returns NULL and sets `error` if
// GStreamer lacks it.
GstElement *element_make (const gchar *element, GError **error);

// Makes the details of `debug` the message of the error if an element gave GStreamer's general
// text. `debug` may be NULL.
void element_explain_error (GError *error, const gchar *debug);
