// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

// What a message says of an element that is not there: with the Debian package that has it, if that
// is known. To be freed.
gchar *element_missing (const gchar *element);

// An element; or NULL, with an error that says what is missing.
GstElement *element_make (const gchar *element, GError **error);
