// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Where the titles of a mount are that has no stream.
typedef enum {
  PULL_TITLES_NONE,
  PULL_TITLES_FOLDER,
  PULL_TITLES_BLOCK_STORE,
  PULL_TITLES_SWARM,  // a folder of torrents
  PULL_TITLES_ORIGIN, // an HTTP server
} PullTitles;
