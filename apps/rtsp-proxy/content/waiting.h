// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Those who wait until something is known. Any thread.

#include <glib.h>

typedef struct _Waiting Waiting;
typedef void (*WaitingFunc) (gpointer data);

Waiting *waiting_new (void);
void waiting_free (Waiting *self); // when nobody waits any more

// Has `told` called, once: by waiting_tell(), or on the main thread when the time is over.
void waiting_add (Waiting *self, guint timeout_ms, WaitingFunc told, gpointer data);

// With no lock held.
void waiting_tell (Waiting *self);
