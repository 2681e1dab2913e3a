// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Passes the cues of a transport stream on.

#include "sources/pull.h"

// Watches the stream that the demultiplexer gets, if the configuration wants its cues. `context`
// must live as long as the demultiplexer.
void ts_cues_add (GstElement *demux, const PullContext *context);
