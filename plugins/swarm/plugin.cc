// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "swarmsrc.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  return GST_ELEMENT_REGISTER (swarmsrc, plugin);
}

#define PACKAGE "weir"
GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, weirswarm,
    "Source of titles in BitTorrent swarms, using libtorrent-rasterbar", plugin_init,
    PACKAGE_VERSION, "LGPL", "Weir", "Weir, a GStreamer plugin set and media proxy")
