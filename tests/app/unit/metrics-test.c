// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/metrics.h"
#include "net/drops.h"
#include "readers/totals.h"
#include "serving.h"

#include <string.h>

#define WAIT (10 * G_USEC_PER_SEC)

// A sink with given counts, whose property takes a while to read.
typedef struct {
  GstElement parent;
} FakeSink;

typedef struct {
  GstElementClass parent_class;
} FakeSinkClass;

GType fake_sink_get_type (void);
G_DEFINE_TYPE (FakeSink, fake_sink, GST_TYPE_ELEMENT)

static GAsyncQueue *watched;
static gboolean in_time;

// Does the work of a PLAY, in another thread.
static gpointer
watch (gpointer sink)
{
  totals_watch_sink ("/cam", sink);
  g_async_queue_push (watched, sink);
  return NULL;
}

static void
play_meanwhile (void)
{
  GstElement *other = g_object_new (fake_sink_get_type (), NULL);
  GThread *thread = g_thread_new ("play", watch, gst_object_ref_sink (other));

  in_time = g_async_queue_timeout_pop (watched, WAIT) != NULL;
  g_thread_unref (thread);
  gst_object_unref (other);
}

static void
fake_sink_get_property (GObject *object, guint id, GValue *value, GParamSpec *spec)
{
  GstStructure *stats =
      gst_structure_new ("stats", "packets-due", G_TYPE_UINT64, (guint64) 1000, NULL);

  for (guint reason = 0; reason < WEIR_N_DROPS; reason++) {
    gchar *field = g_strconcat ("dropped-", weir_drop_name (reason), NULL);

    gst_structure_set (stats, field, G_TYPE_UINT64, (guint64) reason + 1, NULL);
    g_free (field);
  }
  if (GST_STATE (object) == GST_STATE_READY)
    play_meanwhile ();
  g_value_take_boxed (value, stats);
}

static void
fake_sink_init (FakeSink *self)
{
}

static void
fake_sink_class_init (FakeSinkClass *klass)
{
  G_OBJECT_CLASS (klass)->get_property = fake_sink_get_property;
  g_object_class_install_property (G_OBJECT_CLASS (klass), 1,
      g_param_spec_boxed ("fanout-stats", NULL, NULL, GST_TYPE_STRUCTURE, G_PARAM_READABLE));
}

static Served
serve_mount (void)
{
  ProxyConfig *config = proxy_config_new ();
  gchar *mount = g_strdup_printf ("/cam=file://%s/bigbuckbunny.mp4", g_getenv ("WEIR_DATA"));
  gboolean has_password = FALSE;
  GError *error = NULL;
  Served served;

  proxy_config_set_listen (config, "127.0.0.1:0", &error);
  g_assert_no_error (error);
  proxy_config_add_mount (config, mount, &has_password, &error);
  g_assert_no_error (error);
  served = serve (config);
  g_free (mount);
  proxy_config_free (config);
  return served;
}

static void
a_play_does_not_wait_for_the_metrics (void)
{
  Served served = serve_mount ();
  GstElement *sink = gst_object_ref_sink (g_object_new (fake_sink_get_type (), NULL));
  gchar *text;

  gst_element_set_state (sink, GST_STATE_READY);
  totals_watch_sink ("/cam", sink);
  text = metrics_dup_text (served.proxy, NULL);
  g_assert_true (in_time);
  g_free (text);
  gst_element_set_state (sink, GST_STATE_NULL);
  gst_object_unref (sink);
  stop_serving (&served);
}

static gboolean
always (const gchar *mount, gpointer unused)
{
  return TRUE;
}

// Also covers reasons that are added later.
static void
each_drop_reason_is_in_one_metric (void)
{
  Served served = serve_mount ();
  GstElement *sink = gst_object_ref_sink (g_object_new (fake_sink_get_type (), NULL));

  totals_watch_sink ("/cam", sink);
  for (guint round = 0; round < 2; round++) { // in the second round the sink is gone
    gchar *text = metrics_dup_text (served.proxy, NULL);

    for (guint reason = 0; reason < WEIR_N_DROPS; reason++) {
      gchar *line = g_strdup_printf ("weir_%s_packets_total{mount=\"/cam\",reason=\"%s\"} %u\n",
          weir_drop_is_loss (reason) ? "socket_lost" : "left_out", weir_drop_name (reason),
          reason + 1);

      g_assert_nonnull (strstr (text, line));
      g_free (line);
    }
    g_assert_nonnull (strstr (text, "weir_due_packets_total{mount=\"/cam\"} 1000\n"));
    g_free (text);
    totals_collect (always, NULL);
  }
  gst_object_unref (sink);
  stop_serving (&served);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (NULL, NULL);
  watched = g_async_queue_new ();
  g_test_add_func (
      "/metrics/a-play-does-not-wait-for-the-metrics", a_play_does_not_wait_for_the_metrics);
  g_test_add_func ("/metrics/each-drop-reason-is-in-one-metric", each_drop_reason_is_in_one_metric);
  return g_test_run ();
}
