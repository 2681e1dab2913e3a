// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The bytes of an open title, for outlets that send them unchanged. They are read region by region:
// a region is about one time slice of the title, or one block of a block store. An outlet asks for
// the next region when it begins to send the current one, so no read is more than one time slice
// ahead, and no sending waits for a disk.

#include <glib.h>
#include <sys/types.h>

typedef struct _StoreBytes StoreBytes;
typedef struct _StoreRegion StoreRegion;

// Runs once, when the region is ready or has failed: in any thread, perhaps before
// store_bytes_ask() has returned. Must not block, and must not free the region.
typedef void (*StoreRegionDone) (gpointer data);

// The functions of a kind of title. A region's struct begins with a StoreRegion, and so on.
typedef struct {
  StoreRegion *(*ask) (
      StoreBytes *self, guint64 at, gint64 deadline_ns, StoreRegionDone done, gpointer data);
  gboolean (*is_ready) (StoreRegion *region, GError **error);
  void (*get) (StoreRegion *region, guint64 at, int *fd, off_t *offset, gsize *length);
  void (*free_region) (StoreRegion *region);
  // NULL: any number of streams is admitted.
  gboolean (*enter) (StoreBytes *self, guint64 at, GError **error);
  void (*leave) (StoreBytes *self);
  void (*free) (StoreBytes *self);
} StoreBytesKind;

struct _StoreBytes {
  gint refs; // atomic
  const StoreBytesKind *kind;
  guint64 size;
  gchar *etag;     // in quotes; another one if the bytes have changed
  gint64 modified; // seconds since the epoch; 0: unknown
  guint64 rate;    // bits a second, on average; 0: unknown
  gint64 slice_ns; // length of a time slice
};

struct _StoreRegion {
  const StoreBytesKind *kind;
  guint64 start, end; // bytes of the title
};

// Initialises the base of an open title with one reference. For kinds of stores only.
void store_bytes_init (StoreBytes *self, const StoreBytesKind *kind);

StoreBytes *store_bytes_ref (StoreBytes *self);
void store_bytes_unref (StoreBytes *self);

// Adds a reference unless the last one is gone. For kinds that share open titles.
gboolean store_bytes_try_ref (StoreBytes *self);

// Counts a stream that begins at byte `at`; one at most for each open title. Returns FALSE and sets
// G_IO_ERROR_NO_SPACE if it is more than the disks or the line can give; the message is for the log
// and for the client. Call store_bytes_leave() at its end.
gboolean store_bytes_enter (StoreBytes *self, guint64 at, GError **error);
void store_bytes_leave (StoreBytes *self);

// Asks for the region with byte `at`, which is needed at `deadline_ns` of weir_now_ns(). `at` is
// less than the size. The caller frees the result, which keeps the title open.
StoreRegion *store_bytes_ask (
    StoreBytes *self, guint64 at, gint64 deadline_ns, StoreRegionDone done, gpointer data);

// Reports whether the region can be sent. Returns FALSE and sets `error` if it cannot be read.
gboolean store_region_is_ready (StoreRegion *self, GError **error);

// Gives the bytes of a ready region from byte `at` of the title on: an open file, an offset in it,
// and their number. They are valid as long as the region.
void store_region_get (StoreRegion *self, guint64 at, int *fd, off_t *offset, gsize *length);

// After this has returned, the callback neither runs nor will run. `self` may be NULL.
void store_region_free (StoreRegion *self);
