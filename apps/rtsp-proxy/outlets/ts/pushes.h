// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The pushes of all mounts (key `push`). They follow the configuration: those of a mount that was
// added, changed or removed begin and end within half a second. Call from the main thread only.

#include "mounts/mounts.h"

typedef struct _Pushes Pushes;

Pushes *pushes_new (Mounts *mounts);
void pushes_free (Pushes *self);
