// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The pushes of all mounts (key `push`). They follow the configuration: those of a mount that was
// added, changed or removed begin and end within half a second.

#include "proxy/outlet.h"

extern const Outlet pushes_outlet;
