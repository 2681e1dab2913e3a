// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "report.h"

#include <json-glib/json-glib.h>
#include <stdio.h>

#include "lines.h"

static void
add_int (JsonBuilder *b, const gchar *name, guint64 value)
{
  json_builder_set_member_name (b, name);
  json_builder_add_int_value (b, (gint64) value);
}

static void
add_double (JsonBuilder *b, const gchar *name, gdouble value)
{
  json_builder_set_member_name (b, name);
  json_builder_add_double_value (b, value);
}

static void
add_ms (JsonBuilder *b, const gchar *name, gint64 ns)
{
  add_double (b, name, (gdouble) ns / 1e6);
}

static void
add_counts (JsonBuilder *b, const gchar *name, GHashTable *table)
{
  GHashTableIter iter;
  gpointer kind, n;

  json_builder_set_member_name (b, name);
  json_builder_begin_object (b);
  g_hash_table_iter_init (&iter, table);
  while (g_hash_table_iter_next (&iter, &kind, &n))
    add_int (b, kind, GPOINTER_TO_UINT (n));
  json_builder_end_object (b);
}

static void
add_times (JsonBuilder *b, const gchar *name, const WeirHistogram *h)
{
  json_builder_set_member_name (b, name);
  if (h->n == 0) {
    json_builder_add_null_value (b);
    return;
  }
  json_builder_begin_object (b);
  add_int (b, "n", h->n);
  add_double (b, "mean", weir_histogram_mean (h) / 1e6);
  add_ms (b, "p50", weir_histogram_percentile (h, 50));
  add_ms (b, "p90", weir_histogram_percentile (h, 90));
  add_ms (b, "p99", weir_histogram_percentile (h, 99));
  add_ms (b, "max", h->max);
  json_builder_end_object (b);
}

static void
add_ports (JsonBuilder *b, const Results *results)
{
  json_builder_set_member_name (b, "probe_ports");
  if (results->probe_lo == 0) {
    json_builder_add_null_value (b);
    return;
  }
  json_builder_begin_array (b);
  json_builder_add_int_value (b, results->probe_lo);
  json_builder_add_int_value (b, results->probe_hi);
  json_builder_end_array (b);
}

static void
add_signal (JsonBuilder *b, const Results *results)
{
  gdouble time = (gdouble) (results->last_play_ns - results->start_ns) / 1e9;

  json_builder_set_member_name (b, "signal");
  json_builder_begin_object (b);
  add_int (b, "setups", results->connected);
  add_double (b, "per_second", results->connected ? results->connected / time : 0);
  json_builder_end_object (b);
}

// One point a second: what has come until then.
static void
add_series (JsonBuilder *b, const Results *results)
{
  json_builder_set_member_name (b, "series");
  json_builder_begin_array (b);
  for (guint i = 0; i < results->samples->len; i++) {
    const Sample *sample = &g_array_index (results->samples, Sample, i);

    json_builder_begin_object (b);
    add_double (b, "at_s", sample->at);
    add_int (b, "playing", sample->playing);
    add_int (b, "packets", sample->packets);
    add_int (b, "bytes", sample->bytes);
    add_int (b, "lost", sample->lost);
    json_builder_end_object (b);
  }
  json_builder_end_array (b);
}

static void
add_all_times (JsonBuilder *b, const Results *results)
{
  add_times (b, "describe_ms", &results->describe);
  add_times (b, "setup_ms", &results->setup);
  add_times (b, "play_ms", &results->play);
  add_times (b, "first_packet_ms", &results->first_packet);
  add_times (b, "first_frame_ms", &results->first_frame);
  add_times (b, "frame_gap_ms", &results->frame_gap);
  add_times (b, "added_delay_ms", &results->added_delay);
  add_times (b, "playout_delay_ms", &results->playout_delay);
  add_times (b, "jitter_ms", &results->jitter);
  add_times (b, "av_skew_ms", &results->av_skew);
}

static void
add_track (JsonBuilder *b, const Track *track)
{
  json_builder_begin_object (b);
  json_builder_set_member_name (b, "media");
  json_builder_add_string_value (b, track->video ? "video" : "other");
  add_int (b, "packets", track->stats.packets);
  add_int (b, "bytes", track->bytes);
  add_int (b, "lost", weir_rtp_stats_lost (&track->stats));
  add_int (b, "reordered", track->stats.reordered);
  add_int (b, "duplicates", track->stats.duplicates);
  add_int (b, "stalls", track->stalls);
  add_int (b, "early", track->early);
  add_int (b, "port", (guint64) track->port);
  add_ms (b, "jitter_ms", weir_rtp_stats_jitter_ns (&track->stats));
  add_ms (b, "playout_delay_ms", track->playout_ns);
  json_builder_end_object (b);
}

static void
add_reader (JsonBuilder *b, const Reader *reader)
{
  json_builder_begin_object (b);
  json_builder_set_member_name (b, "url");
  json_builder_add_string_value (b, reader->target->uri);
  json_builder_set_member_name (b, "transport");
  json_builder_add_string_value (b, reader->udp ? "udp" : "tcp");
  json_builder_set_member_name (b, "connected");
  json_builder_add_boolean_value (b, reader->connected);
  json_builder_set_member_name (b, "measured");
  json_builder_add_boolean_value (b, reader->measured);
  if (reader->first_packet_ns)
    add_ms (b, "first_packet_ms", reader->first_packet_ns - reader->play_ns);
  if (reader->first_frame_ns)
    add_ms (b, "first_frame_ms", reader->first_frame_ns - reader->play_ns);
  json_builder_set_member_name (b, "tracks");
  json_builder_begin_array (b);
  for (guint i = 0; i < reader->n_tracks; i++)
    add_track (b, &reader->tracks[i]);
  json_builder_end_array (b);
  json_builder_end_object (b);
}

static void
add_readers (JsonBuilder *b, const Load *load)
{
  json_builder_set_member_name (b, "per_reader");
  json_builder_begin_array (b);
  for (guint i = 0; i < load->n_readers; i++)
    add_reader (b, &load->readers[i]);
  json_builder_end_array (b);
}

static void
add_totals (JsonBuilder *b, const Load *load)
{
  const Results *results = &load->results;

  add_int (b, "readers", load->n_readers);
  add_int (b, "connected", results->connected);
  add_counts (b, "refused", results->refused);
  add_counts (b, "errors", results->errors);
  add_double (b, "duration_s", (gdouble) (results->end_ns - results->start_ns) / 1e9);
  add_int (b, "packets", results->packets);
  add_int (b, "bytes", results->bytes);
  add_int (b, "lost", results->lost);
  add_int (b, "reordered", results->reordered);
  add_int (b, "duplicates", results->duplicates);
  add_int (b, "invalid", results->invalid);
  add_int (b, "early", results->early);
  add_int (b, "socket_drops", results->socket_drops);
  add_int (b, "unmatched", results->unmatched);
  add_int (b, "probes", (guint64) load->options->probes);
  add_ports (b, results);
}

void
report_json (Load *load)
{
  const Results *results = &load->results;
  JsonBuilder *b = json_builder_new ();
  JsonGenerator *generator = json_generator_new ();
  JsonNode *root;
  gchar *text;

  json_builder_begin_object (b);
  add_totals (b, load);
  add_all_times (b, results);
  add_int (b, "stalls", results->stalls);
  add_double (b, "cpu_s", lines_cpu_seconds ());
  add_signal (b, results);
  add_series (b, results);
  if (load->options->verbose)
    add_readers (b, load);
  json_builder_end_object (b);

  root = json_builder_get_root (b);
  json_generator_set_root (generator, root);
  json_generator_set_pretty (generator, TRUE);
  text = json_generator_to_data (generator, NULL);
  puts (text);
  g_free (text);
  json_node_unref (root);
  g_object_unref (generator);
  g_object_unref (b);
}
