// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A binary heap of nodes that are part of their owners' structures: any node can be taken out or
// moved. Each change takes O(log n). For one thread at a time.
//
// The order is a function that each call is given. The calls are inline, so that a constant
// function becomes part of them: there is no call for each comparison.

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define WEIR_HEAP_FIRST_SIZE 64

typedef struct {
  size_t at; // index in the heap, from 1; 0: not in a heap
} WeirHeapNode;

typedef struct {
  WeirHeapNode **nodes; // nodes[0] is the first
  size_t n;
  size_t size; // private
} WeirHeap;

// Reports whether `a` comes before `b`. `order` is what the call was given.
typedef bool (*WeirHeapBefore) (const WeirHeapNode *a, const WeirHeapNode *b, const void *order);

#define WEIR_HEAP_INLINE static inline __attribute__ ((always_inline, unused))

WEIR_HEAP_INLINE void
weir_heap_put (WeirHeap *heap, size_t at, WeirHeapNode *node)
{
  heap->nodes[at - 1] = node;
  node->at = at;
}

WEIR_HEAP_INLINE void
weir_heap_move_up (WeirHeap *heap, WeirHeapNode *node, WeirHeapBefore before, const void *order)
{
  size_t at = node->at;

  while (at > 1 && before (node, heap->nodes[at / 2 - 1], order)) {
    weir_heap_put (heap, at, heap->nodes[at / 2 - 1]);
    at /= 2;
  }
  weir_heap_put (heap, at, node);
}

WEIR_HEAP_INLINE void
weir_heap_move_down (WeirHeap *heap, WeirHeapNode *node, WeirHeapBefore before, const void *order)
{
  size_t at = node->at;

  while (at * 2 <= heap->n) {
    size_t child = at * 2;
    if (child < heap->n && before (heap->nodes[child], heap->nodes[child - 1], order))
      child++;
    if (!before (heap->nodes[child - 1], node, order))
      break;
    weir_heap_put (heap, at, heap->nodes[child - 1]);
    at = child;
  }
  weir_heap_put (heap, at, node);
}

// Frees the heap, which may be zeroed, but not its nodes.
static inline void
weir_heap_free (WeirHeap *heap)
{
  free (heap->nodes);
  *heap = (WeirHeap) { 0 };
}

// Makes room for `n` nodes, so that adding them never fails. Returns 0 or -ENOMEM.
static inline int
weir_heap_reserve (WeirHeap *heap, size_t n)
{
  size_t size = heap->size > 0 ? heap->size : WEIR_HEAP_FIRST_SIZE;
  WeirHeapNode **nodes;

  if (n <= heap->size)
    return 0;
  while (size < n)
    size *= 2;
  nodes = realloc (heap->nodes, size * sizeof (WeirHeapNode *));
  if (!nodes)
    return -ENOMEM;
  heap->nodes = nodes;
  heap->size = size;
  return 0;
}

// Adds a node that is in no heap. Returns 0 or -ENOMEM.
WEIR_HEAP_INLINE int
weir_heap_push (WeirHeap *heap, WeirHeapNode *node, WeirHeapBefore before, const void *order)
{
  if (weir_heap_reserve (heap, heap->n + 1) != 0)
    return -ENOMEM;
  weir_heap_put (heap, ++heap->n, node);
  weir_heap_move_up (heap, node, before, order);
  return 0;
}

// Moves a node of this heap to its place after its order has changed.
WEIR_HEAP_INLINE void
weir_heap_move (WeirHeap *heap, WeirHeapNode *node, WeirHeapBefore before, const void *order)
{
  weir_heap_move_up (heap, node, before, order);
  weir_heap_move_down (heap, node, before, order);
}

// Takes out a node of this heap.
WEIR_HEAP_INLINE void
weir_heap_remove (WeirHeap *heap, WeirHeapNode *node, WeirHeapBefore before, const void *order)
{
  const size_t at = node->at;
  WeirHeapNode *last = heap->nodes[--heap->n];

  node->at = 0;
  if (last == node)
    return;
  weir_heap_put (heap, at, last);
  weir_heap_move (heap, last, before, order);
}
