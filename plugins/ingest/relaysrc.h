// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/base/gstpushsrc.h>

G_BEGIN_DECLS

#define WEIR_TYPE_RELAY_SRC (weir_relay_src_get_type ())
G_DECLARE_FINAL_TYPE (WeirRelaySrc, weir_relay_src, WEIR, RELAY_SRC, GstPushSrc)

GST_ELEMENT_REGISTER_DECLARE (relaysrc)

G_END_DECLS
