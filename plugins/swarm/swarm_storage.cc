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

bool
Swarm::is_mine (int piece) const
{
  return piece >= int (m_title.first) && uint32_t (piece) - m_title.first < m_title.pieces;
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

  if (!is_mine (number))
    return false;
  {
    std::lock_guard<std::mutex> lock (m_lock);
    const uint32_t i = uint32_t (number) - m_title.first;

    if (m_states[i] == WEIR_PIECE_HELD || has_block (m_pieces[i], start))
      slot = m_pieces[i].slot;
  }
  return slot && slot->read (uint32_t (start), bytes, std::size_t (length));
}

bool
Swarm::write (int number, int start, const char *bytes, int length)
{
  std::shared_ptr<Slot> slot;

  if (!is_mine (number))
    return true;
  {
    std::lock_guard<std::mutex> lock (m_lock);
    const uint32_t i = uint32_t (number) - m_title.first;
    Piece &piece = m_pieces[i];

    if (m_states[i] == WEIR_PIECE_HELD)
      return true; // from the origin, in the meantime
    if (!piece.slot)
      piece.slot = m_slots->take ();
    piece.blocks.resize (m_title.swarm.piece_bytes / BLOCK + 1);
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

  if (!is_mine (number))
    return false;
  bytes.resize (m_title.piece_bytes (uint32_t (number) - m_title.first));
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

  if (!is_mine (number))
    return false;
  length =
      std::min<int> (BLOCK, int (m_title.piece_bytes (uint32_t (number) - m_title.first)) - start);
  if (length <= 0 || !read (number, start, bytes, length))
    return false;
  hash = lt::hasher256 (lt::span<const char> (bytes, length)).final ();
  return true;
}

void
Swarm::clear (int number)
{
  if (!is_mine (number))
    return;
  std::lock_guard<std::mutex> lock (m_lock);
  const uint32_t i = uint32_t (number) - m_title.first;
  if (m_states[i] == WEIR_PIECE_HELD)
    return;
  m_pieces[i].slot.reset ();
  m_pieces[i].blocks.clear ();
  m_arrived[i] = 0;
}

// ---- pieces come and leave ----

// Returns the first piece that is being played.
uint32_t
Swarm::playing (int64_t now_ns) const
{
  uint32_t first = m_title.pieces;

  for (const SwarmReader *reader : m_readers) {
    if (reader->active && reader->piece != WEIR_NO_PIECE)
      first = std::min (first, reader->piece);
  }
  return first;
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
  m_progress_ns = now_ns;
  m_n_come += !m_pieces[piece].come;
  m_pieces[piece].come = true;
  m_stats.finished = m_n_come == m_title.pieces;
  m_n_held++;
  while (m_n_held > m_keep) {
    const WeirStorageView view = { m_states.data (), m_known.data (), m_title.pieces,
      playing (now_ns) };
    uint32_t leaves = weir_storage_leave (&view, piece);
    if (leaves == WEIR_NO_PIECE)
      leaves = piece;
    if (is_pinned (leaves))
      break; // until it has been read, it comes on top
    m_states[leaves] = WEIR_PIECE_MISSING;
    m_pieces[leaves].slot.reset ();
    m_n_held--;
    m_stats.left_storage++;
    if (m_pieces[leaves].told)
      m_leaving.push_back (leaves);
  }
  m_changed.notify_all ();
}

void
Swarm::piece_passed (int number)
{
  if (!is_mine (number))
    return;
  std::lock_guard<std::mutex> lock (m_lock);
  const uint32_t i = uint32_t (number) - m_title.first;
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
  if (!is_mine (number))
    return;
  std::lock_guard<std::mutex> lock (m_lock);
  m_stats.wrong_bytes += m_title.piece_bytes (uint32_t (number) - m_title.first);
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
  if (!is_mine (number))
    return false;
  std::lock_guard<std::mutex> lock (m_lock);
  const uint32_t i = uint32_t (number) - m_title.first;
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
        peer->tell (int (self->m_title.first + piece), false);
      for (const uint32_t piece : back)
        peer->tell (int (self->m_title.first + piece), true);
    }
  });
}

// ---- peers ----

// Adds or takes away what a peer has.
void
Swarm::count_peer (PeerPlugin *peer, bool here)
{
  const int by = here ? 1 : -1;

  if (peer->n_counted == m_title.pieces)
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
  m_stats.banned += banned;
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
  peer->counted.resize (m_title.pieces);
  for (uint32_t i = 0; i < m_title.pieces; i++)
    peer->counted[i] = peer->has (int (m_title.first + i));
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
  if (!is_mine (number))
    return;
  {
    std::lock_guard<std::mutex> lock (m_lock);
    const uint32_t i = uint32_t (number) - m_title.first;
    const int by = has ? 1 : -1;

    if (!peer->counted.empty ()) {
      if (m_peers.count (peer) == 0 || peer->counted[i] == has)
        return;
      peer->counted[i] = has;
      m_n_seeds -= peer->n_counted == m_title.pieces;
      peer->n_counted += uint32_t (by);
      m_n_seeds += peer->n_counted == m_title.pieces;
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
  std::lock_guard<std::mutex> lock (m_lock);
  const auto bytes = uint64_t (length);

  m_stats.peer_bytes += bytes;
  m_second_bytes += bytes;
  m_progress_ns = clock_now_ns ();
  if (!is_mine (number))
    return;
  const uint32_t i = uint32_t (number) - m_title.first;
  if (m_states[i] == WEIR_PIECE_HELD || has_block (m_pieces[i], start))
    m_stats.duplicate_bytes += bytes;
  else if (m_states[i] == WEIR_PIECE_ORIGIN)
    m_stats.late_bytes += bytes;
}

void
Swarm::sent_to_peer (int bytes)
{
  std::lock_guard<std::mutex> lock (m_lock);

  m_stats.sent_bytes += uint64_t (bytes);
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
  if (!is_mine (number))
    return;
  std::lock_guard<std::mutex> lock (m_lock);
  Piece &piece = m_pieces[uint32_t (number) - m_title.first];
  if (piece.asked++ == 0)
    piece.asked_ns = clock_now_ns ();
}

void
Swarm::peer_answered (int number)
{
  if (!is_mine (number))
    return;
  std::lock_guard<std::mutex> lock (m_lock);
  m_pieces[uint32_t (number) - m_title.first].asked--;
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
        peer->cancel (int (self->m_title.first + piece));
    }
  });
}
