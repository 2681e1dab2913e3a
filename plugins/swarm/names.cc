// SPDX-License-Identifier: LGPL-2.1-or-later
#include "names.h"

#include <set>

#include <glib.h>
#include <libtorrent/bdecode.hpp>

#define PART_BYTES_MAX 240 // of a path; libtorrent shortens longer ones
#define PATH_BYTES_MAX 1024
#define SHOWN_BYTES 80

// Returns what is wrong with a part of a path, or "".
static std::string
judge_part (const std::string &part)
{
  if (part.empty ())
    return "a part of it is empty";
  if (part == "." || part == "..")
    return "it leaves its folder";
  if (part.find ('/') != std::string::npos)
    return "a part of it has a slash";
  if (part.size () > PART_BYTES_MAX)
    return "a part of it has more than " + std::to_string (PART_BYTES_MAX) + " bytes";
  if (!g_utf8_validate (part.data (), gssize (part.size ()), nullptr))
    return "it is not UTF-8";
  for (const char *c = part.c_str (); *c; c = g_utf8_next_char (c)) {
    if (g_unichar_iscntrl (g_utf8_get_char (c)))
      return "it has a control character";
  }
  return "";
}

static std::string
show (const std::string &name)
{
  gchar *escaped = g_strescape (name.substr (0, SHOWN_BYTES).c_str (), nullptr);
  const std::string text =
      std::string ("\"") + escaped + (name.size () > SHOWN_BYTES ? "...\"" : "\"");

  g_free (escaped);
  return text;
}

// Reads the path of a file. Returns what is wrong with it, or "".
static std::string
read_path (const lt::bdecode_node &file, std::string &path)
{
  lt::bdecode_node parts = file.dict_find_list ("path.utf-8");
  std::string wrong;

  if (!parts)
    parts = file.dict_find_list ("path");
  for (int i = 0; parts && i < parts.list_size (); i++) {
    const std::string part (parts.list_string_value_at (i));
    path += (i > 0 ? "/" : "") + part;
    if (wrong.empty ())
      wrong = judge_part (part);
  }
  if (wrong.empty () && path.size () > PATH_BYTES_MAX)
    wrong = "it has more than " + std::to_string (PATH_BYTES_MAX) + " bytes";
  return wrong;
}

static bool
is_padding (const lt::bdecode_node &file)
{
  return file.dict_find_string_value ("attr").find ('p') != lt::string_view::npos;
}

// Reads the name of the folder. Returns what is wrong with it, or "".
static std::string
read_folder (const lt::torrent_info &info, std::string &name)
{
  lt::bdecode_node node = info.info ("name.utf-8");

  if (node.type () != lt::bdecode_node::string_t)
    node = info.info ("name");
  if (node.type () == lt::bdecode_node::string_t)
    name = std::string (node.string_value ());
  return judge_part (name);
}

bool
names_check (const lt::torrent_info &info, std::string &why)
{
  const lt::bdecode_node files = info.info ("files");
  const lt::file_storage &storage = info.orig_files ();
  std::set<std::string> paths;
  std::string folder;

  if (files.type () != lt::bdecode_node::list_t)
    return true; // one file
  std::string wrong = read_folder (info, folder);
  if (!wrong.empty ()) {
    why = "the torrent's folder has the name " + show (folder) + ", which is refused: " + wrong;
    return false;
  }
  for (int i = 0; i < files.list_size (); i++) {
    const lt::bdecode_node file = files.list_at (i);
    std::string path;

    if (file.type () == lt::bdecode_node::dict_t && is_padding (file))
      continue;
    wrong = file.type () == lt::bdecode_node::dict_t ? read_path (file, path) : "it has none";
    if (wrong.empty () && !paths.insert (path).second)
      wrong = "two files have it";
    // libtorrent leaves out what it holds to be dangerous.
    if (wrong.empty ()
        && (i >= storage.num_files ()
            || storage.file_path (lt::file_index_t (i)) != folder + "/" + path))
      wrong = "libtorrent changes it";
    if (!wrong.empty ()) {
      why = "the torrent has a file with the path " + show (path) + ", which is refused: " + wrong;
      return false;
    }
  }
  return true;
}
