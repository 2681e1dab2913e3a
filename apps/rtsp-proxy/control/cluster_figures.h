// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The metrics of the cluster.

#include "cluster/cluster.h"

// Adds them to `out`, in Prometheus' text format: all 0 without a cluster, which may be NULL. Call
// from the main thread only.
void cluster_figures_write (Cluster *cluster, GString *out);
