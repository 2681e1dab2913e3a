// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The names by which HTTP clients may call this machine. A web page can make a name of its own
// resolve to any address (DNS rebinding), and the browser then takes the proxy's answers for those
// of the page's own server. But it still sends the page's name in the Host header.

#include "config/text_list.h"

// SchemaValue.read() of a list of such names, and of a list of the origins of web pages:
// https://HOST[:PORT], or * for all.
gboolean host_names_read (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error);
gboolean host_names_read_origins (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error);

// Reports whether a Host header, such as "proxy.example.org:8888" or NULL, names this machine: by
// an IP address, as localhost, by its host name, or by one of `names`, which may be NULL.
gboolean host_names_take (gchar *const *names, const gchar *host);

// What a client whose Host header names another machine is told.
#define HOST_NAMES_WRONG                                                                           \
  "the Host header must be an IP address, localhost, this machine's name or a name in `hosts` of " \
  "the configuration"
