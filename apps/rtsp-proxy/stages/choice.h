// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A presentation is what one URL asks for: the stages of a mount's pipeline, with what the query
// chooses. Presentations share what their chains have in common from the beginning on.

#include <glib.h>

#include "stages/stage.h"

// What a mount may have: `stages` (of Stage) begin with one that takes nothing; `choices` maps the
// names of stages, of the pipeline or to be put behind it, to the parameters that a URL may set
// (NULL-terminated), and may be NULL. FALSE and an error for what can never work: what does not
// fit, what is unknown, elements that are missing. Costs a millisecond or less for each new text.
// `files`, unless it is NULL, becomes the names and sums of all stage files that a chain can be
// made of, those that decode too; to be freed.
gboolean choice_check (
    StageSet *set, const GPtrArray *stages, GHashTable *choices, gchar **files, GError **error);

// The chain of a URL; `query` is what stands behind its question mark, or NULL. It gives Stages,
// decoding put in where frames are needed. An error for what is undeclared, out of range, twice
// there, too long or no query; then nothing is made of it.
GPtrArray *choice_make_chain (StageSet *set, const GPtrArray *stages, GHashTable *choices,
    const gchar *query, GError **error);

// The same for the same choices, in whatever order and spelling the query had them: the keys of
// the stages, with " ! " between.
gchar *choice_dup_key (const GPtrArray *stages);

// The codec of the RTP that comes to stage `n` (to the end: n is their number), where the source
// gives `codec`; NULL if that is NULL and no stage says another.
const gchar *choice_get_codec (
    const GPtrArray *stages, guint n, StageMedia media, const gchar *codec);
