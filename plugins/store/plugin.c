// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include <gst/gst.h>

#include "store/blockstoresink.h"
#include "store/blockstoresrc.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  gboolean ok = TRUE;

  ok &= GST_ELEMENT_REGISTER (blockstoresink, plugin);
  ok &= GST_ELEMENT_REGISTER (blockstoresrc, plugin);
  return ok;
}

#define PACKAGE "weir"
GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, weirstore,
    "Writes and reads titles of a block store on several disks", plugin_init, PACKAGE_VERSION,
    "LGPL", "Weir", "Weir, a GStreamer plugin set and media proxy")
