// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What --explain says of the ways to a live mount beside RTSP.

#include "config/proxy_config.h"
#include "text/demand.h"

// Returns comments on where clients read the mount over HTTP and SRT, and where they publish to it
// over SRT and RTMP; an empty text if the configuration has none of these. (transfer full)
gchar *explain_ways (const ProxyConfig *config, const MountConfig *mount, const Demand *demand);
