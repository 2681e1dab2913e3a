// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The names in a torrent of several files, which are parts of URLs, and by which files are chosen.
// Whoever writes a torrent chooses them.

#include <string>

#include <libtorrent/torrent_info.hpp>

// Returns false and a reason in `why` if a name is unfit: it is empty, very long or not UTF-8, has
// a control character, leaves its folder, or is that of two files. libtorrent would change it.
bool names_check (const lt::torrent_info &info, std::string &why);
