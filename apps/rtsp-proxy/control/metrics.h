// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the proxy has counted, in Prometheus' text format. Labels are mounts, and words of which
// there are few: never a reader.

#include "outlets/rtsp/server.h"

// To be freed. Main thread.
gchar *metrics_dup_text (Server *server);
