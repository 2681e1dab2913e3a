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
