// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ingest/engine_private.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MAX 64
#define BUDGET 256
// Bytes as the kernel accounts them: a second of about 1 Mb/s in packets of 1200 bytes.
#define BUFFER (256 << 10)

struct weir_ingest {
  pthread_mutex_t lock; // guards the start of threads
  unsigned n_loops;
  IngestLoop loops[];
};

static unsigned
default_threads (void)
{
  cpu_set_t cpus;
  int n = sched_getaffinity (0, sizeof cpus, &cpus) == 0 ? CPU_COUNT (&cpus) : 1;

  return n > 3 ? (unsigned) n / 2 : 1;
}

WeirIngest *
weir_ingest_new (const WeirIngestSettings *settings)
{
  WeirIngestSettings wanted =
      settings ? *settings : (WeirIngestSettings) { .tick_ns = WEIR_INGEST_TICK_NS };
  WeirIngest *self;

  if (wanted.threads == 0)
    wanted.threads = default_threads ();
  if (wanted.threads > THREADS_MAX)
    wanted.threads = THREADS_MAX;
  if (wanted.budget == 0)
    wanted.budget = BUDGET;
  if (wanted.tick_ns < 0)
    wanted.tick_ns = 0;
  if (wanted.tick_ns > WEIR_INGEST_TICK_MAX_NS)
    wanted.tick_ns = WEIR_INGEST_TICK_MAX_NS;
  self = calloc (1, sizeof *self + wanted.threads * sizeof *self->loops);
  if (!self)
    return NULL;
  pthread_mutex_init (&self->lock, NULL);
  self->n_loops = wanted.threads;
  for (unsigned i = 0; i < self->n_loops; i++)
    weir_loop_init (&self->loops[i], wanted.tick_ns, wanted.budget);
  return self;
}

void
weir_ingest_free (WeirIngest *self)
{
  for (unsigned i = 0; i < self->n_loops; i++)
    weir_loop_clear (&self->loops[i]);
  pthread_mutex_destroy (&self->lock);
  free (self);
}

// ---- tracks ----

static IngestLoop *
loop_with_fewest (WeirIngest *self)
{
  IngestLoop *best = NULL;
  size_t fewest = SIZE_MAX;

  for (unsigned i = 0; i < self->n_loops; i++) {
    IngestLoop *loop = &self->loops[i];

    pthread_mutex_lock (&loop->lock);
    if (loop->n_tracks < fewest) {
      fewest = loop->n_tracks;
      best = loop;
    }
    pthread_mutex_unlock (&loop->lock);
  }
  return best;
}

static int
add_to_loop (WeirIngest *self, WeirIngestTrack *track)
{
  IngestLoop *loop;
  int error;

  pthread_mutex_lock (&self->lock);
  loop = loop_with_fewest (self);
  error = weir_loop_start (loop);
  if (error == 0)
    error = weir_loop_add (loop, track);
  pthread_mutex_unlock (&self->lock);
  return error;
}

static void
close_sockets (WeirIngestSockets sockets)
{
  if (sockets.rtp >= 0)
    close (sockets.rtp);
  if (sockets.rtcp >= 0)
    close (sockets.rtcp);
}

int
weir_ingest_add (WeirIngest *self, const WeirTrackSettings *settings, WeirIngestSockets sockets,
    const WeirIngestOps *ops, void *data, WeirIngestTrack **out)
{
  WeirTrackSettings wanted = *settings;
  WeirIngestTrack *track;
  int error;

  if ((sockets.rtp < 0 && sockets.rtcp >= 0) || !(track = calloc (1, sizeof *track))) {
    close_sockets (sockets);
    return sockets.rtp < 0 && sockets.rtcp >= 0 ? -EINVAL : -ENOMEM;
  }
  wanted.interleaved = sockets.rtp < 0;
  weir_track_init (&track->track, &wanted, &ops->track, data);
  track->ops = ops;
  track->data = data;
  track->fds[0] = sockets.rtp;
  track->fds[1] = sockets.rtcp;
  track->due_ns = WEIR_NEVER;
  if (sockets.rtp >= 0)
    track->shown.buffer = track->buffer = weir_udp_set_buffer (sockets.rtp, BUFFER);
  // Before packets come: their callbacks may use the track.
  *out = track;
  error = add_to_loop (self, track);
  if (error < 0) {
    *out = NULL;
    weir_ingest_track_free (track);
  }
  return error;
}

// Adds what the kernel dropped since the last message that told.
static void
add_kernel_drops (const WeirIngestTrack *track, const uint32_t last[2], WeirIngestStats *stats)
{
  for (int i = 0; i < 2; i++) {
    if (track->fds[i] >= 0)
      stats->kernel_drops += (uint32_t) (weir_udp_drops (track->fds[i]) - last[i]);
  }
}

void
weir_ingest_remove (WeirIngestTrack *track, WeirIngestStats *last)
{
  IngestLoop *loop = track->loop;

  weir_track_stop (&track->track);
  pthread_mutex_lock (&loop->lock);
  weir_loop_take_out (track);
  track->removed = true;
  if (track->busy && pthread_equal (track->owner, pthread_self ())) {
    track->removed_by_owner = true;
    pthread_mutex_unlock (&loop->lock);
    return;
  }
  while (track->busy)
    pthread_cond_wait (&loop->released, &loop->lock);
  pthread_mutex_unlock (&loop->lock);
  if (last) {
    weir_track_clear (&track->track);
    weir_track_stats (&track->track, last);
    last->kernel_drops = track->drops;
    last->buffer = track->buffer;
    add_kernel_drops (track, track->last_drops, last);
  }
  weir_ingest_track_free (track);
}

int
weir_ingest_push (WeirIngestTrack *track, bool rtcp, uint8_t *data, size_t len, int64_t now_ns)
{
  IngestLoop *loop = track->loop;

  if (track->fds[0] >= 0)
    return -EINVAL;
  pthread_mutex_lock (&loop->lock);
  if (track->busy && pthread_equal (track->owner, pthread_self ())) {
    pthread_mutex_unlock (&loop->lock);
    return -EDEADLK;
  }
  while (track->busy)
    pthread_cond_wait (&loop->released, &loop->lock);
  weir_loop_hold (track);
  pthread_mutex_unlock (&loop->lock);
  if (rtcp)
    weir_track_take_rtcp (&track->track, NULL, data, len, now_ns);
  else
    weir_track_take (&track->track, NULL, data, len, now_ns, now_ns);
  if (track->ops->settled && !atomic_load (&track->track.stopped))
    track->ops->settled (track->data);
  weir_loop_release (track);
  return 0;
}

void
weir_ingest_ask_key (WeirIngestTrack *track)
{
  pthread_mutex_lock (&track->loop->lock);
  if (!track->removed) {
    track->key_asked = true;
    weir_loop_set_due (track, INT64_MIN);
  }
  pthread_mutex_unlock (&track->loop->lock);
}

void
weir_ingest_stats (WeirIngestTrack *track, WeirIngestStats *out)
{
  uint32_t last[2];

  pthread_mutex_lock (&track->loop->lock);
  *out = track->shown;
  for (int i = 0; i < 2; i++)
    last[i] = track->shown_drops[i];
  pthread_mutex_unlock (&track->loop->lock);
  add_kernel_drops (track, last, out);
}
