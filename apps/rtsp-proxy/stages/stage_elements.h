// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Checks the elements of launch text.

#include <glib.h>

// Returns the name of the first element that does not exist (the caller owns it), or NULL. Creates
// no elements.
gchar *stage_elements_find_missing (const gchar *launch);

// Creates the elements once, to check them. `fades` is for fades_begin(), or NULL. `inputs` is that
// of the stage's file. Returns NULL, or an error message that the caller owns: a missing element,
// an unknown property, elements that do not link, a second output.
gchar *stage_elements_check (const gchar *launch, const gchar *fades, guint inputs);

// Reports whether the launch text has an element that is neither Weir's own nor one of GStreamer's
// core elements. Creates no elements.
gboolean stage_elements_has_foreign (const gchar *launch);
