// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a reader of a title of a swarm reads. The fields outlive the reader.

#include "stores/store.h"

typedef struct {
  int torrent;                    // is open on the torrent
  int storage;                    // is open on a file for the pieces; -1: as the properties say
  const gchar *torrent_name;      // of its file, for the log
  const gchar *file;              // the path of the file in the torrent; NULL: it has one file
  const gchar *label;             // the title's name in the log
  const gchar *const *properties; // names and values of swarmsrc's properties in turn
} SwarmReaderTitle;
