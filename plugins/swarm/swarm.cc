// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swarm.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>

#include <libtorrent/add_torrent_params.hpp>
#include <libtorrent/torrent_flags.hpp>

#include "clock.h"
#include "loop.h"
#include "peer.h"

#define PIECES_LEAST 3           // in a storage
#define FETCH_GUESS_NS 100000000 // of an origin that was not asked yet
#define STALL_NS 100000000       // that a viewer's own buffer hides
#define SEEN_LEAST 0.9           // of the pieces: who has read so much and the last byte has ended

static uint32_t
kept_pieces (const Title &title, const SwarmSettings &settings)
{
  const uint64_t pieces = settings.storage_bytes / title.swarm.piece_bytes;

  return uint32_t (std::clamp (
      pieces, uint64_t (PIECES_LEAST), uint64_t (std::max<uint32_t> (title.pieces, PIECES_LEAST))));
}

uint64_t
Swarm::least_storage (const Title &title)
{
  return std::min (uint64_t (PIECES_LEAST) * title.swarm.piece_bytes, title.swarm.bytes);
}

static bool
is_folder (const std::string &origin)
{
  return !origin.empty () && origin.back () == '/';
}

Swarm::Swarm (
    const std::shared_ptr<Session> &session, const Title &title, const SwarmSettings &settings)
    : m_info (title.info), m_settings (settings), m_opened_ns (clock_now_ns ()),
      m_session (session), m_pieces (std::size_t (title.info->num_pieces ())),
      m_states (m_pieces.size (), WEIR_PIECE_MISSING), m_arrived (m_pieces.size ()),
      m_known (m_pieces.size ()), m_ready (m_pieces.size ()), m_priorities (m_pieces.size (), 0),
      m_fetch_ns (FETCH_GUESS_NS), m_viewer (g_random_int () | uint64_t (g_random_int ()) << 32)
{
}

// Returns a path, as libtorrent makes one of every other name. Nothing is written there.
static std::string
make_name ()
{
  static std::atomic<unsigned> number;

  return "/swarm-" + std::to_string (number++);
}

std::shared_ptr<Swarm>
Swarm::open (const std::shared_ptr<Session> &session, const Title &title,
    const SwarmSettings &settings, SwarmReader *reader, std::string &why)
{
  static std::mutex opening;
  std::lock_guard<std::mutex> one (opening);
  std::shared_ptr<Swarm> swarm = session->find_torrent (*title.info);
  lt::add_torrent_params params;
  lt::torrent_handle handle;

  if (settings.storage_bytes < least_storage (title)) {
    why = "a storage of " + std::to_string (settings.storage_bytes)
          + " bytes is too small: the torrent has pieces of "
          + std::to_string (title.swarm.piece_bytes) + " bytes, and at least "
          + std::to_string (PIECES_LEAST) + " must fit";
    return nullptr;
  }
  if (swarm) {
    std::lock_guard<std::mutex> lock (swarm->m_lock);

    if (!swarm->m_left && swarm->m_session) {
      swarm->add_reader (title, settings, reader);
      swarm->wake (0);
      return swarm;
    }
  }
  swarm.reset (new Swarm (session, title, settings));
  swarm->m_slots = Slots::make (title.swarm.piece_bytes, settings.folder, settings.file, why);
  if (!swarm->m_slots)
    return nullptr;
  params.ti = std::make_shared<lt::torrent_info> (*title.info);
  params.save_path = make_name ();
  // Else, pieces that few peers have would come before those that are needed first.
  params.flags |= lt::torrent_flags::sequential_download;
  params.max_connections = int (settings.connections);
  params.upload_limit = settings.upload ? int (std::min<uint64_t> (settings.upload, INT_MAX)) : -1;
  std::fill_n (swarm->m_priorities.begin () + title.first, title.pieces, 1);
  for (const uint8_t priority : swarm->m_priorities)
    params.piece_priorities.emplace_back (priority);
  if (settings.trackers)
    params.trackers = title.trackers;
  params.extensions.emplace_back ([swarm] (const lt::torrent_handle &added, lt::client_data_t) {
    return torrent_plugin_new (swarm, added);
  });
  swarm->start ();
  swarm->add_reader (title, settings, reader);
  if (!session->add (std::move (params), swarm, handle, why)) {
    swarm->remove_reader (reader);
    return nullptr;
  }
  std::lock_guard<std::mutex> lock (swarm->m_lock);
  swarm->m_handle = handle;
  swarm->wake (0);
  return swarm;
}

void
Swarm::start ()
{
  static GSourceFuncs functions = { nullptr, nullptr,
    [] (GSource *source, GSourceFunc callback, gpointer data) -> gboolean {
      return callback (data);
    },
    nullptr, nullptr, nullptr };

  m_source = g_source_new (&functions, sizeof (GSource));
  g_source_set_callback (
      m_source,
      [] (gpointer data) -> gboolean {
        (*static_cast<std::shared_ptr<Swarm> *> (data))->decide ();
        return G_SOURCE_CONTINUE;
      },
      new std::shared_ptr<Swarm> (shared_from_this ()),
      [] (gpointer data) { delete static_cast<std::shared_ptr<Swarm> *> (data); });
  g_source_attach (m_source, loop_context ());
}

// Ends what refers to the swarm.
void
Swarm::close (std::shared_ptr<Session> session)
{
  g_source_destroy (m_source);
  g_source_unref (m_source);
  loop_invoke ([self = shared_from_this ()] {
    for (Piece &piece : self->m_pieces) {
      if (piece.fetch)
        g_cancellable_cancel (piece.fetch);
    }
  });
  session->remove (m_handle);
}

// ---- readers ----

// Adds a reader, and its file unless it is there.
void
Swarm::add_reader (const Title &title, const SwarmSettings &settings, SwarmReader *reader)
{
  const auto [i, is_new] = m_files.try_emplace (title.file);
  SwarmFile &file = i->second;

  if (is_new) {
    file.title = title;
    file.keep = kept_pieces (title, settings);
    file.ahead = file.keep < title.pieces ? file.keep : 0;
    file.bit_rate = settings.bit_rate;
    file.no_origin = settings.no_origin;
    if (!is_folder (settings.origin))
      file.origin = settings.origin;
    else if (m_folder.empty ())
      m_folder = settings.origin;
    for (uint32_t piece = title.first; title.has (piece); piece++) {
      file.n_held += m_states[piece] == WEIR_PIECE_HELD;
      file.n_come += m_pieces[piece].come;
    }
  }
  if (file.bit_rate == 0)
    file.bit_rate = settings.bit_rate;
  file.n_readers++;
  reader->file = &file;
  m_readers.insert (reader);
}

// Its pieces leave, unless they could not come again, or another file has them, too.
void
Swarm::close_file (SwarmFile *file)
{
  const Title title = file->title;
  const bool again = !url (title.file).empty ();

  m_files.erase (title.file);
  for (uint32_t i = title.first; title.has (i); i++) {
    if (!again || file_of (i))
      continue;
    if (m_states[i] == WEIR_PIECE_HELD)
      drop (i);
    m_pieces[i].come = false;
  }
}

void
Swarm::remove_reader (SwarmReader *reader)
{
  std::shared_ptr<Session> session;

  {
    std::lock_guard<std::mutex> lock (m_lock);

    unwant (*reader);
    m_readers.erase (reader);
    if (--reader->file->n_readers == 0)
      close_file (reader->file);
    *reader = SwarmReader ();
    wake (0);
    if (m_readers.empty ())
      session.swap (m_session);
  }
  if (session)
    close (std::move (session));
}

void
Swarm::begin (SwarmReader *reader)
{
  std::lock_guard<std::mutex> lock (m_lock);
  const int64_t now_ns = clock_now_ns ();

  SwarmReader begun;

  begun.file = reader->file;
  begun.leave = reader->leave;
  begun.timeout_s = reader->timeout_s;
  begun.active = true;
  begun.next = begun.play_byte = reader->file->title.begin ();
  begun.seen.assign (reader->file->title.pieces, false);
  begun.read_ns = begun.rate_ns = begun.begun_ns = begun.play_ns = now_ns;
  *reader = begun;
  wake (now_ns);
}

void
Swarm::end (SwarmReader *reader)
{
  std::lock_guard<std::mutex> lock (m_lock);

  reader->active = false;
  unwant (*reader);
  wake (0);
}

void
Swarm::unwant (SwarmReader &reader)
{
  for (unsigned i = 0; i < reader.n_wanted; i++) {
    if (m_states[reader.wanted[i]] == WEIR_PIECE_WANTED)
      m_states[reader.wanted[i]] = WEIR_PIECE_MISSING;
  }
  reader.n_wanted = 0;
}

void
Swarm::set_flushing (SwarmReader *reader, bool flushing)
{
  std::lock_guard<std::mutex> lock (m_lock);

  reader->flushing = flushing;
  m_changed.notify_all ();
}

// Notes what is read, for the playhead.
void
Swarm::note_read (SwarmReader &reader, uint64_t from, uint32_t bytes, int64_t now_ns)
{
  const Title &title = reader.file->title;
  const auto nth = uint32_t (from / title.swarm.piece_bytes) - title.first;

  reader.next = from + bytes;
  reader.read_ns = now_ns;
  reader.last_bytes = bytes;
  reader.bytes += bytes;
  reader.rate_bytes += bytes;
  if (!reader.seen[nth]) {
    reader.seen[nth] = true;
    reader.n_seen++;
  }
  if (reader.next == title.begin () + title.size && reader.n_seen >= SEEN_LEAST * title.pieces)
    reader.ended = true;
  if (!reader.start_up_ns)
    reader.start_up_ns = std::max<int64_t> (now_ns - reader.begun_ns, 1);
  reader.settled = true;
  if (now_ns - reader.rate_ns >= 1000000000) {
    const double rate = double (reader.rate_bytes) * 8e9 / double (now_ns - reader.rate_ns);

    reader.rate = reader.rate > 0 ? reader.rate + (rate - reader.rate) / 4 : rate;
    reader.rate_ns = now_ns;
    reader.rate_bytes = 0;
  }
}

ReadResult
Swarm::wait_for (
    SwarmReader &reader, uint32_t piece, std::unique_lock<std::mutex> &lock, std::string &why)
{
  const int64_t begun_ns = clock_now_ns ();
  const auto timeout_ns = int64_t (reader.timeout_s * 1e9);
  ReadResult result = ReadResult::OK;

  reader.waiting = true;
  reader.waiting_ns = begun_ns;
  reader.late += reader.settled;
  wake (begun_ns);
  while (m_states[piece] != WEIR_PIECE_HELD && result == ReadResult::OK) {
    const SwarmFile &file = *reader.file;
    const int64_t until_ns = std::max (begun_ns, file.progress_ns) + timeout_ns;
    if (reader.flushing) {
      result = ReadResult::FLUSHING;
    } else if (!m_failure.empty ()) {
      why = m_failure;
      result = ReadResult::FAILED;
    } else if (!timeout_ns) {
      m_changed.wait (lock);
    } else if (clock_now_ns () >= until_ns) {
      why = "piece " + std::to_string (piece - file.title.first) + " of "
            + std::to_string (file.title.pieces) + " came neither from a peer, of which "
            + std::to_string (m_peers.size ()) + " are there, nor from the origin: "
            + (url (file.title.file).empty ()      ? file.no_origin
                : file.stats.origin_error.empty () ? "it has not answered yet"
                                                   : file.stats.origin_error);
      result = ReadResult::FAILED;
    } else {
      m_changed.wait_for (lock, std::chrono::nanoseconds (until_ns - clock_now_ns ()));
    }
  }
  reader.waiting = false;
  if (result == ReadResult::OK)
    note_wait (reader, begun_ns, clock_now_ns ());
  return result;
}

// Counts a wait as a stall if a viewer who plays from the first byte on, at the title's rate, had
// come to its end.
void
Swarm::note_wait (SwarmReader &reader, int64_t begun_ns, int64_t now_ns)
{
  const auto due_ns = std::max (begun_ns,
      reader.play_ns
          + int64_t (double (reader.next - reader.play_byte) * 8e9 / bit_rate (*reader.file)));

  if (reader.settled && now_ns <= due_ns + STALL_NS)
    return;
  if (reader.settled) {
    reader.stalls++;
    reader.stalled_ns += now_ns - due_ns;
  }
  reader.play_ns = now_ns;
  reader.play_byte = reader.next;
}

ReadResult
Swarm::read (SwarmReader *reader, uint64_t offset, char *bytes, size_t *length, std::string &why)
{
  const auto most = uint32_t (m_info->piece_length ());
  const uint64_t from = offset + reader->file->title.begin ();
  const auto piece = uint32_t (from / most);
  const auto start = uint32_t (from % most);
  std::shared_ptr<Slot> slot;

  {
    std::unique_lock<std::mutex> lock (m_lock);
    const int64_t now_ns = clock_now_ns ();

    if (reader->flushing)
      return ReadResult::FLUSHING;
    if (reader->piece != piece) {
      if (piece != reader->piece + 1) {
        reader->settled = false;
        reader->play_ns = now_ns;
        reader->play_byte = from;
      }
      reader->piece = piece;
      wake (now_ns);
    }
    reader->next = from;
    reader->read_ns = now_ns;
    reader->ended = false;
    if (m_states[piece] != WEIR_PIECE_HELD) {
      const ReadResult result = wait_for (*reader, piece, lock, why);
      if (result != ReadResult::OK)
        return result;
    }
    slot = m_pieces[piece].slot;
    *length = std::min<size_t> (*length, piece_bytes (piece) - start);
    note_read (*reader, from, uint32_t (*length), clock_now_ns ());
    if (reader->ended)
      wake (0);
  }
  if (slot->read (start, bytes, *length))
    return ReadResult::OK;
  why = "cannot read the storage: " + std::string (g_strerror (errno));
  return ReadResult::FAILED;
}

void
Swarm::add_peers (const std::vector<lt::tcp::endpoint> &peers)
{
  lt::torrent_handle handle;

  {
    std::lock_guard<std::mutex> lock (m_lock);

    if (m_left || !m_session)
      return;
    handle = m_handle;
  }
  while_there ([&] {
    for (const lt::tcp::endpoint &peer : peers)
      handle.connect_peer (peer);
  });
}

// ---- reports ----

bool
Swarm::has_ended ()
{
  std::lock_guard<std::mutex> lock (m_lock);

  return m_left || !m_session;
}

uint64_t
Swarm::size (const SwarmReader *reader)
{
  std::lock_guard<std::mutex> lock (m_lock);

  return reader->file ? reader->file->title.size : 0;
}

SwarmStats
Swarm::stats (const SwarmReader *reader)
{
  std::shared_ptr<Session> session;
  SwarmStats stats = {};

  {
    std::lock_guard<std::mutex> lock (m_lock);
    if (!reader->file)
      return stats; // it was removed
    const SwarmFile &file = *reader->file;

    stats = file.stats;
    stats.size = file.title.size;
    stats.pieces = file.title.pieces;
    stats.held = file.n_held;
    stats.held_bytes = uint64_t (file.n_held) * file.title.swarm.piece_bytes;
    stats.peers = uint32_t (m_peers.size ());
    stats.seeds = m_n_seeds;
    stats.banned = m_banned;
    stats.bit_rate = uint64_t (bit_rate (file));
    stats.finished = file.n_come == file.title.pieces;
    stats.left = m_left;
    session = m_session;
  }
  stats.port = session ? session->port () : 0;
  return stats;
}

SwarmReader
Swarm::copy_reader (const SwarmReader *reader)
{
  std::lock_guard<std::mutex> lock (m_lock);

  return *reader;
}

uint64_t
Swarm::bytes_ahead (const SwarmReader *reader)
{
  std::lock_guard<std::mutex> lock (m_lock);
  if (!reader->file)
    return 0;
  const Title &title = reader->file->title;
  auto end = uint32_t (reader->next / title.swarm.piece_bytes);

  while (title.has (end) && m_states[end] == WEIR_PIECE_HELD)
    end++;
  return std::max (reader->next,
             std::min (uint64_t (end) * title.swarm.piece_bytes, title.begin () + title.size))
         - reader->next;
}

void
Swarm::set_on_warning (const void *owner, std::function<void (const std::string &)> told)
{
  std::shared_ptr<Session> session;

  {
    std::lock_guard<std::mutex> lock (m_lock);

    if (!told) {
      m_on_warning.erase (owner);
      return;
    }
    if (m_on_warning.empty ())
      session = m_session;
    m_on_warning[owner] = told;
  }
  if (!session)
    return;
  for (const std::string &text : session->warnings ())
    told (text);
}

void
Swarm::warn (const std::string &text)
{
  std::map<const void *, std::function<void (const std::string &)>> tell;

  {
    std::lock_guard<std::mutex> lock (m_lock);

    tell = m_on_warning;
  }
  for (const auto &[owner, told] : tell)
    told (text);
}
