// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disks/table.h"

#include <errno.h>

#include "bits/bytes.h"
#include "disks/put.h"

void
weir_table_write (uint8_t *bytes, const WeirTableRecord *record)
{
  uint8_t *at = bytes;

  at = weir_put (at, 4, record->size);
  at = weir_put (at, 4, record->flags);
  at = weir_put (at, 8, (uint64_t) record->pts);
  at = weir_put (at, 8, (uint64_t) record->dts);
  weir_put (at, 8, (uint64_t) record->duration_ns);
}

int
weir_table_read (const uint8_t *bytes, size_t length, size_t n, WeirTableRecord *record)
{
  WeirBytes b = weir_bytes (bytes, length);
  uint64_t pts, dts, duration;

  if (n >= length / WEIR_TABLE_RECORD_BYTES)
    return -ENOENT;
  weir_bytes_skip (&b, n * WEIR_TABLE_RECORD_BYTES);
  weir_bytes_u32 (&b, &record->size);
  weir_bytes_u32 (&b, &record->flags);
  weir_bytes_u64 (&b, &pts);
  weir_bytes_u64 (&b, &dts);
  weir_bytes_u64 (&b, &duration);
  record->pts = (int64_t) pts;
  record->dts = (int64_t) dts;
  record->duration_ns = (int64_t) duration;
  return 0;
}
