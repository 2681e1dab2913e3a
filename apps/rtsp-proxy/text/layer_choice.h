// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Layer sets as text: "S.Q.T", the highest spatial, quality and temporal layer, each a number or *
// for all.

#include <glib.h>

#include "svc/layerset.h"

// Parses `text` into `*set`. Returns FALSE and leaves `*set` alone if `text` is not a layer set.
gboolean layer_choice_parse (const gchar *text, WeirLayerSet *set);

// Returns the text of a layer set. The caller owns the result.
gchar *layer_choice_dup_text (WeirLayerSet set);

// Returns the layers that are in both sets.
WeirLayerSet layer_choice_join (WeirLayerSet a, WeirLayerSet b);
