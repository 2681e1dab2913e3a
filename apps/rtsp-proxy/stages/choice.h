// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes the chain of stages of a presentation from a mount's pipeline and the choices in a URL.
// Presentations share the stages that their chains have in common from the start.

#include <glib.h>

#include "stages/stage.h"

// Checks the pipeline and the choices of a mount. `stages` (of Stage) must begin with a source.
// `choices` maps names of stages to the parameters that a URL may set (NULL-terminated); a stage
// that is not in the pipeline is appended to it. `choices` may be NULL. Returns FALSE and sets
// `error` if the mount can never work: formats that do not fit, unknown names, missing elements.
// Sets `*files` to the names and checksums of the stage files that chains of the mount use,
// decoders included; the caller owns them; `files` may be NULL. Takes up to a millisecond for each
// new launch text.
gboolean choice_check (
    StageSet *set, const GPtrArray *stages, GHashTable *choices, gchar **files, GError **error);

// Returns the chain (of Stage) for a URL, with decoders inserted where a stage takes raw frames;
// the caller owns the array. `query` is the text after the question mark; may be NULL. Returns NULL
// and sets `error` if a parameter is not offered, out of range or given twice, or if the query is
// too long or not valid.
GPtrArray *choice_make_chain (StageSet *set, const GPtrArray *stages, GHashTable *choices,
    const gchar *query, GError **error);

// Returns the items of a query that name parameters that are offered (transfer full), or NULL if
// there are none. `choices` is as above.
gchar *choice_cut_unknown (GHashTable *choices, const gchar *query);

// Returns the key of a chain: the keys of its stages, separated by " ! ". Queries that make the
// same choices in another order or spelling get the same key. The caller owns the result.
gchar *choice_dup_key (const GPtrArray *stages);

// Returns the codec of the RTP that stage `n` receives, or of the whole chain's output if `n` is
// the number of stages. `codec` is the upstream's codec; if it is NULL and no stage before `n` sets
// another codec, returns NULL.
const gchar *choice_get_codec (
    const GPtrArray *stages, guint n, StageMedia media, const gchar *codec);
