// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the line of a TCP connection carries, by what waits in its socket: TCP loses nothing, so a
// line that is too narrow shows as bytes that are not sent. The estimator judges each span between
// two samples as a group of packets (net/estimate.h). What was written since the sample before may
// be a frame on its way; only what is older waits.
//
// `now` is any monotonic clock, in ns. An object belongs to one thread at a time.

#include <stdbool.h>
#include <stdint.h>

#include "net/estimate.h"

#define WEIR_TCP_LINE_NS INT64_C (100000000) // between samples

typedef struct {
  uint64_t written;      // bytes that the socket has taken since some time
  uint64_t acked;        // bytes that have arrived since the connection began, about
  uint64_t unsent;       // bytes that wait in the socket to be sent
  uint64_t rate;         // at which the newest bytes arrived, bit/s; 0: not known
  int64_t round_trip_ns; // smoothed
} WeirTcpSample;

// Reads a sample (TCP_INFO) but for `written`. Returns false if the socket is no TCP socket, or the
// kernel does not tell enough.
bool weir_tcp_sample (int fd, WeirTcpSample *out);

typedef struct weir_tcp_line WeirTcpLine;

// Returns NULL without memory. All else allocates nothing.
WeirTcpLine *weir_tcp_line_new (void);
void weir_tcp_line_free (WeirTcpLine *self);

// Reports whether the next sample is due.
bool weir_tcp_line_is_due (const WeirTcpLine *self, int64_t now);

// Takes a sample that was read at `now`. A span in which nothing was under way tells nothing.
void weir_tcp_line_take (WeirTcpLine *self, const WeirTcpSample *sample, int64_t now);

// Returns what is known. A line that carries nothing has 1 bit/s.
WeirEstimateView weir_tcp_line_view (WeirTcpLine *self, int64_t now);
