// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The authenticator of the users of the configuration: by their networks and permissions, and by
// basic and digest authentication.

#include "access/authenticator.h"

extern const AuthenticatorOps users_authenticator;

gpointer users_authenticator_new (const ProxyConfig *config);
