// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// How the API answers: in JSON, or in what a text is of.

#include <json-glib/json-glib.h>
#include <libsoup/soup.h>

void api_answer (SoupServerMessage *message, guint status, JsonBuilder *body); // takes the body
void api_answer_text (
    SoupServerMessage *message, guint status, const gchar *type, gchar *text); // takes the text

// {"error": {"message": ..., "where": ...}}; `where` may be NULL.
void api_fail (SoupServerMessage *message, guint status, const gchar *where, const gchar *format,
    ...) G_GNUC_PRINTF (4, 5);

// The same for "PLACE:LINE:COLUMN: what is wrong", and what else is in further lines.
void api_fail_error (SoupServerMessage *message, guint status, const GError *error);

// The body of an answer that libsoup itself gives, with a status of its own.
void api_prepare_failure (SoupServerMessage *message, const gchar *what);

// ---- small pieces of JSON ----

void api_add_text (JsonBuilder *builder, const gchar *name, const gchar *value);
void api_add_number (JsonBuilder *builder, const gchar *name, gint64 value);
