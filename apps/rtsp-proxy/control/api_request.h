// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A request to the API: its target, parameters and body.

#include "control/api_answer.h"
#include "control/reload.h"
#include "text/yaml_reader.h"

typedef struct _Api Api; // see api.h

struct _Api {
  SoupServer *soup;
  Server *server;
  Reload *reload;
  gchar *address;
  guint port;
  gchar *token; // NULL: no token is needed
  gint64 started;
  GCancellable *ending;
  guint n_drawing; // SVG pictures that are being drawn
};

typedef struct {
  Api *api;
  SoupServerMessage *message;
  const gchar *rest; // the path after the route: "/cam", "17", or ""
} ApiRequest;

// Returns a decoded parameter of the query; NULL if it is missing, "" if it has no value. (transfer
// full)
gchar *api_dup_query (const ApiRequest *request, const gchar *name);

// Returns the parameter `reason`, or else `otherwise`. (transfer full)
gchar *api_dup_reason (const ApiRequest *request, const gchar *otherwise);

// Returns FALSE after it has answered a request with a parameter that is not in the list, which
// NULL ends.
gboolean api_check_query (const ApiRequest *request, ...) G_GNUC_NULL_TERMINATED;

// Reports whether the parameter `dry-run` is given, and is neither "false" nor "no".
gboolean api_is_dry_run (const ApiRequest *request);

// Returns the body, a JSON object. Returns NULL after it has answered a request whose body is not
// one. (transfer full)
YamlReader *api_read_body (const ApiRequest *request);
