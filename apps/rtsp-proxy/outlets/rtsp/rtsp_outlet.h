// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The RTSP server of the proxy: listens, and serves the mounts over RTSP and RTSPS.

#include "proxy/outlet.h"

#define RTSP_BACKLOG 512 // readers that may wait to be accepted

// Adds the mounts, because it makes the media of their presentations. Fails if it cannot listen,
// for example because the port is in use, or if a mount is not valid.
extern const Outlet rtsp_outlet;
