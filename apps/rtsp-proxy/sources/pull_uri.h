// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the parts that several kinds of URI share: an address, and parameters after a '?'.

#include "sources/pull.h"

// Returns the parameters after the '?' (transfer full), or NULL if they cannot be parsed.
GHashTable *pull_uri_query (const gchar *uri);

// Removes a known parameter from `query` and returns its value, or NULL. (transfer full)
gchar *pull_uri_take (GHashTable *query, const gchar *name);

// Returns an error message if parameters are left in `query` (transfer full), else NULL. `known`
// names the parameters that may be given.
gchar *pull_uri_finish (GHashTable *query, const gchar *known);

// Reads the address, the port (from 1 to `last_port`) and the parameter `iface`. Returns NULL, or
// an error message (transfer full).
gchar *pull_uri_endpoint (
    const gchar *uri, GHashTable *query, gint last_port, PullEndpoint *endpoint);
