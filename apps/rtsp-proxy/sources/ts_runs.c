// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/ts_runs.h"

#include <string.h>

#define SYNC 0x47
#define RUN 3       // sync bytes that the demultiplexer wants to see
#define FIRST_RUN 4 // before it knows the packet size

enum { BDAV = 192, BDAV_TIME = 4 };

// Plain, with a time before each packet (BDAV), and with two lengths of error correction behind it.
static const gsize strides[] = { 188, BDAV, 204, 208 };

typedef struct {
  const TsRuns *runs;
  const guint8 *data;
  gsize size;
} Stream;

typedef enum { NO, YES, UNKNOWN } Answer;

// Tells whether there is a sync byte at `at` from the beginning of the data, or before it if `at`
// is negative.
static Answer
has_sync (const Stream *s, gssize at)
{
  if (at >= (gssize) s->size || at < -(gssize) s->runs->n_tail)
    return UNKNOWN;
  return (at < 0 ? s->runs->tail[(gssize) s->runs->n_tail + at] : s->data[at]) == SYNC ? YES : NO;
}

// Reports whether `n` known sync bytes are one packet apart, the last of them at `at`.
static gboolean
ends_run (const Stream *s, gssize at, gsize stride, guint n)
{
  for (guint i = 0; i < n; i++) {
    if (has_sync (s, at - (gssize) (i * stride)) != YES)
      return FALSE;
  }
  return TRUE;
}

// Reports whether the demultiplexer follows one run, and that there is no other that it could
// follow instead: a sync byte beside the run then begins no packet, whatever follows.
static gboolean
is_settled (const Stream *s)
{
  gssize last = -1;
  gsize stride = 0;

  for (guint i = 0; i < G_N_ELEMENTS (strides); i++) {
    if (s->runs->strides == 1u << i)
      stride = strides[i];
  }
  if (stride == 0)
    return FALSE;
  for (gssize at = (gssize) s->size - (gssize) stride; at < (gssize) s->size; at++) {
    if (ends_run (s, at, stride, FIRST_RUN))
      last = at;
  }
  if (last < 0)
    return FALSE;
  for (gssize at = -(gssize) s->runs->n_tail; at < (gssize) s->size; at++) {
    if ((last - at) % (gssize) stride != 0 && ends_run (s, at, stride, RUN))
      return FALSE;
  }
  return TRUE;
}

void
ts_runs_jump (TsRuns *self)
{
  self->n_tail = 0;
}

void
ts_runs_begin (TsRuns *self, const guint8 *data, gsize size)
{
  Stream s = { self, data, size };
  const guint8 *at = data, *end = data + size;

  for (; (at = memchr (at, SYNC, (gsize) (end - at))); at++) {
    for (guint i = 0; i < G_N_ELEMENTS (strides); i++) {
      if (ends_run (&s, at - data, strides[i], FIRST_RUN))
        self->strides |= 1u << i;
    }
  }
}

void
ts_runs_end (TsRuns *self, const guint8 *data, gsize size)
{
  gsize keep = size < TS_RUNS_TAIL ? MIN (self->n_tail, TS_RUNS_TAIL - size) : 0;
  gsize take = MIN (size, TS_RUNS_TAIL);

  memmove (self->tail, self->tail + self->n_tail - keep, keep);
  memcpy (self->tail + keep, data + size - take, take);
  self->n_tail = keep + take;
}

gboolean
ts_runs_may_begin (const TsRuns *self, const guint8 *data, gsize size, gsize at)
{
  Stream s = { self, data, size };
  gboolean depends = FALSE;

  for (guint i = 0; i < G_N_ELEMENTS (strides); i++) {
    gssize stride = (gssize) strides[i];
    gssize first = (gssize) at;
    guint known = 1, possible;

    for (; known < RUN && has_sync (&s, first - stride) == YES; first -= stride)
      known++;
    // After a jump the demultiplexer takes the first bytes for a packet.
    if (first + (gssize) self->n_tail == (stride == BDAV ? BDAV_TIME : 0))
      return TRUE;
    possible = known;
    for (gssize b = (gssize) at + stride; possible < RUN && has_sync (&s, b) != NO; b += stride) {
      known += has_sync (&s, b) == YES;
      possible++;
    }
    if (known >= RUN)
      return TRUE;
    depends |= possible >= RUN;
  }
  return depends && !is_settled (&s);
}
