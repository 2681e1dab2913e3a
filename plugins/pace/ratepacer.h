// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

#define WEIR_TYPE_RATE_PACER (weir_rate_pacer_get_type ())
G_DECLARE_FINAL_TYPE (WeirRatePacer, weir_rate_pacer, WEIR, RATE_PACER, GstElement)

GST_ELEMENT_REGISTER_DECLARE (ratepacer)

G_END_DECLS
