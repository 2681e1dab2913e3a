// SPDX-License-Identifier: LGPL-2.1-or-later
// One send to several readers that get the same packets. Clones may differ in their numbers.
// Readers with the same offsets of numbers get the same bytes: for sends, they are a group.
#include "fanout/serve_private.h"

// A reader whose clone was dropped gets none for this time: the device's queue is full, and sends
// from its socket wait for room.
#define CLONES_PAUSE (1000 * MS)

_Static_assert (SHARD_READERS <= WEIR_CLONES_MAX, "a batch is cloned at once");

#define CLONES_MIN 2 // readers for which a clone each is cheaper than a send each

// Reports whether the reader's timestamps have no constant offset, as it catches up.
static bool
is_compressing (const WeirReader *reader)
{
  return reader->join.rate > 0 && reader->join.compress;
}

// Reports whether the reader can share segmented sends.
static bool
may_share (const Pass *pass, const WeirReader *reader)
{
  return !reader->conn && !reader->is_protected && pass->times == 1
         && pass->settings.gso != WEIR_GSO_OFF
         && atomic_load_explicit (&reader->gso_again_ns, memory_order_relaxed) == 0;
}

bool
weir_serve_may_clone (const Pass *pass, const WeirReader *reader)
{
  return reader->cloner && may_share (pass, reader);
}

static bool
may_join (const Pass *pass, const WeirReader *reader, const Choice *choice)
{
  return may_share (pass, reader) && gets_all (pass, choice) && !is_compressing (reader)
         && (pass->n_batch == 0 || pass->batch[0]->reader->fd == reader->fd);
}

bool
weir_serve_join_batch (Pass *pass, Turn *turn, const Choice *choice)
{
  if (!may_join (pass, turn->reader, choice))
    return false;
  __builtin_prefetch (turn->reader->clone_route); // NULL does no harm
  pass->batch[pass->n_batch++] = turn;
  return true;
}

static void
end_batched (Pass *pass, const Load *loaded, Turn *turn, const WeirSendTarget *target)
{
  WeirReader *reader = turn->reader;
  Choice all = all_in_hand (pass);

  weir_serve_book (pass, reader, &target->result);
  if (target->result.gso_error)
    weir_serve_remember_refusal (pass, reader, target->result.gso_error);
  if (!weir_serve_end_send (pass, reader, &all, loaded, target->settled))
    weir_serve_wait_for_room (pass, turn);
  else
    turn->more = get_cursor (reader) < pass->head;
}

// ---- by clones ----

static bool
have_same_numbers (const Pass *pass, const WeirReader *a, const WeirReader *b)
{
  return a->seq_delta == b->seq_delta && a->time_ahead == b->time_ahead
         && (!pass->is_vp8 || a->picture_delta == b->picture_delta);
}

static unsigned
clone_device (const Pass *pass, const WeirReader *reader)
{
  if (!reader->cloner || reader->clones_again_ns > pass->now_ns)
    return 0;
  return reader->cloner->device (reader->clone_route);
}

// Notes why the reader gets no clones now.
static void
note_why_not (const Pass *pass, WeirReader *reader)
{
  WeirClones why = WEIR_CLONES_UNFIT;

  if (reader->clones_again_ns > pass->now_ns)
    why = WEIR_CLONES_FULL;
  else if (reader->cloner)
    why = reader->cloner->why_not (reader->clone_route);
  reader_set_clones (reader, why == WEIR_CLONES_SENT ? WEIR_CLONES_ALONE : why);
}

static void
end_cloned (Pass *pass, Turn *turn, WeirSendTarget *target)
{
  const Choice all = all_in_hand (pass);
  WeirReader *reader = turn->reader;
  Load *loaded = weir_serve_load_for (pass, reader, &all);

  reader_set_clones (reader, WEIR_CLONES_SENT);
  if (target->result.error) {
    reader->clones_again_ns = pass->now_ns + CLONES_PAUSE;
    reader_set_clones (reader, WEIR_CLONES_FULL);
  }
  // The rest of the burst could not be cloned.
  if (target->settled < loaded->sender.burst.n)
    target->settled = weir_sender_send (
        &loaded->sender, reader->fd, &reader->address, true, target->settled, &target->result);
  end_batched (pass, loaded, turn, target);
  reader_release (reader);
}

// Ends the turns of `n` readers that were sent the whole burst. They had the same packets in hand,
// so what is counted is the same for each, and few of its cache lines are touched.
static void
end_all_cloned (Pass *pass, const Load *loaded, Turn **turns, size_t n)
{
  const WeirBurst *burst = &loaded->sender.burst;
  const Hand *hand = &pass->server->hand;
  const WeirPacket *packets = hand->packets.packets;
  Counts *counts = &pass->shard->counts;
  bool past_extra = packets[burst->n - 1].flags & WEIR_PACKET_EXTRA;
  uint64_t n_extra = 0, n_due, n_left_out;

  for (size_t i = 0; i < burst->n; i++)
    n_extra += (packets[i].flags & WEIR_PACKET_EXTRA) != 0;
  n_due = (uint64_t) (hand->to - hand->from) + n_extra;
  n_left_out = n_due - burst->n;
  for (size_t i = 0; i < n; i++) {
    WeirReader *reader = turns[i]->reader;

    reader_set_clones (reader, WEIR_CLONES_SENT);
    add_to (&reader->due, n_due);
    add_to (&reader->packets, burst->n);
    add_to (&reader->bytes, burst->offset[burst->n]);
    if (n_left_out > 0)
      add_to (&reader->dropped[WEIR_DROP_LAYERS], n_left_out);
    atomic_store_explicit (&reader->cursor, hand->to, memory_order_relaxed);
    reader->past_extra = past_extra;
    end_wait_for_room (pass, reader);
    turns[i]->more = hand->to < pass->head;
    reader_release (reader);
  }
  add_to (&counts->due, n * n_due);
  add_to (&counts->packets, n * burst->n);
  add_to (&counts->bytes, n * burst->offset[burst->n]);
  add_to (&counts->dropped[WEIR_DROP_LAYERS], n * n_left_out);
}

// Writes the reader's numbers, as they differ from those of the reader `base`.
static WeirCloneTarget
clone_target (const Pass *pass, const WeirReader *reader, const WeirReader *base)
{
  return (WeirCloneTarget) {
    .route = reader->clone_route,
    .seq_ahead = (uint16_t) (reader->seq_delta - base->seq_delta),
    .picture_ahead = pass->is_vp8 ? (uint16_t) (reader->picture_delta - base->picture_delta) : 0,
    .time_ahead = (uint32_t) (reader->time_ahead - base->time_ahead),
  };
}

// Moves those with the numbers of the reader `base` to the front.
static void
put_plain_first (const Pass *pass, Turn **turns, size_t n, const WeirReader *base)
{
  size_t n_plain = 0;

  for (size_t i = 0; i < n; i++) {
    Turn *turn = turns[i];

    if (have_same_numbers (pass, turn->reader, base)) {
      turns[i] = turns[n_plain];
      turns[n_plain++] = turn;
    }
  }
}

// Sends the packets in hand by clones to `n` readers of one device, which are put in another order.
// The message has the numbers of the reader `base`. Returns to how many of them, from the first on;
// the turns of these have ended.
static size_t
send_clones (Pass *pass, Turn **turns, size_t n, const WeirReader *base)
{
  const Choice all = all_in_hand (pass);
  Load *loaded = weir_serve_load_for (pass, base, &all);
  uint16_t picture_at[WEIR_STAGE_PACKETS];
  WeirBurstNumbers numbers = weir_serve_find_numbers (pass, loaded, picture_at);
  WeirCloneTarget clones[SHARD_READERS];
  WeirSendTarget targets[SHARD_READERS];
  size_t n_sent = 0;

  put_plain_first (pass, turns, n, base);
  for (size_t i = 0; i < n; i++)
    clones[i] = clone_target (pass, turns[i]->reader, base);
  if (weir_sender_clone (&loaded->sender, base->cloner, base->fd, &numbers, clones, targets, n)) {
    end_all_cloned (pass, loaded, turns, n);
    return n;
  }
  for (; n_sent < n && targets[n_sent].settled > 0; n_sent++)
    end_cloned (pass, turns[n_sent], &targets[n_sent]);
  for (size_t i = n_sent; i < n; i++)
    reader_set_clones (turns[i]->reader, WEIR_CLONES_FAILED);
  return n_sent;
}

// Takes the readers of the first reader's device out of those that clones reach. Returns how many
// there are, and moves the others to the front.
static size_t
take_device (Turn **turns, unsigned *devices, size_t *n, Turn **taken)
{
  unsigned device = devices[0];
  size_t n_taken = 0, n_left = 0;

  for (size_t i = 0; i < *n; i++) {
    if (devices[i] == device) {
      taken[n_taken++] = turns[i];
    } else {
      turns[n_left] = turns[i];
      devices[n_left++] = devices[i];
    }
  }
  *n = n_left;
  return n_taken;
}

// Returns a reader whose numbers more than half of them have, if there is one. Their clones cost
// least.
static const WeirReader *
find_majority (const Pass *pass, Turn **turns, size_t n)
{
  const WeirReader *found = turns[0]->reader;
  size_t ahead = 0;

  for (size_t i = 0; i < n; i++) {
    if (ahead == 0)
      found = turns[i]->reader;
    ahead = have_same_numbers (pass, turns[i]->reader, found) ? ahead + 1 : ahead - 1;
  }
  return found;
}

// Sends the packets in hand to the readers of the batch that clones reach, device by device, and
// takes them out of the batch.
static void
clone_batch (Pass *pass)
{
  Turn *turns[SHARD_READERS], *taken[SHARD_READERS];
  unsigned devices[SHARD_READERS];
  size_t n = 0, n_left = 0;

  for (size_t i = 0; i < pass->n_batch; i++) {
    Turn *turn = pass->batch[i];

    if ((devices[n] = clone_device (pass, turn->reader)) > 0) {
      turns[n++] = turn;
    } else {
      note_why_not (pass, turn->reader);
      pass->batch[n_left++] = turn;
    }
  }
  while (n > 0) {
    size_t n_taken = take_device (turns, devices, &n, taken), n_sent = 0;

    if (n_taken >= CLONES_MIN)
      n_sent = send_clones (pass, taken, n_taken, find_majority (pass, taken, n_taken));
    else
      reader_set_clones (taken[0]->reader, WEIR_CLONES_ALONE);
    while (n_sent < n_taken)
      pass->batch[n_left++] = taken[n_sent++];
  }
  pass->n_batch = n_left;
}

// ---- by sends ----

static void
send_group (Pass *pass, Load *loaded, Turn **group, size_t n)
{
  WeirSendTarget targets[SHARD_READERS];
  size_t at = 0;

  for (size_t i = 0; i < n; i++)
    targets[i] = (WeirSendTarget) { .address = &group[i]->reader->address };
  while (at < n && !is_full (pass, group[at]->reader)) {
    size_t end =
        at + weir_sender_send_many (&loaded->sender, group[at]->reader->fd, targets + at, n - at);

    for (; at < end; at++)
      end_batched (pass, loaded, group[at], &targets[at]);
  }
  for (; at < n; at++)
    end_turn (group[at], pass->now_ns + UDP_PATIENCE);
  for (size_t i = 0; i < n; i++)
    reader_release (group[i]->reader);
}

// ---- groups ----

// Moves the first reader of the batch and those with the same numbers to `group`. Returns how many.
static size_t
take_group (Pass *pass, Turn **group)
{
  size_t n = 0, n_left = 0;

  for (size_t i = 0; i < pass->n_batch; i++) {
    if (n == 0 || have_same_numbers (pass, group[0]->reader, pass->batch[i]->reader))
      group[n++] = pass->batch[i];
    else
      pass->batch[n_left++] = pass->batch[i];
  }
  pass->n_batch = n_left;
  return n;
}

void
weir_serve_send_batch (Pass *pass)
{
  const Choice all = all_in_hand (pass);
  unsigned times = pass->times;

  pass->times = 1;
  clone_batch (pass);
  while (pass->n_batch > 0) {
    Turn *group[SHARD_READERS];
    size_t n = take_group (pass, group);

    send_group (pass, weir_serve_load_for (pass, group[0]->reader, &all), group, n);
  }
  pass->times = times;
}

void
weir_serve_end_round (Pass *pass)
{
  weir_serve_send_batch (pass);
}
