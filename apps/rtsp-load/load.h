// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A run: all readers, and the event loop that drives them in one thread.

#include "against.h"
#include "options.h"
#include "ports.h"
#include "reader.h"
#include "receiver.h"
#include "results.h"

// Larger than the largest RTSP message and than two interleaved frames.
#define LOAD_SCRATCH (1024 * 1024)

struct Load {
  const Options *options;
  Results results;
  Receiver *receiver;
  Ports ports;
  GRand *random;
  int epoll;
  guint8 *scratch;  // the bytes of the connection that is being read
  GArray *unjudged; // datagrams that may have arrived before the answer to PLAY; see reader_io.c

  Against *against; // or NULL

  Target *targets;
  guint n_targets; // without the origin's, which follows the others in `targets`
  Reader *readers; // --readers of them, then the origin's
  guint n_readers; // --readers
  guint n_all;     // with the origin's
  gint64 *due;     // next deadline of each reader
  gint64 next_due;
  guint n_started, n_open;
  gint64 next_arrival_ns;
  gint64 sample_ns, live_ns, end_ns;
  gboolean stopping;
};

// Returns NULL, with a line on stderr, if a URL is invalid or its host is unknown. `options` must
// outlive the run.
Load *load_new (const Options *options);
void load_free (Load *self);

// Runs until --duration is over, or until SIGINT or SIGTERM.
void load_run (Load *self);

// Called by a reader whose next deadline may have changed.
void load_reschedule (Load *self, Reader *reader);
// Called by a reader that has left.
void load_reader_done (Load *self, Reader *reader);
// Compares with the origin all packets that arrived up to `until_ns`.
void load_match (Load *self, gint64 until_ns);
