// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files of the reading side share (reading.h). A store that is read has one reader:
//
//   reading.c     requests and their answers
//   blocks.c      blocks in memory: shared, counted, evicted by frequency
//   extents.c     the memory itself
//   readchoice.c  which copy is read, and when the other one is read, too
//   reader.c      the thread, which gives reads to the disks and passes on what comes back
//   readring.c    reads through io_uring
//   readpool.c    reads with a thread for each disk
//   readaid.c     what blocks: looks for copies that were moved, and repairs
//   readreport.c  what is said about copies and blocks that cannot be read
//
// The thread of the reader does all but the calls of reading.h. It sleeps if nothing is read. One
// lock guards all fields, unless a comment says otherwise; it is not held while a callback runs, a
// message is logged, or a system call is made that can block.
//
// Cost: a read of a block takes a lookup in two hash tables, an entry in a heap, and on a ring
// three entries (open, read, close) and two or three calls of io_uring_enter(). On
// an EPYC core, a request for a small block took about 70 us, and each gigabyte 0.05 s for its hash
// and 0.04 s for O_DIRECT.

#include "disks/diskload.h"
#include "disks/readqueue.h"
#include "store/blockstore_private.h"
#include "store/extents.h"
#include "store/reading.h"
#include "window/policy.h"

G_BEGIN_DECLS

typedef struct _WeirReader WeirBlockReader;
typedef struct _WeirReadRing WeirReadRing;
typedef struct _WeirReadDisk WeirReadDisk;
typedef struct _WeirBlockRead WeirBlockRead;
typedef struct _WeirCopyRead WeirCopyRead;

#define WEIR_READ_MS G_GINT64_CONSTANT (1000000)
#define WEIR_READ_SECOND (1000 * WEIR_READ_MS)

// A block is known by its title's id and its number. `key` is their hash.
typedef struct {
  guint64 key;
  guint8 id[16];
  guint32 number;
} WeirBlockName;

typedef enum {
  WEIR_COPY_GOOD,
  WEIR_COPY_LOST,     // the disk is there, the file is not
  WEIR_COPY_WRONG,    // short, or its hash differs
  WEIR_COPY_NO_DISK,  // the disk is not there
  WEIR_COPY_UNREAD,   // the disk reports an error
  WEIR_COPY_HINDERED, // no memory or descriptors: not the disk's fault
} WeirCopyResult;

// A read of one copy of a block. It waits in its disk's queue, or the disk was given it.
struct _WeirCopyRead {
  WeirReadItem item;   // first
  WeirBlockRead *read; // NULL: nobody waits for it any more
  WeirReadDisk *disk;
  guint copy;           // 0 or 1: which of the block's
  guint64 length, hash; // of the file
  gint64 started_ns;
  WeirRemote *remote; // NULL: the copy is a file
  guint64 offset;     // of the block in a remote title
  guint32 number;     // of that block

  // Of the thread that reads, until it has been read.
  gchar *path, *disk_path;
  WeirExtent *extent;
  gboolean direct; // with O_DIRECT
  int fd, error;   // errno
  gsize got;
  guint stage;
  WeirCopyResult result;
  gchar *why; // of a remote title: the reason for the result, or NULL
  gint64 done_ns;
};

// Why a copy could not be read.
typedef struct {
  gchar *why;       // NULL: it was not tried, or is good
  gboolean missing; // its file, which may have been moved
  gboolean gone;    // its bytes are no more, as far as can be known
  gboolean news;    // it is to be reported
} WeirCopyProblem;

// A block that is being read, for all requests for it.
struct _WeirBlockRead {
  WeirBlockName name;
  WeirIndexBlock block; // places may change: see readaid.c
  gchar *title;
  GQueue requests;                             // of WeirBlockRequest
  WeirCopyRead *copies[WEIR_INDEX_COPIES_MAX]; // in progress
  gboolean failed[WEIR_INDEX_COPIES_MAX];
  WeirCopyProblem problems[WEIR_INDEX_COPIES_MAX];
  gint64 deadline_ns; // the earliest of its requests
  gboolean searched;  // copies were looked for in a new index
  gboolean removed;   // the title is no longer in the store
  WeirRemote *remote; // of the title; NULL: the copies are files
  gboolean uncached;  // the remote title's cache has failed
  guint users;        // readaid.c, or answers in progress: not to be freed
  GError *error;      // for its requests
};

struct _WeirReadDisk {
  guint16 number;
  gchar *path;
  WeirDiskLoad load;
  WeirReadQueue queue;
  GPtrArray *at_work; // of WeirCopyRead
  gboolean buffered;  // the file system refuses O_DIRECT
  guint64 n_reads, n_errors, n_bytes, n_second;
  guint64 n_moved_here, n_moved_away;
  gint64 failing_since_ns; // 0: it is not
  gint64 told_ns;          // last message about a bad copy
  guint n_untold;

  // readpool.c
  guint n_threads;
  GCond job_given;
  GQueue jobs; // of WeirCopyRead
};

struct _WeirBlockRequest {
  WeirBlockReader *reader;
  WeirStoredTitle *title;
  WeirBlockRead *read; // NULL: answered
  gboolean began;      // it began the read; not changed later
  GList link;          // in read->requests
  gint64 deadline_ns;
  WeirBlockFunc done;
  gpointer data;
};

struct _WeirReader {
  gint refs; // atomic: of the store, of the threads, and of each block that is in use
  GMutex lock;
  gchar *store_path;
  gint64 slice_ns;
  gboolean is_remote;

  GThread *thread;                   // made by the first read
  gboolean started, stopping, awake; // awake: will look for work before it sleeps
  int wake_fd;                       // an eventfd
  WeirReadRing *ring;                // NULL: threads read. Constant after the start
  gint64 checked_ns;
  WeirBlockRequest *running; // its callback runs in the reader's thread
  GCond ran;                 // a callback has returned, or the thread has ended

  GHashTable *reads;  // WeirBlockName: WeirBlockRead
  GHashTable *blocks; // key: WeirBlock; those in memory
  WeirPolicy policy;
  guint64 memory; // bound, in bytes
  WeirExtents extents;
  GPtrArray *disks;              // of WeirReadDisk; grows only
  GHashTable *bad;               // key of a copy: until when it is not read
  GPtrArray *given;              // of WeirCopyRead: to be given to the disks
  GQueue finished;               // of WeirCopyRead: read by readpool.c
  GQueue unsearched;             // of WeirBlockRead: readaid.c has found no other copy
  GQueue messages;               // of gchar: to be logged
  GQueue searches;               // of readaid.c
  GQueue repairs, begun_repairs; // of readaid.c
  gint64 next_repair_ns;
  gpointer repair; // of readaid.c: at work; NULL: none, or its disk holds it
  gint64 repair_since_ns;
  guint n_held;   // repairs that disks hold
  gint64 told_ns; // last message about a lost block
  guint n_untold;

  guint64 n_asked, n_hits, n_shared, n_late, n_repaired, n_lost;
};

// ---- reader.c ----

// For tests: stores do not use io_uring. Set before their first read.
extern gboolean weir_block_reader_threads_only;

// Returns the store's reader, which is made if necessary.
WeirBlockReader *weir_block_reader_get (WeirBlockStore *store);
WeirBlockReader *weir_block_reader_ref (WeirBlockReader *self);
void weir_block_reader_unref (WeirBlockReader *self);

// Makes the thread look for work. Lock held.
void weir_block_reader_wake (WeirBlockReader *self);

// Adds a message to be logged by the thread. Lock held.
void weir_block_reader_say (WeirBlockReader *self, const gchar *format, ...) G_GNUC_PRINTF (2, 3);

// Ends a read: answers its requests and frees it. `block` has a reference (transfer full), or is
// NULL: then the read's error is passed. Called by the thread with the lock, which it releases for
// each callback.
void weir_block_reader_answer (WeirBlockReader *self, WeirBlockRead *read, WeirBlock *block);

// Frees a read for which nobody waits unless a disk is at work for it. Lock held.
void weir_block_reader_drop_read (WeirBlockReader *self, WeirBlockRead *read);

gint64 weir_block_reader_now (void);

// ---- blocks.c: lock held ----

void weir_blocks_name (WeirBlockName *name, const WeirIndex *index, guint32 number);

// Returns the block with a new reference, if it is in memory.
WeirBlock *weir_blocks_find (WeirBlockReader *self, const WeirBlockName *name);

// Makes a block of what was read, with one reference. The extent is the block's from now on.
WeirBlock *weir_blocks_add (WeirBlockReader *self, const WeirBlockRead *read, WeirExtent *extent);

// Evicts blocks until the bound is kept. Returns extents to be dropped.
WeirExtent *weir_blocks_evict (WeirBlockReader *self);

// Puts an extent back. Returns extents to be dropped.
WeirExtent *weir_blocks_put_extent (WeirBlockReader *self, WeirExtent *extent);

// ---- readchoice.c: lock held ----

// Returns the reader's disk with that number. `path` is where it is now.
WeirReadDisk *weir_block_reader_get_disk (WeirBlockReader *self, guint16 number, const gchar *path);

// Has a block read that is not: puts the better copy that was not tried into the queue of its disk.
// Returns FALSE if there is none.
gboolean weir_block_reader_start_copy (WeirBlockReader *self, WeirBlockRead *read, gint64 now_ns);

// A copy was taken out of its queue to be read. If it waits at the other disk, too, it is taken out
// there. Returns FALSE if the other disk is to read it; then the copy was freed.
gboolean weir_block_reader_take (WeirBlockReader *self, WeirCopyRead *copy, gint64 now_ns);

// A request needs the block earlier.
void weir_block_reader_hasten (WeirBlockReader *self, WeirBlockRead *read, gint64 deadline_ns);

// Takes the waiting copies of a read out of the queues.
void weir_block_reader_unqueue (WeirBlockReader *self, WeirBlockRead *read);

// A bad copy was repaired.
void weir_block_reader_trust (WeirBlockReader *self, const WeirBlockName *name, guint16 disk);

// A copy was read: learns from its result about the disk and the copy.
void weir_block_reader_judge (WeirBlockReader *self, WeirCopyRead *copy);

// Looks for disks that are late and for reads that are better done by the other disk. Returns a
// list of reads that have waited for too long, to be answered; the caller frees the list.
GList *weir_block_reader_check (WeirBlockReader *self, gint64 now_ns);

void weir_copy_read_free (WeirCopyRead *copy);

// ---- readring.c ----

// Returns NULL if the system refuses io_uring.
WeirReadRing *weir_read_ring_new (int wake_fd);
void weir_read_ring_free (WeirReadRing *self);

// Begins a read. The copy has an extent.
void weir_read_ring_submit (WeirReadRing *self, WeirCopyRead *copy);

// Waits for reads, for `wake_fd`, or for `timeout_ns` (-1: for ever). Adds copies that were read to
// `done`.
void weir_read_ring_wait (WeirReadRing *self, gint64 timeout_ns, GPtrArray *done);

// ---- readpool.c ----

// Gives a copy to a thread of the disk. A disk has as many threads as reads at work. Lock held.
void weir_read_pool_submit (WeirBlockReader *self, WeirCopyRead *copy);

// For tests: called by the disk's thread in place of a read; returns FALSE to read after all.
extern gboolean (*weir_read_pool_test) (WeirCopyRead *copy);

// Judges what was read from a file: checks length and hash, and sets the result. Without the lock.
void weir_copy_read_check (WeirCopyRead *copy);

// ---- readaid.c: lock held ----

// Looks for copies of a block that were moved since the title was opened. Returns FALSE if this was
// done before.
gboolean weir_block_reader_search (WeirBlockReader *self, WeirBlockRead *read);

// Has a copy of a block repaired in the background. `problem` is NULL if its disk has failed for
// long. Returns FALSE if it is not repaired.
gboolean weir_block_reader_repair (
    WeirBlockReader *self, const WeirBlockRead *read, guint16 disk, const WeirCopyProblem *problem);

void weir_block_reader_cancel_repairs (WeirBlockReader *self);

// Begins the next repair if it is due. Returns the time in ns until it is due, or -1.
gint64 weir_block_reader_next_repair (WeirBlockReader *self, gint64 now_ns);

// ---- readreport.c: lock held ----

// Forgets what is wrong with the copies.
void weir_block_read_clear_problems (WeirBlockRead *read);

// The block was read: has its bad copies repaired, which reports them.
void weir_block_reader_report_copies (WeirBlockReader *self, WeirBlockRead *read);

// The block cannot be read: sets the read's error, and counts the block and reports what was found
// wrong, in one line, unless the title was removed.
void weir_block_reader_report_lost (WeirBlockReader *self, WeirBlockRead *read);

// Reports a bad copy. `what` says what is wrong and what was done. A disk has a message in 10 s,
// with the number of those that are left out.
void weir_block_reader_report_copy (WeirBlockReader *self, const gchar *title, guint32 number,
    WeirReadDisk *disk, const gchar *what);

G_END_DECLS
