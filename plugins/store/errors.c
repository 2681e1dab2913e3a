// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/blockstore.h"

G_DEFINE_QUARK (weir - store - error - quark, weir_store_error)
