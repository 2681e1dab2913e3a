// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

#define WEIR_TYPE_RTP_RESTAMP (weir_rtp_restamp_get_type ())
G_DECLARE_FINAL_TYPE (WeirRtpRestamp, weir_rtp_restamp, WEIR, RTP_RESTAMP, GstElement)

GST_ELEMENT_REGISTER_DECLARE (rtprestamp)

G_END_DECLS
