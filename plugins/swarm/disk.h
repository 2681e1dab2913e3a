// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The storage of a libtorrent session: passes reads, writes and hashes to the swarms. Swarms that
// keep their pieces in memory are served at once, those with a file by one thread.

#include <functional>
#include <memory>

#include <libtorrent/disk_interface.hpp>
#include <libtorrent/io_context.hpp>
#include <libtorrent/session_params.hpp>

// What a swarm does for its storage. Pieces are those of the torrent. Call from any thread.
class Storage {
public:
  virtual ~Storage () = default;
  virtual bool in_file () const = 0;
  // Return false if that part of the piece is not there, or the disk fails.
  virtual bool read (int piece, int start, char *bytes, int length) = 0;
  virtual bool write (int piece, int start, const char *bytes, int length) = 0;
  virtual bool hash (int piece, lt::sha1_hash &hash) = 0;
  virtual bool hash_block (int piece, int start, lt::sha256_hash &hash) = 0;
  virtual void clear (int piece) = 0; // it did not hash
};

// Finds the storage of a torrent by the save path with which it was added.
using FindStorage = std::function<std::shared_ptr<Storage> (const std::string &path)>;

// `find` is called on the session's thread. `*context` gets the session's.
lt::disk_io_constructor_type disk_constructor (FindStorage find, lt::io_context **context);
