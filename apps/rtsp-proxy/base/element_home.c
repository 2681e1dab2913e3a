// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/element_home.h"

#include "base/features.h"

#define ALL(package) "on Debian install " package
#define MOST(package) "on Debian try " package // has most elements of the pattern
#define OWN "it belongs to Weir: add the folder of Weir's plugins to GST_PLUGIN_PATH"
#define OWN_SWARM                                                                                  \
  "it belongs to Weir: install the package weir-swarm, or add the folder of Weir's plugins to "    \
  "GST_PLUGIN_PATH"

#define BASE "gstreamer1.0-plugins-base"
#define GOOD "gstreamer1.0-plugins-good"
#define BAD "gstreamer1.0-plugins-bad"
#define PANGO "gstreamer1.0-x"
#define UGLY "gstreamer1.0-plugins-ugly"
#define LIBAV "gstreamer1.0-libav"

// The first pattern that matches counts. Patterns have * and ?.
static const struct {
  const gchar *pattern;
  const gchar *advice;
  Feature feature; // which has the element
} homes[] = {
  { "svcenc", OWN, FEATURE_OPENH264 },
  { "svcdec", OWN, FEATURE_OPENH264 },
  { "rtpmp1spay", OWN },
  { "rtpmpegvpay", OWN },
  { "rtprestamp", OWN },
  { "intervalcache*", OWN },
  { "svclayerfilter", OWN },
  { "ratepacer", OWN },
  { "schedulesrc", OWN, FEATURE_BROADCAST },
  { "swarmsrc", OWN_SWARM, FEATURE_SWARM },
  { "blockstore*", OWN, FEATURE_STORE },
  { "kernelrelay", OWN, FEATURE_KERNEL },
  { "av1*", ALL (BAD) },
  { "av*_*", ALL (LIBAV) },
  { "x264enc", ALL (UGLY) },
  { "appsink", ALL (BASE) },
  { "audiomixer", ALL (BASE) },
  { "clockoverlay", ALL (PANGO) },
  { "compositor", ALL (BASE) },
  { "gdkpixbufoverlay", ALL (GOOD) },
  { "textoverlay", ALL (PANGO) },
  { "timeoverlay", ALL (PANGO) },
  { "audioconvert", ALL (BASE) },
  { "audiorate", ALL (BASE) },
  { "audioresample", ALL (BASE) },
  { "audiotestsrc", ALL (BASE) },
  { "decodebin*", ALL (BASE) },
  { "opusenc", ALL (BASE) },
  { "opusdec", ALL (BASE) },
  { "parsebin", ALL (BASE) },
  { "uridecodebin*", ALL (BASE) },
  { "aacparse", ALL (GOOD) },
  { "alaw*", ALL (GOOD) },
  { "auto*", MOST (GOOD) },
  { "avi*", ALL (GOOD) },
  { "flv*", ALL (GOOD) },
  { "id3*", ALL (GOOD) },
  { "imagefreeze", ALL (GOOD) },
  { "jpeg*", MOST (GOOD) },
  { "lame*", ALL (GOOD) },
  { "matroska*", ALL (GOOD) },
  { "mpegaudioparse", ALL (GOOD) },
  { "mulaw*", ALL (GOOD) },
  { "pulse*", ALL (GOOD) },
  { "qt*", ALL (GOOD) },
  { "rtp*", MOST (GOOD) },
  { "rtsp*", MOST (GOOD) },
  { "udp*", ALL (GOOD) },
  { "v4l2*", ALL (GOOD) },
  { "videobalance", ALL (GOOD) },
  { "vp?dec", ALL (GOOD) },
  { "vp?enc", ALL (GOOD) },
  { "video*", MOST (BASE) },
  { "fdkaac*", ALL (BAD) },
  { "faad", ALL (BAD) },
  { "voaac*", ALL (BAD) },
  { "mpegtsmux", ALL (BAD) },
  { "tsparse", ALL (BAD) },
  { "srt*", ALL (BAD) },
  { "rtmp2*", ALL (BAD) },
  { "h26?parse", ALL (BAD) },
  { "mpegps*", ALL (BAD) },
  { "mpegts*", ALL (BAD) },
  { "openh264*", ALL (BAD) },
  { "opusparse", ALL (BAD) },
  { "ts*", ALL (BAD) },
  { "hlsdemux*", ALL (BAD) },
  { "souphttpsrc", ALL (GOOD) },
  { "voaac*", ALL (BAD) },
  { "x265enc", ALL (BAD) },
};

const gchar *
element_home_find (const gchar *element)
{
  for (guint i = 0; i < G_N_ELEMENTS (homes); i++) {
    const gchar *lack = feature_get_lack (homes[i].feature);

    if (g_pattern_match_simple (homes[i].pattern, element))
      return lack ? lack : homes[i].advice;
  }
  return NULL;
}
