// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "load.h"

#include "arrivals.h"
#include "reader_io.h"
#include "report.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SECOND INT64_C (1000000000)
#define MAX_EVENTS 512
#define HELD_BACK_NS (5 * SECOND / 1000)
#define MATCH_AFTER_NS (SECOND / 5) // the origin's packet may arrive after the reader's

static volatile sig_atomic_t n_signals;

static void
on_signal (int number)
{
  n_signals++;
}

// All random numbers are drawn before the run, in order, so that they depend on the seed alone.
static gint64
draw_session (Load *self)
{
  const Options *options = self->options;

  if (options->session <= 0)
    return NEVER;
  return (
      gint64) (SECOND
               * (options->session_exp ? arrivals_draw_exponential (self->random, options->session)
                                       : options->session));
}

static guint
pick_target (Load *self, guint index, const gdouble *weights)
{
  gdouble at, sum = 0;

  if (self->options->zipf <= 0)
    return index % self->n_targets;
  at = g_rand_double (self->random) * weights[self->n_targets];
  for (guint i = 0; i < self->n_targets; i++) {
    sum += weights[i];
    if (at < sum)
      return i;
  }
  return self->n_targets - 1;
}

// Returns the weight of each URL, and their sum as the last element. The caller owns the result.
static gdouble *
zipf_weights (const Load *self)
{
  gdouble *weights = g_new0 (gdouble, self->n_targets + 1);

  for (guint i = 0; i < self->n_targets; i++) {
    weights[i] = pow (i + 1, -self->options->zipf);
    weights[self->n_targets] += weights[i];
  }
  return weights;
}

static void
init_readers (Load *self)
{
  const Options *options = self->options;
  guint n = self->n_readers, probes = (guint) options->probes;
  gdouble *weights = zipf_weights (self);

  for (guint i = 0; i < n; i++) {
    Reader *reader = &self->readers[i];

    reader_init (reader, self, i);
    reader->target = &self->targets[pick_target (self, i, weights)];
    reader->udp = options->transport == TRANSPORT_UDP
                  || (options->transport == TRANSPORT_MIXED && i % 2 == 0);
    reader->gap_ns = arrivals_draw_gap (options, self->random);
    reader->session_ns = draw_session (self);
    reader->slow = i >= n - (guint) options->slow;
    reader->measured = !reader->slow && (probes == 0 || i < probes);
    reader->ignores_media = options->mute || (probes > 0 && i >= probes);
  }
  g_free (weights);
}

static void
init_origin (Load *self)
{
  Reader *reader = &self->readers[self->n_readers];

  reader_init (reader, self, self->n_readers);
  reader->target = &self->targets[self->n_targets];
  reader->udp = self->readers[0].udp;
  reader->origin = TRUE;
  self->against = against_new ();
  self->n_all++;
}

static gboolean
init_targets (Load *self)
{
  const Options *options = self->options;
  guint n = g_strv_length (options->urls);

  self->targets = g_new0 (Target, n + 1);
  self->n_targets = n;
  for (guint i = 0; i < n; i++) {
    if (!target_init (&self->targets[i], options->urls[i], options->user, options->password))
      return FALSE;
  }
  return !options->against
         || target_init (&self->targets[n], options->against, options->user, options->password);
}

Load *
load_new (const Options *options)
{
  Load *self = g_new0 (Load, 1);

  self->options = options;
  results_init (&self->results);
  self->receiver = receiver_new ();
  self->scratch = g_malloc (LOAD_SCRATCH);
  self->unjudged = reader_io_unjudged ();
  self->epoll = -1;
  if (!init_targets (self)) {
    load_free (self);
    return NULL;
  }
  ports_init (&self->ports, options->port_lo, options->port_hi);
  self->random = g_rand_new_with_seed ((guint32) options->seed);
  self->epoll = epoll_create1 (EPOLL_CLOEXEC);
  self->n_readers = self->n_all = (guint) options->readers;
  self->readers = g_new0 (Reader, self->n_readers + 1);
  self->due = g_new (gint64, self->n_readers + 1);
  init_readers (self);
  if (options->against)
    init_origin (self);
  for (guint i = 0; i < self->n_all; i++)
    self->due[i] = NEVER;
  self->next_due = NEVER;
  return self;
}

void
load_free (Load *self)
{
  for (guint i = 0; i < self->n_all; i++)
    reader_clear (&self->readers[i]);
  for (guint i = 0; self->targets && i <= self->n_targets; i++)
    target_clear (&self->targets[i]);
  if (self->epoll >= 0)
    close (self->epoll);
  g_free (self->targets);
  g_free (self->readers);
  g_free (self->due);
  g_free (self->scratch);
  g_array_unref (self->unjudged);
  g_clear_pointer (&self->random, g_rand_free);
  results_clear (&self->results);
  receiver_free (self->receiver);
  g_clear_pointer (&self->against, against_free);
  g_free (self);
}

void
load_reschedule (Load *self, Reader *reader)
{
  gint64 due = reader_due (reader);

  self->due[reader->index] = due;
  self->next_due = MIN (self->next_due, due);
}

void
load_reader_done (Load *self, Reader *reader)
{
  self->n_open--;
  load_reschedule (self, reader);
}

static void
start_reader (Load *self, Reader *reader, gint64 now)
{
  self->n_open++;
  reader_start (reader, now);
  load_reschedule (self, reader);
}

void
load_match (Load *self, gint64 until_ns)
{
  if (self->against)
    self->results.unmatched += against_match (self->against, until_ns, &self->results.added_delay);
}

static Reader *
origin (const Load *self)
{
  return self->against ? &self->readers[self->n_readers] : NULL;
}

// The origin starts before all readers, so that it has every packet that they get. Probes start
// before other readers, so that they have the lowest ports.
static gboolean
held_back (const Load *self)
{
  guint probes = (guint) self->options->probes;

  if (origin (self) && origin (self)->state < READER_PLAYING)
    return TRUE;
  if (probes == 0 || self->n_started != probes)
    return FALSE;
  for (guint i = 0; i < probes; i++) {
    if (self->readers[i].state < READER_PLAYING)
      return TRUE;
  }
  return FALSE;
}

static void
let_arrive (Load *self, gint64 now)
{
  while (self->n_started < self->n_readers && now >= self->next_arrival_ns) {
    if (held_back (self)) {
      self->next_arrival_ns = now + HELD_BACK_NS;
      return;
    }
    self->next_arrival_ns += self->readers[self->n_started].gap_ns;
    start_reader (self, &self->readers[self->n_started++], now);
  }
}

static void
run_timers (Load *self, gint64 now)
{
  if (now < self->next_due)
    return;
  self->next_due = NEVER;
  for (guint i = 0; i < self->n_all; i++) {
    if (self->due[i] <= now) {
      reader_on_time (&self->readers[i], now);
      self->due[i] = reader_due (&self->readers[i]);
    }
    self->next_due = MIN (self->next_due, self->due[i]);
  }
}

static void
count_late (Load *self)
{
  guint late = self->n_readers - self->n_started;
  gchar *text = g_strdup_printf (
      "%u of %u readers had not started at the end of --duration", late, self->n_readers);

  for (guint i = 0; i < late; i++)
    results_error (&self->results, "late", text);
  g_free (text);
}

static void
stop_all (Load *self, gint64 now)
{
  self->stopping = TRUE;
  if (n_signals == 0)
    count_late (self);
  self->n_started = self->n_readers;
  self->end_ns = NEVER;
  report_sample (self, now);
  for (guint i = 0; i < self->n_readers; i++)
    reader_stop (&self->readers[i], now);
}

static int
wait_ms (const Load *self, gint64 now)
{
  gint64 next = MIN (MIN (self->next_due, self->end_ns), self->sample_ns);

  if (self->n_started < self->n_readers)
    next = MIN (next, self->next_arrival_ns);
  return next <= now ? 0 : (int) MIN ((next - now + 999999) / 1000000, 1000);
}

static void
handle (const struct epoll_event *event, gint64 now)
{
  Source *source = event->data.ptr;

  // An earlier event of the same batch may have closed the source.
  if (source->fd < 0)
    return;
  if (source->kind == SOURCE_CONTROL)
    reader_on_control (source->reader, event->events, now);
  else
    reader_io_on_datagram (source);
}

// The origin is read until all readers have left, so that it has every packet that they get.
static gboolean
only_origin_left (const Load *self)
{
  return origin (self) && self->n_started == self->n_readers && self->n_open == 1
         && origin (self)->state < READER_LEAVING;
}

static void
turn (Load *self, gint64 now)
{
  struct epoll_event events[MAX_EVENTS];
  int n = epoll_wait (self->epoll, events, MAX_EVENTS, wait_ms (self, now));

  now = receiver_sync (self->receiver);
  for (int i = 0; i < n; i++) {
    Source *source = events[i].data.ptr;

    handle (&events[i], now);
    if (source->kind == SOURCE_CONTROL)
      load_reschedule (self, source->reader);
  }
  let_arrive (self, now);
  run_timers (self, now);
  load_match (self, now - MATCH_AFTER_NS);
  if (now >= self->sample_ns) {
    report_sample (self, now);
    self->sample_ns += SECOND;
  }
  if (!self->stopping && (now >= self->end_ns || n_signals > 0))
    stop_all (self, now);
  if (only_origin_left (self))
    reader_stop (origin (self), now);
}

static void
catch_signals (void)
{
  struct sigaction action = { .sa_handler = on_signal };

  sigaction (SIGINT, &action, NULL);
  sigaction (SIGTERM, &action, NULL);
  signal (SIGPIPE, SIG_IGN); // a drawing program may exit before it has read its input
}

void
load_run (Load *self)
{
  gint64 start = receiver_sync (self->receiver);

  catch_signals ();
  self->results.start_ns = self->next_arrival_ns = start;
  self->sample_ns = start + SECOND;
  self->end_ns = start + (gint64) (self->options->duration * SECOND);
  if (origin (self))
    start_reader (self, origin (self), start);
  let_arrive (self, start);
  // A second signal ends the run without TEARDOWN.
  while ((self->n_open > 0 || self->n_started < self->n_readers) && n_signals < 2)
    turn (self, receiver_sync (self->receiver));
  self->results.end_ns = receiver_sync (self->receiver);
  load_match (self, G_MAXINT64);
  report_sample (self, self->results.end_ns);
}
