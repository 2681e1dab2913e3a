// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/video/gstvideodecoder.h>

G_BEGIN_DECLS

#define WEIR_TYPE_SVC_DEC (weir_svc_dec_get_type ())
G_DECLARE_FINAL_TYPE (WeirSvcDec, weir_svc_dec, WEIR, SVC_DEC, GstVideoDecoder)

GST_ELEMENT_REGISTER_DECLARE (svcdec)

G_END_DECLS
