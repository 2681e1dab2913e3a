// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A title of a swarm as bytes for one reader.

#include "stores/swarm_title.h"

// Returns the title's bytes for one more reader, or NULL and sets an error of the domain
// G_IO_ERROR. (transfer full)
StoreBytes *swarm_bytes_new (SwarmTitle *title, GError **error);
