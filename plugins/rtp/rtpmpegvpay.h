// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtp/gstrtpbasepayload.h>

G_BEGIN_DECLS

#define WEIR_TYPE_RTP_MPEG_V_PAY (weir_rtp_mpeg_v_pay_get_type ())
G_DECLARE_FINAL_TYPE (WeirRtpMpegVPay, weir_rtp_mpeg_v_pay, WEIR, RTP_MPEG_V_PAY, GstRTPBasePayload)

GST_ELEMENT_REGISTER_DECLARE (rtpmpegvpay)

G_END_DECLS
