// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

// Returns a message that says that GStreamer lacks `element`, and how to install it, if known. The
// caller owns the result.
gchar *element_missing (const gchar *element);

// Makes an element of the factory `element` (transfer floating). Returns NULL and sets `error` if
// GStreamer lacks it.
GstElement *element_make (const gchar *element, GError **error);

// Returns the error of a message (transfer full). If the element gave GStreamer's general text,
// uses the debug details as its message.
GError *element_parse_error (GstMessage *message);
