// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/mount_config.h"
#include "stores/store.h"

// Makes the store that a mount's upstream is. Returns NULL if it is none. (transfer full)
Store *mount_store_new (const MountConfig *config);
