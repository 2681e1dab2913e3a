// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The kinds of upstream URI that an operator can write.

#include "sources/pull.h"

// Fills the URI's fields of `config`, which must be empty; credentials are moved out of the URI.
// Returns NULL, or an error message (transfer full).
gchar *kinds_check (const gchar *uri, PullUriFlags flags, PullConfig *config);

// Returns the kinds for --help, one or two lines each. (transfer full)
gchar *kinds_dup_help (void);
