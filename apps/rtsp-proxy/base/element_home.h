// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// Returns how to install a GStreamer element: "on Debian install gstreamer1.0-libav". Returns NULL
// if that is unknown.
const gchar *element_home_find (const gchar *element);
