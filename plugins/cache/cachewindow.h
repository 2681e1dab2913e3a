// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a cache holds of a stream: buffers, lists of buffers and events by reference, in the order
// in which they came, for readers in any pipeline of the process. One writes, who waits for no
// reader (but for the disk, with a file); each reader has a place of its own (cachereader.h). It
// lives as long as one of them.

#include <gst/gst.h>

#include "core/window/cacheindex.h"
#include "spill.h"

G_BEGIN_DECLS

// The sticky events that are in force at some place. Never changed, so shared by all that came with
// them.
typedef struct {
  gint refs; // atomic
  guint n;
  GstEvent *events[];
} CacheScene;

CacheScene *cache_scene_ref (CacheScene *scene);
void cache_scene_unref (CacheScene *scene); // NULL is fine
gboolean cache_scene_has (const CacheScene *scene, const GstEvent *event);

typedef struct {
  guint64 in, bytes_in; // buffers
  guint64 evicted;      // of them: the bounds, or a flush, took them
  guint64 publishers;
  guint64 from_memory, from_file; // bytes that were read
} CacheCounts;

// How much is kept at most; 0: any.
typedef struct {
  guint64 time; // ns
  guint64 bytes;
  guint64 buffers;
} CacheBounds;

// What is kept in memory where there is a file, too.
typedef enum {
  CACHE_POLICY_INTERVAL,
  CACHE_POLICY_PREFIX,
  CACHE_POLICY_LRU,
  CACHE_POLICY_LFU,
} CachePolicy;

typedef struct {
  gint refs; // atomic
  gchar *name;

  // The writer's.
  CacheSpill *spill; // takes what exceeds the bound of bytes in memory, or NULL

  // Under the lock, all below. Not held across a push, a message, or the end of a buffer.
  GMutex lock;
  GCond changed;
  WeirCacheIndex index;
  CacheScene *scene; // as of the newest entry
  CachePolicy policy;
  guint64 max_bytes; // in memory, but for what is read from the file
  gint64 in_memory;  // the first entry that isn't in the file
  guint64 bytes_in_memory;
  gint64 claimed;             // what comes from who writes begins here
  gint64 flushed;             // who is before this position goes on there, and has missed nothing
  GstPad *writer;             // where it comes in, a reference; NULL: nobody writes
  gboolean discont;           // the next data does not go on from the last
  guint n_readers, n_waiting; // the latter for `changed`
  CacheCounts counts;
} CacheWindow;

// The window of a channel, which is made by whoever asks first; without a name, one of its own.
CacheWindow *cache_window_get (const gchar *name);
CacheWindow *cache_window_ref (CacheWindow *window);
void cache_window_unref (CacheWindow *window);

// Of the one who writes what comes in at `pad`. FALSE if another does. Takes the file, if there is
// one.
gboolean cache_window_claim (CacheWindow *window, GstPad *pad, const CacheBounds *bounds,
    CachePolicy policy, CacheSpill *spill);
void cache_window_release (CacheWindow *window);
void cache_window_set_bounds (CacheWindow *window, const CacheBounds *bounds);
void cache_window_flush (CacheWindow *window);

// Takes the event to where the stream comes from. FALSE if nobody writes, or it is refused there.
gboolean cache_window_send_upstream (CacheWindow *window, GstEvent *event);

// The position of what is pushed next.
gint64 cache_window_next (CacheWindow *window);

// Takes the object of the entry: a buffer, a list, or an event. Returns its position, or -1 if
// there is no memory.
gint64 cache_window_push (CacheWindow *window, WeirCacheEntry *entry);
// References to what an entry holds, and what it holds as an object: takes the reference.
void cache_entry_ref (const WeirCacheEntry *entry);
void cache_entry_unref (const WeirCacheEntry *entry);
GstMiniObject *cache_entry_load (const WeirCacheEntry *entry);

void cache_window_mark_join (CacheWindow *window, gint64 position);

// What it holds, for statistics: see intervalcache. With the lock.
void cache_window_add_stats (CacheWindow *window, GstStructure *stats);

G_END_DECLS
