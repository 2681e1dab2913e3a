// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// NULL, or why the launch line can't be pulled (to be freed).
gchar *launch_check (const gchar *line);
