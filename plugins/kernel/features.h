// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the system offers for clones, and what clones would go round.

#include <gio/gio.h>

G_BEGIN_DECLS

// Reports whether a network device segments UDP messages itself (the feature tx-udp-segmentation of
// ethtool).
gboolean weir_device_segments_udp (const gchar *name);

// Returns the rules that apply to packets of this machine but not to clones, such as "a netfilter
// rule in OUTPUT"; NULL if there are none, or if the process may not read them. The caller owns the
// result.
gchar *weir_find_output_rules (void);

G_END_DECLS
