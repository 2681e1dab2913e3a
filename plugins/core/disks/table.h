// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The table of a block's buffers: sizes, times and flags, so that a reader of the title gets the
// buffers that were written. It follows the block's bytes in the block's file. A title whose
// buffers have neither times nor flags, such as a file's bytes, has no tables.

#include <stddef.h>
#include <stdint.h>

#define WEIR_TABLE_RECORD_BYTES 32

typedef struct {
  uint32_t size;       // bytes
  uint32_t flags;      // of GstBufferFlags
  int64_t pts, dts;    // ns, or WEIR_INDEX_NO_TIME
  int64_t duration_ns; // or WEIR_INDEX_NO_TIME
} WeirTableRecord;

// Writes a record into WEIR_TABLE_RECORD_BYTES bytes.
void weir_table_write (uint8_t *bytes, const WeirTableRecord *record);

// Reads record `n` of a table of `length` bytes. Returns 0, or -ENOENT past the end.
int weir_table_read (const uint8_t *bytes, size_t length, size_t n, WeirTableRecord *record);
