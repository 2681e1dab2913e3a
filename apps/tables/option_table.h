// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Writes the options of a program as JSON, from which the build makes manual pages and bash
// completion.

#include <glib.h>
#include <json-glib/json-glib.h>

// Adds the options to the JSON object that `builder` is building. `text` is the part of --help that
// follows the options.
void option_table_write (
    JsonBuilder *builder, const GOptionEntry *entries, const gchar *summary, const gchar *text);

// Prints the JSON and frees `builder`.
void option_table_print (JsonBuilder *builder);
