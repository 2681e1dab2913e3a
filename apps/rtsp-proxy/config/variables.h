// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Environment variables that set keys of the file, as containers want them: WEIR_ and the key in
// capitals, with _ for -, such as WEIR_RECEIVE_TICK. Each key of the table whose value is one text
// has one.

#include "text/schema.h"

// Sets the keys in the document whose variables are set and not empty. Call before nodes are in
// use.
void variables_apply (YamlReader *reader, const SchemaKey *keys);

// Return the variables as a table in Markdown, and as a text for --help. The caller owns the
// result.
gchar *variables_to_markdown (const SchemaKey *keys);
gchar *variables_to_help (const SchemaKey *keys);
