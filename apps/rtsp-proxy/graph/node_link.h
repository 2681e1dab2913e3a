// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the node with the source stages of an upstream, for the relay that chooses among the
// mount's upstreams: like an upstream without a pipeline, whose media are that node's packets. A
// run begins with the use of the node, and ends when the node is down.

#include "sources/pull.h"

// The `data` of the context is the Inlet (node_private.h) whose `from` is read.
extern const PullLight node_link;
extern const PullLight node_link_awaiting; // the same, of an upstream that awaits a peer
