// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The limit of open files of this process.

#include "options.h"

// Raises the limit of open files to the number that the readers need. Returns FALSE if it cannot,
// with a line on stderr that names the limit to raise.
gboolean filelimit_raise (const Options *options);
