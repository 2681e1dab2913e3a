// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// JSON as a document of libyaml's, so that what reads the one reads the other: each node knows its
// place.

#include <glib.h>
#include <yaml.h>

// Fills a document that is empty. NULL, or what is wrong (static), and where.
const gchar *json_document_parse (
    yaml_document_t *document, const gchar *text, gsize len, yaml_mark_t *where);
