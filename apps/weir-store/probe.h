// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What GStreamer tells about a file.

#include <glib.h>

typedef struct {
  gchar *caps;        // of the container or stream, "" if unknown
  gint64 duration_ns; // or WEIR_INDEX_NO_TIME
  gchar *problem;     // why the file could not be read as media, or NULL
} Probe;

// Looks at a file, for at most 30 s.
void probe_file (Probe *self, const gchar *path);
void probe_clear (Probe *self);
