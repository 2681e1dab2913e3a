// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Layers as they are written: "S.Q.T", the highest spatial, quality and temporal layer, or * for
// all of a kind.

#include <glib.h>

#include "svc/layerset.h"

gboolean layer_choice_parse (const gchar *text, WeirLayerSet *set);
gchar *layer_choice_dup_text (WeirLayerSet set);

// What both allow.
WeirLayerSet layer_choice_join (WeirLayerSet a, WeirLayerSet b);

// Takes "layers=S.Q.T" out of a URL's query, which becomes NULL if nothing remains. `set` is all
// layers if it is not there. FALSE and an error if it makes no sense.
gboolean layer_choice_cut (gchar **query, WeirLayerSet *set, GError **error);
