// SPDX-License-Identifier: LGPL-2.1-or-later
// Serves one reader: takes the packets due to it in hand and chooses those that it gets.
#include <errno.h>

#include "fanout/serve_private.h"

// Lags at which a reader is restricted (see WeirReaderState).
#define LAG_NO_UPPER_LAYERS (250 * MS)
#define LAG_REFERENCES (500 * MS)
#define LAG_KEYFRAMES (1000 * MS)
// A restriction is eased after the reader's lag was below LAG_WELL for WELL_TIME.
#define LAG_WELL (100 * MS)
#define WELL_TIME (5000 * MS)
// A connection that takes no data for this long is closed.
#define STALL_TIME (10000 * MS)

// Readers with a delay are served at multiples of this time, so that the readers of a shard share
// sends.
#define BEAT (5 * MS)

// Within this time after catching up, frames may come that are presented before the first frame at
// the live edge.
#define JOIN_SETTLE (1000 * MS)

void
weir_server_init (Server *server, const WeirSendOps *ops)
{
  if (server->ready)
    return;
  for (size_t i = 0; i < N_LOADS; i++)
    weir_sender_init (&server->loads[i].sender, ops);
  server->ready = true;
}

void
weir_server_clear (Server *server)
{
  weir_span_clear (&server->hand.packets);
  server->hand.valid = false;
  server->loads[IN_PLACE].valid = server->loads[COPIED].valid = false;
}

// ---- the packets in hand ----

// Returns the arrival of a packet plus the reader's delay.
static int64_t
came_ns (const WeirReader *reader, const WeirPacket *packet)
{
  return packet->arrival_ns + reader_delay (reader);
}

static int64_t
next_beat (int64_t due_ns)
{
  return (due_ns + BEAT - 1) / BEAT * BEAT;
}

// Returns the end of the packets that are due to a reader with a delay, between `from` and `to`. If
// it is `from`, sets when the reader has to be served again. Under the lock.
static int64_t
end_of_due (const Pass *pass, WeirReader *reader, int64_t from, int64_t to)
{
  bool joining = reader_joining (reader);
  int64_t end = from;

  if (to > from + WEIR_STAGE_PACKETS)
    to = from + WEIR_STAGE_PACKETS;
  for (; end < to; end++) {
    int64_t due = came_ns (reader, weir_window_at (&pass->fanout->window, end));

    if (joining)
      due = weir_join_due (&reader->join, due);
    if (due > pass->now_ns) {
      if (end == from)
        reader->next_ns = next_beat (due);
      break;
    }
  }
  return end;
}

// Takes the packets of the reader's stream from its cursor on in hand. Under the lock.
static void
take_hand (Pass *pass, WeirReader *reader, int64_t from, int64_t to)
{
  WeirFanout *fanout = pass->fanout;
  const LayerStream *stream = atomic_load_explicit (&reader->stream, memory_order_relaxed);
  const WeirWindow *window = stream ? &stream->window : &fanout->window;
  int64_t at = stream ? weir_window_find (window, from) : from;
  Hand *hand = &pass->server->hand;

  hand->stream = stream ? stream->id : 0;
  hand->from = from;
  hand->past_extra = reader->past_extra;
  if (reader->past_extra && stream && at < window->head
      && weir_window_at (window, at)->flags & WEIR_PACKET_EXTRA)
    at++;
  hand->to = to;
  hand->valid = true;
  if (stream ? at < window->head && weir_window_at (window, at)->position < to : at < to)
    weir_window_span (window, at, stream ? weir_window_find (window, to) : to, &hand->packets);
  at += (int64_t) hand->packets.n;
  if (!stream)
    hand->to = at;
  else if (at < window->head && weir_window_at (window, at)->position < to)
    hand->to = weir_window_at (window, at)->position;
}

// Reports whether the packets in hand are those of the reader's stream from its cursor on.
static bool
has_hand (const Pass *pass, const WeirReader *reader)
{
  const LayerStream *stream = atomic_load_explicit (&reader->stream, memory_order_relaxed);
  const Hand *hand = &pass->server->hand;

  // The stream stays as long as the reader uses it.
  return hand->valid && hand->from == get_cursor (reader) && hand->past_extra == reader->past_extra
         && hand->stream == (stream ? stream->id : 0);
}

// Sets `from` to where the reader goes on, and chooses its stream. Returns the end of the packets
// that are due to it in this stream; `from`: none is. Under the lock.
static int64_t
find_span (const Pass *pass, WeirReader *reader, int64_t *from)
{
  int64_t to;

  if (*from < pass->fanout->window.tail)
    *from = weir_reader_move_on (pass->fanout, reader, pass->now_ns);
  to = weir_choose_stream (pass, reader, *from);
  return to > *from && reader_delay (reader) > 0 ? end_of_due (pass, reader, *from, to) : to;
}

// Takes the reader's next packets in hand. Returns false if there are none or it has to wait.
static bool
take_span (Pass *pass, WeirReader *reader)
{
  WeirFanout *fanout = pass->fanout;
  int64_t cursor = get_cursor (reader), from = cursor, to;
  WeirDrop reason = WEIR_DROP_OVERRUN;
  bool late = reader->late && reader->blocked_since;

  reader->late = false;
  if (!late && weir_reader_is_steady (fanout, reader) && has_hand (pass, reader))
    return true;

  pthread_mutex_lock (&fanout->lock);
  if (late) {
    from = weir_reader_target (fanout, reader, pass->now_ns);
    reason = WEIR_DROP_WOULD_BLOCK;
  }
  if (from < cursor)
    from = cursor;
  if (from < fanout->window.tail)
    reason = WEIR_DROP_OVERRUN;
  to = find_span (pass, reader, &from);
  // A reader that waits for other layers may stay in the same stream.
  if (from == cursor && has_hand (pass, reader) && pass->server->hand.to <= to) {
    pthread_mutex_unlock (&fanout->lock);
    return true;
  }
  pthread_mutex_unlock (&fanout->lock);
  weir_serve_send_batch (pass);
  weir_server_clear (pass->server);

  pthread_mutex_lock (&fanout->lock);
  if (from < fanout->window.tail) {
    reason = WEIR_DROP_OVERRUN;
    to = find_span (pass, reader, &from);
  }
  if (to > from)
    take_hand (pass, reader, from, to);
  pthread_mutex_unlock (&fanout->lock);

  weir_span_read_ahead (&pass->server->hand.packets);
  if (from > cursor) {
    if (late)
      reader->blocked_since = 0;
    advance (pass, reader, from);
    drop (pass, reader, (uint64_t) (from - cursor), reason);
  }
  return to > from;
}

// ---- which packets ----

static WeirReaderState
get_state (const WeirReader *reader)
{
  return (WeirReaderState) atomic_load_explicit (&reader->state, memory_order_relaxed);
}

static void
set_wanted (const Pass *pass, WeirReader *reader, WeirReaderState wanted)
{
  atomic_store_explicit (&reader->wanted, (int) wanted, memory_order_relaxed);
  tell_news (pass);
}

static void
judge_lag (const Pass *pass, WeirReader *reader, int64_t lag_ns)
{
  WeirReaderState wanted = WEIR_READER_OK, before = get_wanted_by_lag (reader);

  if (reader_joining (reader))
    return;
  if (lag_ns >= LAG_KEYFRAMES)
    wanted = WEIR_READER_KEYFRAMES;
  else if (lag_ns >= LAG_REFERENCES)
    wanted = WEIR_READER_REFERENCES;
  else if (lag_ns >= LAG_NO_UPPER_LAYERS)
    wanted = WEIR_READER_NO_UPPER_LAYERS;

  if (wanted > before)
    set_wanted (pass, reader, wanted);
  if (lag_ns > LAG_WELL) {
    reader->well_since = 0;
  } else if (reader->well_since == 0) {
    reader->well_since = pass->now_ns;
  } else if (before > WEIR_READER_OK && pass->now_ns - reader->well_since >= WELL_TIME) {
    set_wanted (pass, reader, before - 1);
    reader->well_since = pass->now_ns;
  }
}

// Reports whether the reader adopts its wanted state at this packet: at the start of a frame, and
// for a better state only where a decoder can start. Frames are never cut.
static bool
adopts_wanted (WeirReaderState state, WeirReaderState wanted, const WeirPacket *packet)
{
  return wanted != state && packet->flags & WEIR_PACKET_START
         && (wanted > state || packet->flags & WEIR_PACKET_KEY);
}

static bool
is_thinned (const Pass *pass, WeirReaderState state, const WeirPacket *packet)
{
  if (state == WEIR_READER_OK || !(packet->flags & WEIR_PACKET_RTP))
    return false;
  // If the stream has layers, the reader gets another stream instead (serve_layers.c).
  if (!pass->has_layers && (packet->spatial > 0 || packet->quality > 0 || packet->temporal > 0))
    return true;
  if (state >= WEIR_READER_REFERENCES && packet->flags & WEIR_PACKET_DISCARDABLE)
    return true;
  return state >= WEIR_READER_KEYFRAMES && !(packet->flags & WEIR_PACKET_KEY);
}

static bool
is_plain (const WeirReader *reader)
{
  return reader->join.rate == 0 && reader_delay (reader) == 0
         && get_wanted (reader) == WEIR_READER_OK && reader_is (reader, WEIR_READER_OK);
}

static Choice
choose (Pass *pass, WeirReader *reader)
{
  const WeirSpan *span = &pass->server->hand.packets;
  bool joining = reader_joining (reader);
  Choice choice = { .next_ns = WEIR_NEVER, .adopt_at = NOT_HERE, .live_at = NOT_HERE };
  WeirReaderState state = get_state (reader), wanted;

  judge_lag (pass, reader, pass->now_ns - came_ns (reader, &span->packets[0]));
  wanted = get_wanted (reader);
  if (is_plain (reader))
    return all_in_hand (pass);

  for (size_t i = 0; i < span->n; i++) {
    const WeirPacket *packet = &span->packets[i];
    int64_t came = came_ns (reader, packet);
    int64_t due = joining ? weir_join_due (&reader->join, came) : came;

    if (due > pass->now_ns) {
      choice.next_ns = reader_delay (reader) > 0 ? next_beat (due) : due;
      break;
    }
    // Frames are never cut: a frame is sent or left out as a whole.
    if (joining && due == came
        && (packet->flags & WEIR_PACKET_START || !(packet->flags & WEIR_PACKET_RTP))) {
      joining = false;
      choice.live_at = i;
    }
    if (adopts_wanted (state, wanted, packet)) {
      state = wanted;
      choice.adopt_at = i;
    }
    choice.n++;
    // The reader's plan announced its first frame, so that frame is never left out.
    if (joining && packet->position < reader->skip_to && packet->flags & WEIR_PACKET_DISCARDABLE
        && !pass->is_stacked && packet->rtp_time != reader->join.from_time)
      choice.n_catch_up++;
    else if (is_thinned (pass, state, packet))
      choice.n_thinned++;
    else
      choice.mask |= UINT64_C (1) << i;
  }
  if (!joining && reader->join.rate > 0
      && came_ns (reader, &span->packets[0]) - reader->join.begun_ns
             > reader->join.begun_ns - reader->join.from_arrival + JOIN_SETTLE)
    reader->join.rate = 0;
  return choice;
}

// Reports whether the reader has waited for room too long. Call after a failed send: time alone
// does not show it, because the reader's turn may come late.
static bool
is_late (const Pass *pass, const WeirReader *reader)
{
  int64_t since = reader->blocked_since, moved;

  if (pass->now_ns - since <= UDP_PATIENCE)
    return false;
  moved = reader->room ? weir_room_moved (reader->room) : 0;
  return pass->now_ns - moved > UDP_PATIENCE || pass->now_ns - since > UDP_PATIENCE_MOST;
}

// Returns when to try a reader with a full socket again.
static int64_t
look_again (const Pass *pass, const WeirReader *reader)
{
  bool watched = reader->room && weir_room_watch (reader->room, pass->shard);

  return pass->now_ns + (watched ? UDP_PATIENCE : UDP_RETRY);
}

void
weir_serve_wait_for_room (Pass *pass, Turn *turn)
{
  WeirReader *reader = turn->reader;

  if (reader->blocked_since == 0)
    reader->blocked_since = pass->now_ns;
  if (!reader->conn) {
    pass->n_blocked[family_of (reader)]++;
    if (!reader->room)
      reader->room = weir_room_of (pass->fanout, reader->fd);
    reader->late = is_late (pass, reader);
    if (!reader->late)
      end_turn (turn, look_again (pass, reader));
    return;
  }
  if (pass->now_ns - reader->blocked_since > STALL_TIME) {
    weir_conn_break (reader->conn, ETIMEDOUT);
    set_state (pass, reader, WEIR_READER_CLOSED);
  }
  end_turn (turn, WEIR_NEVER); // the connection's watcher wakes the shard
}

// Skips the packets in hand, of which the reader's layers have none.
static void
skip_layers (const Pass *pass, WeirReader *reader)
{
  int64_t to = pass->server->hand.to;

  drop (pass, reader, (uint64_t) (to - get_cursor (reader)), WEIR_DROP_LAYERS);
  advance (pass, reader, to);
}

// Moves a paused reader that fell behind the window's tail.
static void
keep_in_window (Pass *pass, WeirReader *reader)
{
  int64_t cursor = get_cursor (reader), to = cursor;

  if (cursor >= pass->tail)
    return;
  pthread_mutex_lock (&pass->fanout->lock);
  if (cursor < pass->fanout->window.tail)
    to = weir_reader_move_on (pass->fanout, reader, pass->now_ns);
  pthread_mutex_unlock (&pass->fanout->lock);
  advance (pass, reader, to);
  drop (pass, reader, (uint64_t) (to - cursor), WEIR_DROP_OVERRUN);
}

// Serves one turn. Returns true if the reader was added to the batch.
static bool
serve (Pass *pass, Turn *turn)
{
  WeirReader *reader = turn->reader;
  Choice choice;

  if (reader_paused (reader)) {
    keep_in_window (pass, reader);
    end_turn (turn, WEIR_NEVER);
  } else if (reader->next_ns > pass->now_ns) {
    end_turn (turn, reader->next_ns);
  } else if (get_cursor (reader) >= pass->head
             || atomic_load_explicit (&reader->removed, memory_order_relaxed)
             || reader_is (reader, WEIR_READER_CLOSED)) {
    reader->next_ns = 0;
    end_turn (turn, WEIR_NEVER);
  } else if (is_full (pass, reader)) {
    reader->next_ns = 0;
    end_turn (turn, pass->now_ns + UDP_PATIENCE);
  } else {
    reader->next_ns = 0;
    if (!take_span (pass, reader)) {
      end_turn (turn, reader->next_ns ? reader->next_ns : WEIR_NEVER);
    } else if (pass->server->hand.packets.n == 0) {
      skip_layers (pass, reader);
    } else {
      choice = choose (pass, reader);
      if (reader->is_protected)
        weir_serve_spread (pass, reader, &choice);
      if (weir_serve_join_batch (pass, turn, &choice))
        return true;
      if (choice.n > 0 && !weir_serve_send (pass, reader, &choice))
        weir_serve_wait_for_room (pass, turn);
      else if (choice.next_ns != WEIR_NEVER)
        end_turn (turn, choice.next_ns);
      else
        turn->more = get_cursor (reader) < pass->head;
    }
  }
  return false;
}

void
weir_serve_turn (Pass *pass, Turn *turn)
{
  WeirReader *reader = turn->reader;

  // A reader whose priority changes is in two shards for a moment.
  if (atomic_flag_test_and_set_explicit (&reader->busy, memory_order_acquire)) {
    end_turn (turn, pass->now_ns + UDP_RETRY);
    return;
  }
  pass->times = reader_times (reader, &pass->settings);
  if (serve (pass, turn)) // it is in the batch
    return;
  if (reader->probing)
    weir_serve_probe (pass, turn);
  reader_release (reader);
}
