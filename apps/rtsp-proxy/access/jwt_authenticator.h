// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The authenticator of signed tokens: of the key `jwt` of the configuration.

#include "access/authenticator.h"

extern const AuthenticatorOps jwt_authenticator;

// Call from the main thread.
gpointer jwt_authenticator_new (const ProxyConfig *config);
