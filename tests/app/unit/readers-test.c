// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers/readers.h"

#include "control/metrics.h"
#include "serving.h"

#include <string.h>

// A reader of an outlet other than RTSP.
typedef struct {
  guint64 packets;
  guint priority;
  WeirLayerSet layers;
  gchar *closed;
  gboolean freed;
} Fake;

static void
sample (gpointer served, ReaderSample *sample)
{
  Fake *self = served;

  sample->packets = self->packets;
  sample->priority = self->priority;
  sample->lag_ns = 5;
}

static gboolean
set_priority (gpointer served, guint priority)
{
  ((Fake *) served)->priority = priority;
  return TRUE;
}

static gboolean
set_layers (gpointer served, WeirLayerSet layers)
{
  ((Fake *) served)->layers = layers;
  return TRUE;
}

static void
close_fake (gpointer served, const gchar *reason)
{
  ((Fake *) served)->closed = g_strdup (reason);
}

static void
free_fake (gpointer served)
{
  ((Fake *) served)->freed = TRUE;
}

static const ReaderOps ops = { .sample = sample,
  .set_priority = set_priority,
  .set_layers = set_layers,
  .close = close_fake,
  .free = free_fake };

static Reader *
reader_of (Fake *fake, const gchar *mount)
{
  return reader_new (&ops, fake, mount, "somebody", "HLS");
}

static void
operations_reach_the_outlet (void)
{
  Fake fake = { 0 };
  Reader *reader = reader_of (&fake, "/cam");

  g_assert_true (reader_set_priority (reader, 3));
  g_assert_true (reader_set_layers (reader, (WeirLayerSet) { 1, 2, 0 }));
  reader_close (reader, "for a reason");
  g_assert_cmpuint (fake.priority, ==, 3);
  g_assert_true (weir_layer_set_equal (fake.layers, (WeirLayerSet) { 1, 2, 0 }));
  g_assert_cmpstr (fake.closed, ==, "for a reason");
  g_free (fake.closed);
  reader_unref (reader);
  g_assert_true (fake.freed);
}

static void
operations_that_an_outlet_lacks_do_nothing (void)
{
  static const ReaderOps few = { .sample = sample, .close = close_fake, .free = free_fake };
  Fake fake = { 0 };
  Reader *reader = reader_new (&few, &fake, "/cam", "somebody", "HTTP");
  ReaderSample reports;
  ReaderVideo video;
  WeirEstimateView line;
  WeirRates rates;

  reader_sample_reports (reader, &reports);
  reader_read_rates (reader, &rates);
  g_assert_false (reader_set_priority (reader, 3));
  g_assert_false (reader_set_layers (reader, (WeirLayerSet) { 1, 2, 0 }));
  g_assert_false (reader_sample_video (reader, &video));
  g_assert_false (reader_read_estimate (reader, 1, &line));
  g_assert_false (reader_probe (reader, 1, 1));
  g_assert_null (reader_ref_report_count (reader));
  g_assert_null (reader_dup_video_sink (reader));
  reader_unref (reader);
}

// An outlet forgets a paused reader, and counts from zero afterwards.
static void
counts_continue_after_a_pause (void)
{
  Fake fake = { .packets = 10 };
  Reader *reader = reader_of (&fake, "/cam");
  ReaderSample now;

  reader_pause (reader, FALSE);
  fake.packets = 0;
  reader_sample (reader, &now);
  g_assert_true (now.paused);
  g_assert_cmpuint (now.packets, ==, 10);
  g_assert_cmpuint (now.lag_ns, ==, 0);
  reader_resume (reader);
  fake.packets = 2;
  reader_sample (reader, &now);
  g_assert_false (now.paused);
  g_assert_cmpuint (now.packets, ==, 12);
  reader_unref (reader);
}

static void
readers_are_listed_by_id (void)
{
  Fake fakes[3] = { 0 };
  Reader *readers[3];
  GPtrArray *all;

  for (guint i = 0; i < 3; i++)
    readers[i] = reader_of (&fakes[i], "/cam");
  readers_add (readers[2]);
  readers_add (readers[0]);
  readers_add (readers[1]);
  readers_remove (readers[1]);
  readers_remove (readers[1]);
  all = readers_dup_all ();
  g_assert_cmpuint (all->len, ==, 2);
  g_assert_true (g_ptr_array_index (all, 0) == readers[0]);
  g_assert_true (g_ptr_array_index (all, 1) == readers[2]);
  g_ptr_array_unref (all);
  readers_remove (readers[0]);
  readers_remove (readers[2]);
  for (guint i = 0; i < 3; i++) {
    reader_unref (readers[i]);
    g_assert_true (fakes[i].freed);
  }
}

static void
the_metrics_count_readers_of_any_outlet (void)
{
  ProxyConfig *config = proxy_config_new ();
  Fake fake = { .priority = 2 };
  Reader *reader = reader_of (&fake, "/cam");
  gboolean has_password;
  Served served;
  gchar *text;

  proxy_config_set_listen (config, "127.0.0.1:0", NULL);
  proxy_config_add_mount (config, "/cam=rtsp://127.0.0.1:9/x", &has_password, NULL);
  served = serve (config);
  readers_add (reader);
  text = metrics_dup_text (served.proxy, NULL);
  g_assert_nonnull (strstr (text, "{mount=\"/cam\",priority=\"2\"} 1\n"));
  g_free (text);
  readers_remove (reader);
  reader_unref (reader);
  stop_serving (&served);
  proxy_config_free (config);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/readers/operations-reach-the-outlet", operations_reach_the_outlet);
  g_test_add_func ("/readers/lacking", operations_that_an_outlet_lacks_do_nothing);
  g_test_add_func ("/readers/counts-continue-after-a-pause", counts_continue_after_a_pause);
  g_test_add_func ("/readers/readers-are-listed-by-id", readers_are_listed_by_id);
  g_test_add_func (
      "/readers/the-metrics-count-readers-of-any-outlet", the_metrics_count_readers_of_any_outlet);
  return g_test_run ();
}
