// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Gets ranges of a file from an HTTP server. Use on the thread of loop.h only.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gio/gio.h>

struct OriginRange {
  std::string url;
  uint64_t file_bytes; // which the file must have
  uint64_t offset;
  uint32_t length;
  unsigned timeout_ms;
};

// `why` is empty if the range is there.
using OriginDone = std::function<void (std::vector<char> bytes, std::string why)>;

// Asks for a range and calls `done` once, later, also after g_cancellable_cancel(). The caller owns
// the result.
GCancellable *origin_get (const OriginRange &range, OriginDone done);
