// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The proxy's metrics in Prometheus' text format. Labels have few values: the paths of mounts, and
// words from fixed lists. A reader is never a label.

#include "cluster/cluster.h"

// Returns all metrics. Call from the main thread only. (transfer full)
gchar *metrics_dup_text (Proxy *proxy, Cluster *cluster);
