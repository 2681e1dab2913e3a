// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the proxy has counted, in Prometheus' text format. Labels are mounts, and words of which
// there are few: never a reader.

#include "server.h"

// To be freed. Main thread.
gchar *metrics_dup_text (Server *server);

// A sink serves readers of a mount: what it has counted outlives it. Any thread.
void metrics_watch_sink (const gchar *mount, GstElement *sink);

// A reader has left: what it reported is kept. Any thread.
void metrics_reader_left (const gchar *mount, guint64 lost, guint64 reports);

// Takes leave of sinks that are no longer used and of mounts that are gone; to be called now and
// then. Main thread.
void metrics_collect (Server *server);

// For the end.
void metrics_clear (void);
