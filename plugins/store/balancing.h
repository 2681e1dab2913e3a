// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Who balances a store, and whether it is due. One balance at a time works on a store, of all
// programs. One in the background gives way to one that a person has begun.
//
//   balancing    locked by who balances
//   unbalanced   is there from a change of the disks until a balance is complete

#include "store/upkeep_private.h"

G_BEGIN_DECLS

// For tests: the time between looks whether a balance is due.
extern gint64 weir_balancer_look_us;

// Takes the turn, and waits for it if one in the background has it. Returns a descriptor, whose
// close() ends the turn, or -1: with G_IO_ERROR_BUSY if it is not to be had.
int balancing_begin (
    WeirBlockStore *store, gboolean background, GCancellable *cancellable, GError **error);

// Reports whether a person waits for the turn that a balance in the background has.
gboolean balancing_is_wanted (int turn);

// Makes a balance due, durably. The store is locked.
gboolean balancing_set_due (WeirBlockStore *store, GError **error);

// The store is locked.
void balancing_clear_due (WeirBlockStore *store);

// Stores what tells one change of the disks from the next. Returns FALSE if no balance is due.
gboolean balancing_is_due (WeirBlockStore *store, gint64 stamp[3]);

// Moves copies as weir_block_store_balance() does, which is to have the turn.
gboolean balancing_run (Upkeep *up, GError **error);

G_END_DECLS
