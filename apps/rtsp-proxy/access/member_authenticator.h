// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Admits the members of the cluster to what they read.

#include "access/authenticator.h"

extern const AuthenticatorOps member_authenticator;

gpointer member_authenticator_new (const ProxyConfig *config);
