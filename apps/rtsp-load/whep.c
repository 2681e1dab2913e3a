// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "whep.h"

#include <gst/gst.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "arrivals.h"
#include "lines.h"
#include "run/clock.h"
#include "whep_client.h"

#define SECOND INT64_C (1000000000)
#define MILLISECOND INT64_C (1000000)
#define MAX_EVENTS 512
#define CHECK_NS (5 * MILLISECOND)
#define LEAVE_NS (5 * SECOND) // for the answers to all DELETEs

typedef struct {
  const Options *options;
  GRand *random;
  Target *targets;
  guint n_targets, n, n_started;
  WhepClient *clients;
  WhepRun run;
} Whep;

static volatile sig_atomic_t stopped;

static void
on_signal (int number)
{
  stopped = 1;
}

// WeirSrtp is of the plugin, which is loaded with its first element.
static gboolean
load_plugin (void)
{
  GstElementFactory *factory;
  GstPluginFeature *loaded;

  gst_init (NULL, NULL);
  factory = gst_element_factory_find ("fanoutsink");
  loaded = factory ? gst_plugin_feature_load (GST_PLUGIN_FEATURE (factory)) : NULL;
  g_clear_pointer (&factory, gst_object_unref);
  g_clear_pointer (&loaded, gst_object_unref);
  if (g_type_from_name ("WeirSrtp"))
    return TRUE;
  fprintf (stderr, "rtsp-load: the plugin with fanoutsink, which --whep needs for SRTP, is not "
                   "installed\n");
  return FALSE;
}

static gboolean
init (Whep *self, const Options *options)
{
  GError *error = NULL;

  *self = (Whep) {
    .options = options,
    .n_targets = g_strv_length (options->urls),
    .n = (guint) options->readers,
    .random = g_rand_new_with_seed ((guint32) options->seed),
    .run = { .epoll = epoll_create1 (EPOLL_CLOEXEC),
        .receiver = receiver_new (),
        .timeout_ns = (gint64) (options->timeout * SECOND),
        .twcc = options->twcc },
  };
  self->targets = g_new0 (Target, self->n_targets);
  if (!load_plugin ())
    return FALSE;
  for (guint i = 0; i < self->n_targets; i++) {
    if (!target_init_http (&self->targets[i], options->urls[i], options->user, options->password))
      return FALSE;
  }
  self->run.dtls = dtls_context_new (&error);
  if (!self->run.dtls) {
    fprintf (stderr, "rtsp-load: %s\n", error->message);
    g_error_free (error);
    return FALSE;
  }
  self->clients = g_new0 (WhepClient, self->n);
  for (guint i = 0; i < self->n; i++)
    whep_client_init (&self->clients[i], i, &self->targets[i % self->n_targets], &self->run);
  return TRUE;
}

static void
clear (Whep *self)
{
  for (guint i = 0; self->clients && i < self->n; i++)
    whep_client_clear (&self->clients[i]);
  for (guint i = 0; i < self->n_targets; i++)
    target_clear (&self->targets[i]);
  g_free (self->clients);
  g_free (self->targets);
  g_clear_pointer (&self->run.dtls, dtls_context_free);
  receiver_free (self->run.receiver);
  g_rand_free (self->random);
  close (self->run.epoll);
}

// ---- the loop ----

static void
take_events (Whep *self)
{
  struct epoll_event events[MAX_EVENTS];
  int n = epoll_wait (self->run.epoll, events, MAX_EVENTS, CHECK_NS / MILLISECOND);

  for (int i = 0; i < n; i++)
    whep_client_on_event (&self->clients[events[i].data.u64 >> 1],
        (WhepSocket) (events[i].data.u64 & 1), weir_now_ns ());
}

// Returns whether any reader is in none of the states from `last` on.
static gboolean
tick (Whep *self, WhepState last, gint64 now)
{
  gboolean any = FALSE;

  for (guint i = 0; i < self->n_started; i++) {
    if (self->clients[i].due_ns <= now)
      whep_client_tick (&self->clients[i], now);
    any = any || self->clients[i].state < last;
  }
  return any;
}

static void
receive (Whep *self)
{
  gint64 now = receiver_sync (self->run.receiver), next_arrival = now, check = now;
  const gint64 end = now + (gint64) (self->options->duration * SECOND);
  gboolean running = TRUE;

  while (running && !stopped && now < end) {
    for (; self->n_started < self->n && next_arrival <= now; self->n_started++) {
      whep_client_start (&self->clients[self->n_started], weir_now_ns ());
      next_arrival += arrivals_draw_gap (self->options, self->random);
    }
    if (now >= check) {
      running = tick (self, WHEP_FAILED, now) || self->n_started < self->n;
      check = now + CHECK_NS;
    }
    take_events (self);
    now = receiver_sync (self->run.receiver);
  }
}

static void
leave (Whep *self)
{
  gint64 now = weir_now_ns ();
  const gint64 end = now + MIN (LEAVE_NS, self->run.timeout_ns);

  for (guint i = 0; i < self->n_started; i++)
    whep_client_leave (&self->clients[i], now);
  while (tick (self, WHEP_GONE, now) && now < end) {
    take_events (self);
    now = weir_now_ns ();
  }
}

// ---- the result ----

typedef struct {
  guint playing, failed[WHEP_STATES], failed_all;
  guint64 packets, bytes, lost, reordered, duplicates, foreign, forged, again, socket_drops;
} Sums;

static void
add_media (Sums *sums, const WhepMedia *media)
{
  sums->playing += media->first_ns != 0;
  sums->bytes += media->bytes;
  sums->foreign += media->foreign;
  sums->forged += media->forged;
  sums->again += media->again;
  for (guint i = 0; i < WHEP_KINDS; i++) {
    const WeirRtpStats *stats = &media->tracks[i].stats;

    if (!media->tracks[i].known)
      continue;
    sums->packets += stats->packets;
    sums->lost += weir_rtp_stats_lost (stats);
    sums->reordered += stats->reordered;
    sums->duplicates += stats->duplicates;
  }
}

// Adds up, and prints why readers failed.
static Sums
add_up (const Whep *self)
{
  Sums sums = { 0 };

  for (guint i = 0; i < self->n; i++) {
    const WhepClient *client = &self->clients[i];

    if (client->why) {
      fprintf (stderr, "rtsp-load: reader %u: %s\n", i + 1, client->why);
      sums.failed[client->failed_in]++;
      sums.failed_all++;
    }
    add_media (&sums, &client->media);
    sums.socket_drops += client->socket_drops;
  }
  return sums;
}

#define TIMES(name, key, histogram)                                                                \
  { name " p50, ms", key "_p50_ms", lines_percentile (histogram, 50) },                            \
      { name " p90, ms", key "_p90_ms", lines_percentile (histogram, 90) },                        \
      { name " p99, ms", key "_p99_ms", lines_percentile (histogram, 99) },                        \
      { name " max, ms", key "_max_ms", (gdouble) (histogram)->max / 1e6 }

static gboolean
report (const Whep *self)
{
  const WhepRun *run = &self->run;
  const Sums sums = add_up (self);
  const guint64 due = sums.packets - sums.duplicates + sums.lost;
  const Line lines[] = {
    { "readers", "readers", self->n },
    { "with media", "playing", sums.playing },
    { "with a keyframe", "keyframes", (gdouble) run->keyframe.n },
    { "failed", "failed", sums.failed_all },
    { "failed by HTTP", "failed_http", sums.failed[WHEP_ASKING] },
    { "failed by ICE", "failed_ice", sums.failed[WHEP_CHECKING] },
    { "failed by DTLS", "failed_dtls", sums.failed[WHEP_SHAKING] },
    { "failed later", "failed_later", sums.failed[WHEP_RECEIVING] },
    { "packets", "packets", (gdouble) sums.packets },
    { "bytes", "bytes", (gdouble) sums.bytes },
    { "lost", "lost", (gdouble) sums.lost },
    { "delivered, %", "delivered", due > 0 ? 100 * (1 - (gdouble) sums.lost / (gdouble) due) : 0 },
    { "reordered", "reordered", (gdouble) sums.reordered },
    { "duplicates", "duplicates", (gdouble) sums.duplicates },
    { "sent again", "again", (gdouble) sums.again },
    { "of no track", "foreign", (gdouble) sums.foreign },
    { "not authentic", "forged", (gdouble) sums.forged },
    { "socket drops", "socket_drops", (gdouble) sums.socket_drops },
    TIMES ("answer", "answer", &run->answer),
    TIMES ("DTLS done", "dtls", &run->dtls_done),
    TIMES ("first packet", "first_packet", &run->first_packet),
    TIMES ("keyframe", "keyframe", &run->keyframe),
    { "CPU time, s", "cpu_s", lines_cpu_seconds () },
  };

  lines_print (lines, G_N_ELEMENTS (lines), self->options->json);
  return sums.failed_all == 0 && sums.playing == self->n;
}

gboolean
whep_run (const Options *options)
{
  struct sigaction action = { .sa_handler = on_signal };
  Whep self;
  gboolean ok = init (&self, options);

  sigaction (SIGINT, &action, NULL);
  sigaction (SIGTERM, &action, NULL);
  if (ok) {
    receive (&self);
    leave (&self);
    ok = report (&self);
  }
  clear (&self);
  return ok;
}
