// SPDX-License-Identifier: LGPL-2.1-or-later
// Balances blocks that may lie anywhere. Each title gives its part of what the fuller disks have
// too much, so that after a disk was added no title lies there more than others: the readers of a
// popular title would load that disk alone. Which of its blocks move is drawn.

#include "store/balance_private.h"

typedef struct {
  guint32 block;
  guint copy;
} Place;

// A disk, as seen from the title.
typedef struct {
  GArray *places; // of Place, in random order: copies that may leave
  gdouble leave;  // bytes that are to leave
  guint64 came;   // bytes
} Part;

typedef struct {
  Balance *balance;
  const WeirIndex *index;
  guint16 (*now)[WEIR_INDEX_COPIES_MAX]; // where the copies of each block are by now
  Part *parts;                           // of the disks
  guint64 came;                          // bytes, to all disks
} Title;

static void
begin_title (Title *self, Balance *balance)
{
  const WeirIndex *index = &balance->title->index;

  self->balance = balance;
  self->index = index;
  self->now = g_malloc_n (index->n_blocks, sizeof *self->now);
  self->parts = g_new0 (Part, balance->n);
  for (guint i = 0; i < balance->n; i++)
    self->parts[i].places = g_array_new (FALSE, FALSE, sizeof (Place));
  for (guint32 i = 0; i < index->n_blocks; i++) {
    for (guint j = 0; j < index->blocks[i].n_copies; j++) {
      gint at = balance_find (balance, index->blocks[i].disks[j]);
      Place place = { i, j };

      self->now[i][j] = index->blocks[i].disks[j];
      if (at >= 0)
        g_array_append_val (self->parts[at].places, place);
    }
  }
}

static void
end (Title *self)
{
  for (guint i = 0; i < self->balance->n; i++)
    g_array_unref (self->parts[i].places);
  g_free (self->parts);
  g_free (self->now);
}

static void
shuffle (GArray *places, GRand *random)
{
  for (guint i = places->len; i > 1; i--) {
    Place *last = &g_array_index (places, Place, i - 1);
    Place *drawn = &g_array_index (places, Place, (guint) g_rand_int_range (random, 0, (gint) i));
    Place was = *last;

    *last = *drawn;
    *drawn = was;
  }
}

// Computes what is to leave the disks: the title's part of their surplus. Returns the sum for
// disks that stay.
static gdouble
divide (Title *self)
{
  Balance *balance = self->balance;
  gdouble sum = 0;

  for (guint i = 0; i < balance->n; i++) {
    Part *part = &self->parts[i];
    Fill *fill = &balance->fills[i];
    guint64 bytes = 0, surplus = balance_surplus (balance, i);

    for (guint k = 0; k < part->places->len; k++)
      bytes +=
          balance_bytes_of (&self->index->blocks[g_array_index (part->places, Place, k).block]);
    if (surplus > 0 && !balance->removing[i])
      part->leave = (gdouble) MIN (surplus, fill->left) / (gdouble) fill->left * (gdouble) bytes;
    fill->left -= MIN (fill->left, bytes);
    sum += part->leave;
    shuffle (part->places, balance->random);
  }
  return sum;
}

static guint64
lack (const Balance *balance, guint at)
{
  const guint64 used = balance->fills[at].used;

  return balance->disks[at].usable ? balance->share - MIN (balance->share, used) : 0;
}

// Returns the disk for a copy from the disk at `from`, whose other copy is on disk `but`: that
// which has got least of the title by its part of what the disks lack. Returns -1 if none is
// better.
static gint
choose (const Title *self, gint from, guint16 but, guint64 bytes)
{
  const Balance *balance = self->balance;
  const gboolean must = balance->removing[from];
  gdouble best = -G_MAXDOUBLE, sum = 0;
  gint to = -1;

  for (guint i = 0; i < balance->n; i++)
    sum += (gdouble) lack (balance, i);
  for (guint i = 0; i < balance->n; i++) {
    const WeirPlacementDisk *disk = &balance->disks[i];
    gdouble due;

    if (lack (balance, i) == 0 || disk->number == but || disk->free_bytes < bytes
        || (!must && balance->fills[from].used < balance->fills[i].used + 2 * bytes))
      continue;
    due = (gdouble) lack (balance, i) / sum * (gdouble) (self->came + bytes)
          - (gdouble) self->parts[i].came;
    if (due > best) {
      best = due;
      to = (gint) i;
    }
  }
  return to < 0 && must ? balance_emptiest (balance, bytes, but) : to;
}

// Moves the next copy of the title that may leave a disk, and stores its bytes in `moved`; 0: none
// may.
static gboolean
move_next (Title *self, gint from, guint64 *moved, GError **error)
{
  GArray *places = self->parts[from].places;

  *moved = 0;
  while (places->len > 0 && *moved == 0) {
    const Place place = g_array_index (places, Place, places->len - 1);
    const WeirIndexBlock *block = &self->index->blocks[place.block];
    const guint64 bytes = balance_bytes_of (block);
    guint16 but = block->n_copies > 1 ? self->now[place.block][1 - place.copy] : G_MAXUINT16;
    gint to = choose (self, from, but, bytes);
    guint64 before = to < 0 ? 0 : self->balance->fills[to].used;

    g_array_set_size (places, places->len - 1);
    if (to < 0) {
      if (self->balance->removing[from])
        balance_note_no_room (self->balance);
      continue;
    }
    if (!balance_move (self->balance, place.block, from, to, error))
      return FALSE;
    if (self->balance->fills[to].used == before)
      continue; // it could not be read or written
    self->now[place.block][place.copy] = self->balance->disks[to].number;
    self->parts[to].came += bytes;
    self->came += bytes;
    *moved = bytes;
  }
  return TRUE;
}

// Returns the disk that has most to give of the title, or -1.
static gint
next_giver (const Title *self)
{
  gint best = -1;

  for (guint i = 0; i < self->balance->n; i++) {
    const Part *part = &self->parts[i];

    if (part->places->len > 0 && part->leave > 0
        && (best < 0 || part->leave > self->parts[best].leave))
      best = (gint) i;
  }
  return best;
}

// Moves the title's part from disks that stay. What is less than half a block is left to the next
// title, and so is what this one could not give.
static gboolean
give (Title *self, gdouble bytes, GError **error)
{
  gdouble rest = bytes + self->balance->carry;
  guint64 moved, most = 0;
  gint from;

  while ((from = next_giver (self)) >= 0) {
    const Place *place =
        &g_array_index (self->parts[from].places, Place, self->parts[from].places->len - 1);
    const guint64 length = balance_bytes_of (&self->index->blocks[place->block]);

    most = MAX (most, length);
    if (rest < (gdouble) length / 2)
      break;
    if (!move_next (self, from, &moved, error))
      return FALSE;
    self->parts[from].leave -= moved > 0 ? (gdouble) moved : self->parts[from].leave;
    rest -= (gdouble) moved;
  }
  self->balance->carry = CLAMP (rest, -(gdouble) most, (gdouble) most);
  return TRUE;
}

gboolean
balance_blocks (Balance *balance, GError **error)
{
  Title self = { NULL };
  gdouble bytes;
  guint64 moved;
  gboolean ok = TRUE;

  begin_title (&self, balance);
  bytes = divide (&self);
  for (guint i = 0; ok && i < balance->n; i++) {
    while (ok && balance->removing[i] && self.parts[i].places->len > 0)
      ok = move_next (&self, (gint) i, &moved, error);
  }
  ok = ok && give (&self, bytes, error);
  end (&self);
  return ok;
}
