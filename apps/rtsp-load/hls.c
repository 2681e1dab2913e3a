// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "hls.h"

#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "arrivals.h"
#include "hls_client.h"
#include "lines.h"
#include "run/clock.h"

#define SECOND INT64_C (1000000000)
#define MAX_EVENTS 512
#define CHECK_NS (SECOND / 5)

typedef struct {
  const Options *options;
  int epoll;
  GRand *random;
  Target *targets;
  guint n_targets, n, n_started;
  HlsClient *clients;
  HlsCounts counts;
} Hls;

static volatile sig_atomic_t stopped;

static void
on_signal (int number)
{
  stopped = 1;
}

static gboolean
init (Hls *self, const Options *options)
{
  *self = (Hls) {
    .options = options, .n_targets = g_strv_length (options->urls), .n = (guint) options->readers
  };
  self->epoll = epoll_create1 (EPOLL_CLOEXEC);
  self->random = g_rand_new_with_seed ((guint32) options->seed);
  self->targets = g_new0 (Target, self->n_targets);
  for (guint i = 0; i < self->n_targets; i++) {
    if (!target_init_http (&self->targets[i], options->urls[i], options->user, options->password))
      return FALSE;
  }
  self->clients = g_new0 (HlsClient, self->n);
  for (guint i = 0; i < self->n; i++)
    hls_client_init (
        &self->clients[i], i, &self->targets[i % self->n_targets], &self->counts, self->epoll);
  return TRUE;
}

static void
clear (Hls *self)
{
  for (guint i = 0; self->clients && i < self->n; i++)
    hls_client_clear (&self->clients[i]);
  for (guint i = 0; i < self->n_targets; i++)
    target_clear (&self->targets[i]);
  g_free (self->clients);
  g_free (self->targets);
  g_rand_free (self->random);
  close (self->epoll);
}

// Fails players that wait too long. Returns whether any still plays.
static gboolean
check_times (Hls *self, gint64 now)
{
  gboolean running = self->n_started < self->n;

  for (guint i = 0; i < self->n_started; i++) {
    hls_client_check_time (&self->clients[i], now);
    running = running || !self->clients[i].why;
  }
  return running;
}

static void
loop (Hls *self)
{
  struct epoll_event events[MAX_EVENTS];
  gint64 now = weir_now_ns (), next_arrival = now, check = now;
  const gint64 end = now + (gint64) (self->options->duration * SECOND);

  gboolean running = TRUE;

  while (running && !stopped && now < end) {
    int n;

    for (; self->n_started < self->n && next_arrival <= now; self->n_started++) {
      hls_client_start (
          &self->clients[self->n_started], now, (gint64) (self->options->timeout * SECOND));
      next_arrival += arrivals_draw_gap (self->options, self->random);
    }
    if (now >= check) {
      running = check_times (self, now);
      check = now + CHECK_NS;
    }
    n = epoll_wait (self->epoll, events, MAX_EVENTS, self->n_started < self->n ? 1 : 100);
    now = weir_now_ns ();
    for (int i = 0; i < n; i++)
      hls_client_on_event (&self->clients[events[i].data.u64 >> 1],
          (HlsConnectionKind) (events[i].data.u64 & 1), events[i].events, now);
  }
}

// Prints why players failed. Returns how many did.
static guint
tell_failures (const Hls *self)
{
  guint failed = 0;

  for (guint i = 0; i < self->n; i++) {
    if (self->clients[i].why)
      fprintf (stderr, "rtsp-load: player %u: %s\n", i + 1, self->clients[i].why);
    failed += self->clients[i].why != NULL;
  }
  return failed;
}

static gboolean
report (const Hls *self)
{
  const HlsCounts *c = &self->counts;
  guint failed = tell_failures (self), playing = 0;

  for (guint i = 0; i < self->n; i++)
    playing += self->clients[i].plays;
  const Line lines[] = {
    { "players", "players", self->n },
    { "with parts", "playing", playing },
    { "failed", "failed", failed },
    { "playlists", "playlists", (gdouble) c->playlists },
    { "parts", "parts", (gdouble) c->parts },
    { "bytes", "bytes", (gdouble) c->bytes },
    { "parts skipped", "skipped", (gdouble) c->skipped },
    { "stalls", "stalls", (gdouble) c->stalls },
    { "latency p50, ms", "latency_p50_ms", lines_percentile (&c->latency, 50) },
    { "latency p99, ms", "latency_p99_ms", lines_percentile (&c->latency, 99) },
    { "latency max, ms", "latency_max_ms", (gdouble) c->latency.max / 1e6 },
    { "start-up p50, ms", "start_up_p50_ms", lines_percentile (&c->start_up, 50) },
    { "start-up p99, ms", "start_up_p99_ms", lines_percentile (&c->start_up, 99) },
  };

  lines_print (lines, G_N_ELEMENTS (lines), self->options->json);
  return failed == 0 && playing == self->n;
}

gboolean
hls_run (const Options *options)
{
  struct sigaction action = { .sa_handler = on_signal };
  Hls self;
  gboolean ok = init (&self, options);

  sigaction (SIGINT, &action, NULL);
  sigaction (SIGTERM, &action, NULL);
  if (ok) {
    loop (&self);
    ok = report (&self);
  }
  clear (&self);
  return ok;
}
