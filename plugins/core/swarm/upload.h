// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The limit of payload to peers. The sender limits payload and messages together, so that it is
// told of both: the limit of payload, and what messages take on average.

#include <stdint.h>

// Begins with zeros.
typedef struct {
  int64_t messages; // bytes that were sent until the last call
  double rate;      // bytes a second, averaged
} WeirUpload;

// Called once a second. `payload` is the limit in bytes a second, `messages` what was sent of them
// since the beginning, in bytes. Returns the limit of both: at most an eighth above `payload`, so
// that peers who cause messages do not lift it without bound.
uint64_t weir_upload_limit (WeirUpload *self, uint64_t payload, int64_t messages);
