// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/balance_private.h"
#include "store/balancing.h"
#include "store/copies.h"
#include "store/files.h"
#include "store/leftovers.h"
#include "store/space.h"
#include "store/storedisks.h"
#include "store/upkeep_private.h"

#include <errno.h>
#include <unistd.h>

#define PASSES 4

gint
balance_find (const Balance *self, guint16 number)
{
  for (guint i = 0; i < self->n; i++) {
    if (self->disks[i].number == number)
      return (gint) i;
  }
  return -1;
}

guint64
balance_bytes_of (const WeirIndexBlock *block)
{
  return (guint64) block->length + block->table_length;
}

/* Where blocks lie */

static void
count_title (Balance *self, const WeirIndex *index)
{
  for (guint32 i = 0; i < index->n_blocks; i++) {
    for (guint j = 0; j < index->blocks[i].n_copies; j++) {
      gint at = balance_find (self, index->blocks[i].disks[j]);

      if (at >= 0)
        self->fills[at].used += balance_bytes_of (&index->blocks[i]);
    }
  }
}

guint64
balance_surplus (const Balance *self, guint at)
{
  guint64 used = self->fills[at].used;

  if (self->removing[at])
    return used;
  return self->disks[at].usable ? used - MIN (used, self->share) : 0;
}

// Counts what lies on the disks, and computes what each is to have.
static void
count_all (Balance *self, const GPtrArray *names)
{
  guint64 sum = 0;
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
    n_usable += self->disks[i].usable;
    sum += self->disks[i].usable || self->removing[i] ? self->fills[i].used : 0;
  }
  self->share = n_usable ? sum / n_usable : 0;
  self->carry = 0;
  self->up->total = self->up->done;
  for (guint i = 0; i < self->n; i++) {
    self->fills[i].left = self->fills[i].used;
    self->up->total += balance_surplus (self, i);
  }
}

/* Where a copy is to be */

gint
balance_emptiest (const Balance *self, guint64 bytes, guint16 but)
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

gboolean
balance_move (Balance *self, guint32 number, gint from, gint to, GError **error)
{
  const WeirIndexBlock *block = &self->title->index.blocks[number];
  UpkeepMove move = { number, self->disks[from].number, self->disks[to].number };
  guint64 length = balance_bytes_of (block);
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
  copies_add_index (self->up->store, &self->title->index, move.to, NULL); // or repair does
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

void
balance_note_no_room (Balance *self)
{
  self->up->result.no_room++;
}

// Moves the blocks of a RAID0 title to the disks whose turn it is.
static gboolean
balance_turns (Balance *self, GError **error)
{
  const WeirIndex *index = &self->title->index;

  for (guint32 i = 0; i < index->n_blocks; i++) {
    gint from = balance_find (self, index->blocks[i].disks[0]), to = in_turn (self, i);
    guint64 bytes = balance_bytes_of (&index->blocks[i]);

    if (from < 0 || from == to || !(self->disks[from].usable || self->removing[from]))
      continue;
    if (to < 0 || self->disks[to].free_bytes < bytes)
      to = self->removing[from] ? balance_emptiest (self, bytes, G_MAXUINT16) : -1;
    if (to < 0 && self->removing[from])
      balance_note_no_room (self);
    if (to >= 0 && !balance_move (self, i, from, to, error))
      return FALSE;
  }
  return TRUE;
}

/* Titles that lie on one disk or mirror pair as a whole */

static gint
mirror_of (const Balance *self, gint at)
{
  return balance_find (self, self->disks[at].number ^ 1);
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
      gint from = balance_find (self, block->disks[j]);
      gint other = block->n_copies > 1 ? balance_find (self, block->disks[1 - j]) : -1;
      gint to = homes[j];

      if (from == homes[0] || from == homes[1])
        continue;
      if (to == other)
        to = homes[1 - j];
      if (from >= 0 && !balance_move (self, i, from, to, error))
        return FALSE;
    }
  }
  return TRUE;
}

// Returns the place of the disk, or of the first disk of the pair, to which the disk at `at`
// belongs, or -1.
static gint
home_of (const Balance *self, gint at)
{
  return self->policy == WEIR_PLACEMENT_RAID1
             ? balance_find (self, (guint16) (self->disks[at].number & ~1u))
             : at;
}

// Where the title at work lies.
typedef struct {
  guint64 bytes; // of the title, once
  guint n_must;  // copies on disks that are being removed
  gint home;     // that has most of it, or -1
  gboolean scattered;
} Lie;

static Lie
find_lie (const Balance *self)
{
  const WeirIndex *index = &self->title->index;
  g_autofree guint64 *there = g_new0 (guint64, self->n);
  Lie lie = { .home = -1 };
  guint n_homes = 0;

  for (guint32 i = 0; i < index->n_blocks; i++) {
    lie.bytes += balance_bytes_of (&index->blocks[i]);
    for (guint j = 0; j < index->blocks[i].n_copies; j++) {
      gint at = balance_find (self, index->blocks[i].disks[j]),
           home = at < 0 ? -1 : home_of (self, at);

      lie.n_must += at >= 0 && self->removing[at];
      if (home < 0)
        continue;
      n_homes += there[home] == 0;
      there[home] += balance_bytes_of (&index->blocks[i]);
      if (lie.home < 0 || there[home] > there[lie.home])
        lie.home = home;
    }
  }
  lie.scattered = n_homes > 1;
  return lie;
}

// Reports whether both disks of a pair, or the disk, can be used and have room for what they lack
// of the title at work.
static gboolean
can_be_home (const Balance *self, gint home, guint64 bytes)
{
  const WeirIndex *index = &self->title->index;
  gint homes[] = { home, self->policy == WEIR_PLACEMENT_RAID1 ? mirror_of (self, home) : home };

  for (guint k = 0; k < 2; k++) {
    guint64 lacks = bytes;

    if (homes[k] < 0 || !self->disks[homes[k]].usable)
      return FALSE;
    for (guint32 i = 0; i < index->n_blocks; i++) {
      const WeirIndexBlock *block = &index->blocks[i];

      if (block->disks[0] == self->disks[homes[k]].number
          || (block->n_copies > 1 && block->disks[1] == self->disks[homes[k]].number))
        lacks -= balance_bytes_of (block);
    }
    if (self->disks[homes[k]].free_bytes < lacks)
      return FALSE;
  }
  return TRUE;
}

// Moves the title as a whole if it has to leave a disk or if that makes the disks more even, and
// puts its copies together if they lie on several pairs.
static gboolean
balance_title (Balance *self, GError **error)
{
  const Lie lie = find_lie (self);
  gint home = emptiest_home (self, lie.bytes);

  if (lie.home < 0)
    return TRUE;
  if (lie.scattered && can_be_home (self, lie.home, lie.bytes))
    home = lie.home;
  else if (home < 0 && lie.n_must > 0)
    self->up->result.no_room += lie.n_must;
  if (home < 0
      || (lie.n_must == 0 && !lie.scattered
          && (!self->disks[lie.home].usable
              || self->fills[lie.home].used < self->fills[home].used + 2 * lie.bytes)))
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
    if (self->policy == WEIR_PLACEMENT_RAID0)
      ok = balance_turns (self, error);
    else
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
    gint at = balance_find (self, disks[i].number);

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
  guint64 moved = 0;

  if (!get_stamp (up->store, stamp, error) || !(names = upkeep_list (up, NULL, error)))
    return FALSE;
  up->due_us = g_get_monotonic_time ();
  balance.random = g_rand_new ();
  get_disks (&balance);
  up->result.titles = names->len;
  // A pass leaves what is not a whole block of a title, and the next one has less to do.
  for (guint pass = 0; ok && pass < PASSES && (pass == 0 || up->result.moved > moved); pass++) {
    moved = up->result.moved;
    up->result.no_room = 0;
    count_all (&balance, names);
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
