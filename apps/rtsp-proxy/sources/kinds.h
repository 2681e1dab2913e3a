// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What can be pulled, as an operator writes it.

#include "sources/pull.h"

// Fills the URI's part of `config`, which had none; credentials are taken out of the URI. Returns
// NULL, or what is wrong (to be freed).
gchar *kinds_check (const gchar *uri, PullUriFlags flags, PullConfig *config);

// The kinds, a line or two each, for --help. To be freed.
gchar *kinds_dup_help (void);
