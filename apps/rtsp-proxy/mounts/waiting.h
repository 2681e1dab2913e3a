// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Callbacks that wait for one event, each with a timeout. Call from any thread.

#include <glib.h>

typedef struct _Waiting Waiting;
typedef void (*WaitingFunc) (gpointer data);

Waiting *waiting_new (void);
void waiting_free (Waiting *self); // call when no callback waits

// Adds a callback. It is called once: by waiting_end(), or on the main thread after `timeout_ms`.
void waiting_add (Waiting *self, guint timeout_ms, WaitingFunc done, gpointer data);

// Calls and removes all callbacks. Call with no lock held.
void waiting_end (Waiting *self);
