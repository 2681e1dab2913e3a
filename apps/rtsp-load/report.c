// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "report.h"

#include <stdio.h>
#include <unistd.h>

#define SECOND 1e9

static void
add_reader (Results *results, const Reader *reader)
{
  for (guint i = 0; i < reader->n_tracks; i++) {
    const Track *track = &reader->tracks[i];

    results->packets += track->stats.packets;
    results->bytes += track->bytes;
    results->lost += weir_rtp_stats_lost (&track->stats);
    results->reordered += track->stats.reordered;
    results->duplicates += track->stats.duplicates;
    results->stalls += track->stalls;
    results->invalid += track->invalid;
    results->early += track->early;
    results->socket_drops += track->socket_drops;
  }
}

static void
add_up (Load *load)
{
  Results *results = &load->results;

  results->packets = results->bytes = results->lost = results->reordered = 0;
  results->duplicates = results->stalls = results->invalid = results->early = 0;
  results->socket_drops = 0;
  for (guint i = 0; i < load->n_readers; i++) {
    if (load->readers[i].measured)
      add_reader (results, &load->readers[i]);
  }
}

static guint
sum (GHashTable *table)
{
  GHashTableIter iter;
  gpointer n;
  guint all = 0;

  g_hash_table_iter_init (&iter, table);
  while (g_hash_table_iter_next (&iter, NULL, &n))
    all += GPOINTER_TO_UINT (n);
  return all;
}

static void
live_line (const Results *results, const Sample *last, const Sample *sample)
{
  gdouble time = MAX (sample->at - last->at, 1e-3);

  fprintf (stderr,
      "\r%5.0f s  %u playing  %u refused  %u failed  %.0f packets/s  %.2f Mb/s  %" G_GUINT64_FORMAT
      " lost \033[K",
      sample->at, results->playing, sum (results->refused), sum (results->errors),
      (gdouble) (sample->packets - last->packets) / time,
      (gdouble) (sample->bytes - last->bytes) * 8e-6 / time, sample->lost);
  fflush (stderr);
}

void
report_sample (Load *load, gint64 now)
{
  Results *results = &load->results;
  Sample last = { 0 }, sample;

  add_up (load);
  if (results->samples->len)
    last = g_array_index (results->samples, Sample, results->samples->len - 1);
  sample = (Sample) {
    .at = (gdouble) (now - results->start_ns) / SECOND,
    .playing = results->playing,
    .packets = results->packets,
    .bytes = results->bytes,
    .lost = results->lost,
  };
  if (isatty (STDERR_FILENO))
    live_line (results, &last, &sample);
  g_array_append_val (results->samples, sample);
}

void
report_end_live (void)
{
  if (isatty (STDERR_FILENO))
    fputs ("\n", stderr);
}

static void
print_counts (const gchar *what, GHashTable *table)
{
  GHashTableIter iter;
  gpointer kind, n;

  g_hash_table_iter_init (&iter, table);
  while (g_hash_table_iter_next (&iter, &kind, &n))
    printf ("%-16s %u with %s\n", what, GPOINTER_TO_UINT (n), (gchar *) kind);
}

static void
print_times (const gchar *what, const WeirHistogram *h)
{
  if (h->n == 0)
    return;
  printf ("%-16s %9" G_GUINT64_FORMAT " %9.2f %9.2f %9.2f %9.2f %9.2f\n", what, h->n,
      weir_histogram_mean (h) / 1e6, (gdouble) weir_histogram_percentile (h, 50) / 1e6,
      (gdouble) weir_histogram_percentile (h, 90) / 1e6,
      (gdouble) weir_histogram_percentile (h, 99) / 1e6, (gdouble) h->max / 1e6);
}

static void
print_readers (const Load *load)
{
  for (guint i = 0; i < load->n_readers; i++) {
    const Reader *reader = &load->readers[i];

    for (guint t = 0; t < reader->n_tracks; t++) {
      const Track *track = &reader->tracks[t];

      printf ("reader %u %s %s: %" G_GUINT64_FORMAT " packets, %" G_GUINT64_FORMAT
              " lost, %" G_GUINT64_FORMAT " reordered, %" G_GUINT64_FORMAT " duplicates\n",
          i + 1, reader->udp ? "udp" : "tcp", track->video ? "video" : "other",
          track->stats.packets, weir_rtp_stats_lost (&track->stats), track->stats.reordered,
          track->stats.duplicates);
    }
  }
}

static void
print_all_times (const Results *results)
{
  printf ("\n%-16s %9s %9s %9s %9s %9s %9s\n", "ms", "n", "mean", "p50", "p90", "p99", "max");
  print_times ("describe", &results->describe);
  print_times ("setup", &results->setup);
  print_times ("play", &results->play);
  print_times ("first packet", &results->first_packet);
  print_times ("first frame", &results->first_frame);
  print_times ("frame gap", &results->frame_gap);
  print_times ("playout delay", &results->playout_delay);
  print_times ("jitter", &results->jitter);
  print_times ("A/V skew", &results->av_skew);
  print_times ("added delay", &results->added_delay);
}

void
report_table (Load *load)
{
  const Results *results = &load->results;

  if (load->options->verbose)
    print_readers (load);
  printf ("%-16s %u of %u\n", "connected", results->connected, load->n_readers);
  print_counts ("refused", results->refused);
  print_counts ("failed", results->errors);
  printf ("%-16s %" G_GUINT64_FORMAT "\n", "packets", results->packets);
  printf ("%-16s %" G_GUINT64_FORMAT "\n", "bytes", results->bytes);
  printf ("%-16s %" G_GUINT64_FORMAT "\n", "lost", results->lost);
  printf ("%-16s %" G_GUINT64_FORMAT "\n", "reordered", results->reordered);
  printf ("%-16s %" G_GUINT64_FORMAT "\n", "duplicates", results->duplicates);
  printf ("%-16s %" G_GUINT64_FORMAT "\n", "stalls", results->stalls);
  if (results->invalid)
    printf ("%-16s %" G_GUINT64_FORMAT "\n", "not RTP", results->invalid);
  if (results->early)
    printf ("%-16s %" G_GUINT64_FORMAT "\n", "before PLAY", results->early);
  if (results->unmatched)
    printf ("%-16s %" G_GUINT64_FORMAT "\n", "not from origin", results->unmatched);
  print_all_times (results);
}
