// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "scheme.h"

#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "arrivals.h"
#include "lines.h"
#include "run/clock.h"
#include "run/histogram.h"
#include "viewer.h"

#define SECOND INT64_C (1000000000)
#define MAX_EVENTS 512

typedef struct {
  const Options *options;
  Receiver *receiver;
  int epoll;
  GRand *random;
  Target *targets;
  guint n_targets, n, n_started;
  Viewer *viewers;
  gint64 next_arrival_ns, end_ns;
} Scheme;

typedef struct {
  WeirFollowStats sum;
  WeirHistogram start_up;
  guint described, done, failed;
} Totals;

static volatile sig_atomic_t stopped;

static void
on_signal (int number)
{
  stopped = 1;
}

static gboolean
init (Scheme *self, const Options *options)
{
  *self = (Scheme) {
    .options = options, .n_targets = g_strv_length (options->urls), .n = (guint) options->readers
  };
  self->epoll = epoll_create1 (EPOLL_CLOEXEC);
  self->random = g_rand_new_with_seed ((guint32) options->seed);
  self->receiver = receiver_new ();
  self->targets = g_new0 (Target, self->n_targets);
  for (guint i = 0; i < self->n_targets; i++) {
    if (!target_init (&self->targets[i], options->urls[i], options->user, options->password))
      return FALSE;
  }
  self->viewers = g_new0 (Viewer, self->n);
  for (guint i = 0; i < self->n; i++)
    viewer_init (
        &self->viewers[i], i, &self->targets[i % self->n_targets], self->receiver, self->epoll);
  return TRUE;
}

static void
clear (Scheme *self)
{
  for (guint i = 0; self->viewers && i < self->n; i++)
    viewer_clear (&self->viewers[i]);
  for (guint i = 0; i < self->n_targets; i++)
    target_clear (&self->targets[i]);
  g_free (self->viewers);
  g_free (self->targets);
  g_rand_free (self->random);
  receiver_free (self->receiver);
  close (self->epoll);
}

// Calls the clients whose time has come. Returns when to call again, and whether any still runs.
static gint64
run_timers (Scheme *self, gint64 now, gboolean *running)
{
  gint64 next = WEIR_NEVER;

  *running = self->n_started < self->n;
  for (guint i = 0; i < self->n_started; i++) {
    Viewer *viewer = &self->viewers[i];

    if (viewer->due_ns <= now)
      viewer_on_time (viewer, now);
    next = MIN (next, viewer->due_ns);
    *running = *running || viewer->state < VIEWER_DONE;
  }
  return next;
}

static void
loop (Scheme *self)
{
  struct epoll_event events[MAX_EVENTS];
  gint64 now = receiver_sync (self->receiver);
  gboolean running = TRUE;

  self->next_arrival_ns = now;
  self->end_ns = now + (gint64) (self->options->duration * SECOND);
  while (running && !stopped && now < self->end_ns) {
    gint64 next;
    int n;

    for (; self->n_started < self->n && self->next_arrival_ns <= now; self->n_started++) {
      viewer_start (&self->viewers[self->n_started], now);
      self->next_arrival_ns += arrivals_draw_gap (self->options, self->random);
    }
    next = MIN (run_timers (self, now, &running), self->end_ns);
    if (self->n_started < self->n)
      next = MIN (next, self->next_arrival_ns);
    n = epoll_wait (
        self->epoll, events, MAX_EVENTS, (int) CLAMP ((next - now + 999999) / 1000000, 0, 100));
    now = receiver_sync (self->receiver);
    for (int i = 0; i < n; i++)
      viewer_on_event (&self->viewers[events[i].data.u64 >> 16], events[i].data.u64 & 0xffff,
          events[i].events, now);
  }
}

static void
add_up (const Scheme *self, Totals *totals)
{
  WeirFollowStats *sum = &totals->sum;

  for (guint i = 0; i < self->n; i++) {
    const Viewer *viewer = &self->viewers[i];
    const WeirFollowStats *stats;

    totals->failed += viewer->state == VIEWER_FAILED;
    totals->done += viewer->state == VIEWER_DONE;
    if (viewer->state == VIEWER_FAILED)
      fprintf (stderr, "rtsp-load: client %u: %s\n", i + 1, viewer->why);
    if (!viewer->description)
      continue;
    totals->described++;
    stats = viewer_get_counts (viewer);
    sum->passed += stats->passed;
    sum->in_time += stats->in_time;
    sum->late += stats->late;
    sum->lost += stats->lost;
    sum->missed += stats->missed;
    sum->repaired += stats->repaired;
    sum->stalls += stats->stalls;
    sum->group_bytes += stats->group_bytes;
    sum->unicast_bytes += stats->unicast_bytes;
    sum->groups_max = MAX (sum->groups_max, stats->groups_max);
    if (stats->first_ns > 0)
      weir_histogram_add (
          &totals->start_up, MAX (stats->first_ns - viewer->began_ns - viewer->wait_ns, 0));
  }
}

static void
report (const Scheme *self, const Totals *t)
{
  const WeirFollowStats *sum = &t->sum;
  const gdouble bytes = (gdouble) MAX (sum->group_bytes + sum->unicast_bytes, 1);
  const Line lines[] = {
    { "clients", "clients", self->n },
    { "with a schedule", "described", t->described },
    { "to the end", "done", t->done },
    { "failed", "failed", t->failed },
    { "packets", "packets", (gdouble) (sum->passed - sum->lost) },
    { "in time", "in_time", (gdouble) sum->in_time },
    { "late", "late", (gdouble) sum->late },
    { "lost", "lost", (gdouble) sum->lost },
    { "conformance, %", "conformance",
        100 * (gdouble) sum->in_time / (gdouble) MAX (sum->passed, 1) },
    { "missed on groups", "missed", (gdouble) sum->missed },
    { "repaired", "repaired", (gdouble) sum->repaired },
    { "stalls", "stalls", (gdouble) sum->stalls },
    { "bytes on groups", "group_bytes", (gdouble) sum->group_bytes },
    { "bytes by unicast", "unicast_bytes", (gdouble) sum->unicast_bytes },
    { "unicast, %", "unicast_share", 100 * (gdouble) sum->unicast_bytes / bytes },
    { "groups at once", "groups_max", sum->groups_max },
    { "start-up p50, ms", "start_up_p50_ms", lines_percentile (&t->start_up, 50) },
    { "start-up p99, ms", "start_up_p99_ms", lines_percentile (&t->start_up, 99) },
    { "start-up max, ms", "start_up_max_ms", (gdouble) t->start_up.max / 1e6 },
  };

  lines_print (lines, G_N_ELEMENTS (lines), self->options->json);
}

gboolean
scheme_run (const Options *options)
{
  struct sigaction action = { .sa_handler = on_signal };
  Totals totals = { 0 };
  Scheme self;
  gboolean ok = init (&self, options);

  sigaction (SIGINT, &action, NULL);
  sigaction (SIGTERM, &action, NULL);
  if (ok) {
    loop (&self);
    add_up (&self, &totals);
    report (&self, &totals);
    ok = totals.failed == 0 && totals.described == self.n;
  }
  clear (&self);
  return ok;
}
