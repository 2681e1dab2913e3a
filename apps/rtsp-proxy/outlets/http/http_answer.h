// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The texts of HTTP answers.

#include "outlets/http/http_request.h"
#include "stores/bytes.h"

#define HTTP_RETRY_AFTER "10" // seconds, with 503

// Begins an answer: the status line, Date and Connection. `answer` loses what it had.
void http_answer_begin (GString *answer, guint status, gboolean keeps);

// Adds a header.
void http_answer_add (GString *answer, const gchar *name, const gchar *value);

// Adds a header with a date, in s since the epoch.
void http_answer_add_date (GString *answer, const gchar *name, gint64 seconds);

// Adds the header Content-Length.
void http_answer_add_length (GString *answer, guint64 length);

// Adds the headers of a title, of which `body` is sent. `name` is the end of its path. Ends the
// head.
void http_answer_end_title (
    GString *answer, const StoreBytes *bytes, const gchar *name, const HttpBody *body);

// Ends the head and adds a body: the status and `reason`, which may be NULL. With `head`, only its
// length. An answer 204 or 304 has no body.
void http_answer_end_text (GString *answer, guint status, const gchar *reason, gboolean head);

// Returns the media type of a file with this name. (transfer none)
const gchar *http_answer_type (const gchar *name);
