// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Looks at disks that may hang: each on a thread of its own, and for a bounded time. A thread that
// a disk holds stays, at most one for each disk, and ends when the disk answers.
//
// A disk is stuck while it has not answered a look, or other work on it, within that time.

#include "store/blockstore.h"
#include "store/disks.h"

G_BEGIN_DECLS

typedef struct {
  const gchar *path;
  guint16 number;
  WeirDiskState state;
  WeirDiskSpace space;
} WeirDiskLook;

// For tests: for how long a disk is waited for.
extern gint64 weir_disk_patience_us;

// Looks at all disks of the store with this id at once.
void weir_disks_look (const gchar *store, WeirDiskLook *looks, guint n);

// Reports whether the folder is disk `number` of the store, and answers.
gboolean weir_disk_is_there (const gchar *path, const gchar *store, guint16 number);

// Reports whether the disk is stuck. Does not block.
gboolean weir_disk_is_stuck (const gchar *path);

// Work on a disk begins, which the disk may hold, and ends. Begin returns what end frees.
typedef struct _WeirDiskWork WeirDiskWork;
WeirDiskWork *weir_disk_work_begin (const gchar *path);
void weir_disk_work_end (WeirDiskWork *work);

G_END_DECLS
