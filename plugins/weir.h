// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Weir for programs. A program creates Weir's elements by name, like all elements of GStreamer;
// this header declares the functions besides them. The pkg-config module is weir-0.1. Everything
// here is available since 0.1, unless the comment names another version.

#include <gst/gst.h>

G_BEGIN_DECLS

// Makes GStreamer create a `fanoutsink` for every `multiudpsink` from now on, in the whole process.
// gst-rtsp-server creates its UDP sinks under that name, so an unchanged server uses fanoutsink.
// Call this once, after gst_init() and before the first media is prepared. Returns FALSE and an
// error, and changes nothing, if GStreamer does not find the element fanoutsink.
gboolean weir_use_fanoutsink (GError **error);

G_END_DECLS
