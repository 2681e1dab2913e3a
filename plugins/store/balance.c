// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/balancing.h"
#include "store/copies.h"
#include "store/files.h"
#include "store/leftovers.h"
#include "store/space.h"
#include "store/storedisks.h"
#include "store/upkeep_private.h"

#include <errno.h>
#include <unistd.h>

#define MOVES_MAX 64 // between two writes of an index

typedef struct {
  guint64 used;     // bytes of copies
  guint64 surplus;  // bytes more than its share, at the beginning
  guint64 used_was; // at the beginning
} Fill;

typedef struct {
  Upkeep *up;
  WeirPlacementPolicy policy;
  WeirPlacementDisk *disks; // of which those that are being removed are not usable
  Fill *fills;              // of the disks
  gboolean *removing;
  guint n;
  gboolean last; // the pass that moves whatever is too much, and does not draw
  GRand *random;
  WeirStoredTitle *title; // at work
  UpkeepMove moves[MOVES_MAX];
  guint n_moves;
} Balance;

static gint
find (const Balance *self, guint16 number)
{
  for (guint i = 0; i < self->n; i++) {
    if (self->disks[i].number == number)
      return (gint) i;
  }
  return -1;
}

static guint64
bytes_of (const WeirIndexBlock *block)
{
  return (guint64) block->length + block->table_length;
}

/* Where blocks lie */

static void
count_title (Balance *self, const WeirIndex *index)
{
  for (guint32 i = 0; i < index->n_blocks; i++) {
    for (guint j = 0; j < index->blocks[i].n_copies; j++) {
      gint at = find (self, index->blocks[i].disks[j]);

      if (at >= 0)
        self->fills[at].used += bytes_of (&index->blocks[i]);
    }
  }
}

// Counts what lies on the disks, and computes what is too much.
static void
count_all (Balance *self, const GPtrArray *names)
{
  guint64 sum = 0, share;
  guint n_usable = 0;

  for (guint i = 0; i < self->n; i++)
    self->fills[i].used = 0;
  for (guint i = 0; i < names->len && !g_cancellable_is_cancelled (self->up->cancellable); i++) {
    WeirStoredTitle *title = weir_block_store_open_title (self->up->store, names->pdata[i], NULL);

    if (title) {
      count_title (self, &title->index);
      weir_stored_title_unref (title);
    }
  }
  for (guint i = 0; i < self->n; i++) {
    gboolean counts = self->disks[i].usable || self->removing[i];

    n_usable += self->disks[i].usable;
    sum += counts ? self->fills[i].used : 0;
  }
  share = n_usable ? sum / n_usable : 0;
  self->up->total = self->up->done;
  for (guint i = 0; i < self->n; i++) {
    Fill *fill = &self->fills[i];

    fill->used_was = fill->used;
    fill->surplus = self->removing[i] ? fill->used : fill->used - MIN (fill->used, share);
    if (self->removing[i] || self->disks[i].usable)
      self->up->total += fill->surplus;
  }
}

/* Where a copy is to be */

// Returns the emptiest usable disk with room, other than `but`, or -1.
static gint
emptiest (const Balance *self, guint64 bytes, guint16 but)
{
  gint best = -1;

  for (guint i = 0; i < self->n; i++) {
    const WeirPlacementDisk *disk = &self->disks[i];

    if (disk->usable && disk->number != but && disk->free_bytes >= bytes
        && (best < 0 || self->fills[i].used < self->fills[best].used))
      best = (gint) i;
  }
  return best;
}

// Returns the disk for a RAID0 block: the next in turn of those that are usable.
static gint
in_turn (const Balance *self, guint32 number)
{
  guint n = 0;

  for (guint i = 0; i < self->n; i++)
    n += self->disks[i].usable;
  for (guint i = 0, at = n ? number % n : 0; i < self->n; i++) {
    if (self->disks[i].usable && at-- == 0)
      return (gint) i;
  }
  return -1;
}

// Returns the disk for a copy that is at `from`, whose other copy is on disk `other`; -1 to leave
// it.
static gint
choose (Balance *self, guint32 number, guint64 bytes, gint from, guint16 other)
{
  const Fill *fill = &self->fills[from];
  gint to;

  if (!self->disks[from].usable && !self->removing[from])
    return -1; // missing: repair writes its copies anew
  to = emptiest (self, bytes, other);
  if (self->removing[from] || to < 0)
    return to;
  if (self->policy == WEIR_PLACEMENT_RAID0)
    to = in_turn (self, number);
  else if (fill->used < self->fills[to].used + 2 * bytes)
    to = -1;
  else if (!self->last
           && g_rand_double (self->random) * (gdouble) fill->used_was >= (gdouble) fill->surplus)
    to = -1;
  return to == from ? -1 : to;
}

/* Moving */

static gboolean
commit (Balance *self, GError **error)
{
  GError *problem = NULL;

  if (self->n_moves > 0)
    self->up->result.moved += upkeep_commit (self->title, self->moves, self->n_moves, &problem);
  self->n_moves = 0;
  if (problem)
    g_propagate_error (error, problem);
  return problem == NULL;
}

// Returns the bytes of a block (transfer full) from the disk `from` or from the other copy. A disk
// that the reader avoids is read last.
static guint8 *
read_block (Balance *self, guint32 number, guint16 from, GError **error)
{
  const WeirIndexBlock *block = &self->title->index.blocks[number];
  const gboolean avoided = store_reader_avoids (self->up->store, from);
  g_autoptr (GError) problem = NULL;
  guint8 *bytes = NULL;
  gchar id[33];

  store_print_id (self->title->index.id, id);
  if (!avoided)
    bytes = copies_read (self->up->store, id, number, block, from, NULL);
  if (!bytes)
    bytes = upkeep_read (self->title, number, from, &problem);
  if (!bytes && avoided)
    bytes = copies_read (self->up->store, id, number, block, from, NULL);
  if (!bytes)
    g_propagate_error (error, g_steal_pointer (&problem));
  return bytes;
}

// Copies a block from one disk to another, of those with these places. A block that cannot be read
// or written is reported, and stays.
static gboolean
move_copy (Balance *self, guint32 number, gint from, gint to, GError **error)
{
  const WeirIndexBlock *block = &self->title->index.blocks[number];
  UpkeepMove move = { number, self->disks[from].number, self->disks[to].number };
  guint64 length = bytes_of (block);
  g_autoptr (GError) problem = NULL;
  g_autofree guint8 *bytes = NULL;
  gchar id[33];

  if (!upkeep_give_way (self->up, move.from, move.to, error))
    return FALSE;
  store_print_id (self->title->index.id, id);
  bytes = read_block (self, number, move.from, &problem);
  if (!bytes
      || !copies_write (self->up->store, id, number, move.to, bytes, length, TRUE, &problem)) {
    upkeep_report (self->up, self->title->index.name, problem->message);
    return TRUE;
  }
  self->disks[to].free_bytes -= MIN (self->disks[to].free_bytes, length);
  self->fills[from].used -= MIN (self->fills[from].used, length);
  self->fills[to].used += length;
  self->up->done += length;
  self->up->total = MAX (self->up->total, self->up->done);
  self->moves[self->n_moves++] = move;
  if (self->up->background)
    store_reader_count_move (self->up->store, move.from, move.to);
  upkeep_report (self->up, self->title->index.name, NULL);
  if (self->n_moves == MOVES_MAX && !commit (self, error))
    return FALSE;
  return upkeep_pace (self->up, length, error);
}

static gboolean
balance_blocks (Balance *self, GError **error)
{
  const WeirIndex *index = &self->title->index;

  for (guint32 i = 0; i < index->n_blocks; i++) {
    const WeirIndexBlock *block = &index->blocks[i];
    gint other = -1;

    for (guint j = 0; j < block->n_copies; j++) {
      gint from = find (self, block->disks[j]), to;
      // The first copy may just have been moved.
      guint16 but = block->n_copies < 2 ? G_MAXUINT16
                    : j == 0            ? block->disks[1]
                    : other >= 0        ? self->disks[other].number
                                        : block->disks[0];

      to = from < 0 ? -1 : choose (self, i, bytes_of (block), from, but);
      if (to >= 0 && !move_copy (self, i, from, to, error))
        return FALSE;
      other = to;
    }
  }
  return TRUE;
}

/* Titles that lie on one disk or mirror pair as a whole */

static gint
mirror_of (const Balance *self, gint at)
{
  return find (self, self->disks[at].number ^ 1);
}

// Returns the emptiest disk, or first disk of a pair, that has room for a title, or -1.
static gint
emptiest_home (const Balance *self, guint64 bytes)
{
  gboolean pairs = self->policy == WEIR_PLACEMENT_RAID1;
  gint best = -1;

  for (guint i = 0; i < self->n; i++) {
    const WeirPlacementDisk *disk = &self->disks[i];
    gint mirror = pairs ? mirror_of (self, (gint) i) : (gint) i;

    if (!disk->usable || disk->free_bytes < bytes || mirror < 0 || !self->disks[mirror].usable
        || self->disks[mirror].free_bytes < bytes || (pairs && disk->number % 2 != 0))
      continue;
    if (best < 0 || self->fills[i].used < self->fills[best].used)
      best = (gint) i;
  }
  return best;
}

// Moves the copies of the title to the disk at `home` and its mirror.
static gboolean
move_home (Balance *self, gint home, GError **error)
{
  const WeirIndex *index = &self->title->index;
  gint homes[] = { home, self->policy == WEIR_PLACEMENT_RAID1 ? mirror_of (self, home) : home };

  for (guint32 i = 0; i < index->n_blocks; i++) {
    const WeirIndexBlock *block = &index->blocks[i];

    for (guint j = 0; j < block->n_copies; j++) {
      gint from = find (self, block->disks[j]);
      gint other = block->n_copies > 1 ? find (self, block->disks[1 - j]) : -1;
      gint to = homes[j];

      if (from == homes[0] || from == homes[1])
        continue;
      if (to == other)
        to = homes[1 - j];
      if (from >= 0 && !move_copy (self, i, from, to, error))
        return FALSE;
    }
  }
  return TRUE;
}

static gboolean
balance_title (Balance *self, GError **error)
{
  const WeirIndex *index = &self->title->index;
  guint64 bytes = 0;
  gboolean must = FALSE;
  gint from = find (self, index->blocks[0].disks[0]), home;

  for (guint32 i = 0; i < index->n_blocks; i++) {
    bytes += bytes_of (&index->blocks[i]);
    for (guint j = 0; j < index->blocks[i].n_copies; j++) {
      gint at = find (self, index->blocks[i].disks[j]);

      must = must || (at >= 0 && self->removing[at]);
    }
  }
  home = emptiest_home (self, bytes);
  if (from < 0 || home < 0
      || (!must
          && (!self->disks[from].usable
              || self->fills[from].used < self->fills[home].used + 2 * bytes)))
    return TRUE;
  return move_home (self, home, error);
}

/* All titles */

static gboolean
balance_all (Balance *self, const GPtrArray *names, GError **error)
{
  gboolean whole = self->policy == WEIR_PLACEMENT_NAIVE || self->policy == WEIR_PLACEMENT_RAID1,
           ok = TRUE;

  for (guint i = 0; ok && i < names->len; i++) {
    if (g_cancellable_set_error_if_cancelled (self->up->cancellable, error))
      return FALSE;
    self->title = weir_block_store_open_title (self->up->store, names->pdata[i], NULL);
    if (!self->title)
      continue;
    self->up->result.titles += self->last;
    ok = whole ? balance_title (self, error) : balance_blocks (self, error);
    // What was copied is not lost when the work is cancelled.
    ok = commit (self, ok ? error : NULL) && ok;
    weir_stored_title_unref (self->title);
  }
  return ok;
}

static void
get_disks (Balance *self)
{
  WeirStoreDisk *disks = g_new (WeirStoreDisk, WEIR_STORE_DISKS_MAX);
  guint n = weir_block_store_get_disks (self->up->store, disks, WEIR_STORE_DISKS_MAX);

  self->disks = g_new0 (WeirPlacementDisk, WEIR_STORE_DISKS_MAX);
  self->fills = g_new0 (Fill, WEIR_STORE_DISKS_MAX);
  self->removing = g_new0 (gboolean, WEIR_STORE_DISKS_MAX);
  self->n = space_get (self->up->store, self->disks);
  for (guint i = 0; i < n; i++) {
    gint at = find (self, disks[i].number);

    if (at >= 0)
      self->removing[at] = disks[i].removing;
  }
  g_free (disks);
}

// Reports whether all disks could be used that are to be.
static gboolean
can_use_all (const Balance *self)
{
  for (guint i = 0; i < self->n; i++) {
    if (!self->disks[i].usable && !self->removing[i])
      return FALSE;
  }
  return TRUE;
}

// Stores the stamp of store.yaml, after a change that has made the balance due.
static gboolean
get_stamp (WeirBlockStore *store, gint64 stamp[3], GError **error)
{
  g_autofree gchar *path = g_build_filename (store->path, WEIR_STORE_FILE, NULL);
  int lock = store_lock (store, error);

  if (lock < 0)
    return FALSE;
  store_get_stamp (path, stamp);
  close (lock);
  return TRUE;
}

gboolean
balancing_run (Upkeep *up, GError **error)
{
  Balance balance = { .up = up, .policy = weir_block_store_get_policy (up->store) };
  GPtrArray *names;
  gboolean ok = TRUE;
  gint64 stamp[3];

  if (!get_stamp (up->store, stamp, error) || !(names = upkeep_list (up, NULL, error)))
    return FALSE;
  up->due_us = g_get_monotonic_time ();
  balance.random = g_rand_new ();
  get_disks (&balance);
  // Titles that were added together begin on the same disks, so blocks are drawn in a first pass.
  for (guint pass = 0; ok && pass < 2; pass++) {
    count_all (&balance, names);
    balance.last = pass == 1;
    ok = balance_all (&balance, names, error);
  }
  ok = ok && storedisks_drop (up, can_use_all (&balance) ? stamp : NULL, error);
  g_rand_free (balance.random);
  g_free (balance.removing);
  g_free (balance.fills);
  g_free (balance.disks);
  g_ptr_array_unref (names);
  return ok;
}

gboolean
weir_block_store_balance (WeirBlockStore *self, guint64 rate, WeirUpkeepFunc progress,
    gpointer data, GCancellable *cancellable, WeirUpkeepResult *result, GError **error)
{
  Upkeep up = { self, progress, data, cancellable, .rate = rate };
  int turn = balancing_begin (self, FALSE, cancellable, error);
  gboolean ok = turn >= 0 && balancing_run (&up, error);

  if (turn >= 0)
    close (turn);
  if (result)
    *result = up.result;
  return ok;
}
