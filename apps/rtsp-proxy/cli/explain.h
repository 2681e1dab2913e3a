// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/proxy_config.h"
#include "stages/stage.h"

// A presentation as a person reads it: comments, and a line for gst-launch-1.0 that does the same
// to the video where there is one. A shell can run it as it is. `chain` is of Stages.
gchar *explain_chain (const gchar *title, const PullConfig *pull, const GPtrArray *chain);

// What --explain prints of "/path?query"; NULL and an error if that would be served with 404.
gchar *explain_url (const ProxyConfig *config, const gchar *url, GError **error);
