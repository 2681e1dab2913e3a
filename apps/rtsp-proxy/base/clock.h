// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// Monotonic, ns: the `now` of all that is told the time.
gint64 clock_now (void);
