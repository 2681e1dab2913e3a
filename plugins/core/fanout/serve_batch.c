// SPDX-License-Identifier: LGPL-2.1-or-later
// One send to several readers that get the same bytes.
#include "fanout/serve_private.h"

// A reader whose clone was dropped gets none for this time: the device's queue is full, and sends
// from its socket wait for room.
#define CLONES_PAUSE (1000 * MS)

_Static_assert (SHARD_READERS <= WEIR_CLONES_MAX, "a batch is cloned at once");

#define CLONES_MIN 2 // readers for which a clone each is cheaper than a send each

static bool
may_join (const Pass *pass, const WeirReader *reader, const Choice *choice)
{
  return !reader->conn && !reader->protect.protect && pass->times == 1 && gets_all (pass, choice)
         && !weir_serve_has_own_numbers (pass, reader) && pass->settings.gso != WEIR_GSO_OFF
         && atomic_load_explicit (&reader->gso_again_ns, memory_order_relaxed) == 0
         && (pass->n_batch == 0 || pass->batch[0]->reader->fd == reader->fd);
}

bool
weir_serve_join_batch (Pass *pass, Turn *turn, const Choice *choice)
{
  if (!may_join (pass, turn->reader, choice))
    return false;
  pass->batch[pass->n_batch++] = turn;
  return true;
}

static void
end_batched (Pass *pass, Turn *turn, const WeirSendTarget *target)
{
  WeirReader *reader = turn->reader;
  Choice all = all_in_hand (pass);

  weir_serve_book (pass, reader, &target->result);
  if (target->result.gso_error)
    weir_serve_remember_refusal (pass, reader, target->result.gso_error);
  if (!weir_serve_end_send (pass, reader, &all, &pass->server->loads[IN_PLACE], target->settled))
    weir_serve_wait_for_room (pass, turn);
  else
    turn->more = get_cursor (reader) < pass->head;
}

// ---- by clones ----

static unsigned
clone_device (const Pass *pass, const WeirReader *reader)
{
  if (!reader->cloner || reader->clones_again_ns > pass->now_ns)
    return 0;
  return reader->cloner->device (reader->clone_route);
}

static void
end_cloned (Pass *pass, Load *loaded, Turn *turn, WeirSendTarget *target)
{
  WeirReader *reader = turn->reader;

  if (target->result.error)
    reader->clones_again_ns = pass->now_ns + CLONES_PAUSE;
  // The rest of the burst could not be cloned.
  if (target->settled < loaded->sender.burst.n)
    target->settled = weir_sender_send (
        &loaded->sender, reader->fd, &reader->address, true, target->settled, &target->result);
  end_batched (pass, turn, target);
  reader_release (reader);
}

// Sends the burst by clones to `n` readers of one device. Returns to how many of them, from the
// first on; the turns of these have ended.
static size_t
send_clones (Pass *pass, Load *loaded, Turn **turns, size_t n)
{
  WeirCloneTarget clones[SHARD_READERS];
  WeirSendTarget targets[SHARD_READERS];
  size_t n_sent = 0;

  for (size_t i = 0; i < n; i++) {
    clones[i] = (WeirCloneTarget) { turns[i]->reader->clone_route, 0 };
    targets[i] = (WeirSendTarget) { .address = &turns[i]->reader->address };
  }
  weir_sender_clone (
      &loaded->sender, turns[0]->reader->cloner, turns[0]->reader->fd, clones, targets, n);
  for (; n_sent < n && targets[n_sent].settled > 0; n_sent++)
    end_cloned (pass, loaded, turns[n_sent], &targets[n_sent]);
  return n_sent;
}

// Sends the burst to the readers of the batch that clones reach, device by device. Returns how many
// readers are left; they are at the front of the batch.
static size_t
clone_batch (Pass *pass, Load *loaded, size_t n)
{
  unsigned devices[SHARD_READERS];
  size_t n_left = 0;

  for (size_t i = 0; i < n; i++)
    devices[i] = clone_device (pass, pass->batch[i]->reader);
  for (size_t i = 0; i < n; i++) {
    unsigned device = devices[i];
    Turn *turns[SHARD_READERS];
    size_t at[SHARD_READERS], n_turns = 0;

    for (size_t k = i; k < n && device > 0; k++) {
      if (devices[k] == device) {
        turns[n_turns] = pass->batch[k];
        at[n_turns++] = k;
      }
    }
    // The readers of a device are tried once.
    for (size_t k = 0; k < n_turns; k++)
      devices[at[k]] = 0;
    if (n_turns >= CLONES_MIN)
      n_turns = send_clones (pass, loaded, turns, n_turns);
    else
      n_turns = 0;
    for (size_t k = 0; k < n_turns; k++)
      pass->batch[at[k]] = NULL;
    if (pass->batch[i])
      pass->batch[n_left++] = pass->batch[i];
  }
  return n_left;
}

// ---- by sends ----

static void
send_batch (Pass *pass, Load *loaded, size_t n)
{
  WeirSendTarget targets[SHARD_READERS];
  size_t at = 0;

  for (size_t i = 0; i < n; i++)
    targets[i] = (WeirSendTarget) { .address = &pass->batch[i]->reader->address };
  while (at < n && !is_full (pass, pass->batch[at]->reader)) {
    size_t end = at
                 + weir_sender_send_many (
                     &loaded->sender, pass->batch[at]->reader->fd, targets + at, n - at);

    for (; at < end; at++)
      end_batched (pass, pass->batch[at], &targets[at]);
  }
  for (; at < n; at++)
    end_turn (pass->batch[at], pass->now_ns + UDP_PATIENCE);
  for (size_t i = 0; i < n; i++)
    reader_release (pass->batch[i]->reader);
}

void
weir_serve_send_batch (Pass *pass)
{
  unsigned times = pass->times;
  size_t n = pass->n_batch;
  Load *loaded;

  if (n == 0)
    return;
  pass->n_batch = 0;
  pass->times = 1;
  loaded = weir_serve_load (pass->server, all_in_hand (pass).mask, false);
  n = clone_batch (pass, loaded, n);
  send_batch (pass, loaded, n);
  pass->times = times;
}

void
weir_serve_end_round (Pass *pass)
{
  weir_serve_send_batch (pass);
}
