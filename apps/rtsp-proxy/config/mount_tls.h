// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The keys `tls-ca` and `tls-fingerprint` of a mount.

#include "text/schema.h"

gchar *mount_tls_check_ca (SchemaText *it);
gchar *mount_tls_check_fingerprint (SchemaText *it);
