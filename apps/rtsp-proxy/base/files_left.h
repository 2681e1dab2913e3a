// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// GLib and GStreamer end the process, or wait in a loop, if they cannot open a file. So the proxy
// keeps these numbers of files in reserve, or an eighth of the limit if that is less: for readers
// that play, before it accepts another connection; for connections, before it starts an upstream;
// and for upstreams, before it opens a media.
#define FILES_FOR_CONNECTION 96
#define FILES_FOR_UPSTREAM 64
#define FILES_FOR_MEDIA 48

// Reports whether more than `reserve` files can still be opened. Call from any thread.
gboolean files_are_left (guint reserve);

// The reason that a log line gives otherwise.
#define FILES_PROBLEM "too few open files are left; --check-system says how many are needed"
