// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disks/readqueue.h"

static bool
before (const WeirHeapNode *a, const WeirHeapNode *b, const void *unused)
{
  const WeirReadItem *x = (const WeirReadItem *) a, *y = (const WeirReadItem *) b;

  return x->deadline_ns != y->deadline_ns ? x->deadline_ns < y->deadline_ns : x->order < y->order;
}

void
weir_read_queue_free (WeirReadQueue *queue)
{
  weir_heap_free (&queue->heap);
}

int
weir_read_queue_push (WeirReadQueue *queue, WeirReadItem *item, int64_t deadline_ns)
{
  item->deadline_ns = deadline_ns;
  item->order = queue->n_pushed++;
  return weir_heap_push (&queue->heap, &item->node, before, NULL);
}

WeirReadItem *
weir_read_queue_get (const WeirReadQueue *queue, size_t n)
{
  return n < queue->heap.n ? (WeirReadItem *) queue->heap.nodes[n] : NULL;
}

WeirReadItem *
weir_read_queue_pop (WeirReadQueue *queue)
{
  WeirReadItem *item = weir_read_queue_get (queue, 0);

  if (item)
    weir_read_queue_remove (queue, item);
  return item;
}

void
weir_read_queue_remove (WeirReadQueue *queue, WeirReadItem *item)
{
  weir_heap_remove (&queue->heap, &item->node, before, NULL);
}

void
weir_read_queue_move (WeirReadQueue *queue, WeirReadItem *item, int64_t deadline_ns)
{
  item->deadline_ns = deadline_ns;
  weir_heap_move (&queue->heap, &item->node, before, NULL);
}

bool
weir_read_item_waits (const WeirReadItem *item)
{
  return item->node.at > 0;
}
