// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The bytes of a file. They are sent from the page cache, into which a few threads read what is not
// there yet.

#include "stores/bytes.h"

// Makes the bytes of the open file `fd`, which is taken over. Files that are open already are
// shared. May block on a disk. Returns NULL with errno on failure.
StoreBytes *file_bytes_new (int fd);
