// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The window of an intervalcache: references to recent buffers, buffer lists and events, in order
// of arrival, for readers in any pipeline of the process. One writer fills the window. It never
// waits for a reader; with a file, it may wait for the disk. Each reader has its own position
// (cachereader.h). Writer and readers each own a reference to the window.

#include <gst/gst.h>

#include "core/window/cacheindex.h"
#include "spill.h"

G_BEGIN_DECLS

// The sticky events that apply to an entry. Immutable and shared by all entries to which they
// apply.
typedef struct {
  gint refs; // atomic
  guint n;
  GstEvent *events[];
} CacheScene;

CacheScene *cache_scene_ref (CacheScene *scene);
void cache_scene_unref (CacheScene *scene); // `scene` may be NULL
gboolean cache_scene_has (const CacheScene *scene, const GstEvent *event);

typedef struct {
  guint64 in, bytes_in;           // buffers
  guint64 evicted;                // buffers removed by the bounds or by a flush
  guint64 publishers;             // writers so far
  guint64 from_memory, from_file; // bytes read
} CacheCounts;

// Upper bounds of the window; 0 = unbounded.
typedef struct {
  guint64 time; // ns
  guint64 bytes;
  guint64 buffers;
} CacheBounds;

// The data that stays in memory if there is a file.
typedef enum {
  CACHE_POLICY_INTERVAL,
  CACHE_POLICY_PREFIX,
  CACHE_POLICY_LRU,
  CACHE_POLICY_LFU,
} CachePolicy;

typedef struct {
  gint refs; // atomic
  gchar *name;

  // Writer only.
  CacheSpill *spill; // stores the bytes above max_bytes; NULL = no file

  // Under the lock, all below. Not held across a push, a message, or the free of a buffer.
  GMutex lock;
  GCond changed;
  WeirCacheIndex index;
  CacheScene *scene; // sticky events after the newest entry
  CachePolicy policy;
  guint64 max_bytes; // in memory, without the bytes read from the file
  gint64 in_memory;  // position of the first entry that is not in the file
  guint64 bytes_in_memory;
  gint64 claimed; // position of the current writer's first entry
  gint64 flushed; // position after the last flush; readers before it continue here without a miss
  guint64 before_flushed; // buffers and events before that position
  GstPad *writer;         // sink pad of the writer, a reference; NULL = no writer
  gboolean discont;       // the next buffer does not continue the stream
  guint n_readers;        // open readers
  guint n_waiting;        // readers that wait for `changed`
  CacheCounts counts;
} CacheWindow;

// Returns the window of the channel `name`; creates it if needed. With NULL, creates a window
// without a name. The caller owns the reference.
CacheWindow *cache_window_get (const gchar *name);
CacheWindow *cache_window_ref (CacheWindow *window);
void cache_window_unref (CacheWindow *window);

// Makes the element with the sink pad `pad` the writer of the window. Returns FALSE if there is a
// writer already. Takes ownership of `spill`, which may be NULL.
gboolean cache_window_claim (CacheWindow *window, GstPad *pad, const CacheBounds *bounds,
    CachePolicy policy, CacheSpill *spill);
void cache_window_release (CacheWindow *window);
void cache_window_set_bounds (CacheWindow *window, const CacheBounds *bounds);
void cache_window_flush (CacheWindow *window);

// Sends the event upstream from the writer's sink pad. Takes ownership of `event`. Returns FALSE if
// there is no writer, or no element handles the event.
gboolean cache_window_send_upstream (CacheWindow *window, GstEvent *event);

// Returns the position of the next entry.
gint64 cache_window_next (CacheWindow *window);

// Appends an entry. Takes ownership of its object: a buffer, a buffer list or an event. Returns its
// position, or -1 if memory is short.
gint64 cache_window_push (CacheWindow *window, WeirCacheEntry *entry);

// Take and drop a reference to the data of an entry.
void cache_entry_ref (const WeirCacheEntry *entry);
void cache_entry_unref (const WeirCacheEntry *entry);

// Returns the object of an entry; reads it from the file if needed. Takes over the reference.
GstMiniObject *cache_entry_load (const WeirCacheEntry *entry);

void cache_window_mark_join (CacheWindow *window, gint64 position);

// Adds the fields of the window to the statistics, see intervalcache. Call with the lock.
void cache_window_add_stats (CacheWindow *window, GstStructure *stats);

G_END_DECLS
