// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The parts of schema.h: schema.c has the values, schema_units.c the numbers with units,
// schema_docs.c the documentation.

#include "text/schema.h"

// Returns the bounds of a key that is a number, a time, a size or a rate: "from 100ms to 24h". The
// caller owns the result.
gchar *schema_dup_range (const SchemaKey *key);

// Returns what such a key holds: "time".
const gchar *schema_get_noun (const SchemaKey *key);

// Parses the value of such a key. Returns FALSE if it is not within its bounds.
gboolean schema_parse_number (const SchemaKey *key, const gchar *text, guint64 *number);

// Returns the error message for a text that schema_parse_number() refuses. The caller owns it.
gchar *schema_dup_wrong_number (const SchemaKey *key, const gchar *text);
