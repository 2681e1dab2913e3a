// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Weir in a program of your own. The elements are used by name, like any of GStreamer's; this is
// what names alone do not give. pkg-config knows it as weir-0.1. All of it since 0.1, but where
// another version stands.

#include <gst/gst.h>

G_BEGIN_DECLS

// Makes every `multiudpsink` that this process makes from now on a `fanoutsink`: gst-rtsp-server
// makes its UDP sinks by that name, so a whole server gets the fast path without a patch. Call it
// once, after gst_init() and before the first media is prepared. Needs the plugin `weir` in
// GStreamer's plugin path. Returns FALSE and an error if fanoutsink is not there; then all is as it
// was.
gboolean weir_use_fanoutsink (GError **error);

G_END_DECLS
