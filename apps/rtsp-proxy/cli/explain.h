// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/proxy_config.h"
#include "sources/pull.h"
#include "stages/stage.h"

// Describes a presentation: comments and, where possible, a gst-launch-1.0 line that handles the
// video in the same way. A shell can run the text. `chain` is an array of Stages. The caller owns
// the result.
gchar *explain_chain (const gchar *title, const PullConfig *pull, const GPtrArray *chain);

// Returns the text that --explain prints for "/path?query"; the caller owns it. Returns NULL and
// sets `error` if the proxy would answer 404.
gchar *explain_url (const ProxyConfig *config, const gchar *url, GError **error);
