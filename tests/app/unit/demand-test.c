// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/demand.h"

#include <gst/gst.h>

static void
a_url_gives_path_track_and_query (void)
{
  static const struct {
    const gchar *url, *path, *track, *query;
  } cases[] = {
    { "/cam", "/cam", "", NULL },
    { "/cam/", "/cam", "", NULL },
    { "/cam/stream=0", "/cam", "/stream=0", NULL },
    { "/cam/stream=9", "/cam", "/stream=9", NULL },
    { "/cam/stream=10", "/cam/stream=10", "", NULL },
    { "/cam/stream=x", "/cam/stream=x", "", NULL },
    { "/stream=0", "/stream=0", "", NULL },
    { "/films/a/b.mp4/stream=1", "/films/a/b.mp4", "/stream=1", NULL },
    { "/cam?size=640x360", "/cam", "", "size=640x360" },
    { "/cam?size=640x360/stream=0", "/cam", "/stream=0", "size=640x360" },
    { "/cam?size=640x360/", "/cam", "", "size=640x360" },
    { "/cam/?size=640x360", "/cam", "", "size=640x360" },
    { "/cam/stream=x?size=640x360", "/cam/stream=x", "", "size=640x360" },
    { "/stream=0?size=640x360", "/stream=0", "", "size=640x360" },
    { "/cam?", "/cam", "", "" },
    { "/cam?/", "/cam", "", "" },
    { "/cam?/stream=0", "/cam", "/stream=0", "" },
    { "/cam?a?b", "/cam", "", "a?b" },
    { "/", "/", "", NULL },
    { "", "", "", NULL },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Demand *demand = demand_new (cases[i].url);

    g_assert_cmpstr (demand->url, ==, cases[i].url);
    g_assert_cmpstr (demand->path, ==, cases[i].path);
    g_assert_cmpstr (demand->track, ==, cases[i].track);
    g_assert_cmpstr (demand->query, ==, cases[i].query);
    demand_free (demand);
  }
}

static void
a_mark_is_in_no_other_field (void)
{
  static const struct {
    const gchar *asked, *url;
    gboolean moved;
  } cases[] = {
    { "/cam?moved", "/cam", TRUE },
    { "/cam?moved/stream=0", "/cam/stream=0", TRUE },
    { "/cam?a=1&moved&b=2", "/cam?a=1&b=2", TRUE },
    { "/cam?moved=1&token=x", "/cam", TRUE },
    { "/cam?moved&moved&delay=3", "/cam?delay=3", TRUE },
    { "/cam?removed", "/cam?removed", FALSE },
    { "/cam?movedto=x", "/cam?movedto=x", FALSE },
    { "/moved", "/moved", FALSE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Demand *demand = demand_new (cases[i].asked);

    g_assert_cmpstr (demand->url, ==, cases[i].url);
    g_assert_cmpint (demand->moved, ==, cases[i].moved);
    demand_free (demand);
  }
}

static void
a_track_before_the_query_is_put_behind_it (void)
{
  static const struct {
    const gchar *asked, *url, *path, *track, *query;
  } cases[] = {
    { "/cam/stream=0?a=1", "/cam?a=1/stream=0", "/cam", "/stream=0", "a=1" },
    { "/cam/stream=0?", "/cam?/stream=0", "/cam", "/stream=0", "" },
    { "/cam/stream=1?a=1/", "/cam?a=1/stream=1", "/cam", "/stream=1", "a=1" },
    { "/cam/stream=1?token=x", "/cam/stream=1", "/cam", "/stream=1", NULL },
    { "/cam/stream=1?a=1/stream=0", "/cam/stream=1?a=1/stream=0", "/cam/stream=1", "/stream=0",
        "a=1" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Demand *demand = demand_new (cases[i].asked);

    g_assert_cmpstr (demand->url, ==, cases[i].url);
    g_assert_cmpstr (demand->path, ==, cases[i].path);
    g_assert_cmpstr (demand->track, ==, cases[i].track);
    g_assert_cmpstr (demand->query, ==, cases[i].query);
    demand_free (demand);
  }
}

static void
a_token_is_in_its_own_field_only (void)
{
  static const struct {
    const gchar *asked, *token, *url, *query, *track;
  } cases[] = {
    { "/cam?token=S3cr3t", "S3cr3t", "/cam", NULL, "" },
    { "/cam?token=S3cr3t/stream=1", "S3cr3t", "/cam/stream=1", NULL, "/stream=1" },
    { "/cam?token=S3cr3t/", "S3cr3t", "/cam", NULL, "" },
    { "/cam?a=1&token=S3cr3t&delay=30", "S3cr3t", "/cam?a=1&delay=30", "a=1&delay=30", "" },
    { "/cam?token=S3cr3t&a=1/stream=1", "S3cr3t", "/cam?a=1/stream=1", "a=1", "/stream=1" },
    { "/cam?token=S3cr3t%2F%3D%26", "S3cr3t/=&", "/cam", NULL, "" },
    { "/cam?token=S3cr3t==", "S3cr3t==", "/cam", NULL, "" },
    { "/cam?token=", NULL, "/cam", NULL, "" },
    { "/cam?token=S3cr3t&token=S3cr3t", NULL, "/cam", NULL, "" },
    { "/cam?token=S3cr3t%00", NULL, "/cam", NULL, "" },
    { "/cam?token=S3cr3t%ff", NULL, "/cam", NULL, "" },
    { "/cam?token=S3cr3t%zz", NULL, "/cam", NULL, "" },
    { "/cam?tokens=1", NULL, "/cam?tokens=1", "tokens=1", "" },
    { "/cam?atoken=1", NULL, "/cam?atoken=1", "atoken=1", "" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Demand *demand = demand_new (cases[i].asked);

    g_test_message ("%s", cases[i].asked);
    g_assert_cmpstr (demand->token, ==, cases[i].token);
    g_assert_cmpstr (demand->url, ==, cases[i].url);
    g_assert_cmpstr (demand->path, ==, "/cam");
    g_assert_cmpstr (demand->query, ==, cases[i].query);
    g_assert_cmpstr (demand->stages, ==, cases[i].query);
    g_assert_cmpstr (demand->track, ==, cases[i].track);
    demand_free (demand);
  }
}

#define MS ((gint64) GST_MSECOND)
#define DAY_MS ((gint64) 24 * 3600 * 1000)

static void
a_query_gives_choices_layers_and_delay (void)
{
  static const struct {
    const gchar *query, *stages, *choices;
    WeirLayerSet layers;
    gint64 delay_ms;
    gboolean feedback;
  } cases[] = {
    { "size=1x1", "size=1x1", "size=1x1", { -1, -1, -1 }, -1 },
    { "layers=1.0.2", NULL, NULL, { 1, 2, 0 }, -1 },
    { "layers=*.*.3", NULL, NULL, { -1, 3, -1 }, -1 },
    { "delay=30", "delay=30", NULL, { -1, -1, -1 }, 30000 },
    { "delay=1.5s", "delay=1.5s", NULL, { -1, -1, -1 }, 1500 },
    { "delay=0", "delay=0", NULL, { -1, -1, -1 }, 0 },
    { "delay=2m", "delay=2m", NULL, { -1, -1, -1 }, 120000 },
    { "delay=25h", "delay=25h", NULL, { -1, -1, -1 }, DAY_MS },
    { "delay=99999999999999999999", "delay=99999999999999999999", NULL, { -1, -1, -1 }, DAY_MS },
    { "a=1&layers=0.0.0&b=2&delay=1s&c", "a=1&b=2&delay=1s&c", "a=1&b=2&c", { 0, 0, 0 }, 1000 },
    { "feedback=transport-cc&a=1", "a=1", "a=1", { -1, -1, -1 }, -1, TRUE },
    { "layers=1.0.2&feedback=transport-cc&delay=30", "delay=30", NULL, { 1, 2, 0 }, 30000, TRUE },
    { "feedback=transport", "feedback=transport", "feedback=transport", { -1, -1, -1 }, -1 },
    { "feedback", "feedback", "feedback", { -1, -1, -1 }, -1 },
    { "feedbacks=transport-cc", "feedbacks=transport-cc", "feedbacks=transport-cc", { -1, -1, -1 },
        -1 },
    { "delays=3", "delays=3", "delays=3", { -1, -1, -1 }, -1 },
    { "", "", NULL, { -1, -1, -1 }, -1 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *url = g_strconcat ("/cam?", cases[i].query, NULL);
    Demand *demand = demand_new (url);

    g_assert_cmpstr (demand->stages, ==, cases[i].stages);
    g_assert_cmpstr (demand->choices, ==, cases[i].choices);
    g_assert_true (weir_layer_set_equal (demand->layers, cases[i].layers));
    g_assert_cmpint (demand->delay_ns, ==, cases[i].delay_ms < 0 ? -1 : cases[i].delay_ms * MS);
    g_assert_cmpint (demand->feedback, ==, cases[i].feedback);
    g_assert_null (demand->wrong_layers);
    g_assert_null (demand->wrong_delay);
    demand_free (demand);
    g_free (url);
  }
}

static void
wrong_layers_and_delays_are_named (void)
{
  static const struct {
    const gchar *query;
    gboolean layers, delay;
  } cases[] = {
    { "layers=1.0", TRUE, FALSE },
    { "layers=", TRUE, FALSE },
    { "layers", TRUE, FALSE },
    { "layers=8.0.0", TRUE, FALSE },
    { "layers=0.0.8", TRUE, FALSE },
    { "layers=1.0.2&layers=1.0.2", TRUE, FALSE },
    { "delay=", FALSE, TRUE },
    { "delay", FALSE, TRUE },
    { "delay=-1", FALSE, TRUE },
    { "delay=30x", FALSE, TRUE },
    { "delay=1e3", FALSE, TRUE },
    { "delay=30&delay=30", FALSE, TRUE },
    { "layers=x&delay=x", TRUE, TRUE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *url = g_strconcat ("/cam?", cases[i].query, NULL);
    Demand *demand = demand_new (url);

    g_assert_cmpint (demand->wrong_layers != NULL, ==, cases[i].layers);
    g_assert_cmpint (demand->wrong_delay != NULL, ==, cases[i].delay);
    g_assert_cmpint (demand->delay_ns, ==, -1);
    demand_free (demand);
    g_free (url);
  }
}

static void
a_range_gives_its_start (void)
{
  static const struct {
    const gchar *header;
    DemandStart start;
    gint64 at;
  } cases[] = {
    { "npt=0-", DEMAND_NPT, 0 },
    { "npt=1.5-", DEMAND_NPT, 1500 * MS },
    { "npt=1.5-3", DEMAND_NPT, 1500 * MS },
    { "npt=now-", DEMAND_NOW, 0 },
    { "npt=3-1", DEMAND_NOWHERE, 0 },
    { "npt=-3", DEMAND_NOWHERE, 0 },
    { "npt=1e12-", DEMAND_NOWHERE, 0 },
    { "clock=19700101T000001.500Z-", DEMAND_CLOCK, 1500000 },
    { "clock=20261121T211500Z-", DEMAND_CLOCK, G_GINT64_CONSTANT (1795295700000000) },
    { "clock=20261341T211500Z-", DEMAND_NOWHERE, 0 },
    { "smpte=0:00:01-", DEMAND_NOWHERE, 0 },
    { "npt", DEMAND_UNREADABLE, 0 },
    { "", DEMAND_UNREADABLE, 0 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gint64 at;

    g_test_message ("%s", cases[i].header);
    g_assert_cmpint (demand_read_range (cases[i].header, &at), ==, cases[i].start);
    if (cases[i].start != DEMAND_NOWHERE)
      g_assert_cmpint (at, ==, cases[i].at);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/demand/a-url-gives-path-track-and-query", a_url_gives_path_track_and_query);
  g_test_add_func ("/demand/a-track-before-the-query-is-put-behind-it",
      a_track_before_the_query_is_put_behind_it);
  g_test_add_func ("/demand/a-mark-is-in-no-other-field", a_mark_is_in_no_other_field);
  g_test_add_func ("/demand/a-token-is-in-its-own-field-only", a_token_is_in_its_own_field_only);
  g_test_add_func (
      "/demand/a-query-gives-choices-layers-and-delay", a_query_gives_choices_layers_and_delay);
  g_test_add_func ("/demand/wrong-layers-and-delays-are-named", wrong_layers_and_delays_are_named);
  g_test_add_func ("/demand/a-range-gives-its-start", a_range_gives_its_start);
  return g_test_run ();
}
