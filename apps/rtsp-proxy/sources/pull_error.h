// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

// Returns GStreamer's error message, with the last line of its debug text, which gives the cause.
// `message` is the one that `error` and `debug` are of. (transfer full)
gchar *pull_error_dup_reason (GstMessage *message, const GError *error, const gchar *debug);
