// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A title: one file of a torrent, and where each of its pieces lies. Pieces are counted from the
// one with the file's first byte.

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

  uint32_t piece_bytes (uint32_t piece) const
  {
    return uint32_t (info->piece_size (lt::piece_index_t (int (first + piece))));
  }
};

// The bytes of a piece that an origin with only the file can give; the others are padding.
struct TitleRange {
  uint64_t offset;   // in the file
  uint32_t length;   // 0: the piece has bytes of another file
  uint32_t in_piece; // where they begin in the piece
};

// Reads the .torrent file `path`. Returns false and a reason in `why` if it is none. May block on a
// disk.
bool title_load (
    const std::string &path, std::shared_ptr<const lt::torrent_info> &info, std::string &why);

// Makes a title of the file `name` of a torrent: its path in the torrent, or the last part of this.
// The name may be empty if the torrent has one file. Returns false and a reason in `why`.
bool title_make (const std::shared_ptr<const lt::torrent_info> &info, const std::string &name,
    Title &title, std::string &why);

TitleRange title_range (const Title &title, uint32_t piece);
