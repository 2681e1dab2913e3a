// SPDX-License-Identifier: LGPL-2.1-or-later
#include "title.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include <libtorrent/error_code.hpp>

#include "names.h"

#define FILE_BYTES_MAX (16 << 20) // of a .torrent file
#define NAMES_SHOWN 200           // bytes

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

// Returns the path below the torrent's folder, with a slash before it; "" for a torrent of one
// file.
static std::string
inner_path (const std::string &path)
{
  const auto slash = path.find ('/');

  return slash == std::string::npos ? "" : path.substr (slash);
}

std::string
title_path (const lt::torrent_info &info, lt::file_index_t file)
{
  return info.orig_files ().file_path (file);
}

// How well a name fits the path of a file; the best fit counts.
static int
fit (const std::string &path, const std::string &name)
{
  if (name.empty () || path == name || (name[0] == '/' && inner_path (path) == name))
    return 2;
  return last_part (path) == name || inner_path (path) == "/" + name ? 1 : 0;
}

static bool
is_title (const lt::file_storage &files, lt::file_index_t file)
{
  return !files.pad_file_at (file) && files.file_size (file) > 0;
}

static std::string
list_names (const lt::torrent_info &info)
{
  std::string names;

  for (const lt::file_index_t i : info.files ().file_range ()) {
    const std::string path = title_path (info, i), inner = inner_path (path);
    if (is_title (info.files (), i) && names.size () < NAMES_SHOWN)
      names += (names.empty () ? "\"" : ", \"") + (inner.empty () ? path : inner) + "\"";
  }
  return names;
}

static bool
choose (const lt::torrent_info &info, const std::string &name, lt::file_index_t &index,
    std::string &why)
{
  int best = 0, n = 0;

  for (const lt::file_index_t i : info.files ().file_range ()) {
    const int fits = is_title (info.files (), i) ? fit (title_path (info, i), name) : 0;
    if (fits == 0 || fits < best)
      continue;
    n = fits == best ? n + 1 : 1;
    best = fits;
    index = i;
  }
  if (n == 1)
    return true;
  why = name.empty ()
            ? "the torrent has several files; \"file\" chooses one of " + list_names (info)
        : n == 0 ? "the torrent has no file \"" + name + "\"; it has " + list_names (info)
                 : "the torrent has several files \"" + name + "\"; write the whole path of one";
  return false;
}

TitleFound
title_make (const std::shared_ptr<const lt::torrent_info> &info, const std::string &name,
    Title &title, std::string &why)
{
  const lt::file_storage &files = info->files ();
  auto bare = std::make_shared<lt::torrent_info> (*info);

  if (!info->info_hashes ().has_v1 ()) {
    why = "the torrent is of version 2 only; a torrent of version 1 or a hybrid one is needed";
    return TitleFound::UNFIT;
  }
  if (!names_check (*info, why))
    return TitleFound::UNFIT;
  if (!choose (*info, name, title.file, why))
    return TitleFound::NO_FILE;
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
  if (info->num_pieces () > int (WEIR_PIECES_MAX)) {
    why = "the torrent has more than " + std::to_string (WEIR_PIECES_MAX) + " pieces";
    return TitleFound::UNFIT;
  }
  title.pieces = uint32_t (last - title.first) + 1;
  title.swarm.piece_bytes = piece_bytes;
  title.swarm.bytes = uint64_t (title.pieces - 1) * piece_bytes
                      + uint64_t (info->piece_size (lt::piece_index_t (int (last))));
  title.swarm.bit_rate = 0;
  return TitleFound::YES;
}

std::vector<TitleRange>
title_ranges (const lt::torrent_info &info, uint32_t piece)
{
  const auto number = lt::piece_index_t (int (piece));
  std::vector<TitleRange> ranges;
  uint32_t at = 0;

  for (const lt::file_slice &slice :
      info.files ().map_block (number, 0, info.piece_size (number))) {
    const TitleRange range = { slice.file_index, uint64_t (slice.offset), uint32_t (slice.size),
      at };
    if (slice.size > 0 && !info.files ().pad_file_at (slice.file_index))
      ranges.push_back (range);
    at += uint32_t (slice.size);
  }
  return ranges;
}
