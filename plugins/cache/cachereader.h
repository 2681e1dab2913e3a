// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One reader of a window: a position in the window, and the source pad whose task pushes the
// entries from there.

#include "cachewindow.h"
#include "timing.h"

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
  guint64 out, bytes_out; // buffers pushed
  guint64 skipped;        // buffers and events that had left the window before they were read
  guint64 misses;         // how often some were skipped
} CacheReaderCounts;

typedef struct {
  gboolean missed;
  gint64 from, to; // ns
  guint64 n;       // buffers and events
} CacheMiss;

typedef struct {
  GstElement *element;
  GstPad *pad;
  gboolean at_cache;   // the pad belongs to the cache, and so to the pipeline of the cache
  CacheWindow *window; // a reference, from open to close; both locks to write it

  CacheReaderSettings settings; // under the pad's object lock

  gint keeps_times;    // atomic: running times stay those of the cache's pipeline
  gint retimes;        // atomic: the running time must be found anew
  CacheTiming *timing; // from open to close

  // The pad's streaming thread only.
  CacheScene *sent; // the sticky events pushed downstream
  gint64 apart;     // running time of this pipeline less that of the cache's, and the delay, ns
  guint n_timings;  // changes of the timing that have been followed

  // Under the window's lock, all below.
  gboolean active;     // the pad is active
  gboolean flushing;   // the task must end
  gboolean paused;     // the reader keeps its position
  gboolean ended;      // the program sent EOS: push only EOS
  gboolean delayed;    // as `timing` was told
  gboolean announced;  // downstream knows that the first buffer comes later
  gboolean unlinked;   // waits for a link, at the pad or further downstream
  guint n_links;       // number of links so far
  gboolean positioned; // `cursor` is valid
  gboolean find_join;  // continue at a join point
  gboolean discont;    // set DISCONT on the next buffer
  gboolean sought;     // after a seek: show the next buffer at once
  gint64 cursor;       // position of the next entry
  guint64 before;      // buffers and events before it
  gint64 looked_from;  // position from which the search for a join point began
  gint64 next_time;    // time of the next entry, ns
  gint64 delay_limit;  // longest delay that the window allows, ns; -1 if not limited
  guint64 home;        // number of the piece of the file being read; 0 = in memory
  gboolean home_held;  // that piece is also in memory
  CacheMiss miss;      // reported with the next entry
  GstClockID wait_id;
  CacheReaderCounts counts;
} CacheReader;

// `at_cache` is TRUE for a pad of the cache, whose downstream elements share the running time of
// the cache's pipeline.
void cache_reader_init (CacheReader *reader, GstElement *element, GstPad *pad, gboolean at_cache);

// Connects the reader to a window, and disconnects it. Call while the pad is inactive.
void cache_reader_open (CacheReader *reader, CacheWindow *window);
void cache_reader_close (CacheReader *reader);

// The pad's activatemode function, for push mode. The reader takes its position as soon as it is
// active, not paused and linked.
gboolean cache_reader_activate (CacheReader *reader, gboolean active);

// Interrupts the waits of an active pad's task, so that the task can be paused; and runs the task
// again.
void cache_reader_interrupt (CacheReader *reader);
void cache_reader_run (CacheReader *reader);

void cache_reader_pause (CacheReader *reader, gboolean paused);
void cache_reader_end (CacheReader *reader);  // pushes EOS and nothing more
void cache_reader_wake (CacheReader *reader); // applies changed settings

// Resets the reader after downstream was flushed. Call between cache_reader_interrupt() and
// cache_reader_run().
void cache_reader_flushed (CacheReader *reader);

// Pushes a flush event downstream. Takes ownership of `event`. After FLUSH_STOP, call
// cache_reader_run().
gboolean cache_reader_flush (CacheReader *reader, GstEvent *event);

// Moves the reader to the join point at or before the target. For a reader of a channel, a target
// before the window means the oldest join point, and one behind it the live edge. Returns FALSE if
// the window is empty, if the seek is not a simple one in time, or if the target of a pad of the
// cache is outside the window.
gboolean cache_reader_seek (CacheReader *reader, GstEvent *event);

// Tells the reader that an element was linked downstream: a reader that waits for a link takes a
// new position.
void cache_reader_linked (CacheReader *reader);

// Forwards a keyframe request to the upstream of the cache. Returns FALSE for other events, or if
// no element upstream handles the request.
gboolean cache_reader_ask_for_key (CacheReader *reader, const GstEvent *event);

// Answers position and seeking queries. Returns FALSE for other queries.
gboolean cache_reader_query (CacheReader *reader, GstQuery *query);

// Installs `start`, `position`, `delay` and `stats`, with ids from `first_id` on. The index in the
// other functions counts from 0.
void cache_reader_install_properties (GObjectClass *klass, guint first_id);
gboolean cache_reader_set_property (CacheReader *reader, guint index, const GValue *value);
gboolean cache_reader_get_property (CacheReader *reader, guint index, GValue *value);

G_END_DECLS
