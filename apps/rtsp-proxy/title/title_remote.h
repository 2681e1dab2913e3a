// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A title file (title_file.h) that a worker process reads, demuxes and payloads. Its packets come
// over a socket for each track, and are paced here. If the worker ends, the element posts an error
// with the reason, and each track ends.

#include "title/title_file.h"

// Returns the element (floating reference) for the open file `fd`, which may be closed afterwards.
GstElement *title_remote_new (int fd);
