// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The run: all readers, and the one loop that drives them.

#include "against.h"
#include "options.h"
#include "ports.h"
#include "reader.h"
#include "receiver.h"
#include "results.h"

// Larger than an RTSP message can be, and than two interleaved frames.
#define LOAD_SCRATCH (1024 * 1024)

struct Load {
  const Options *options;
  Results results;
  Receiver *receiver;
  Ports ports;
  GRand *random;
  int epoll;
  guint8 *scratch;  // what a connection brought, while it is taken apart
  GArray *unjudged; // datagrams of which reader_io.c does not know yet whether they are early

  Against *against; // or NULL

  Target *targets;
  guint n_targets; // of the readers; the origin's follows
  Reader *readers; // those of --readers, then the origin's
  guint n_readers; // of --readers
  guint n_all;
  gint64 *due; // of each reader
  gint64 next_due;
  guint n_started, n_open;
  gint64 next_arrival_ns;
  gint64 sample_ns, live_ns, end_ns;
  gboolean stopping;
};

// NULL, with a line on stderr, if a URL leads nowhere.
Load *load_new (const Options *options);
void load_free (Load *self);

// Runs to the end, or to SIGINT or SIGTERM.
void load_run (Load *self);

// For readers: their next deadline may have changed; they are done.
void load_reschedule (Load *self, Reader *reader);
void load_reader_done (Load *self, Reader *reader);
// Compares with the origin what came up to then.
void load_match (Load *self, gint64 until_ns);
