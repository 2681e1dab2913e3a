// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Cuts the output of an MPEG-TS multiplexer (ISO/IEC 13818-1) into datagrams of 7 packets, as
// receivers over UDP expect them. A datagram begins at each join point, with the stream's tables
// (PAT and PMT), so that a receiver can begin there. Null packets fill the datagram before it. The
// tables' continuity counters are written anew, as tables are added. Nothing is sent before the
// first join point.
//
// Plain bytes and no clock; call from one thread.

#include <glib.h>

#define TS_PACKET 188
#define TS_DATAGRAM (7 * TS_PACKET)
#define TS_PMT_MAX 5 // packets of a PMT; one of more is not repeated

typedef void (*TsCutterOut) (
    gpointer data, const guint8 datagram[TS_DATAGRAM], gboolean join, guint64 time);

typedef struct {
  guint8 datagram[TS_DATAGRAM];
  gsize used;
  gboolean join;
  guint64 time;   // of the datagram's first packet
  gboolean begun; // the first join point with its tables was there
  gboolean has_pat;
  guint8 pat[TS_PACKET], pmt[TS_PMT_MAX][TS_PACKET];
  guint n_pmt;
  gint pmt_pid; // -1: unknown
  guint8 pat_counter, pmt_counter;
  TsCutterOut out;
  gpointer data;
} TsCutter;

void ts_cutter_init (TsCutter *self, TsCutterOut out, gpointer data);

// Takes the packets of one frame: `length` bytes of whole packets of 188 bytes; what is not is left
// out. `join`: a decoder can start at this frame. `time` is passed on with the datagrams that begin
// in it.
void ts_cutter_take (
    TsCutter *self, const guint8 *packets, gsize length, gboolean join, guint64 time);
