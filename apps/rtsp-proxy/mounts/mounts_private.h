// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Shared by the files of the table of mounts: mounts.c, and instances.c (mounts that paths with
// variables make).

#include "mounts/mounts.h"

struct _Mounts {
  const MountContext *context;
  GMutex making; // held while an instance is made or ends; taken before `lock`
  GMutex lock;
  GHashTable *mounts;  // path -> Mount; changed with the lock held: instances by any thread, others
                       // by the main thread
  GPtrArray *patterns; // of MountConfig, the most exact first; replaced with the lock held
};
