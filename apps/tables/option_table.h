// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The options of a program as JSON, for what is made from them at build time: manual pages and
// completion.

#include <glib.h>
#include <json-glib/json-glib.h>

// Members of the object that is being built. `text` is what --help says behind the options.
void option_table_write (
    JsonBuilder *builder, const GOptionEntry *entries, const gchar *summary, const gchar *text);

// Prints what was built, and frees it.
void option_table_print (JsonBuilder *builder);
