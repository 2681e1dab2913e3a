// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/base/gstbasesrc.h>

G_BEGIN_DECLS

#define WEIR_TYPE_BLOCK_STORE_SRC (weir_block_store_src_get_type ())
G_DECLARE_FINAL_TYPE (WeirBlockStoreSrc, weir_block_store_src, WEIR, BLOCK_STORE_SRC, GstBaseSrc)
GST_ELEMENT_REGISTER_DECLARE (blockstoresrc)

G_END_DECLS
