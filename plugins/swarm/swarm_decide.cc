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
#define FETCHES_MAX 4          // at the origin, for a file
#define PARTS_MAX 16           // of a piece, in as many files
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

// What the origin gives of a piece in one file.
struct Swarm::Part {
  TitleRange range;
  std::string url;
  uint64_t file_bytes;
};

struct Swarm::Fetch {
  uint32_t piece;
  std::vector<Part> parts;
  std::size_t next; // part
  uint64_t came;    // bytes
  std::vector<char> bytes;
};

// What is to be done once the lock is released.
struct Swarm::Work {
  std::shared_ptr<Session> session;
  lt::torrent_handle handle;
  std::vector<std::pair<lt::piece_index_t, lt::download_priority_t>> priorities;
  std::vector<std::shared_ptr<Fetch>> fetches;
  std::vector<uint32_t> fetched, untold, leaving, back;
  int64_t again_ns = INT64_MAX;
  bool leaves = false;
};

void
Swarm::wake (int64_t at_ns)
{
  const int64_t due_ns = std::max (at_ns, m_decided_ns + GAP_NS + 1000 * int64_t (n_pieces ()));

  if (due_ns >= m_wake_ns || !m_session)
    return;
  m_wake_ns = due_ns;
  g_source_set_ready_time (m_source, due_ns / 1000);
}

double
Swarm::bit_rate (const SwarmFile &file) const
{
  double rate = file.bit_rate;

  if (rate > 0)
    return rate;
  for (const SwarmReader *reader : m_readers)
    rate = std::max (rate, reader->active && reader->file == &file ? reader->rate : 0);
  return rate > 0 ? std::max (rate, RATE_LEAST) : RATE_UNKNOWN;
}

bool
Swarm::origin_usable (const SwarmFile &file, int64_t now_ns) const
{
  return now_ns >= file.origin_again_ns && !url (file.title.file).empty ();
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
  const auto most_ns = int64_t (reader.last_bytes * 8e9 / bit_rate (*reader.file)) + SECOND;

  return { reader.next, reader.waiting ? now_ns : std::max (reader.read_ns, now_ns - most_ns) };
}

// Returns false if the origin does not have the piece.
bool
Swarm::start_fetch (uint32_t piece, Work &work)
{
  std::vector<Part> from = parts (piece);

  if (from.empty ())
    return false;
  m_states[piece] = WEIR_PIECE_ORIGIN;
  m_pieces[piece].fetched_ns = clock_now_ns ();
  m_pieces[piece].fetching = true;
  work.fetched.push_back (piece);
  work.fetches.push_back (std::make_shared<Fetch> (
      Fetch{ piece, std::move (from), 0, 0, std::vector<char> (piece_bytes (piece)) }));
  return true;
}

unsigned
Swarm::count_fetches (const Title &title) const
{
  const auto first = m_pieces.begin () + title.first;

  return unsigned (std::count_if (
      first, first + title.pieces, [] (const Piece &piece) { return piece.fetching; }));
}

// Whether it is known which pieces no peer has. Connections take a moment.
bool
Swarm::knows_peers (int64_t now_ns) const
{
  return !m_left && !m_peers.empty () && m_n_silent == 0 && now_ns - m_opened_ns > SETTLING_NS;
}

// The cores count pieces from the file's first one on.
void
Swarm::decide_for (SwarmReader &reader, int64_t now_ns, Work &work)
{
  const SwarmFile &file = *reader.file;
  const Title &its = file.title;
  const auto lead_ns =
      std::clamp (int64_t (3 * m_fetch_ns), int64_t (LEAD_LEAST_NS), int64_t (LEAD_MOST_NS));
  std::vector<uint8_t> states;
  std::vector<uint16_t> availability (its.pieces);
  double draws[WEIR_WANTED_MAX];
  WeirSwarmTitle title = its.swarm;
  WeirPlayhead head = playhead (reader, now_ns);
  const bool usable = origin_usable (file, now_ns);
  const bool answers = usable && !m_silent;

  head.byte -= uint64_t (its.first) * title.piece_bytes;
  title.bit_rate = bit_rate (file);
  if (usable) {
    // What has left libtorrent's view of missing pieces cannot come from peers.
    for (uint32_t i = 0; i < its.pieces; i++)
      availability[i] = m_pieces[its.first + i].told || m_left ? 0 : m_known[its.first + i];
    states.assign (m_states.begin () + its.first, m_states.begin () + its.first + its.pieces);
    for (const uint32_t i : { 0u, its.pieces - 1 }) {
      if (parts (its.first + i).empty ())
        states[i] = WEIR_PIECE_HELD; // the origin does not have it
    }
    const WeirWatcherView view = { title, head, states.data (), availability.data (), lead_ns,
      knows_peers (now_ns) ? m_settings.window_ns / 3 * 2 : 0, m_viewer,
      file.ahead ? std::max (file.ahead / 2, 1u) : 0 };
    unsigned n_fetches = count_fetches (its);
    int64_t again_ns = INT64_MAX;
    uint32_t piece;
    while (n_fetches++ < FETCHES_MAX
           && (piece = weir_watcher_next (&view, now_ns, &again_ns)) != WEIR_NO_PIECE) {
      // What is further away than the storage holds would leave at once.
      if (file.ahead
          && its.first + piece
                 >= (reader.piece == WEIR_NO_PIECE ? its.first : reader.piece) + file.ahead)
        break;
      states[piece] = start_fetch (its.first + piece, work) ? WEIR_PIECE_ORIGIN : WEIR_PIECE_HELD;
    }
    work.again_ns = std::min (work.again_ns, again_ns);
  }
  if (m_left)
    return;
  // Before a piece has come, peers are expected to send together at the title's rate.
  const double transfer_ns = m_transfer_ns > 0 ? m_transfer_ns + m_transfer_spread_ns
                                               : SENDING * title.piece_bytes * 8e9 / title.bit_rate;
  for (uint32_t i = 0; i < its.pieces; i++) {
    const uint32_t piece = its.first + i;
    availability[i] = m_pieces[piece].told ? 0 : m_n_sending ? m_ready[piece] : m_known[piece];
  }
  WeirPickerView view = { title, head, m_states.data () + its.first, availability.data (),
    m_arrived.data () + its.first, title.piece_bytes * 8e9 / transfer_ns, m_swarm_rate,
    lead_ns + lead_ns / 4, m_settings.window_ns, file.ahead, true,
    !m_peers.empty () && m_n_interested == 0 };
  if (!answers) {
    // Without an origin nothing can come too late: the reader waits.
    view.playhead.byte -= view.playhead.byte % title.piece_bytes;
    view.playhead.at_ns = now_ns + view.lead_ns + int64_t (std::ceil (transfer_ns)) + 1;
  }
  weir_picker_order (m_settings.picker, &view, now_ns, &reader.first, &reader.ordered);
  reader.first = answers ? reader.first + its.first : its.first;
  reader.ordered += its.first;
  // Those that were asked of peers, and as many to be asked next.
  const auto asked = unsigned (std::count_if (reader.wanted, reader.wanted + reader.n_wanted,
      [this] (uint32_t piece) { return m_pieces[piece].asked > 0; }));
  unsigned most = std::clamp (m_n_sending + 2, unsigned (WANTED_LEAST), unsigned (WANTED_MOST));
  most = std::min (asked + most, unsigned (WEIR_WANTED_MAX));
  if (file.ahead)
    most = std::clamp (file.ahead / 3, 1u, most);
  std::generate_n (draws, most, g_random_double);
  for (unsigned i = 0; i < reader.n_wanted; i++)
    reader.wanted[i] -= its.first;
  reader.n_wanted = weir_picker_refill (
      m_settings.picker, &view, now_ns, draws, reader.wanted, reader.n_wanted, most);
  for (unsigned i = 0; i < reader.n_wanted; i++)
    reader.wanted[i] += its.first;
}

// Returns libtorrent's priority of a piece that is not held. With `ahead`, what was played has to
// wait.
int
Swarm::priority (uint32_t piece, bool ahead, int64_t now_ns) const
{
  bool is_read = false, played = true, ordered = false, bounded = false;

  for (const SwarmReader *reader : m_readers) {
    const uint32_t ahead_of = reader->file->ahead;
    if (!reader->file->title.has (piece))
      continue;
    is_read = true;
    bounded |= ahead_of > 0;
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
    if (ahead_of && reader->piece != WEIR_NO_PIECE && piece >= reader->piece + ahead_of)
      played = true;
    ordered |= piece >= reader->first && piece < reader->ordered;
  }
  if (!is_read)
    return NEVER;
  if (m_states[piece] == WEIR_PIECE_ORIGIN)
    return m_silent ? FIRST : NEVER;
  if (m_states[piece] == WEIR_PIECE_WANTED)
    return ordered ? LATER : FIRST;
  return played && (bounded || ahead) ? NEVER : LATER;
}

// libtorrent takes pieces of the highest priority before all others, which it takes in order. It
// looks for them among pieces sorted by the peers that have them, times 8 less the priority, and
// misses those behind a piece of another priority.
void
Swarm::set_priorities (int64_t now_ns, Work &work)
{
  const bool ahead = lacks_ahead ();
  std::vector<uint8_t> priorities (n_pieces ());
  unsigned most = 0;

  for (uint32_t i = 0; i < n_pieces (); i++) {
    priorities[i] = m_states[i] == WEIR_PIECE_HELD ? 0 : uint8_t (priority (i, ahead, now_ns));
    if (priorities[i] == FIRST)
      most = std::max (most, m_known[i] - m_n_seeds + 1);
  }
  for (uint32_t i = 0; i < n_pieces (); i++) {
    if (m_pieces[i].told || m_states[i] == WEIR_PIECE_HELD)
      continue;
    const bool hides = priorities[i] == LATER && (8 - LATER) * (m_known[i] - m_n_seeds + 1) <= most;
    const uint8_t wanted = hides ? NEVER : priorities[i];
    if (wanted == m_priorities[i])
      continue;
    m_priorities[i] = wanted;
    work.priorities.emplace_back (lt::piece_index_t (int (i)), lt::download_priority_t (wanted));
  }
}

bool
Swarm::stays () const
{
  return std::any_of (m_readers.begin (), m_readers.end (), [] (const SwarmReader *reader) {
    const bool finished = reader->file->n_come == reader->file->title.pieces;
    return reader->leave == Leave::SEED
           || (reader->leave == Leave::STREAM ? !reader->ended : !finished);
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
    while_there ([&] { work.handle.prioritize_pieces (work.priorities); });
  cancel_requests (work.session, std::move (work.fetched));
  for (const auto &fetch : work.fetches)
    fetch_next (fetch);
  hand_over (std::move (work.untold));
  tell_peers (work.session, std::move (work.leaving), std::move (work.back));
}

// ---- the origin ----

// Returns where a file is at the origin, or "".
std::string
Swarm::url (lt::file_index_t file) const
{
  const auto found = m_files.find (file);
  std::string text = m_folder;

  if (found != m_files.end () && !found->second.origin.empty ())
    return found->second.origin;
  if (!text.empty ()) {
    gchar *path = g_uri_escape_string (title_path (*m_info, file).c_str (), "/", FALSE);
    text += path;
    g_free (path);
  }
  return text;
}

// Returns what the origin is asked for, or nothing if it does not have all of the piece.
std::vector<Swarm::Part>
Swarm::parts (uint32_t piece) const
{
  const std::vector<TitleRange> ranges = title_ranges (*m_info, piece);
  std::vector<Part> found;

  for (const TitleRange &range : ranges) {
    found.push_back (
        { range, url (range.file), uint64_t (m_info->files ().file_size (range.file)) });
    if (found.back ().url.empty () || ranges.size () > PARTS_MAX)
      return {};
  }
  return found;
}

void
Swarm::origin_failed (uint32_t piece, const std::string &why)
{
  const int64_t now_ns = clock_now_ns ();
  bool other = false;

  {
    std::lock_guard<std::mutex> lock (m_lock);

    for_files (piece, [&] (SwarmFile &file) {
      if (now_ns >= file.origin_again_ns) {
        file.back_off_ns = std::clamp (2 * file.back_off_ns, BACK_OFF_NS, BACK_OFF_MOST_NS);
        file.origin_again_ns = now_ns + file.back_off_ns;
      }
      other |= file.stats.origin_error != why;
      file.stats.origin_error = why;
    });
    if (SwarmFile *file = file_of (piece))
      file->stats.origin_errors++;
    wake (now_ns);
  }
  if (other)
    warn ("the origin is of no use for now, peers go on: " + why);
}

void
Swarm::fetch_next (const std::shared_ptr<Fetch> &fetch)
{
  const Part &part = fetch->parts[fetch->next];

  m_pieces[fetch->piece].fetch = origin_get (
      { part.url, part.file_bytes, part.range.offset, part.range.length, FETCH_TIMEOUT_MS },
      [self = shared_from_this (), fetch] (const std::vector<char> &bytes, const std::string &why) {
        const uint32_t at = fetch->parts[fetch->next].range.in_piece;

        g_clear_object (&self->m_pieces[fetch->piece].fetch);
        if (why.empty ()) {
          std::copy (bytes.begin (), bytes.end (), fetch->bytes.begin () + at);
          fetch->came += bytes.size ();
        }
        if (why.empty () && ++fetch->next < fetch->parts.size ())
          self->fetch_next (fetch);
        else
          self->on_fetched (*fetch, why);
      });
}

void
Swarm::on_fetched (const Fetch &fetch, const std::string &why)
{
  const uint32_t piece = fetch.piece;
  bool wanted, closed;

  {
    std::lock_guard<std::mutex> lock (m_lock);
    const auto took_ns = double (clock_now_ns () - m_pieces[piece].fetched_ns);
    SwarmFile *file = file_of (piece);

    m_pieces[piece].fetching = false;
    closed = !m_session;
    wanted = m_states[piece] == WEIR_PIECE_ORIGIN;
    if (file)
      file->stats.origin_bytes += fetch.came;
    if (why.empty ()) {
      m_fetch_ns += (took_ns - m_fetch_ns) / 4;
      m_origin_answered_ns = clock_now_ns ();
      for_files (piece, [] (SwarmFile &its) { its.back_off_ns = 0; });
    }
    if (wanted && (!why.empty () || !file)) {
      m_states[piece] = WEIR_PIECE_MISSING;
      wanted = false;
    }
    wake (0);
  }
  if (closed)
    return;
  if (!why.empty ()) {
    origin_failed (piece, why);
  } else if (wanted && !add_fetched (fetch)) {
    {
      std::lock_guard<std::mutex> lock (m_lock);

      if (SwarmFile *file = file_of (piece))
        file->stats.wrong_bytes += fetch.came;
      if (m_states[piece] == WEIR_PIECE_ORIGIN)
        m_states[piece] = WEIR_PIECE_MISSING;
    }
    origin_failed (piece,
        "its bytes are not the torrent's: piece " + std::to_string (piece) + " does not hash");
  }
}

// Returns false if the bytes are wrong.
bool
Swarm::add_fetched (const Fetch &fetch)
{
  const uint32_t piece = fetch.piece;
  std::shared_ptr<Slot> slot;

  if (lt::hasher (fetch.bytes).final () != m_info->hash_for_piece (lt::piece_index_t (int (piece))))
    return false;
  slot = m_slots->take ();
  const bool written = slot->write (0, fetch.bytes.data (), fetch.bytes.size ());
  {
    std::lock_guard<std::mutex> lock (m_lock);

    if (!written) {
      m_failure = "cannot write the storage: " + std::string (g_strerror (errno));
      m_changed.notify_all ();
      return true;
    }
    if (m_states[piece] != WEIR_PIECE_ORIGIN)
      return true; // peers were faster
    if (SwarmFile *file = file_of (piece))
      file->stats.duplicate_bytes += m_arrived[piece];
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
    std::vector<char> bytes (piece_bytes (piece));
    const int number = int (piece);
    lt::torrent_handle handle;

    {
      std::lock_guard<std::mutex> lock (m_lock);

      if (m_states[piece] != WEIR_PIECE_HELD)
        continue;
      handle = m_handle;
    }
    if (read (number, 0, bytes.data (), int (bytes.size ())))
      while_there ([&] { handle.add_piece (lt::piece_index_t (number), std::move (bytes)); });
  }
}
