// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Pulls from an RTSP server without a pipeline and without a thread of its own: all clients share
// the thread of rtsp_loop.h.

#include "sources/pull.h"

extern const PullLight rtsp_client_light;
