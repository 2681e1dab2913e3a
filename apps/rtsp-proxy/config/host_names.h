// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The names by which HTTP clients may call this machine. A web page can make a name of its own
// resolve to any address (DNS rebinding), and the browser then takes the proxy's answers for those
// of the page's own server. But it still sends the page's name in the Host header.

#include "text/schema.h"

// Check such a name, and the origin of a web page: https://HOST[:PORT], or * for all.
gchar *host_names_check (SchemaText *it);
gchar *host_names_check_origin (SchemaText *it);

// Reports whether a Host header, such as "proxy.example.org:8888" or NULL, names this machine: by
// an IP address, as localhost, by its host name, or by one of `names`, which may be NULL.
gboolean host_names_take (gchar *const *names, const gchar *host);

// What a client whose Host header names another machine is told.
#define HOST_NAMES_WRONG                                                                           \
  "the Host header must be an IP address, localhost, this machine's name or a name in `hosts` of " \
  "the configuration"
