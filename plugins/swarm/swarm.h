// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A torrent in a swarm: which pieces are there, which are asked of peers and of the origin, and who
// reads which of its files. Functions may be called from any thread, unless they say otherwise;
// only Swarm::read() waits.
//
// The swarm decides on the thread of loop.h: the picker fills the wanted set of each reader, the
// stream watcher asks the origin for what is still missing, and the storage drops what was played.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <gio/gio.h>
#include <libtorrent/torrent_handle.hpp>

#include "disk.h"
#include "session.h"
#include "slots.h"
#include "title.h"

extern "C" {
#include "swarm/picker.h"
}

struct SwarmSettings {
  WeirPicker picker;
  int64_t window_ns;
  double bit_rate; // 0: that of a reader who came later, or as the readers read
  uint64_t upload; // bytes a second; 0: no limit
  unsigned connections;
  std::string origin;     // the URL of the file, or of a folder with a slash at its end, or ""
  std::string no_origin;  // why there is none
  uint64_t storage_bytes; // of the file; at least 3 pieces are kept
  std::string folder;     // or "": in memory
  int file;               // in place of one in a folder; or -1
  bool trackers;
};

// Of a file, but for `peers`, `seeds`, `banned`, `port` and `left`.
struct SwarmStats {
  uint64_t peer_bytes, origin_bytes, sent_bytes, duplicate_bytes, late_bytes, wrong_bytes;
  uint64_t size, held_bytes;
  uint64_t bit_rate; // of the title, in bits a second, as the swarm assumes it
  uint32_t pieces, held, left_storage, origin_errors, peers, seeds, banned, port;
  bool finished, left;
  std::string origin_error;
};

// A file of the torrent that is read, or may be. Its fields are the swarm's.
struct SwarmFile {
  Title title;
  uint32_t keep;      // pieces
  uint32_t ahead;     // pieces; 0: all
  double bit_rate;    // as a reader knows it; 0: none does
  std::string origin; // its URL, if none of a folder is known
  std::string no_origin;
  unsigned n_readers = 0;
  uint32_t n_held = 0, n_come = 0;
  int64_t progress_ns = 0;
  int64_t origin_again_ns = 0, back_off_ns = 0;
  SwarmStats stats = {};
};

enum class Leave { DOWNLOAD, STREAM, SEED };

// Someone who reads a title. Its fields are the swarm's.
struct SwarmReader {
  SwarmFile *file = nullptr;
  Leave leave = Leave::STREAM;
  double timeout_s = 0; // 0: waits for ever
  bool active = false;  // reads
  bool ended = false;   // has read the title to its end
  bool flushing = false;
  bool settled = false; // has read since it began, or since its last jump

  int64_t play_ns = 0; // byte `play_byte` is played, if the reader plays what it reads
  uint64_t play_byte = 0;
  uint64_t next = 0; // the byte after the last one that was read
  int64_t read_ns = 0;
  uint32_t last_bytes = 0;        // of the last read
  uint32_t piece = WEIR_NO_PIECE; // of the last read
  // Pieces before `first` are not asked of peers, and those before `ordered` are asked in order.
  uint32_t first = 0, ordered = 0;
  std::vector<bool> seen; // pieces, from the file's first one on
  uint32_t n_seen = 0;
  bool waiting = false;   // for `piece`
  int64_t waiting_ns = 0; // since
  uint32_t wanted[WEIR_WANTED_MAX];
  unsigned n_wanted = 0;

  double rate = 0; // bits a second that it reads
  int64_t rate_ns = 0;
  uint64_t rate_bytes = 0;

  int64_t begun_ns = 0, start_up_ns = 0;
  uint64_t bytes = 0;
  uint32_t late = 0, stalls = 0;
  int64_t stalled_ns = 0;
};

enum class ReadResult { OK, FLUSHING, FAILED };

class PeerPlugin;

class Swarm final : public Storage, public std::enable_shared_from_this<Swarm> {
public:
  // Joins the swarm of a torrent, or returns the one that the session has, and adds the reader of a
  // title to it. Returns null and a reason in `why` if it cannot.
  static std::shared_ptr<Swarm> open (const std::shared_ptr<Session> &session, const Title &title,
      const SwarmSettings &settings, SwarmReader *reader, std::string &why);

  uint64_t upload () const // bytes a second; 0: no limit
  {
    return m_settings.upload;
  }

  // Returns the bytes of the smallest storage.
  static uint64_t least_storage (const Title &title);

  const lt::torrent_info &info () const
  {
    return *m_info;
  }

  uint64_t size (const SwarmReader *reader); // of what it reads, in bytes

  void remove_reader (SwarmReader *reader); // and clears it; after the last one, the swarm ends
  void begin (SwarmReader *reader);         // a reader that reads from now on
  void end (SwarmReader *reader);           // and that does not anymore
  void set_flushing (SwarmReader *reader, bool flushing);

  // Waits for a piece and reads up to its end, or `*length` bytes, which gets what was read. With
  // FAILED, `why` has the reason.
  ReadResult read (
      SwarmReader *reader, uint64_t offset, char *bytes, size_t *length, std::string &why);

  void add_peers (const std::vector<lt::tcp::endpoint> &peers);
  bool has_ended (); // it has left its peers for good
  SwarmStats stats (const SwarmReader *reader);
  SwarmReader copy_reader (const SwarmReader *reader);
  uint64_t bytes_ahead (const SwarmReader *reader); // held from its place on, without a gap

  // `told` is called on the thread of loop.h whenever the origin fails for another reason, or peers
  // cannot connect. The first owner is told at once of what was wrong with the session before.
  void set_on_warning (const void *owner, std::function<void (const std::string &)> told);
  void warn (const std::string &text);

  // ---- Storage ----
  bool in_file () const override;
  bool read (int piece, int start, char *bytes, int length) override;
  bool write (int piece, int start, const char *bytes, int length) override;
  bool hash (int piece, lt::sha1_hash &hash) override;
  bool hash_block (int piece, int start, lt::sha256_hash &hash) override;
  void clear (int piece) override;

  // ---- for the plugin of the torrent, on the session's thread ----
  void peer_came (PeerPlugin *peer);
  void peer_went (PeerPlugin *peer, bool banned);
  // The peer has said what it has, or can send or cannot anymore.
  void peer_changed (PeerPlugin *peer);
  void peer_interested (bool interested);                // another one, or one less
  void peer_has (PeerPlugin *peer, int piece, bool has); // from now on
  void peer_asked (int piece);                           // for a block of it
  void peer_answered (int piece);
  void peer_sent (int piece, int start, int length);
  void sent_to_peer (int piece, int bytes);
  void piece_passed (int piece);
  void piece_failed (int piece);
  void files_checked ();
  void second_passed ();
  bool has_left (int piece); // it was told to peers, and is not there

private:
  struct Piece {
    std::shared_ptr<Slot> slot;
    std::vector<bool> blocks;      // while it is not held
    bool come = false;             // has been there
    bool told = false;             // to libtorrent, which thinks that it is there from now on
    unsigned asked = 0;            // requests at peers
    int64_t asked_ns = 0;          // since when there are some
    bool fetching = false;         // the origin is being asked
    int64_t fetched_ns = 0;        // when it was
    GCancellable *fetch = nullptr; // for the thread of loop.h
  };
  struct Part; // of a piece, at the origin
  struct Fetch;
  struct Work;

  Swarm (
      const std::shared_ptr<Session> &session, const Title &title, const SwarmSettings &settings);
  void start ();
  uint32_t n_pieces () const
  {
    return uint32_t (m_pieces.size ());
  }
  uint32_t piece_bytes (uint32_t piece) const
  {
    return uint32_t (m_info->piece_size (lt::piece_index_t (int (piece))));
  }
  bool is_piece (int number) const
  {
    return number >= 0 && uint32_t (number) < n_pieces ();
  }
  void add_reader (const Title &title, const SwarmSettings &settings, SwarmReader *reader);
  void close_file (SwarmFile *file);
  SwarmFile *file_of (uint32_t piece);
  void for_files (uint32_t piece, const std::function<void (SwarmFile &)> &work);
  void note_wait (SwarmReader &reader, int64_t begun_ns, int64_t now_ns);
  void note_read (SwarmReader &reader, uint64_t from, uint32_t bytes, int64_t now_ns);
  ReadResult wait_for (
      SwarmReader &reader, uint32_t piece, std::unique_lock<std::mutex> &lock, std::string &why);
  void wake (int64_t at_ns);
  void decide ();
  double bit_rate (const SwarmFile &file) const;
  WeirPlayhead playhead (const SwarmReader &reader, int64_t now_ns) const;
  bool knows_peers (int64_t now_ns) const;
  void decide_for (SwarmReader &reader, int64_t now_ns, Work &work);
  void set_priorities (int64_t now_ns, Work &work);
  int priority (uint32_t piece, bool ahead, int64_t now_ns) const;
  std::string url (lt::file_index_t file) const;
  std::vector<Part> parts (uint32_t piece) const;
  unsigned count_fetches (const Title &title) const;
  bool start_fetch (uint32_t piece, Work &work);
  void fetch_next (const std::shared_ptr<Fetch> &fetch);
  void on_fetched (const Fetch &fetch, const std::string &why);
  bool add_fetched (const Fetch &fetch);
  void origin_failed (uint32_t piece, const std::string &why);
  bool origin_usable (const SwarmFile &file, int64_t now_ns) const;
  bool origin_is_silent (int64_t now_ns) const;
  int64_t patience_ns () const;
  void hold (uint32_t piece, int64_t now_ns);
  void make_room (SwarmFile &file, uint32_t arriving);
  void drop (uint32_t piece);
  void tell_peers (const std::shared_ptr<Session> &session, std::vector<uint32_t> leaving,
      std::vector<uint32_t> back);
  void hand_over (std::vector<uint32_t> pieces); // to libtorrent
  void cancel_requests (const std::shared_ptr<Session> &session, std::vector<uint32_t> pieces);
  void note_transfer (const Piece &piece, int64_t now_ns);
  void count_peer (PeerPlugin *peer, bool here);
  uint32_t playing (const SwarmFile &file) const;
  bool lacks_ahead () const;
  bool is_pinned (uint32_t piece) const;
  bool has_block (const Piece &piece, int start) const;
  void unwant (SwarmReader &reader);
  bool stays () const;
  void close (std::shared_ptr<Session> session);

  const std::shared_ptr<const lt::torrent_info> m_info;
  const SwarmSettings m_settings; // of the first reader
  const int64_t m_opened_ns;
  std::shared_ptr<Slots> m_slots;

  std::mutex m_lock; // for all below
  std::condition_variable m_changed;
  std::shared_ptr<Session> m_session; // null: closed
  lt::torrent_handle m_handle;
  GSource *m_source = nullptr;
  int64_t m_wake_ns = INT64_MAX, m_decided_ns = 0;
  bool m_checked = false, m_left = false;
  std::vector<Piece> m_pieces;
  std::vector<uint8_t> m_states; // WeirPieceState
  std::vector<uint32_t> m_arrived;
  std::vector<uint16_t> m_known, m_ready;  // peers that have the piece; that could send it now
  std::vector<uint8_t> m_priorities;       // as libtorrent has them
  std::vector<uint32_t> m_untold;          // to be handed over to libtorrent
  std::vector<uint32_t> m_leaving, m_back; // peers are to be told that these are not there; are
  std::map<lt::file_index_t, SwarmFile> m_files; // that are read
  std::string m_folder;                          // at the origin; or ""
  std::set<SwarmReader *> m_readers;
  std::set<PeerPlugin *> m_peers;
  unsigned m_n_sending = 0;    // peers
  unsigned m_n_seeds = 0;      // peers that have all pieces
  unsigned m_n_silent = 0;     // peers that have not told what they have
  unsigned m_n_interested = 0; // peers, in what is there
  double m_fetch_ns;           // of the origin, averaged
  int64_t m_origin_answered_ns = 0;
  bool m_silent = false; // the origin, at the last decision
  uint64_t m_second_bytes = 0;
  double m_swarm_rate = 0;                            // bits a second
  double m_transfer_ns = 0, m_transfer_spread_ns = 0; // of a piece from peers; 0: not known
  bool m_second_pieces = false;
  const uint64_t m_viewer;
  uint32_t m_banned = 0;
  std::string m_failure; // of the storage
  std::map<const void *, std::function<void (const std::string &)>> m_on_warning;
};
