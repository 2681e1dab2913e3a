// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads JSON objects that strangers send. json-glib alone takes more than JSON: comments, several
// values in a row, a member twice, and any depth, for which it uses the stack. Call from any
// thread.

#include <json-glib/json-glib.h>

// Parses a text that is exactly one JSON object, with at most `depth` objects and arrays inside
// each other. Returns NULL for any other text. (transfer full)
JsonObject *json_strict_read (const gchar *text, gsize len, guint depth);

// Return the value of a member, or NULL if it is missing or of another type. (transfer none)
const gchar *json_strict_text (JsonObject *object, const gchar *name);
JsonArray *json_strict_array (JsonObject *object, const gchar *name);

// Gets a member that is a number. Returns FALSE if it is missing, of another type or not finite.
gboolean json_strict_number (JsonObject *object, const gchar *name, gdouble *number);
