// SPDX-License-Identifier: LGPL-2.1-or-later
// Probes: fill a protected reader's line up to a rate, to learn whether it carries that.
#include <errno.h>

#include "fanout/serve_private.h"

#define STEP (5 * MS)
#define LONGEST_PROBE (5000 * MS)
#define HIGHEST UINT64_C (1000000000) // bit/s
#define BURST 16                      // most packets of a step

int
weir_fanout_probe (
    WeirFanout *fanout, WeirReader *reader, uint64_t bits, int64_t duration_ns, int64_t now_ns)
{
  if (!reader->resends || !reader->protect.again_is_new)
    return -ENOTSUP;
  if (bits > HIGHEST || duration_ns < 0 || duration_ns > LONGEST_PROBE || !bits != !duration_ns)
    return -EINVAL;
  weir_reader_hold (reader);
  reader->probe = (Probe) {
    .bits = bits,
    .from_ns = now_ns,
    .until_ns = now_ns + duration_ns,
    .sent_before = atomic_load_explicit (&reader->bytes, memory_order_relaxed),
  };
  reader->probing = bits > 0;
  reader_release (reader);
  if (fanout->workers && atomic_load (&reader->shard))
    weir_task_wake (&atomic_load (&reader->shard)->task);
  return 0;
}

// Returns by how many bytes the reader was sent less than the probe's rate since it began.
static int64_t
get_owed (const Probe *probe, uint64_t sent, int64_t now_ns)
{
  int64_t due = (now_ns - probe->from_ns) / 1000 * (int64_t) (probe->bits / 1000) / 8000;

  return due - (int64_t) (sent - probe->sent_before + probe->padded);
}

// Sends what is owed. Returns false if the probe ends: nothing can be sent.
static bool
pad (Pass *pass, WeirReader *reader)
{
  Probe *probe = &reader->probe;
  uint64_t sent = atomic_load_explicit (&reader->bytes, memory_order_relaxed);

  for (unsigned i = 0; i < BURST && get_owed (probe, sent, pass->now_ns) > 0; i++) {
    size_t len = weir_resends_pad (pass->fanout, reader, probe->n++, pass->now_ns);

    if (len == 0)
      return false;
    probe->padded += len;
    add_to (&reader->probed, 1);
  }
  return true;
}

void
weir_serve_probe (Pass *pass, Turn *turn)
{
  WeirReader *reader = turn->reader;

  if (pass->now_ns >= reader->probe.until_ns || reader_paused (reader)
      || atomic_load_explicit (&reader->removed, memory_order_relaxed) || !pad (pass, reader)) {
    reader->probing = false;
    return;
  }
  if (turn->next_ns > pass->now_ns + STEP)
    turn->next_ns = pass->now_ns + STEP;
}
