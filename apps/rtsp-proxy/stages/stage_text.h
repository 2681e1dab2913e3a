// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Launch text with the placeholders {name} and {name.form}. Other braces belong to GStreamer, as in
// format={I420,NV12}.

#include <glib.h>

#define STAGE_NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789-"

// Reports whether `name` is a letter a-z, followed by a-z, 0-9 and -, at most 32 characters in all.
gboolean stage_text_is_name (const gchar *name);

// Returns the text for {name} (`form` is NULL) or {name.form}, or NULL if there is none.
typedef gchar *(*StageTextLookup) (const gchar *name, const gchar *form, gpointer data);

// Replaces all placeholders and joins the lines into one. The caller owns the result. Returns NULL
// and sets `*offset` to the place of the brace if `lookup` returns NULL.
gchar *stage_text_expand (const gchar *text, StageTextLookup lookup, gpointer data, gsize *offset);

// Returns any UTF-8 text as launch text for the value of a property. The caller owns the result.
gchar *stage_text_dup_value (const gchar *text);

// Returns the next word of launch text and advances `*at`, or returns NULL at the end. Quoted
// spaces are part of a word. The caller owns the result.
gchar *stage_text_next_word (const gchar **at);

// Quotes launch text for a shell, as arguments of gst-launch-1.0. The caller owns the result.
gchar *stage_text_quote (const gchar *launch);
