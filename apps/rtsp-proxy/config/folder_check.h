// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "text/schema.h"

// Checks that a folder is there and that this process can write to it. `why` ends the error message
// otherwise. For use in a SchemaCheck.
gchar *folder_check_writable (SchemaText *it, const gchar *why);
