// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The plain files of a folder and of the folders in it, as a store.

#include "stores/store.h"

// The folder need not be there yet. NULL of NULL.
Store *folder_new (const gchar *path);
