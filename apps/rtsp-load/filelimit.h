// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "options.h"

// Raises the limit of open files to what the readers need. False, with a line on stderr that says
// what to raise, if it can't.
gboolean filelimit_raise (const Options *options);
