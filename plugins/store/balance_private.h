// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files of a balance share: balance.c moves titles that lie on one disk or mirror pair,
// and blocks that have their turn; balance_blocks.c moves blocks that may lie anywhere.

#include "store/upkeep_private.h"

G_BEGIN_DECLS

#define MOVES_MAX 64 // between two writes of an index

typedef struct {
  guint64 used; // bytes of copies
  guint64 left; // of these, in titles that are not balanced yet
} Fill;

typedef struct {
  Upkeep *up;
  WeirPlacementPolicy policy;
  WeirPlacementDisk *disks; // of which those that are being removed are not usable
  Fill *fills;              // of the disks
  gboolean *removing;
  guint n;
  guint64 share; // bytes that each disk is to have
  gdouble carry; // bytes that earlier titles were to give and did not, or less than 0
  GRand *random;
  WeirStoredTitle *title; // at work
  UpkeepMove moves[MOVES_MAX];
  guint n_moves;
} Balance;

// Returns the place of disk `number` in `disks`, or -1.
gint balance_find (const Balance *self, guint16 number);

// Returns the bytes of a block's file.
guint64 balance_bytes_of (const WeirIndexBlock *block);

// Returns the bytes that a disk has too much.
guint64 balance_surplus (const Balance *self, guint at);

// Returns the emptiest usable disk with room, other than `but`, or -1.
gint balance_emptiest (const Balance *self, guint64 bytes, guint16 but);

// Copies a block from one disk to another, of those with these places. A block that cannot be read
// or written is reported, and stays. Returns FALSE with an error if the work is to end.
gboolean balance_move (Balance *self, guint32 number, gint from, gint to, GError **error);

// Notes that a copy on a disk that is being removed finds no room.
void balance_note_no_room (Balance *self);

// Moves blocks of the title at work: all that are on disks that are being removed, and so many of
// those on fuller disks that each title gives its part of what these have too much.
gboolean balance_blocks (Balance *self, GError **error);

G_END_DECLS
