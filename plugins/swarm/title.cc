// SPDX-License-Identifier: LGPL-2.1-or-later
#include "title.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <libtorrent/error_code.hpp>

#define FILE_BYTES_MAX (16 << 20) // of a .torrent file

bool
title_load (
    const std::string &path, std::shared_ptr<const lt::torrent_info> &info, std::string &why)
{
  std::ifstream file (path, std::ios::binary);
  std::vector<char> bytes;
  lt::error_code error;
  char c;

  if (!file.is_open ()) {
    why = "cannot open \"" + path + "\": " + std::strerror (errno);
    return false;
  }
  while (bytes.size () <= FILE_BYTES_MAX && file.get (c))
    bytes.push_back (c);
  if (file.bad ()) {
    why = "cannot read \"" + path + "\": " + std::strerror (errno);
    return false;
  }
  if (bytes.size () > FILE_BYTES_MAX) {
    why = "\"" + path + "\" is no torrent: it is larger than 16 MiB";
    return false;
  }
  info = std::make_shared<lt::torrent_info> (
      lt::span<const char> (bytes.data (), long (bytes.size ())), error, lt::from_span);
  if (error)
    why = "\"" + path + "\" is no torrent: " + error.message ();
  return !error;
}

static std::string
last_part (const std::string &path)
{
  return path.substr (path.rfind ('/') + 1);
}

// Returns the number of matching files, and one of them in `index`.
static int
find_file (
    const lt::file_storage &files, const std::string &name, bool whole, lt::file_index_t &index)
{
  int n = 0;

  for (const lt::file_index_t i : files.file_range ()) {
    const std::string path = files.file_path (i);
    if (files.pad_file_at (i) || files.file_size (i) == 0
        || !(
            name.empty () || path == name
            || (!whole && (last_part (path) == name || path.substr (path.find ('/') + 1) == name))))
      continue;
    index = i;
    n++;
  }
  return n;
}

static bool
choose (const lt::file_storage &files, const std::string &name, lt::file_index_t &index,
    std::string &why)
{
  const int n_whole = find_file (files, name, true, index);
  const int n = n_whole == 1 ? 1 : find_file (files, name, false, index);
  std::string names;

  if (n == 1)
    return true;
  for (const lt::file_index_t i : files.file_range ()) {
    if (!files.pad_file_at (i) && names.size () < 200)
      names += (names.empty () ? "\"" : ", \"") + files.file_path (i) + "\"";
  }
  why = name.empty ()
            ? "the torrent has several files; \"file\" of swarmsrc chooses one of " + names
        : n == 0 ? "the torrent has no file \"" + name + "\"; it has " + names
                 : "the torrent has several files \"" + name + "\"; write the whole path of one";
  return false;
}

bool
title_make (const std::shared_ptr<const lt::torrent_info> &info, const std::string &name,
    Title &title, std::string &why)
{
  const lt::file_storage &files = info->files ();
  auto bare = std::make_shared<lt::torrent_info> (*info);

  if (!info->info_hashes ().has_v1 ()) {
    why = "the torrent is of version 2 only; a torrent of version 1 or a hybrid one is needed";
    return false;
  }
  if (!choose (files, name, title.file, why))
    return false;
  for (const auto &tracker : info->trackers ())
    title.trackers.push_back (tracker.url);
  for (const auto &seed : info->web_seeds ())
    title.web_seeds.push_back (seed.url);
  bare->clear_trackers ();
  bare->set_web_seeds ({});
  title.info = bare;

  const auto begin = uint64_t (files.file_offset (title.file));
  const auto piece_bytes = uint32_t (info->piece_length ());
  title.size = uint64_t (files.file_size (title.file));
  const uint64_t last = (begin + title.size - 1) / piece_bytes;
  title.first = uint32_t (begin / piece_bytes);
  title.skew = uint32_t (begin % piece_bytes);
  if (last - title.first >= WEIR_PIECES_MAX) {
    why = "the file has more than " + std::to_string (WEIR_PIECES_MAX) + " pieces";
    return false;
  }
  title.pieces = uint32_t (last - title.first) + 1;
  title.swarm.piece_bytes = piece_bytes;
  title.swarm.bytes =
      uint64_t (title.pieces - 1) * piece_bytes + title.piece_bytes (title.pieces - 1);
  title.swarm.bit_rate = 0;
  return true;
}

TitleRange
title_range (const Title &title, uint32_t piece)
{
  const lt::file_storage &files = title.info->files ();
  TitleRange range = { 0, 0, 0 };
  uint32_t at = 0;

  for (const lt::file_slice &slice : files.map_block (
           lt::piece_index_t (int (title.first + piece)), 0, int (title.piece_bytes (piece)))) {
    if (slice.file_index == title.file)
      range = { uint64_t (slice.offset), uint32_t (slice.size), at };
    else if (!files.pad_file_at (slice.file_index))
      return { 0, 0, 0 };
    at += uint32_t (slice.size);
  }
  return range;
}
