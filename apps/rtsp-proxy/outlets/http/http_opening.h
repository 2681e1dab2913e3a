// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Opens titles in threads, two for each store, because that may block on a disk or an origin.

#include "stores/store.h"

typedef struct _HttpOpening HttpOpening;

// Begins. Takes ownership of `store` and `name`. `done` runs once, in any thread; it must not
// block, and must not free the result.
HttpOpening *http_opening_new (
    Store *store, gchar *name, void (*done) (gpointer data), gpointer data);

// Reports whether the title is open or has failed. Then sets `bytes` (transfer full), or `error`.
// Call until it returns TRUE.
gboolean http_opening_take (HttpOpening *self, StoreBytes **bytes, GError **error);

// After this has returned, `done` neither runs nor will run. `self` may be NULL.
void http_opening_free (HttpOpening *self);
