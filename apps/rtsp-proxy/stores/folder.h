// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A store whose titles are the regular files of a folder and its subfolders.

#include "stores/store.h"

// Makes a store (transfer full). The folder need not exist yet. Returns NULL if `path` is NULL.
// `is_limited`: an API client has named it (base/file_roots.h).
Store *folder_new (const gchar *path, gboolean is_limited);
