// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The authenticator that asks a server: of the key `external-auth` of the configuration.

#include "access/authenticator.h"

extern const AuthenticatorOps external_authenticator;

// Call from the main thread.
gpointer external_authenticator_new (const ProxyConfig *config);
