// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/base/gstbasesrc.h>

G_BEGIN_DECLS

#define WEIR_TYPE_SWARM_SRC (weir_swarm_src_get_type ())
G_DECLARE_FINAL_TYPE (WeirSwarmSrc, weir_swarm_src, WEIR, SWARM_SRC, GstBaseSrc)
GST_ELEMENT_REGISTER_DECLARE (swarmsrc)

G_END_DECLS
