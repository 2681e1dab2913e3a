// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The SRT listener: one UDP port for all mounts, on which callers publish and read MPEG transport
// streams (draft-sharabayko-srt; the stream ids are those of SRT's access control guidelines). One
// thread decides about all of them; a worker process has libsrt, and carries their media.

#include "proxy/outlet.h"

extern const Outlet srt_outlet;
