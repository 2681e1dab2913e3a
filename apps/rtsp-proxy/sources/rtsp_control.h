// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The URLs of an RTSP session and its tracks, from the a=control lines of an SDP, as servers mean
// them.

#include <glib.h>

// Returns the URL that `control` stands for, where `base` is the URL of the session. NULL, "" and
// "*" stand for the session itself. An absolute path replaces the base's path if it begins with
// that path; everything else is appended, also behind a query, with one '/' between. (transfer
// full)
gchar *rtsp_control_join (const gchar *base, const gchar *control);

// Reports whether a URL can be the URI of a request: rtsp: or rtsps:, with a valid host and port,
// printable, and not too long.
gboolean rtsp_control_is_sound (const gchar *url);
