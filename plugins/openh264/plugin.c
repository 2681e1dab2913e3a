// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include <gst/gst.h>

#include "svcdec.h"
#include "svcenc.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  gboolean ok = TRUE;

  ok &= GST_ELEMENT_REGISTER (svcenc, plugin);
  ok &= GST_ELEMENT_REGISTER (svcdec, plugin);
  return ok;
}

#define PACKAGE "weir"
GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, weiropenh264,
    "Scalable H.264 encoder and decoder, using OpenH264", plugin_init, PACKAGE_VERSION, "LGPL",
    "Weir", "Weir, a GStreamer plugin set and media proxy")
