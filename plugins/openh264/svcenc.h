// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/video/gstvideoencoder.h>

G_BEGIN_DECLS

#define WEIR_TYPE_SVC_ENC (weir_svc_enc_get_type ())
G_DECLARE_FINAL_TYPE (WeirSvcEnc, weir_svc_enc, WEIR, SVC_ENC, GstVideoEncoder)

GST_ELEMENT_REGISTER_DECLARE (svcenc)

G_END_DECLS
