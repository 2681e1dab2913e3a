// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The proxy's metrics in Prometheus' text format. Labels are mounts, and words from short fixed
// lists; readers are never labels.

#include "outlets/rtsp/server.h"

// Call from the main thread only. (transfer full)
gchar *metrics_dup_text (Server *server);
