// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

#define WEIR_TYPE_RTP_RELAY_PAY (weir_rtp_relay_pay_get_type ())
G_DECLARE_FINAL_TYPE (WeirRtpRelayPay, weir_rtp_relay_pay, WEIR, RTP_RELAY_PAY, GstElement)

GST_ELEMENT_REGISTER_DECLARE (rtprelaypay)

G_END_DECLS
