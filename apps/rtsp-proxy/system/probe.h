// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Asks the kernel what no file tells. Whatever cannot be asked stays unknown.

#include "system/system.h"

// Returns this system. The caller frees it with system_free().
System *probe_system (void);
