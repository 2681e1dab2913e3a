// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include <gst/gst.h>

#include "broadcast/schedulesrc.h"
#include "cache/intervalcache.h"
#include "cache/intervalcachesrc.h"
#include "fanout/connection.h"
#include "fanout/fanoutsink.h"
#include "fanout/srtp.h"
#include "ingest/kernelrelay.h"
#include "ingest/relaysrc.h"
#include "layers/svclayerfilter.h"
#include "pace/ratepacer.h"
#include "rtp/rtpmp1spay.h"
#include "rtp/rtpmpegvpay.h"
#include "rtp/rtprelaypay.h"
#include "rtp/rtprestamp.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  gboolean ok = TRUE;

  // Not elements: programs look these types up by their names.
  g_type_ensure (WEIR_TYPE_CONNECTION);
  weir_srtp_register ();
  ok &= GST_ELEMENT_REGISTER (fanoutsink, plugin);
  ok &= GST_ELEMENT_REGISTER (intervalcache, plugin);
  ok &= GST_ELEMENT_REGISTER (intervalcachesrc, plugin);
  if (WITH_KERNEL)
    ok &= GST_ELEMENT_REGISTER (kernelrelay, plugin);
  ok &= GST_ELEMENT_REGISTER (ratepacer, plugin);
  ok &= GST_ELEMENT_REGISTER (relaysrc, plugin);
  ok &= GST_ELEMENT_REGISTER (rtpmp1spay, plugin);
  ok &= GST_ELEMENT_REGISTER (rtpmpegvpay, plugin);
  ok &= GST_ELEMENT_REGISTER (rtprelaypay, plugin);
  ok &= GST_ELEMENT_REGISTER (rtprestamp, plugin);
  if (WITH_BROADCAST)
    ok &= GST_ELEMENT_REGISTER (schedulesrc, plugin);
  ok &= GST_ELEMENT_REGISTER (svclayerfilter, plugin);
  return ok;
}

#define PACKAGE "weir"
GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, weir, "Serving one stream to many readers",
    plugin_init, PACKAGE_VERSION, "LGPL", "Weir", "Weir, a GStreamer plugin set and media proxy")
