// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The keys `tls-ca` and `tls-fingerprint` of a mount.

#include "config/mount_values.h"
#include "text/schema.h"

extern const SchemaValue mount_tls_ca_value, mount_tls_fingerprint_value;
