// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The figures of the disks of block stores, for the metrics and for the API.

#include <json-glib/json-glib.h>

#include "mounts/mount.h"

#define DISK_FIGURES_MAX 64 // disks of a mount

typedef struct {
  const gchar *name;   // of the API: "read-bytes"
  const gchar *metric; // "store_disk_read_bytes_total"
  const gchar *type, *help;
  gsize offset; // of the number in a StoreDisk
} DiskFigure;

extern const DiskFigure disk_figures[]; // a row without a name ends it

// Gives up to DISK_FIGURES_MAX disks of a mount, and returns their number: 0 if it has no block
// store, or if nobody has read from it yet.
guint disk_figures_sample (Mount *mount, StoreDisk disks[DISK_FIGURES_MAX]);

guint64 disk_figures_get (const DiskFigure *figure, const StoreDisk *disk);

// Writes the member `disks` of a mount that has any.
void disk_figures_write (JsonBuilder *builder, Mount *mount);
