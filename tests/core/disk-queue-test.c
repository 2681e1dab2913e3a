// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disks/readqueue.h"

#include "tap.h"

#include <stdlib.h>

#define N_ITEMS 1000

static WeirReadItem items[N_ITEMS];

static void
the_earliest_deadline_is_first (void)
{
  WeirReadQueue queue = { 0 };
  int64_t last = INT64_MIN;

  srandom (1);
  for (int i = 0; i < N_ITEMS; i++)
    CHECK_INT (weir_read_queue_push (&queue, &items[i], random () % 100), 0);
  for (int i = 0; i < N_ITEMS; i++) {
    WeirReadItem *item = weir_read_queue_pop (&queue);
    CHECK (item->deadline_ns >= last);
    CHECK (!weir_read_item_waits (item));
    last = item->deadline_ns;
  }
  CHECK (!weir_read_queue_pop (&queue));
  weir_read_queue_free (&queue);
}

static void
equal_deadlines_keep_their_order (void)
{
  WeirReadQueue queue = { 0 };

  for (int i = 0; i < N_ITEMS; i++)
    weir_read_queue_push (&queue, &items[i], i % 2);
  for (int i = 0; i < N_ITEMS; i++)
    CHECK (weir_read_queue_pop (&queue) == &items[i < N_ITEMS / 2 ? 2 * i : 2 * i + 1 - N_ITEMS]);
  weir_read_queue_free (&queue);
}

static void
any_item_can_be_taken_out_or_moved (void)
{
  WeirReadQueue queue = { 0 };
  int64_t last = INT64_MIN;
  size_t left = 0;

  srandom (2);
  for (int i = 0; i < N_ITEMS; i++)
    weir_read_queue_push (&queue, &items[i], random () % 1000);
  for (int i = 0; i < N_ITEMS; i++) {
    if (i % 3 == 0)
      weir_read_queue_remove (&queue, &items[i]);
    else if (i % 3 == 1)
      weir_read_queue_move (&queue, &items[i], random () % 1000);
    left += i % 3 != 0;
    CHECK (weir_read_item_waits (&items[i]) == (i % 3 != 0));
  }
  CHECK_INT (queue.heap.n, left);
  while (queue.heap.n > 0) {
    WeirReadItem *item = weir_read_queue_pop (&queue);
    CHECK ((item - items) % 3 != 0);
    CHECK (item->deadline_ns >= last);
    last = item->deadline_ns;
  }
  weir_read_queue_free (&queue);
}

int
main (void)
{
  RUN (the_earliest_deadline_is_first);
  RUN (equal_deadlines_keep_their_order);
  RUN (any_item_can_be_taken_out_or_moved);
  return tap_done ();
}
