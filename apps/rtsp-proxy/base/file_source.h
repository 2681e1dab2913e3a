// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A source of the bytes of an open file. Unlike filesrc, it needs no path, so a process that may
// open no file can have it; and unlike fdsrc, it has its own position in the file.

#include <gst/gst.h>

// Returns the element (floating reference). The caller keeps `fd` open as long as the element
// exists.
GstElement *file_source_new (int fd);
