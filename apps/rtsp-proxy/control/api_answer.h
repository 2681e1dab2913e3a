// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends the API's answers, as JSON or as text.

#include <json-glib/json-glib.h>
#include <libsoup/soup.h>

// Takes ownership of `body`.
void api_answer (SoupServerMessage *message, guint status, JsonBuilder *body);
// Takes ownership of `text`; `type` is its media type.
void api_answer_text (SoupServerMessage *message, guint status, const gchar *type, gchar *text);

// Answers {"error": {"message": ..., "where": ...}}; `where` may be NULL.
void api_fail (SoupServerMessage *message, guint status, const gchar *where, const gchar *format,
    ...) G_GNUC_PRINTF (4, 5);

// Does the same for an error with the text "PLACE:LINE:COLUMN: MESSAGE". Further lines of the text
// become `others`.
void api_fail_error (SoupServerMessage *message, guint status, const GError *error);

// Sets the error body of answers that libsoup sends itself, with its own status.
void api_prepare_failure (SoupServerMessage *message, const gchar *text);

// ---- JSON members ----

void api_add_text (JsonBuilder *builder, const gchar *name, const gchar *value);
void api_add_number (JsonBuilder *builder, const gchar *name, gint64 value);
// Adds a Unix time in us as text of ISO 8601.
void api_add_time (JsonBuilder *builder, const gchar *name, gint64 unix_us);
