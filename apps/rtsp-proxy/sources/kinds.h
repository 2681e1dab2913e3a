// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The kinds of upstream URI.

#include "sources/pull.h"

// Checks a URI and fills the fields of `config` that depend on it; `config` must be empty. Moves
// credentials from the URI into `user` and `password`. Returns NULL, or an error message (transfer
// full).
gchar *kinds_check (const gchar *uri, PullUriFlags flags, PullConfig *config);

// Returns the forms of URIs as a table in Markdown, or as lines for --help. (transfer full)
gchar *kinds_to_markdown (void);
gchar *kinds_to_help (void);
