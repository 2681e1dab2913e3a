// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A title file (title_file.h) that a worker process reads, demuxes and payloads. Its packets come
// over a socket for each track. If the worker ends, the element posts an error with the reason, and
// each track ends.

#include "title/title_file.h"

// Returns the element (floating reference) for the open file `fd`, which may be closed afterwards.
// With `paced`, packets leave at the speed of the stream; else as soon as they are taken.
GstElement *title_remote_new (int fd, gboolean paced);
