// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which choices of layers make no difference for a stream.

#include <gst/gst.h>

#include "svc/layerset.h"

// Sets `top` to the highest layers that the elements (of GstElement, svclayerfilter) have seen.
// With no element at all, the stream has no track with layers, and `top` is the lowest one. Returns
// FALSE if they have not seen enough. Call from any thread.
gboolean ts_layers_read_top (const GPtrArray *filters, WeirLayerSet *top);

// Reports whether both sets select the same layers of a stream.
gboolean ts_layers_select_same (WeirLayerSet a, WeirLayerSet b, WeirLayerSet top);
