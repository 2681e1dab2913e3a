// SPDX-License-Identifier: LGPL-2.1-or-later
// The pieces of a swarm: what libtorrent reads and writes, and what it and the peers report.
#include <algorithm>
#include <cmath>

#include <libtorrent/hasher.hpp>

#include "clock.h"
#include "peer.h"
#include "swarm.h"

extern "C" {
#include "swarm/storage.h"
}

#define BLOCK 0x4000

// Returns the first file that is read and has bytes of the piece, or null.
SwarmFile *
Swarm::file_of (uint32_t piece)
{
  for (auto &[index, file] : m_files) {
    if (file.title.has (piece))
      return &file;
  }
  return nullptr;
}

void
Swarm::for_files (uint32_t piece, const std::function<void (SwarmFile &)> &work)
{
  for (auto &[index, file] : m_files) {
    if (file.title.has (piece))
      work (file);
  }
}

bool
Swarm::in_file () const
{
  return m_slots->in_file ();
}

bool
Swarm::has_block (const Piece &piece, int start) const
{
  const auto block = std::size_t (start) / BLOCK;

  return block < piece.blocks.size () && piece.blocks[block];
}

bool
Swarm::read (int number, int start, char *bytes, int length)
{
  std::shared_ptr<Slot> slot;

  if (!is_piece (number))
    return false;
  {
    std::lock_guard<std::mutex> lock (m_lock);
    const uint32_t i = uint32_t (number);

    if (m_states[i] == WEIR_PIECE_HELD || has_block (m_pieces[i], start))
      slot = m_pieces[i].slot;
  }
  return slot && slot->read (uint32_t (start), bytes, std::size_t (length));
}

bool
Swarm::write (int number, int start, const char *bytes, int length)
{
  std::shared_ptr<Slot> slot;

  if (!is_piece (number))
    return true;
  {
    std::lock_guard<std::mutex> lock (m_lock);
    const uint32_t i = uint32_t (number);
    Piece &piece = m_pieces[i];

    if (m_states[i] == WEIR_PIECE_HELD)
      return true; // from the origin, in the meantime
    if (!piece.slot)
      piece.slot = m_slots->take ();
    piece.blocks.resize (std::size_t (m_info->piece_length ()) / BLOCK + 1);
    if (!has_block (piece, start)) {
      piece.blocks[std::size_t (start) / BLOCK] = true;
      m_arrived[i] += uint32_t (length);
    }
    slot = piece.slot;
  }
  if (slot->write (uint32_t (start), bytes, std::size_t (length)))
    return true;
  std::lock_guard<std::mutex> lock (m_lock);
  m_failure = "cannot write the storage: " + std::string (g_strerror (errno));
  m_changed.notify_all ();
  return false;
}

bool
Swarm::hash (int number, lt::sha1_hash &hash)
{
  std::vector<char> bytes;

  if (!is_piece (number))
    return false;
  bytes.resize (piece_bytes (uint32_t (number)));
  if (!read (number, 0, bytes.data (), int (bytes.size ())))
    return false;
  hash = lt::hasher (bytes).final ();
  return true;
}

bool
Swarm::hash_block (int number, int start, lt::sha256_hash &hash)
{
  char bytes[BLOCK];
  int length;

  if (!is_piece (number))
    return false;
  length = std::min<int> (BLOCK, int (piece_bytes (uint32_t (number))) - start);
  if (length <= 0 || !read (number, start, bytes, length))
    return false;
  hash = lt::hasher256 (lt::span<const char> (bytes, length)).final ();
  return true;
}

void
Swarm::clear (int number)
{
  if (!is_piece (number))
    return;
  std::lock_guard<std::mutex> lock (m_lock);
  const uint32_t i = uint32_t (number);
  if (m_states[i] == WEIR_PIECE_HELD)
    return;
  m_pieces[i].slot.reset ();
  m_pieces[i].blocks.clear ();
  m_arrived[i] = 0;
}

// ---- pieces come and leave ----

// Returns the first piece of a file that is being played.
uint32_t
Swarm::playing (const SwarmFile &file) const
{
  uint32_t first = file.title.first + file.title.pieces;

  for (const SwarmReader *reader : m_readers) {
    if (reader->active && reader->file == &file && reader->piece != WEIR_NO_PIECE)
      first = std::min (first, reader->piece);
  }
  return first;
}

// Tells whether a reader has not got all that it has not read.
bool
Swarm::lacks_ahead () const
{
  return std::any_of (m_files.begin (), m_files.end (), [this] (const auto &entry) {
    const SwarmFile &file = entry.second;
    return std::any_of (m_states.begin () + playing (file),
        m_states.begin () + file.title.first + file.title.pieces,
        [] (uint8_t state) { return state != WEIR_PIECE_HELD; });
  });
}

bool
Swarm::is_pinned (uint32_t piece) const
{
  return std::any_of (m_readers.begin (), m_readers.end (),
      [piece] (const SwarmReader *reader) { return reader->active && reader->piece == piece; });
}

// Makes a piece held, whose bytes are there, and room for it.
void
Swarm::hold (uint32_t piece, int64_t now_ns)
{
  m_states[piece] = WEIR_PIECE_HELD;
  m_pieces[piece].blocks.clear ();
  m_arrived[piece] = 0;
  for_files (piece, [this, piece, now_ns] (SwarmFile &file) {
    file.progress_ns = now_ns;
    file.n_held++;
    file.n_come += !m_pieces[piece].come;
  });
  m_pieces[piece].come = true;
  for_files (piece, [this, piece] (SwarmFile &file) { make_room (file, piece); });
  m_changed.notify_all ();
}

void
Swarm::make_room (SwarmFile &file, uint32_t arriving)
{
  const Title &title = file.title;

  while (file.n_held > file.keep) {
    const WeirStorageView view = { m_states.data () + title.first, m_known.data () + title.first,
      title.pieces, playing (file) - title.first };
    const uint32_t least = weir_storage_leave (&view, arriving - title.first);
    const uint32_t leaves = least == WEIR_NO_PIECE ? arriving : title.first + least;
    // Until a piece has been read, it comes on top.
    if (m_states[leaves] != WEIR_PIECE_HELD || is_pinned (leaves))
      break;
    file.stats.left_storage++;
    drop (leaves);
  }
}

void
Swarm::drop (uint32_t piece)
{
  m_states[piece] = WEIR_PIECE_MISSING;
  m_pieces[piece].slot.reset ();
  for_files (piece, [] (SwarmFile &file) { file.n_held--; });
  if (m_pieces[piece].told)
    m_leaving.push_back (piece);
}

void
Swarm::piece_passed (int number)
{
  if (!is_piece (number))
    return;
  std::lock_guard<std::mutex> lock (m_lock);
  const uint32_t i = uint32_t (number);
  const int64_t now_ns = clock_now_ns ();
  m_pieces[i].told = true;
  if (m_states[i] != WEIR_PIECE_HELD && m_pieces[i].slot) {
    note_transfer (m_pieces[i], now_ns);
    hold (i, now_ns);
  } else if (m_states[i] != WEIR_PIECE_HELD) {
    m_leaving.push_back (i); // it left before libtorrent had it
  }
  wake (now_ns);
}

void
Swarm::piece_failed (int number)
{
  if (!is_piece (number))
    return;
  std::lock_guard<std::mutex> lock (m_lock);
  if (SwarmFile *file = file_of (uint32_t (number)))
    file->stats.wrong_bytes += piece_bytes (uint32_t (number));
  wake (0);
}

void
Swarm::files_checked ()
{
  std::lock_guard<std::mutex> lock (m_lock);

  m_checked = true;
  wake (0);
}

bool
Swarm::has_left (int number)
{
  if (!is_piece (number))
    return false;
  std::lock_guard<std::mutex> lock (m_lock);
  const uint32_t i = uint32_t (number);
  return m_pieces[i].told && m_states[i] != WEIR_PIECE_HELD;
}

// Peers come and go on the session's thread.
void
Swarm::tell_peers (const std::shared_ptr<Session> &session, std::vector<uint32_t> leaving,
    std::vector<uint32_t> back)
{
  if (leaving.empty () && back.empty ())
    return;
  session->post ([weak = weak_from_this (), leaving, back] {
    const auto self = weak.lock ();
    if (!self)
      return;
    for (PeerPlugin *peer : self->m_peers) {
      for (const uint32_t piece : leaving)
        peer->tell (int (piece), false);
      for (const uint32_t piece : back)
        peer->tell (int (piece), true);
    }
  });
}

// ---- peers ----

// Adds or takes away what a peer has.
void
Swarm::count_peer (PeerPlugin *peer, bool here)
{
  const int by = here ? 1 : -1;

  if (peer->n_counted == n_pieces ())
    m_n_seeds += unsigned (by);
  for (uint32_t i = 0; i < peer->counted.size (); i++) {
    if (!peer->counted[i])
      continue;
    m_known[i] = uint16_t (m_known[i] + by);
    if (peer->counted_sends)
      m_ready[i] = uint16_t (m_ready[i] + by);
  }
  if (peer->counted_sends)
    m_n_sending += unsigned (by);
}

void
Swarm::peer_came (PeerPlugin *peer)
{
  std::lock_guard<std::mutex> lock (m_lock);

  m_peers.insert (peer);
  m_n_silent++;
}

void
Swarm::peer_went (PeerPlugin *peer, bool banned)
{
  std::lock_guard<std::mutex> lock (m_lock);

  if (m_peers.erase (peer) == 0)
    return;
  m_n_silent -= peer->counted.empty ();
  count_peer (peer, false);
  m_banned += banned;
  wake (0);
}

void
Swarm::peer_changed (PeerPlugin *peer)
{
  std::lock_guard<std::mutex> lock (m_lock);

  if (m_peers.count (peer) == 0)
    return;
  m_n_silent -= peer->counted.empty ();
  count_peer (peer, false);
  peer->counted.resize (n_pieces ());
  for (uint32_t i = 0; i < n_pieces (); i++)
    peer->counted[i] = peer->has (int (i));
  peer->n_counted = uint32_t (std::count (peer->counted.begin (), peer->counted.end (), true));
  peer->counted_sends = peer->sends ();
  count_peer (peer, true);
  wake (0);
}

void
Swarm::peer_interested (bool interested)
{
  std::lock_guard<std::mutex> lock (m_lock);

  m_n_interested += interested ? 1 : -1;
}

void
Swarm::peer_has (PeerPlugin *peer, int number, bool has)
{
  if (!is_piece (number))
    return;
  {
    std::lock_guard<std::mutex> lock (m_lock);
    const uint32_t i = uint32_t (number);
    const int by = has ? 1 : -1;

    if (!peer->counted.empty ()) {
      if (m_peers.count (peer) == 0 || peer->counted[i] == has)
        return;
      peer->counted[i] = has;
      m_n_seeds -= peer->n_counted == n_pieces ();
      peer->n_counted += uint32_t (by);
      m_n_seeds += peer->n_counted == n_pieces ();
      m_known[i] = uint16_t (m_known[i] + by);
      if (peer->counted_sends)
        m_ready[i] = uint16_t (m_ready[i] + by);
      if (m_states[i] != WEIR_PIECE_HELD)
        wake (0);
      return;
    }
  }
  peer_changed (peer);
}

void
Swarm::peer_sent (int number, int start, int length)
{
  if (!is_piece (number))
    return;
  std::lock_guard<std::mutex> lock (m_lock);
  const uint32_t i = uint32_t (number);
  const int64_t now_ns = clock_now_ns ();
  const auto bytes = uint64_t (length);
  m_second_bytes += bytes;
  for_files (i, [now_ns] (SwarmFile &file) { file.progress_ns = now_ns; });
  SwarmFile *file = file_of (i);
  if (!file)
    return;
  file->stats.peer_bytes += bytes;
  if (m_states[i] == WEIR_PIECE_HELD || has_block (m_pieces[i], start))
    file->stats.duplicate_bytes += bytes;
  else if (m_states[i] == WEIR_PIECE_ORIGIN)
    file->stats.late_bytes += bytes;
}

void
Swarm::sent_to_peer (int piece, int bytes)
{
  std::lock_guard<std::mutex> lock (m_lock);

  if (SwarmFile *file = file_of (uint32_t (piece)))
    file->stats.sent_bytes += uint64_t (bytes);
}

void
Swarm::second_passed ()
{
  std::lock_guard<std::mutex> lock (m_lock);

  m_swarm_rate += (double (m_second_bytes) * 8 - m_swarm_rate) / 4;
  m_second_bytes = 0;
  // Without pieces from peers, the last ones say less and less of the next one.
  if (!m_second_pieces)
    m_transfer_ns *= 0.98;
  m_second_pieces = false;
  wake (0);
}

void
Swarm::peer_asked (int number)
{
  if (!is_piece (number))
    return;
  std::lock_guard<std::mutex> lock (m_lock);
  Piece &piece = m_pieces[uint32_t (number)];
  if (piece.asked++ == 0)
    piece.asked_ns = clock_now_ns ();
}

void
Swarm::peer_answered (int number)
{
  if (!is_piece (number))
    return;
  std::lock_guard<std::mutex> lock (m_lock);
  m_pieces[uint32_t (number)].asked--;
}

// Averages the time of a piece from its first request to its last byte, as TCP does with its round
// trips (RFC 6298).
void
Swarm::note_transfer (const Piece &piece, int64_t now_ns)
{
  const auto took_ns = double (now_ns - piece.asked_ns);

  m_second_pieces = true;
  if (m_transfer_ns == 0) {
    m_transfer_ns = took_ns;
    m_transfer_spread_ns = took_ns / 2;
    return;
  }
  m_transfer_spread_ns += (std::abs (took_ns - m_transfer_ns) - m_transfer_spread_ns) / 4;
  m_transfer_ns += (took_ns - m_transfer_ns) / 8;
}

// Takes back what peers were asked of pieces that come from the origin.
void
Swarm::cancel_requests (const std::shared_ptr<Session> &session, std::vector<uint32_t> pieces)
{
  if (pieces.empty ())
    return;
  session->post ([weak = weak_from_this (), pieces] {
    const auto self = weak.lock ();
    if (!self)
      return;
    for (PeerPlugin *peer : self->m_peers) {
      for (const uint32_t piece : pieces)
        peer->cancel (int (piece));
    }
  });
}
