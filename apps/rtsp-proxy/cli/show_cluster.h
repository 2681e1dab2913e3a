// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// `rtsp-proxy cluster [URL]`: asks the API of a member for the cluster, and prints it.

#define SHOW_CLUSTER_COMMAND "cluster"

// `argv[0]` is the name of the command. Returns the exit status.
int show_cluster_run (int argc, char **argv);
