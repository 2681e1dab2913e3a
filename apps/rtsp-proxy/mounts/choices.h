// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// How many choices of URLs run at once on a mount: presentations with other stages, and streams of
// presentations with other layers, whatever the outlet. Call from any thread.

#include <glib.h>

typedef struct _Choices Choices;

Choices *choices_new (void);
Choices *choices_ref (Choices *self);
void choices_unref (Choices *self);

// Counts one more. Returns FALSE and sets `error` if `max` run already.
gboolean choices_take (Choices *self, guint max, GError **error);
void choices_leave (Choices *self);
