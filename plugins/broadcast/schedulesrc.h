// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

#define WEIR_TYPE_SCHEDULE_SRC (weir_schedule_src_get_type ())
G_DECLARE_FINAL_TYPE (WeirScheduleSrc, weir_schedule_src, WEIR, SCHEDULE_SRC, GstElement)

GST_ELEMENT_REGISTER_DECLARE (schedulesrc)

G_END_DECLS
