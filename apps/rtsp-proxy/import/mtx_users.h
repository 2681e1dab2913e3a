// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Who may do what in MediaMTX: the keys that begin with `auth`.

#include "import/mtx_file.h"

// Appends the keys `users`, `jwt` or `external-auth`.
void mtx_users_append (MtxFile *self, GString *out);

// Reports whether a user with a password may use the API, so that other machines may reach it.
gboolean mtx_users_guard_api (MtxFile *self);
