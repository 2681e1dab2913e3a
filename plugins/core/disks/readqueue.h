// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The reads that wait for a disk, earliest deadline first; those with the same deadline in the
// order in which they came. Each change takes O(log n). For one thread at a time.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/heap.h"

// Part of the owner's structure.
typedef struct {
  WeirHeapNode node; // private; first
  uint64_t order;    // private; of the push
  int64_t deadline_ns;
} WeirReadItem;

typedef struct {
  WeirHeap heap;
  uint64_t n_pushed; // private
} WeirReadQueue;

// Frees the queue, which may be zeroed, but not its items.
void weir_read_queue_free (WeirReadQueue *queue);

// Adds an item that is in no queue. Returns 0 or -ENOMEM.
int weir_read_queue_push (WeirReadQueue *queue, WeirReadItem *item, int64_t deadline_ns);

// Returns item `n` in no order; only item 0 has the earliest deadline. Returns NULL past the end.
WeirReadItem *weir_read_queue_get (const WeirReadQueue *queue, size_t n);

// Takes the item with the earliest deadline; NULL if the queue is empty.
WeirReadItem *weir_read_queue_pop (WeirReadQueue *queue);

// Takes out an item of this queue.
void weir_read_queue_remove (WeirReadQueue *queue, WeirReadItem *item);

// Changes the deadline of an item of this queue.
void weir_read_queue_move (WeirReadQueue *queue, WeirReadItem *item, int64_t deadline_ns);

// Reports whether an item is in a queue.
bool weir_read_item_waits (const WeirReadItem *item);
