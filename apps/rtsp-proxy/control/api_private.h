// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the parts of the API share: a request, and how it is answered.

#include <json-glib/json-glib.h>
#include <libsoup/soup.h>

#include "control/api.h"

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

void api_answer (SoupServerMessage *message, guint status, JsonBuilder *body); // takes the body
void api_answer_text (
    SoupServerMessage *message, guint status, const gchar *type, gchar *text); // takes the text

// {"error": {"message": ..., "where": ...}}; `where` may be NULL.
void api_fail (SoupServerMessage *message, guint status, const gchar *where, const gchar *format,
    ...) G_GNUC_PRINTF (4, 5);

// The same for "PLACE:LINE:COLUMN: what is wrong", and what else is in further lines.
void api_fail_error (SoupServerMessage *message, guint status, const GError *error);

// A parameter of the query, decoded; NULL if it is not there, "" if it has no value.
gchar *api_dup_query (const ApiRequest *request, const gchar *name);

// Why something is closed, as the query says, or else this; to be freed.
gchar *api_dup_reason (const ApiRequest *request, const gchar *otherwise);

// FALSE, and it is answered: a parameter is not one of these, which end with NULL.
gboolean api_check_query (const ApiRequest *request, ...) G_GNUC_NULL_TERMINATED;

// What the query says of `dry-run`.
gboolean api_is_dry_run (const ApiRequest *request);

// The body, if it is a JSON object (else it is answered, and NULL).
const gchar *api_get_body (const ApiRequest *request, gsize *len);

// ---- what is answered, by path ----

typedef void (*ApiHandler) (ApiRequest *request);

void api_list_mounts (ApiRequest *request);
void api_get_mount (ApiRequest *request);
void api_put_mount (ApiRequest *request);
void api_patch_mount (ApiRequest *request);
void api_delete_mount (ApiRequest *request);
void api_reload (ApiRequest *request);

void api_list_readers (ApiRequest *request);
void api_get_reader (ApiRequest *request);
void api_patch_reader (ApiRequest *request);
void api_delete_reader (ApiRequest *request);

void api_get_graph (ApiRequest *request);
void api_get_graph_dot (ApiRequest *request);
void api_get_graph_svg (ApiRequest *request);

// ---- small pieces of JSON ----

void api_add_text (JsonBuilder *builder, const gchar *name, const gchar *value);
void api_add_number (JsonBuilder *builder, const gchar *name, gint64 value);
