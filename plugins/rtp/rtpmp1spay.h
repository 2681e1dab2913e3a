// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtp/gstrtpbasepayload.h>

G_BEGIN_DECLS

#define WEIR_TYPE_RTP_MP1S_PAY (weir_rtp_mp1s_pay_get_type ())
G_DECLARE_FINAL_TYPE (WeirRtpMp1sPay, weir_rtp_mp1s_pay, WEIR, RTP_MP1S_PAY, GstRTPBasePayload)

GST_ELEMENT_REGISTER_DECLARE (rtpmp1spay)

G_END_DECLS
