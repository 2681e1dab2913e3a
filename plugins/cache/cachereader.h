// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One reader of a window: a place in it, and the source pad whose task pushes what is there.

#include "cachewindow.h"

G_BEGIN_DECLS

typedef enum {
  CACHE_START_LIVE,
  CACHE_START_JOIN_POINT,
  CACHE_START_OLDEST,
  CACHE_START_POSITION,
} CacheStart;

#define CACHE_TYPE_START (cache_start_get_type ())
GType cache_start_get_type (void);

typedef struct {
  CacheStart start;
  guint64 position; // ns, for CACHE_START_POSITION
  guint64 delay;    // ns
} CacheReaderSettings;

typedef struct {
  guint64 out, bytes_out; // buffers
  guint64 skipped;        // entries between two places, because the window had moved on
  guint64 misses;         // how often
} CacheReaderCounts;

typedef struct {
  gboolean missed;
  gint64 from, to; // ns
  gint64 n;        // entries
} CacheMiss;

typedef struct {
  GstElement *element;
  GstPad *pad;
  gboolean at_cache;   // goes by the clock of the cache's pipeline
  CacheWindow *window; // a reference, from open to close; both locks to write it

  CacheReaderSettings settings; // the pad's object lock

  // The pad's streaming thread's.
  CacheScene *sent; // the events that are in force downstream

  // The window's lock, all below.
  gboolean active;    // the pad is
  gboolean flushing;  // the task is to end
  gboolean paused;    // it keeps its place
  gboolean ended;     // from outside: nothing but EOS is to come
  gboolean unlinked;  // waits for a link, at the pad or further down
  guint n_links;      // how often there was one
  gboolean placed;    // there is a place
  gboolean find_join; // goes on at a join point
  gboolean discont;   // what comes next doesn't go on from what came before
  gboolean sought;    // what comes next is shown now, by the pad's running time
  gint64 cursor;
  gint64 looked_from; // where it began to look for a join point
  gint64 next_time;   // of what is expected next
  gint64 delay_limit; // the window holds no more; -1 if it isn't known to be short
  guint64 home;       // the piece of the file that it reads
  gboolean home_held; // in memory as well
  CacheMiss miss;     // to be told with what comes next
  GstClockID wait_id;
  CacheReaderCounts counts;
} CacheReader;

// `at_cache`: it is a pad of the cache, so what follows goes by the clock of the cache's pipeline.
void cache_reader_init (CacheReader *reader, GstElement *element, GstPad *pad, gboolean at_cache);

// With the window it reads from, and without. The pad isn't active.
void cache_reader_open (CacheReader *reader, CacheWindow *window);
void cache_reader_close (CacheReader *reader);

// For the pad's activatemode function, in push mode. It takes its place once it is active, isn't
// paused and the pad is linked.
gboolean cache_reader_activate (CacheReader *reader, gboolean active);

// Makes the task of an active pad wait for nothing, so that it can be paused; and run again.
void cache_reader_interrupt (CacheReader *reader);
void cache_reader_run (CacheReader *reader);

void cache_reader_pause (CacheReader *reader, gboolean paused);
void cache_reader_end (CacheReader *reader);
void cache_reader_wake (CacheReader *reader); // the settings have changed

// Between these two: downstream was flushed.
void cache_reader_flushed (CacheReader *reader);

// Takes a flush event downstream. After the one that stops it, the reader is to be run again.
gboolean cache_reader_flush (CacheReader *reader, GstEvent *event);

// FALSE if the seek is none within the window.
gboolean cache_reader_seek (CacheReader *reader, GstEvent *event);

// Something was linked further down: a reader that waits for that has a new place.
void cache_reader_linked (CacheReader *reader);

// Asks for a key picture where the stream of the channel comes from. FALSE if it isn't that event,
// or nobody makes one.
gboolean cache_reader_ask_for_key (CacheReader *reader, const GstEvent *event);

// Position and seeking. FALSE for any other.
gboolean cache_reader_query (CacheReader *reader, GstQuery *query);

// `start`, `position`, `delay` and `stats`, of which the first has this id.
void cache_reader_install_properties (GObjectClass *klass, guint first_id);
gboolean cache_reader_set_property (CacheReader *reader, guint index, const GValue *value);
gboolean cache_reader_get_property (CacheReader *reader, guint index, GValue *value);

G_END_DECLS
