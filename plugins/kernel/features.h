// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What network devices offer for clones.

#include <gio/gio.h>

G_BEGIN_DECLS

// Reports whether a network device segments UDP messages itself (the feature tx-udp-segmentation of
// ethtool).
gboolean weir_device_segments_udp (const gchar *name);

G_END_DECLS
