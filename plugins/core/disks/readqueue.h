// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The reads that wait for a disk, earliest deadline first; those with the same deadline in the
// order in which they came. A heap: each change takes O(log n). For one thread at a time.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Part of the owner's structure.
typedef struct {
  int64_t deadline_ns;
  // Private.
  uint64_t order; // of the push
  size_t at;      // index in the heap, from 1; 0: not in a queue
} WeirReadItem;

typedef struct {
  WeirReadItem **items; // a heap; items[0] has the earliest deadline
  size_t n;
  // Private.
  size_t size;
  uint64_t n_pushed;
} WeirReadQueue;

// Frees the queue, which may be zeroed, but not its items.
void weir_read_queue_free (WeirReadQueue *queue);

// Adds an item that is in no queue. Returns 0 or -ENOMEM.
int weir_read_queue_push (WeirReadQueue *queue, WeirReadItem *item, int64_t deadline_ns);

// Takes the item with the earliest deadline; NULL if the queue is empty.
WeirReadItem *weir_read_queue_pop (WeirReadQueue *queue);

// Takes out an item of this queue.
void weir_read_queue_remove (WeirReadQueue *queue, WeirReadItem *item);

// Changes the deadline of an item of this queue.
void weir_read_queue_move (WeirReadQueue *queue, WeirReadItem *item, int64_t deadline_ns);

// Reports whether an item is in a queue.
bool weir_read_item_waits (const WeirReadItem *item);
