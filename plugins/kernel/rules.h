// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The rules of the system that apply to packets of this machine, but not to clones.

#include <gio/gio.h>

G_BEGIN_DECLS

// Returns what was read last, such as "a rule of iptables in OUTPUT or POSTROUTING"; NULL if there
// are none. Call it from any thread.
const gchar *weir_rules_get (void);

// Reads the rules. Returns whether others are there than before, and logs that if it is not the
// first time. Needs the capability CAP_NET_ADMIN: without it, no rules are seen. Call it from one
// thread at a time.
gboolean weir_rules_read (void);

// Opens a socket that becomes readable when rules of nftables change, and reads all that it has
// received. Changes of the others cannot be watched. weir_rules_watch() returns -1 if it fails.
int weir_rules_watch (void);
void weir_rules_drain (int fd);

G_END_DECLS
