// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which tracks of running presentations HLS cannot carry, for the API. Call from any thread.

#include <glib.h>

// Sets why tracks of the presentation with this path are left out; NULL: none is.
void hls_left_out_set (const gchar *path, const gchar *why);

// Returns that text (transfer full), or NULL.
gchar *hls_left_out_dup (const gchar *path);
