// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disks/readqueue.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SIZE 64

static bool
before (const WeirReadItem *a, const WeirReadItem *b)
{
  return a->deadline_ns != b->deadline_ns ? a->deadline_ns < b->deadline_ns : a->order < b->order;
}

static void
put (WeirReadQueue *queue, size_t at, WeirReadItem *item)
{
  queue->items[at - 1] = item;
  item->at = at;
}

static void
move_up (WeirReadQueue *queue, WeirReadItem *item)
{
  size_t at = item->at;

  while (at > 1 && before (item, queue->items[at / 2 - 1])) {
    put (queue, at, queue->items[at / 2 - 1]);
    at /= 2;
  }
  put (queue, at, item);
}

static void
move_down (WeirReadQueue *queue, WeirReadItem *item)
{
  size_t at = item->at;

  while (at * 2 <= queue->n) {
    size_t child = at * 2;
    if (child < queue->n && before (queue->items[child], queue->items[child - 1]))
      child++;
    if (!before (queue->items[child - 1], item))
      break;
    put (queue, at, queue->items[child - 1]);
    at = child;
  }
  put (queue, at, item);
}

void
weir_read_queue_free (WeirReadQueue *queue)
{
  free (queue->items);
  *queue = (WeirReadQueue) { 0 };
}

int
weir_read_queue_push (WeirReadQueue *queue, WeirReadItem *item, int64_t deadline_ns)
{
  if (queue->n == queue->size) {
    const size_t size = queue->size > 0 ? queue->size * 2 : FIRST_SIZE;
    WeirReadItem **items = realloc (queue->items, size * sizeof (WeirReadItem *));
    if (!items)
      return -ENOMEM;
    queue->items = items;
    queue->size = size;
  }
  item->deadline_ns = deadline_ns;
  item->order = queue->n_pushed++;
  put (queue, ++queue->n, item);
  move_up (queue, item);
  return 0;
}

WeirReadItem *
weir_read_queue_pop (WeirReadQueue *queue)
{
  WeirReadItem *item = queue->n > 0 ? queue->items[0] : NULL;

  if (item)
    weir_read_queue_remove (queue, item);
  return item;
}

void
weir_read_queue_remove (WeirReadQueue *queue, WeirReadItem *item)
{
  const size_t at = item->at;
  WeirReadItem *last = queue->items[--queue->n];

  item->at = 0;
  if (last == item)
    return;
  put (queue, at, last);
  move_up (queue, last);
  move_down (queue, last);
}

void
weir_read_queue_move (WeirReadQueue *queue, WeirReadItem *item, int64_t deadline_ns)
{
  item->deadline_ns = deadline_ns;
  move_up (queue, item);
  move_down (queue, item);
}

bool
weir_read_item_waits (const WeirReadItem *item)
{
  return item->at > 0;
}
