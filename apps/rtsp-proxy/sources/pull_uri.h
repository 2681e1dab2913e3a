// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What URIs of several kinds have in common: an address, and parameters behind a '?'.

#include "sources/pull.h"

// The parameters behind the '?'; NULL if they are none.
GHashTable *pull_uri_query (const gchar *uri);

// A parameter that is known is taken out; NULL: it isn't there. To be freed.
gchar *pull_uri_take (GHashTable *query, const gchar *name);

// What is wrong if there are others still (to be freed); `known` names those that there are.
gchar *pull_uri_finish (GHashTable *query, const gchar *known);

// The address, the port, from 1 to `last_port`, and the parameter `iface`. What is wrong (to be
// freed), or NULL.
gchar *pull_uri_endpoint (
    const gchar *uri, GHashTable *query, gint last_port, PullEndpoint *endpoint);
