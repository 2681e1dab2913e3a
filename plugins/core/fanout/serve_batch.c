// SPDX-License-Identifier: LGPL-2.1-or-later
// One send to several readers that get the same bytes.
#include "fanout/serve_private.h"

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

void
weir_serve_send_batch (Pass *pass)
{
  WeirSendTarget targets[SHARD_READERS];
  unsigned times = pass->times;
  size_t n = pass->n_batch, at = 0;
  Load *loaded;

  if (n == 0)
    return;
  pass->n_batch = 0;
  pass->times = 1;
  loaded = weir_serve_load (pass->server, all_in_hand (pass).mask, false);
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
  pass->times = times;
}

void
weir_serve_end_round (Pass *pass)
{
  weir_serve_send_batch (pass);
}
