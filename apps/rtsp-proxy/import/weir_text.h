// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Writes values of the proxy's configuration as YAML, each on one line.

#include <glib.h>

// Appends a text, in quotes if YAML could take it for something else.
void weir_text_append (GString *out, const gchar *text);

// Appends "KEY: TEXT", after a comma if `out` has other pairs of its mapping.
void weir_text_pair (GString *out, const gchar *key, const gchar *text);

// Returns a time as the configuration takes it; more than a day is a day. (transfer full)
gchar *weir_text_dup_time (guint64 ms);

// Returns a list of texts. (transfer full)
gchar *weir_text_dup_list (const GPtrArray *texts);
