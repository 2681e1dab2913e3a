// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A request to the API: its target, parameters and body.

#include "base/port.h"
#include "cluster/cluster.h"
#include "control/api_answer.h"
#include "control/reload.h"
#include "text/schema.h"
#include "text/yaml_reader.h"

typedef struct _Api Api; // see api.h

struct _Api {
  SoupServer *soup;
  Proxy *proxy;
  Reload *reload;
  Cluster *cluster; // or NULL
  gchar *address;
  Port *port;
  gboolean tls;         // clients use HTTPS
  gchar *token;         // NULL: no token is needed
  GStrv hosts;          // by which clients may call this machine (host_names_take())
  gint64 started;       // monotonic time, us
  GCancellable *ending; // cancels drawings when the API is freed
  guint n_drawing;      // number of SVG pictures that are being drawn
  guint n_asking;       // number of requests that wait for the decision on access
  guint n_sending;      // number of recordings that are being sent
};

typedef struct {
  Api *api;
  SoupServerMessage *message;
  const gchar *rest; // the path after the route: "/cam", "17", or ""
} ApiRequest;

// Returns a decoded parameter of the query: NULL if it is missing, "" if it has no valid value.
// (transfer full)
gchar *api_dup_query (const ApiRequest *request, const gchar *name);

// Returns the parameter `reason`, shortened to 200 characters, or else `fallback`. (transfer full)
gchar *api_dup_reason (const ApiRequest *request, const gchar *fallback);

// Checks that the query has only the parameters of the list, which NULL ends. Otherwise answers 400
// and returns FALSE.
gboolean api_check_query (const ApiRequest *request, ...) G_GNUC_NULL_TERMINATED;

// Reports whether the parameter `dry-run` is given, and is neither "false" nor "no".
gboolean api_is_dry_run (const ApiRequest *request);

// Returns the body. If it is not a JSON object, answers 400 and returns NULL. (transfer full)
YamlReader *api_read_body (const ApiRequest *request);

// Reads the values of these keys from the body into `object`. Answers 400 and returns FALSE if the
// body is not right.
gboolean api_read_keys (
    const ApiRequest *request, const SchemaKey *keys, gpointer object, SchemaMode mode);

// Sets `us` to the Unix time in us of a text of ISO 8601, by UTC where it names no zone. Returns
// FALSE if it is none.
gboolean api_parse_time (const gchar *text, gint64 *us);
