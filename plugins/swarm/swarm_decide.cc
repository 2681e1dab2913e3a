// SPDX-License-Identifier: LGPL-2.1-or-later
// The decisions of a swarm: what is asked of peers and of the origin. On the thread of loop.h.
#include <algorithm>
#include <cmath>

#include <libtorrent/hasher.hpp>

#include "clock.h"
#include "loop.h"
#include "origin.h"
#include "peer.h"
#include "swarm.h"

extern "C" {
#include "swarm/watcher.h"
}

#define MS INT64_C (1000000)
#define SECOND (1000 * MS)
#define GAP_NS (10 * MS)       // between two decisions, and a microsecond more for each piece
#define AGAIN_NS (250 * MS)    // after which the swarm decides again if nothing happens
#define FETCHES_MAX 4          // at the origin
#define FETCH_TIMEOUT_MS 20000 // of one
#define RATE_UNKNOWN 8e6       // bits a second, before a reader has read for a second
#define RATE_LEAST 200e3
#define LEAD_LEAST_NS (500 * MS)
#define LEAD_MOST_NS (30 * SECOND)
#define BACK_OFF_NS SECOND
#define BACK_OFF_MOST_NS (10 * SECOND)
#define PATIENCE_NS (2 * SECOND) // with the origin
#define SETTLING_NS (2 * SECOND)
#define SENDING 4 // peers
#define WANTED_LEAST 3
#define WANTED_MOST 8
#define FIRST 7 // priorities of libtorrent
#define LATER 1
#define NEVER 0

// What is to be done once the lock is released.
struct Swarm::Work {
  std::shared_ptr<Session> session;
  lt::torrent_handle handle;
  std::vector<std::pair<lt::piece_index_t, lt::download_priority_t>> priorities;
  std::vector<uint32_t> fetches, untold, leaving, back;
  int64_t again_ns = INT64_MAX;
  bool leaves = false;
};

void
Swarm::wake (int64_t at_ns)
{
  const int64_t due_ns = std::max (at_ns, m_decided_ns + GAP_NS + 1000 * int64_t (m_title.pieces));

  if (due_ns >= m_wake_ns || !m_session)
    return;
  m_wake_ns = due_ns;
  g_source_set_ready_time (m_source, due_ns / 1000);
}

double
Swarm::bit_rate () const
{
  double rate = m_bit_rate;

  if (rate > 0)
    return rate;
  for (const SwarmReader *reader : m_readers)
    rate = std::max (rate, reader->active ? reader->rate : 0);
  return rate > 0 ? std::max (rate, RATE_LEAST) : RATE_UNKNOWN;
}

bool
Swarm::origin_usable (int64_t now_ns) const
{
  return !m_settings.origin.empty () && now_ns >= m_origin_again_ns;
}

int64_t
Swarm::patience_ns () const
{
  return std::max (PATIENCE_NS, int64_t (6 * m_fetch_ns));
}

// Whether the origin has been asked, and has answered nothing for long.
bool
Swarm::origin_is_silent (int64_t now_ns) const
{
  return std::any_of (m_pieces.begin (), m_pieces.end (), [this, now_ns] (const Piece &piece) {
    return piece.fetch
           && now_ns - std::max (piece.fetched_ns, m_origin_answered_ns) > patience_ns ();
  });
}

// A reader whose output is full, or that is paused, is waited for where it would be soon.
WeirPlayhead
Swarm::playhead (const SwarmReader &reader, int64_t now_ns) const
{
  const auto most_ns = int64_t (reader.last_bytes * 8e9 / bit_rate ()) + SECOND;

  return { reader.next, reader.waiting ? now_ns : std::max (reader.read_ns, now_ns - most_ns) };
}

void
Swarm::start_fetch (uint32_t piece, Work &work)
{
  m_states[piece] = WEIR_PIECE_ORIGIN;
  m_pieces[piece].fetched_ns = clock_now_ns ();
  m_n_fetches++;
  work.fetches.push_back (piece);
}

// Whether it is known which pieces no peer has. Connections take a moment.
bool
Swarm::knows_peers (int64_t now_ns) const
{
  return !m_left && !m_peers.empty () && m_n_silent == 0 && now_ns - m_opened_ns > SETTLING_NS;
}

void
Swarm::decide_for (SwarmReader &reader, int64_t now_ns, Work &work)
{
  const auto lead_ns =
      std::clamp (int64_t (3 * m_fetch_ns), int64_t (LEAD_LEAST_NS), int64_t (LEAD_MOST_NS));
  const auto none = [this] (uint32_t piece) { return title_range (m_title, piece).length == 0; };
  std::vector<uint8_t> states;
  std::vector<uint16_t> availability (m_title.pieces);
  double draws[WEIR_WANTED_MAX];
  WeirSwarmTitle title = m_title.swarm;
  WeirPlayhead head = playhead (reader, now_ns);
  const bool usable = origin_usable (now_ns);
  const bool answers = usable && !m_silent;

  title.bit_rate = bit_rate ();
  if (usable) {
    // What has left libtorrent's view of missing pieces cannot come from peers.
    for (uint32_t i = 0; i < m_title.pieces; i++)
      availability[i] = m_pieces[i].told || m_left ? 0 : m_known[i];
    states = m_states;
    for (const uint32_t i : { 0u, m_title.pieces - 1 }) {
      if (none (i))
        states[i] = WEIR_PIECE_HELD; // the origin does not have it
    }
    const WeirWatcherView view = { title, head, states.data (), availability.data (), lead_ns,
      knows_peers (now_ns) ? m_settings.window_ns / 3 * 2 : 0, m_viewer,
      m_ahead ? std::max (m_ahead / 2, 1u) : 0 };
    int64_t again_ns = INT64_MAX;
    uint32_t piece;
    while (m_n_fetches < FETCHES_MAX
           && (piece = weir_watcher_next (&view, now_ns, &again_ns)) != WEIR_NO_PIECE) {
      // What is further away than the storage holds would leave at once.
      if (m_ahead && piece >= (reader.piece == WEIR_NO_PIECE ? 0 : reader.piece) + m_ahead)
        break;
      start_fetch (piece, work);
      states[piece] = WEIR_PIECE_ORIGIN;
    }
    work.again_ns = std::min (work.again_ns, again_ns);
  }
  if (m_left)
    return;
  // Before a piece has come, peers are expected to send together at the title's rate.
  const double transfer_ns = m_transfer_ns > 0 ? m_transfer_ns + m_transfer_spread_ns
                                               : SENDING * title.piece_bytes * 8e9 / title.bit_rate;
  for (uint32_t i = 0; i < m_title.pieces; i++)
    availability[i] = m_pieces[i].told ? 0 : m_n_sending ? m_ready[i] : m_known[i];
  WeirPickerView view = { title, head, m_states.data (), availability.data (), m_arrived.data (),
    title.piece_bytes * 8e9 / transfer_ns, m_swarm_rate, lead_ns + lead_ns / 4,
    m_settings.window_ns, m_ahead, true, !m_peers.empty () && m_n_interested == 0 };
  if (!answers) {
    // Without an origin nothing can come too late: the reader waits.
    view.playhead.byte -= view.playhead.byte % title.piece_bytes;
    view.playhead.at_ns = now_ns + view.lead_ns + int64_t (std::ceil (transfer_ns)) + 1;
  }
  weir_picker_order (m_settings.picker, &view, now_ns, &reader.first, &reader.ordered);
  if (!answers)
    reader.first = 0;
  // Those that were asked of peers, and as many to be asked next.
  const auto asked = unsigned (std::count_if (reader.wanted, reader.wanted + reader.n_wanted,
      [this] (uint32_t piece) { return m_pieces[piece].asked > 0; }));
  unsigned most = std::clamp (m_n_sending + 2, unsigned (WANTED_LEAST), unsigned (WANTED_MOST));
  most = std::min (asked + most, unsigned (WEIR_WANTED_MAX));
  if (m_ahead)
    most = std::clamp (m_ahead / 3, 1u, most);
  std::generate_n (draws, most, g_random_double);
  reader.n_wanted = weir_picker_refill (
      m_settings.picker, &view, now_ns, draws, reader.wanted, reader.n_wanted, most);
}

// Returns libtorrent's priority of a piece that is not held. With `ahead`, what was played has to
// wait.
int
Swarm::priority (uint32_t piece, bool ahead, int64_t now_ns) const
{
  bool played = true, ordered = false;

  for (const SwarmReader *reader : m_readers) {
    if (!reader->active)
      continue;
    // Who waits gets help from peers where the origin is slow, or does not have the piece.
    if (reader->waiting && reader->piece == piece
        && (m_states[piece] != WEIR_PIECE_ORIGIN || now_ns - reader->waiting_ns > patience_ns ()))
      return FIRST;
    played &= reader->piece != WEIR_NO_PIECE && piece < reader->piece;
    // Too late for peers: the origin will be asked.
    if (m_states[piece] == WEIR_PIECE_MISSING && reader->piece != WEIR_NO_PIECE
        && piece >= reader->piece && piece < reader->first)
      return NEVER;
    if (m_ahead && reader->piece != WEIR_NO_PIECE && piece >= reader->piece + m_ahead)
      played = true;
    ordered |= piece >= reader->first && piece < reader->ordered;
  }
  if (m_states[piece] == WEIR_PIECE_ORIGIN)
    return m_silent ? FIRST : NEVER;
  if (m_states[piece] == WEIR_PIECE_WANTED)
    return ordered ? LATER : FIRST;
  return played && (m_ahead || ahead) ? NEVER : LATER;
}

// libtorrent takes pieces of the highest priority before all others, which it takes in order. It
// looks for them among pieces sorted by the peers that have them, times 8 less the priority, and
// misses those behind a piece of another priority.
void
Swarm::set_priorities (int64_t now_ns, Work &work)
{
  const bool ahead = std::any_of (m_states.begin () + playing (now_ns), m_states.end (),
      [] (uint8_t state) { return state != WEIR_PIECE_HELD; });
  std::vector<uint8_t> priorities (m_title.pieces);
  unsigned most = 0;

  for (uint32_t i = 0; i < m_title.pieces; i++) {
    priorities[i] = m_states[i] == WEIR_PIECE_HELD ? 0 : uint8_t (priority (i, ahead, now_ns));
    if (priorities[i] == FIRST)
      most = std::max (most, m_known[i] - m_n_seeds + 1);
  }
  for (uint32_t i = 0; i < m_title.pieces; i++) {
    if (m_pieces[i].told || m_states[i] == WEIR_PIECE_HELD)
      continue;
    const bool hides = priorities[i] == LATER && (8 - LATER) * (m_known[i] - m_n_seeds + 1) <= most;
    const uint8_t wanted = hides ? NEVER : priorities[i];
    if (wanted == m_priorities[i])
      continue;
    m_priorities[i] = wanted;
    work.priorities.emplace_back (
        lt::piece_index_t (int (m_title.first + i)), lt::download_priority_t (wanted));
  }
}

bool
Swarm::stays () const
{
  return std::any_of (m_readers.begin (), m_readers.end (), [this] (const SwarmReader *reader) {
    return reader->leave == Leave::SEED
           || (reader->leave == Leave::STREAM ? !reader->ended : !m_stats.finished);
  });
}

void
Swarm::decide ()
{
  const int64_t now_ns = clock_now_ns ();
  Work work;
  bool reads = false;

  {
    std::lock_guard<std::mutex> lock (m_lock);

    // Who has left has no torrent anymore, but may read what the origin has.
    if (!m_session || (!m_left && !m_handle.is_valid ()))
      return;
    work.session = m_session;
    work.handle = m_handle;
    m_decided_ns = now_ns;
    m_wake_ns = INT64_MAX;
    g_source_set_ready_time (m_source, -1);
    m_silent = origin_is_silent (now_ns);
    for (SwarmReader *reader : m_readers) {
      if (reader->active && !reader->ended) {
        decide_for (*reader, now_ns, work);
        reads = true;
      }
    }
    if (!m_left && !stays ())
      work.leaves = m_left = true;
    if (!m_left) {
      set_priorities (now_ns, work);
      if (m_checked)
        work.untold.swap (m_untold);
      work.leaving.swap (m_leaving);
      work.back.swap (m_back);
    } else {
      m_untold.clear ();
      m_leaving.clear ();
      m_back.clear ();
    }
    if (reads)
      wake (std::min (work.again_ns, now_ns + AGAIN_NS));
  }
  if (work.leaves)
    work.session->remove (work.handle);
  else if (!work.priorities.empty ())
    work.handle.prioritize_pieces (work.priorities);
  cancel_requests (work.session, work.fetches);
  for (const uint32_t piece : work.fetches) {
    const TitleRange range = title_range (m_title, piece);
    m_pieces[piece].fetch = origin_get (
        { m_settings.origin, m_title.size, range.offset, range.length, FETCH_TIMEOUT_MS },
        [self = shared_from_this (), piece, range] (const std::vector<char> &bytes,
            const std::string &why) { self->on_fetched (piece, range, bytes, why); });
  }
  hand_over (std::move (work.untold));
  tell_peers (work.session, std::move (work.leaving), std::move (work.back));
}

// ---- the origin ----

void
Swarm::origin_failed (const std::string &why)
{
  const int64_t now_ns = clock_now_ns ();
  bool other;

  {
    std::lock_guard<std::mutex> lock (m_lock);

    m_stats.origin_errors++;
    if (now_ns >= m_origin_again_ns) {
      m_back_off_ns = std::clamp (2 * m_back_off_ns, BACK_OFF_NS, BACK_OFF_MOST_NS);
      m_origin_again_ns = now_ns + m_back_off_ns;
    }
    other = m_stats.origin_error != why;
    m_stats.origin_error = why;
    wake (now_ns);
  }
  if (other)
    warn ("the origin is of no use for now, peers go on: " + why);
}

void
Swarm::on_fetched (
    uint32_t piece, const TitleRange &range, const std::vector<char> &bytes, const std::string &why)
{
  bool wanted, closed;

  g_clear_object (&m_pieces[piece].fetch);
  {
    std::lock_guard<std::mutex> lock (m_lock);
    const auto took_ns = double (clock_now_ns () - m_pieces[piece].fetched_ns);

    m_n_fetches--;
    closed = !m_session;
    wanted = m_states[piece] == WEIR_PIECE_ORIGIN;
    if (why.empty ()) {
      m_stats.origin_bytes += bytes.size ();
      m_fetch_ns += (took_ns - m_fetch_ns) / 4;
      m_back_off_ns = 0;
      m_origin_answered_ns = clock_now_ns ();
    } else if (wanted) {
      m_states[piece] = WEIR_PIECE_MISSING;
    }
    wake (0);
  }
  if (closed)
    return;
  if (!why.empty ()) {
    origin_failed (why);
  } else if (wanted && !add_fetched (piece, range, bytes)) {
    {
      std::lock_guard<std::mutex> lock (m_lock);

      m_stats.wrong_bytes += bytes.size ();
      if (m_states[piece] == WEIR_PIECE_ORIGIN)
        m_states[piece] = WEIR_PIECE_MISSING;
    }
    origin_failed (
        "its bytes are not the torrent's: piece " + std::to_string (piece) + " does not hash");
  }
}

// Returns false if the bytes are wrong.
bool
Swarm::add_fetched (uint32_t piece, const TitleRange &range, const std::vector<char> &bytes)
{
  std::vector<char> whole (m_title.piece_bytes (piece));
  std::shared_ptr<Slot> slot;

  std::copy (bytes.begin (), bytes.end (), whole.begin () + range.in_piece);
  if (lt::hasher (whole).final ()
      != m_title.info->hash_for_piece (lt::piece_index_t (int (m_title.first + piece))))
    return false;
  slot = m_slots->take ();
  const bool written = slot->write (0, whole.data (), whole.size ());
  {
    std::lock_guard<std::mutex> lock (m_lock);

    if (!written) {
      m_failure = "cannot write the storage: " + std::string (g_strerror (errno));
      m_changed.notify_all ();
      return true;
    }
    if (m_states[piece] != WEIR_PIECE_ORIGIN)
      return true; // peers were faster
    m_stats.duplicate_bytes += m_arrived[piece];
    m_pieces[piece].slot = slot;
    hold (piece, clock_now_ns ());
    if (m_states[piece] == WEIR_PIECE_HELD) {
      if (m_pieces[piece].told)
        m_back.push_back (piece);
      else
        m_untold.push_back (piece);
    }
  }
  return true;
}

// Gives pieces from the origin to libtorrent, which tells peers.
void
Swarm::hand_over (std::vector<uint32_t> pieces)
{
  for (const uint32_t piece : pieces) {
    std::vector<char> bytes (m_title.piece_bytes (piece));
    const int number = int (m_title.first + piece);
    lt::torrent_handle handle;

    {
      std::lock_guard<std::mutex> lock (m_lock);

      if (m_states[piece] != WEIR_PIECE_HELD)
        continue;
      handle = m_handle;
    }
    if (read (number, 0, bytes.data (), int (bytes.size ())))
      handle.add_piece (lt::piece_index_t (number), std::move (bytes));
  }
}
