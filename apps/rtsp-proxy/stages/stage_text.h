// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Launch text with {name} and {name.form} in it. Braces around anything else are the line's own, as
// in format={I420,NV12}.

#include <glib.h>

#define STAGE_NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789-"

// a-z, digits and hyphens, a letter first, at most 32.
gboolean stage_text_is_name (const gchar *name);

// What stands for {name} or {name.form}; `form` is NULL where there is none.
typedef gchar *(*StageTextLookup) (const gchar *name, const gchar *form, gpointer data);

// The text with all of them filled in, on one line. Where `lookup` gives NULL, so does this, and
// `*offset` is the place of the brace.
gchar *stage_text_expand (const gchar *text, StageTextLookup lookup, gpointer data, gsize *offset);

// The next word of a launch line; spaces within quotes are part of it. NULL at the end.
gchar *stage_text_next_word (const gchar **at);

// For a shell to read as gst-launch-1.0's arguments.
gchar *stage_text_quote (const gchar *launch);
