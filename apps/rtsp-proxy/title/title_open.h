// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Opens stored titles: in this process, or in worker processes.

#include "title/title_file.h"

// Sets whether titles are read in worker processes. Call before the first one is opened.
void title_open_set (gboolean isolated);

// Gets ready for titles. Call from the main thread.
void title_open_prepare (void);

// Returns the element (floating reference) for the open file `fd`. The caller keeps `fd` open as
// long as the element exists.
GstElement *title_open (int fd);

// As title_open(), but packets leave as soon as they are taken.
GstElement *title_open_unpaced (int fd);
