// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A title: one file of a torrent, and where each of its pieces lies.

#include <memory>
#include <string>

#include <libtorrent/torrent_info.hpp>

extern "C" {
#include "swarm/playhead.h"
}

struct Title {
  std::shared_ptr<const lt::torrent_info> info; // without its trackers and web seeds
  std::vector<std::string> trackers, web_seeds;
  lt::file_index_t file;
  uint64_t size;   // of the file
  uint32_t first;  // its first piece in the torrent
  uint32_t skew;   // bytes of that piece before the file
  uint32_t pieces; // with bytes of the file
  WeirSwarmTitle swarm;

  uint64_t begin () const // of the file in the torrent, in bytes
  {
    return uint64_t (first) * swarm.piece_bytes + skew;
  }

  bool has (uint32_t piece) const // of the torrent
  {
    return piece >= first && piece - first < pieces;
  }
};

// Bytes of a piece that are in one file. The others of a piece are padding.
struct TitleRange {
  lt::file_index_t file;
  uint64_t offset; // in the file
  uint32_t length;
  uint32_t in_piece; // where they begin in the piece
};

// Reads the .torrent file `path`. Returns false and a reason in `why` if it is none. May block on a
// disk.
bool title_load (
    const std::string &path, std::shared_ptr<const lt::torrent_info> &info, std::string &why);

enum class TitleFound { YES, NO_FILE, UNFIT };

// Makes a title of the file `name` of a torrent: its path in the torrent, or the last part of this;
// with a slash before it, its path below the torrent's folder. The name may be empty if the torrent
// has one file. Gives a reason in `why` if it has no such file, or is unfit.
TitleFound title_make (const std::shared_ptr<const lt::torrent_info> &info, const std::string &name,
    Title &title, std::string &why);

// Returns the path of a file in the torrent, with the name of the torrent's folder.
std::string title_path (const lt::torrent_info &info, lt::file_index_t file);

// Returns what a piece of the torrent has of each file.
std::vector<TitleRange> title_ranges (const lt::torrent_info &info, uint32_t piece);
