// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// GLib and GStreamer end the process, or wait in a loop, if they cannot open a file. So the proxy
// begins only what leaves files in reserve: for readers that play, before it accepts a connection;
// for connections, before it opens a title or starts an upstream; and for upstreams, before it
// opens a media. Call from any thread.

#include <glib.h>

typedef enum {
  FILES_FOR_CONNECTION,
  FILES_FOR_TITLE,
  FILES_FOR_PLAYING, // those of a title that it opens after its tracks are known
  FILES_FOR_UPSTREAM,
  FILES_FOR_BYTES, // of a title over HTTP
  FILES_FOR_MEDIA,
} FilesUse;

// Reports whether there are files for this use beside those that are promised, and its reserve is
// left.
gboolean files_are_left (FilesUse use);

// Does the same, and promises the files to what opens them only later. Call files_end_promise()
// with the same use when it has opened them or given up.
gboolean files_promise (FilesUse use);
void files_end_promise (FilesUse use);

// Puts another promise in the place of one.
void files_change_promise (FilesUse from, FilesUse to);

// The reason that a log line gives otherwise.
#define FILES_PROBLEM                                                                              \
  "too few open files are left (RLIMIT_NOFILE); --check-system says how many are needed"
