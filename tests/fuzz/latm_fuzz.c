// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the reader of LOAS with several frames, one behind the other.

#include <errno.h>

#include "codec/latm.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  size_t sizes[WEIR_LATM_FRAMES_MAX];
  uint8_t *out = malloc (size + 1);
  WeirLatm latm = { 0 };

  while (size >= 3) {
    size_t len = 3 + ((size_t) (data[1] & 0x1f) << 8 | data[2]), sum = 0;
    bool changed;
    int n;

    len = len < size ? len : size;
    n = weir_latm_read (&latm, data, len, out, sizes, &changed);
    require (n > 0 || n == -EINVAL || n == -EAGAIN || n == -ENOTSUP);
    require (
        n <= WEIR_LATM_FRAMES_MAX && (!changed || n > 0) && latm.n_config <= WEIR_LATM_CONFIG_MAX);
    for (int i = 0; i < n; i++)
      sum += sizes[i];
    require (n < 0 || (latm.n_config > 0 && sum <= len));
    data += len;
    size -= len;
  }
  free (out);
  return 0;
}
