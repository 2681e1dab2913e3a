// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

#define WEIR_TYPE_KERNEL_RELAY (weir_kernel_relay_get_type ())
G_DECLARE_FINAL_TYPE (WeirKernelRelay, weir_kernel_relay, WEIR, KERNEL_RELAY, GstElement)

GST_ELEMENT_REGISTER_DECLARE (kernelrelay)

G_END_DECLS
