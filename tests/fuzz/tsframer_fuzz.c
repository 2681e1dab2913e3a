// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the reader of datagrams of MPEG-TS: each is its length in two bytes, and its bytes.

#include "fuzz.h"
#include "sources/ts_framer.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  GByteArray *out = g_byte_array_new ();
  TsFramer framer = { 0 };
  size_t pushed = 0;

  while (size >= 2) {
    size_t len = MIN ((size_t) data[0] << 8 | data[1], size - 2);
    uint8_t *datagram = g_memdup2 (data + 2, len); // its end is that of the memory

    if (!ts_framer_is_whole (&framer, datagram, len))
      ts_framer_push (&framer, datagram, len, out);
    pushed += len;
    data += 2 + len;
    size -= 2 + len;
    g_free (datagram);
  }
  require (out->len % TS_FRAMER_PACKET == 0 && out->len <= pushed);
  for (size_t at = 0; at < out->len; at += TS_FRAMER_PACKET)
    require (out->data[at] == 0x47);
  g_byte_array_unref (out);
  return 0;
}
