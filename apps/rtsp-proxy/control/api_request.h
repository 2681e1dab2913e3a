// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A request to the API: what it is about, and what it says.

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
  gchar *token; // NULL: none is asked for
  gint64 started;
  GCancellable *ending;
  guint n_drawing; // pictures that are being made
};

typedef struct {
  Api *api;
  SoupServerMessage *message;
  const gchar *rest; // of the path, after what the route names: "/cam", "17", or ""
} ApiRequest;

// A parameter of the query, decoded; NULL if it is not there, "" if it has no value.
gchar *api_dup_query (const ApiRequest *request, const gchar *name);

// Why something is closed, as the query says, or else this; to be freed.
gchar *api_dup_reason (const ApiRequest *request, const gchar *otherwise);

// FALSE, and it is answered: a parameter is not one of these, which end with NULL.
gboolean api_check_query (const ApiRequest *request, ...) G_GNUC_NULL_TERMINATED;

// What the query says of `dry-run`.
gboolean api_is_dry_run (const ApiRequest *request);

// The body, read as JSON: an object. NULL, and it is answered, if it is none. To be freed.
YamlReader *api_read_body (const ApiRequest *request);
