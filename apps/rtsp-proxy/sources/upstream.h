// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Keeps a source of a relay running: starts a run, watches it, ends it when it fails or falls
// silent, and tries again after a back-off. Call from the main thread only; the callbacks come on
// the main thread too.

#include "sources/pull.h"

typedef struct _Upstream Upstream;

typedef struct {
  void (*connecting) (gpointer owner);
  // The first packet has arrived.
  void (*up) (gpointer owner);
  // The tracks differ from those in the readers' SDP.
  void (*changed) (gpointer owner);
  // The attempt failed, or the run ended. The next attempt starts in `retry_ms`.
  void (*down) (gpointer owner, const gchar *reason, guint retry_ms);
  // Reports whether the upstream may be silent now without being reconnected. NULL: never.
  gboolean (*excused) (gpointer owner);
  // A cue of SCTE 35 came. May be NULL.
  void (*cued) (gpointer owner, const WeirCue *cue);
} UpstreamCallbacks;

// `config` and `owner` must outlive the result. A stage's PullMakeFunc uses only the time-outs of
// `config`. `owner` becomes `data` of the PullContext.
Upstream *upstream_new (const PullConfig *config, PullMakeFunc make, RelaySource *source,
    const UpstreamCallbacks *callbacks, gpointer owner);
void upstream_free (Upstream *self);

// Starts the upstream. Has no effect if it is running.
void upstream_start (Upstream *self);

// Sets what further runs play: from where, in ns of the stored title's time (0: from its
// beginning), and which of a publisher's layers (sources/publication.h).
void upstream_play (Upstream *self, gint64 from, guint rank);

// Ends the run (with TEARDOWN for RTSP) or the back-off. Returns at once.
void upstream_stop (Upstream *self);

// Returns the time since the last packet, in ns; since the start if no packet has arrived; 0 if the
// upstream does not run.
gint64 upstream_get_silence (Upstream *self);

// Returns the longest time between two packets in the last 5 to 10 s, in ns; 0 if it has not had
// media for 2 s.
gint64 upstream_get_longest_gap (Upstream *self);

// Returns how long the clip is that plays once, in ns; 0 before its tracks are known.
gint64 upstream_get_length (Upstream *self);

// Returns why no run can have media until the clip is another, or NULL: what RTP cannot carry, and
// what is broken, needs no second look. Valid until the upstream starts a run or ends one.
const gchar *upstream_get_unfit (Upstream *self);

// Tries again now, not when the back-off ends: an unfit clip may be another.
void upstream_look_again (Upstream *self);

// Returns the worker process that runs the upstream, or NULL.
Worker *upstream_get_worker (Upstream *self);

// Returns the number of runs, of all upstreams, whose pipelines are still being closed.
guint upstream_n_closing (void);
