// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swarm/picker.h"
#include "swarm/storage.h"
#include "swarm/upload.h"
#include "swarm/watcher.h"
#include "tap.h"

#define SECOND INT64_C (1000000000)
#define N 20
#define MISSING WEIR_PIECE_MISSING
#define WANTED WEIR_PIECE_WANTED
#define ORIGIN WEIR_PIECE_ORIGIN
#define HELD WEIR_PIECE_HELD

// A title of N pieces of a second each.
static const WeirSwarmTitle title = { .bytes = N * 1000, .piece_bytes = 1000, .bit_rate = 8000 };

static uint8_t pieces[N];
static uint16_t availability[N];
static uint32_t arrived[N];
static WeirPickerView view;

static void
begin (void)
{
  memset (pieces, MISSING, sizeof pieces);
  memset (arrived, 0, sizeof arrived);
  for (int i = 0; i < N; i++)
    availability[i] = 1;
  view = (WeirPickerView) { .title = title,
    .pieces = pieces,
    .availability = availability,
    .arrived = arrived,
    .peer_rate = 8000,
    .window_ns = 5 * SECOND };
}

static void
a_piece_is_due_when_its_first_byte_is_played (void)
{
  const WeirSwarmTitle odd = { .bytes = 10001, .piece_bytes = 1000, .bit_rate = 8000 };
  const WeirPlayhead playhead = { .byte = 2500, .at_ns = 7 * SECOND };

  CHECK_INT (weir_swarm_title_pieces (&title), N);
  CHECK_INT (weir_swarm_title_pieces (&odd), 11);
  CHECK_INT (weir_swarm_title_piece_ns (&title), SECOND);
  CHECK_INT (weir_playhead_due_ns (&playhead, &title, 3), 7.5 * SECOND);
  CHECK_INT (weir_playhead_due_ns (&playhead, &title, 2), 6.5 * SECOND);
  CHECK_INT (weir_playhead_piece (&playhead, &title, 7 * SECOND), 2);
  CHECK_INT (weir_playhead_piece (&playhead, &title, 8 * SECOND), 3);
  CHECK_INT (weir_playhead_piece (&playhead, &title, 0), 0);
  CHECK_INT (weir_playhead_piece (&playhead, &title, 99 * SECOND), N);
  CHECK_INT (weir_playhead_first_due (&playhead, &title, 7.5 * SECOND), 3);
  CHECK_INT (weir_playhead_first_due (&playhead, &title, 7.5 * SECOND + 1), 4);
  CHECK_INT (weir_playhead_first_due (&playhead, &title, 99 * SECOND), N);
  CHECK_INT (weir_playhead_first_due (&playhead, &title, INT64_MIN / 4), 0);
}

static void
pickers_have_names (void)
{
  for (int i = 0; i <= WEIR_PICKER_ADAPTIVE; i++)
    CHECK_INT (weir_picker_find (weir_picker_name ((WeirPicker) i)), i);
  CHECK_INT (weir_picker_find ("in order"), -1);
}

static void
the_first_piece_has_the_time_of_a_transfer_and_the_lead (void)
{
  static const struct {
    double peer_rate;
    int64_t lead_ns, now_ns;
    uint32_t first;
  } cases[] = {
    { 8000, 0, 0, 1 },
    { 8000, 1, 0, 2 },
    { 8000, 2 * SECOND, 0, 3 },
    { 8000, 0, 3 * SECOND, 4 },
    { 2000, 0, 0, 4 },
    { 0, 0, 0, 1 },      // the title's rate
    { 1e-300, 0, 0, N }, // as good as never
    { 8000, 0, SECOND * N, N },
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    begin ();
    view.peer_rate = cases[i].peer_rate;
    view.lead_ns = cases[i].lead_ns;
    CHECK_INT (weir_picker_first (&view, cases[i].now_ns), cases[i].first);
  }
}

static void
in_order_takes_the_first_piece_that_a_peer_has (void)
{
  begin ();
  pieces[1] = HELD;
  pieces[2] = WANTED;
  pieces[3] = ORIGIN;
  availability[4] = 0;
  CHECK_INT (weir_picker_pick (WEIR_PICKER_IN_ORDER, &view, 0, 0.9), 5);
  view.ahead = 5;
  CHECK_INT (weir_picker_pick (WEIR_PICKER_IN_ORDER, &view, 0, 0.9), WEIR_NO_PIECE);
}

static void
rarest_draws_one_of_the_rarest (void)
{
  begin ();
  for (int i = 0; i < N; i++)
    availability[i] = 9;
  availability[0] = 1; // cannot arrive in time
  availability[4] = availability[11] = 3;
  CHECK_INT (weir_picker_pick (WEIR_PICKER_RAREST, &view, 0, 0), 4);
  CHECK_INT (weir_picker_pick (WEIR_PICKER_RAREST, &view, 0, 0.49), 4);
  CHECK_INT (weir_picker_pick (WEIR_PICKER_RAREST, &view, 0, 0.5), 11);
  CHECK_INT (weir_picker_pick (WEIR_PICKER_RAREST, &view, 0, 0.999999), 11);
}

static void
beta_draws_from_its_distribution (void)
{
  int counts[N] = { 0 };

  begin ();
  for (int i = 0; i < 100000; i++) {
    const uint32_t piece = weir_picker_pick (WEIR_PICKER_BETA, &view, 0, (i + 0.5) / 100000);
    CHECK (piece >= 1 && piece < N);
    if (piece < N)
      counts[piece]++;
  }
  // Of 19 pieces, number k has the part (1 - k / 19)^2 - (1 - (k + 1) / 19)^2.
  for (int k = 0; k < N - 1; k++) {
    const double n = N - 1, part = ((n - k) * (n - k) - (n - k - 1) * (n - k - 1)) / (n * n);
    CHECK (counts[k + 1] >= 100000 * part - 2 && counts[k + 1] <= 100000 * part + 2);
  }
}

static void
beta_counts_only_pieces_that_can_be_asked (void)
{
  begin ();
  memset (pieces, HELD, sizeof pieces);
  pieces[7] = pieces[13] = MISSING;
  // 1 - (1 - 1/2)^2 of the draws take the first of two.
  CHECK_INT (weir_picker_pick (WEIR_PICKER_BETA, &view, 0, 0.74), 7);
  CHECK_INT (weir_picker_pick (WEIR_PICKER_BETA, &view, 0, 0.76), 13);
}

static void
hybrid_is_in_order_within_its_window_and_beta_behind_it (void)
{
  begin ();
  for (uint32_t i = 1; i < 5; i++) {
    CHECK_INT (weir_picker_pick (WEIR_PICKER_HYBRID, &view, 0, 0.99), i);
    pieces[i] = HELD;
  }
  CHECK_INT (weir_picker_pick (WEIR_PICKER_HYBRID, &view, 0, 0), 5);
  CHECK (weir_picker_pick (WEIR_PICKER_HYBRID, &view, 0, 0.99) > 10);
  // The window moves with the viewer.
  CHECK_INT (weir_picker_pick (WEIR_PICKER_HYBRID, &view, SECOND, 0.99), 5);
}

static void
adaptive_is_hybrid_while_peers_keep_up_and_else_beta (void)
{
  begin ();
  view.window_ns = 10 * SECOND;
  view.swarm_rate = 8000;
  CHECK_INT (weir_picker_pick (WEIR_PICKER_ADAPTIVE, &view, 0, 0.99), 1);
  // Half of the window, of which two transfers are left to the origin.
  view.swarm_rate = 7200;
  CHECK_INT (weir_picker_pick (WEIR_PICKER_ADAPTIVE, &view, 0, 0.99), 3);
  pieces[3] = pieces[4] = HELD;
  CHECK (weir_picker_pick (WEIR_PICKER_ADAPTIVE, &view, 0, 0.99) > 10);
  view.keeps_window = true;
  CHECK_INT (weir_picker_pick (WEIR_PICKER_ADAPTIVE, &view, 0, 0.99), 5);
  view.keeps_window = false;
  view.swarm_rate = 0;
  CHECK (weir_picker_pick (WEIR_PICKER_ADAPTIVE, &view, 0, 0.99) > 10);
  CHECK_INT (weir_picker_pick (WEIR_PICKER_ADAPTIVE, &view, 0, 0), 5);
  // With a storage of few pieces, something remains to be asked.
  begin ();
  view.ahead = 3;
  view.window_ns = 900 * SECOND;
  CHECK_INT (weir_picker_pick (WEIR_PICKER_ADAPTIVE, &view, 0, 0.99), 2);
}

static void
adaptive_is_beta_while_nobody_wants_what_is_there (void)
{
  begin ();
  view.swarm_rate = 8000;
  view.keeps_window = view.idle = true;
  CHECK (weir_picker_pick (WEIR_PICKER_ADAPTIVE, &view, 0, 0.99) > 10);
  CHECK_INT (weir_picker_pick (WEIR_PICKER_HYBRID, &view, 0, 0.99), 1);
}

static void
messages_are_added_to_the_limit_of_payload (void)
{
  WeirUpload upload = { 0 };
  uint64_t limit = 0;

  for (int64_t second = 0; second < 100; second++)
    limit = weir_upload_limit (&upload, 1000, 30 * second);
  CHECK (limit >= 1029 && limit <= 1030);
  CHECK_INT (weir_upload_limit (&upload, 1000, 1000000), 1125);
  CHECK_INT (weir_upload_limit (&upload, 1000, 0), 1000); // counted anew
}

static void
peers_are_asked_in_order_as_far_as_the_picker_picks_so (void)
{
  static const struct {
    WeirPicker picker;
    double swarm_rate;
    uint32_t from, ordered;
  } cases[] = {
    { WEIR_PICKER_RAREST, 8000, 1, 1 },
    { WEIR_PICKER_BETA, 8000, 1, 1 },
    { WEIR_PICKER_IN_ORDER, 0, 1, N },
    { WEIR_PICKER_HYBRID, 0, 1, 10 },
    { WEIR_PICKER_ADAPTIVE, 8000, 1, 10 },
    { WEIR_PICKER_ADAPTIVE, 7200, 3, 5 }, // half of the window
    { WEIR_PICKER_ADAPTIVE, 0, 3, 3 },
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t from, ordered;

    begin ();
    view.window_ns = 10 * SECOND;
    view.swarm_rate = cases[i].swarm_rate;
    weir_picker_order (cases[i].picker, &view, 0, &from, &ordered);
    CHECK_INT (from, cases[i].from);
    CHECK_INT (ordered, cases[i].ordered);
  }
}

static void
a_wanted_set_keeps_what_can_still_arrive (void)
{
  static const double draws[WEIR_WANTED_MAX] = { 0 };
  uint32_t wanted[WEIR_WANTED_MAX];
  unsigned n;

  begin ();
  n = weir_picker_refill (WEIR_PICKER_IN_ORDER, &view, 0, draws, wanted, 0, 3);
  CHECK_INT (n, 3);
  for (unsigned i = 0; i < n; i++) {
    CHECK_INT (wanted[i], i + 1);
    CHECK_INT (pieces[i + 1], WANTED);
  }
  // Piece 2 arrived; of piece 1, the first half did, and half a second is left for the rest.
  pieces[2] = HELD;
  arrived[1] = 500;
  n = weir_picker_refill (WEIR_PICKER_IN_ORDER, &view, SECOND / 2, draws, wanted, n, 3);
  CHECK_INT (n, 3);
  CHECK_INT (wanted[0], 1);
  CHECK_INT (wanted[1], 3);
  CHECK_INT (wanted[2], 4);
  n = weir_picker_refill (WEIR_PICKER_IN_ORDER, &view, SECOND / 2 + 1, draws, wanted, n, 3);
  CHECK_INT (n, 3);
  CHECK_INT (wanted[0], 3);
  CHECK_INT (pieces[1], MISSING);
  // Nobody has anything else.
  memset (availability, 0, sizeof availability);
  pieces[3] = HELD;
  n = weir_picker_refill (WEIR_PICKER_IN_ORDER, &view, SECOND / 2, draws, wanted, n, 8);
  CHECK_INT (n, 2);

  // All that can arrive.
  begin ();
  n = weir_picker_refill (WEIR_PICKER_IN_ORDER, &view, 0, draws, wanted, 0, WEIR_WANTED_MAX);
  CHECK_INT (n, N - 1);
}

static uint32_t
draw (uint64_t *state, uint32_t n)
{
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return (uint32_t) ((*state * UINT64_C (0x2545f4914f6cdd1d)) >> 33) % n;
}

static void
no_picker_takes_a_piece_that_cannot_come_in_time (void)
{
  uint64_t state = 21;

  for (int round = 0; round < 200000; round++) {
    const WeirPicker picker = (WeirPicker) draw (&state, 5);
    const int64_t now_ns = draw (&state, 25) * SECOND - draw (&state, 1000);
    uint32_t piece;

    begin ();
    view.peer_rate = 500 * (1 + draw (&state, 40));
    view.swarm_rate = 500 * draw (&state, 20);
    view.lead_ns = draw (&state, 3) * SECOND / 2;
    view.window_ns = draw (&state, 30) * SECOND;
    view.ahead = draw (&state, 8);
    view.playhead.byte = draw (&state, N * 1000);
    for (int i = 0; i < N; i++) {
      pieces[i] = (uint8_t) (draw (&state, 2) ? MISSING : draw (&state, 4));
      availability[i] = (uint16_t) draw (&state, 3);
    }
    piece = weir_picker_pick (picker, &view, now_ns, draw (&state, 1000) / 1000.0);
    if (piece == WEIR_NO_PIECE)
      continue;
    CHECK (piece < N);
    CHECK (pieces[piece] == MISSING && availability[piece] > 0);
    CHECK (weir_playhead_due_ns (&view.playhead, &title, piece)
           >= now_ns + view.lead_ns + (int64_t) (8e12 / view.peer_rate));
    CHECK (view.ahead == 0
           || piece < weir_playhead_piece (&view.playhead, &title, now_ns) + view.ahead);
    if (!tap_ok)
      return;
  }
}

static WeirWatcherView
watch (int64_t spread_ns)
{
  begin ();
  return (WeirWatcherView) { .title = title,
    .pieces = pieces,
    .availability = availability,
    .lead_ns = 2 * SECOND,
    .spread_ns = spread_ns,
    .viewer = 1 };
}

static void
the_watcher_fetches_what_is_missing_one_lead_before_it_is_due (void)
{
  const WeirWatcherView watcher = watch (0);
  int64_t again_ns;

  pieces[0] = HELD;
  pieces[1] = ORIGIN;
  CHECK_INT (weir_watcher_next (&watcher, 0, &again_ns), 2);
  pieces[2] = ORIGIN;
  pieces[3] = HELD;
  pieces[4] = WANTED;
  CHECK_INT (weir_watcher_next (&watcher, 0, &again_ns), WEIR_NO_PIECE);
  CHECK_INT (again_ns, 2 * SECOND);
  CHECK_INT (weir_watcher_next (&watcher, 2 * SECOND, &again_ns), 4);
  // After a seek by the viewer, or a stop: only what is still to be played.
  CHECK_INT (weir_watcher_next (&watcher, 9 * SECOND, &again_ns), 9);
  CHECK_INT (weir_watcher_next (&watcher, N * SECOND, &again_ns), WEIR_NO_PIECE);
  CHECK_INT (again_ns, INT64_MAX);
}

static void
the_watcher_fetches_what_no_peer_has_at_a_drawn_time (void)
{
  const int rounds = 2000;
  double sum = 0;
  int64_t again_ns;
  WeirWatcherView watcher = watch (10 * SECOND);

  for (int i = 0; i < rounds; i++) {
    int64_t at_ns = 0;
    memset (pieces, HELD, sizeof pieces);
    pieces[15] = MISSING;
    availability[15] = 0;
    watcher.viewer = (uint64_t) i;
    CHECK_INT (weir_watcher_next (&watcher, at_ns, &again_ns), WEIR_NO_PIECE);
    at_ns = again_ns;
    CHECK (at_ns >= 3 * SECOND && at_ns <= 13 * SECOND);
    CHECK_INT (weir_watcher_next (&watcher, at_ns - 1, &again_ns), WEIR_NO_PIECE);
    CHECK_INT (weir_watcher_next (&watcher, at_ns, &again_ns), 15);
    sum += (double) at_ns / SECOND;
    // A peer has got it: the deadline counts.
    availability[15] = 1;
    CHECK_INT (
        weir_watcher_next (&watcher, at_ns, &again_ns), at_ns >= 13 * SECOND ? 15 : WEIR_NO_PIECE);
    // A peer is sending it.
    availability[15] = 0;
    pieces[15] = WANTED;
    CHECK_INT (weir_watcher_next (&watcher, 13 * SECOND - 1, &again_ns), WEIR_NO_PIECE);
    CHECK_INT (again_ns, 13 * SECOND);
    if (!tap_ok)
      return;
  }
  CHECK (sum / rounds > 7.7 && sum / rounds < 8.3);
}

static void
the_watcher_fetches_nothing_early_that_the_storage_cannot_hold (void)
{
  WeirWatcherView watcher = watch (10 * SECOND);
  int64_t again_ns;

  memset (pieces, HELD, sizeof pieces);
  pieces[6] = MISSING;
  availability[6] = 0;
  watcher.lead_ns = SECOND;
  for (watcher.viewer = 0; watcher.viewer < 100; watcher.viewer++) {
    watcher.ahead = 4;
    CHECK_INT (weir_watcher_next (&watcher, 3 * SECOND - 1, &again_ns), WEIR_NO_PIECE);
    CHECK_INT (weir_watcher_next (&watcher, 5 * SECOND, &again_ns), 6);
    watcher.ahead = 0;
    if (weir_watcher_next (&watcher, 3 * SECOND - 1, &again_ns) == 6)
      return;
  }
  CHECK (false); // none of the draws was early
}

static void
played_pieces_leave_first_and_of_them_the_most_available (void)
{
  WeirStorageView storage = { pieces, availability, N, 4 };

  begin ();
  CHECK_INT (weir_storage_leave (&storage, 6), WEIR_NO_PIECE);
  for (int i = 0; i < 8; i++)
    pieces[i] = HELD;
  pieces[1] = MISSING;
  availability[1] = 9;
  availability[2] = 5;
  availability[4] = availability[5] = 7;
  CHECK_INT (weir_storage_leave (&storage, 9), 2);
  CHECK_INT (weir_storage_leave (&storage, WEIR_NO_PIECE), 2);
  CHECK_INT (weir_storage_leave (&storage, 2), 0);
  pieces[0] = pieces[2] = pieces[3] = MISSING;
  CHECK_INT (weir_storage_leave (&storage, WEIR_NO_PIECE), WEIR_NO_PIECE);
  // Of those to be played, the last one, if it is needed later than the one that arrives.
  CHECK_INT (weir_storage_leave (&storage, 9), WEIR_NO_PIECE);
  CHECK_INT (weir_storage_leave (&storage, 7), WEIR_NO_PIECE);
  CHECK_INT (weir_storage_leave (&storage, 6), 7);
  pieces[6] = pieces[7] = pieces[5] = MISSING;
  CHECK_INT (weir_storage_leave (&storage, 1), WEIR_NO_PIECE);
}

int
main (void)
{
  RUN (a_piece_is_due_when_its_first_byte_is_played);
  RUN (pickers_have_names);
  RUN (the_first_piece_has_the_time_of_a_transfer_and_the_lead);
  RUN (in_order_takes_the_first_piece_that_a_peer_has);
  RUN (rarest_draws_one_of_the_rarest);
  RUN (beta_draws_from_its_distribution);
  RUN (beta_counts_only_pieces_that_can_be_asked);
  RUN (hybrid_is_in_order_within_its_window_and_beta_behind_it);
  RUN (adaptive_is_hybrid_while_peers_keep_up_and_else_beta);
  RUN (adaptive_is_beta_while_nobody_wants_what_is_there);
  RUN (messages_are_added_to_the_limit_of_payload);
  RUN (peers_are_asked_in_order_as_far_as_the_picker_picks_so);
  RUN (a_wanted_set_keeps_what_can_still_arrive);
  RUN (no_picker_takes_a_piece_that_cannot_come_in_time);
  RUN (the_watcher_fetches_what_is_missing_one_lead_before_it_is_due);
  RUN (the_watcher_fetches_what_no_peer_has_at_a_drawn_time);
  RUN (the_watcher_fetches_nothing_early_that_the_storage_cannot_hold);
  RUN (played_pieces_leave_first_and_of_them_the_most_available);
  return tap_done ();
}
