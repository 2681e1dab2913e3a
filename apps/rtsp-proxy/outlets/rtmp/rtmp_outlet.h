// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The RTMP listener: one TCP port for all mounts, and one for connections over TLS, on which
// clients publish. One thread serves all of them.

#include "proxy/outlet.h"

extern const Outlet rtmp_outlet;
