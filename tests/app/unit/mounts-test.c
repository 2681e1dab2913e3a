// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mounts/mounts.h"
#include "mounts/offer.h"

#include "base/file_roots.h"
#include "config/mount_read.h"

// The calls that an outlet got.
typedef struct {
  guint published, withdrawn;
} Told;

static void
publish (Presentation *presentation, gpointer told)
{
  ((Told *) told)->published++;
}

static void
withdraw (const gchar *path, gpointer told)
{
  ((Told *) told)->withdrawn++;
}

static void
changed (Presentation *presentation, gpointer told)
{
}

static const MountOutlet outlet = { .publish = publish, .withdraw = withdraw, .changed = changed };
static const TitleOutlet title_outlet = { 0 }; // no title is opened here

typedef struct {
  MountContext context;
  Told told;
  StageSet *set;
  Mounts *mounts;
} Fixture;

static void
add (Fixture *f, const gchar *path, const gchar *json)
{
  GError *error = NULL;
  YamlReader *reader = yaml_reader_new ("body", json, strlen (json), &error);
  MountConfig *config = reader ? mount_read_body (f->set, path, reader, NULL, &error) : NULL;

  g_assert_no_error (error);
  yaml_reader_free (reader);
  mounts_add (f->mounts, config, &error);
  g_assert_no_error (error);
  mount_config_unref (config);
}

static void
set_up (Fixture *f, gconstpointer unused)
{
  const gchar *clip = "\"upstream\": \"rtsp://127.0.0.1:9/clip\", \"on-demand\": true";
  gchar *folder = g_strdup_printf ("{\"upstream\": \"file://%s/\"}", g_getenv ("WEIR_DATA"));
  gchar *cam = g_strdup_printf (
      "{%s, \"pipeline\": [\"pull\", \"transcode\"], \"choices\": {\"transcode\": [\"size\"]},"
      " \"max-presentations\": 1}",
      clip);
  gchar *past = g_strdup_printf ("{%s, \"cache\": {\"time\": \"1m\"}}", clip);

  file_roots_set ((gchar *[]) { (gchar *) g_getenv ("WEIR_DATA"), NULL });
  f->set = stage_set_load_usual (NULL, NULL);
  f->context = (MountContext) { graph_new (), &outlet, &f->told, &title_outlet,
    g_object_new (G_TYPE_OBJECT, NULL) };
  f->mounts = mounts_new (&f->context);
  add (f, "/cam", cam);
  add (f, "/past", past);
  add (f, "/films", folder);
  f->told = (Told) { 0 };
  g_free (folder);
  g_free (cam);
  g_free (past);
}

static void
tear_down (Fixture *f, gconstpointer unused)
{
  mounts_free (f->mounts);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  graph_free (f->context.graph);
  g_object_unref (f->context.title_data);
  stage_set_unref (f->set);
}

static void
resolving_starts_nothing (Fixture *f, gconstpointer unused)
{
  static const struct {
    const gchar *url, *mount, *title, *path;
    gboolean is_lax; // it is refused with strict-queries
  } cases[] = {
    { "/cam", "/cam", NULL, "/cam" },
    { "/cam/stream=0", "/cam", NULL, "/cam" },
    { "/cam?size=320x180", "/cam", NULL, "/cam/=*" },
    { "/past?delay=30", "/past", NULL, "/past" },
    { "/past?layers=0.0.0", "/past", NULL, "/past" },
    { "/films/a/b.mp4", "/films", "a/b.mp4", NULL },
    { "/films/a.mp4/stream=1", "/films", "a.mp4", NULL },
    { "/", NULL, NULL, NULL },
    { "", NULL, NULL, NULL },
    { "/nix", NULL, NULL, NULL },
    { "/cam/nix", NULL, NULL, NULL },
    { "/cam/=0123456789abcdef", NULL, NULL, NULL },
    { "/cam?nix=1", "/cam", NULL, "/cam", TRUE },
    { "/cam?nix&size=320x180", "/cam", NULL, "/cam/=*", TRUE },
    { "/past?nix=1&delay=30", "/past", NULL, "/past", TRUE },
    { "/films/a.mp4?nix", "/films", "a.mp4", NULL, TRUE },
    { "/films/a.mp4?nix&layers=0.0.0", NULL, NULL, NULL },
    { "/films/a.mp4?delay=1", NULL, NULL, NULL },
    { "/cam?size=nix", NULL, NULL, NULL },
    { "/cam?delay=30", NULL, NULL, NULL },
    { "/past?delay=nix", NULL, NULL, NULL },
    { "/past?layers=nix", NULL, NULL, NULL },
    { "/films", NULL, NULL, NULL },
    { "/films/a.mp4?size=320x180", "/films", "a.mp4", NULL, TRUE },
  };

  for (guint n = 0; n < 2 * G_N_ELEMENTS (cases); n++) {
    guint i = n / 2;
    gboolean is_strict = n % 2;
    Demand *demand = demand_new (cases[i].url);
    GError *error = NULL;
    Resolved resolved;

    g_test_message ("%s", cases[i].url);
    offer_set_strict (is_strict);
    if (!mounts_resolve (f->mounts, demand, &resolved, &error)) {
      g_assert_nonnull (error);
      g_assert_true (!cases[i].mount || (is_strict && cases[i].is_lax));
      g_error_free (error);
    } else {
      g_assert_false (is_strict && cases[i].is_lax);
      g_assert_cmpstr (mount_get_path (resolved.mount), ==, cases[i].mount);
      g_assert_cmpstr (resolved.title, ==, cases[i].title);
      g_assert_true (
          cases[i].path ? g_pattern_match_simple (cases[i].path, resolved.path) : !resolved.path);
      resolved_clear (&resolved);
    }
    demand_free (demand);
  }
  offer_set_strict (FALSE);
  g_assert_cmpuint (f->told.published, ==, 0);
}

static Presentation *
use (Fixture *f, const gchar *url, GError **error)
{
  Demand *demand = demand_new (url);
  Resolved resolved;
  Presentation *presentation;

  g_assert_true (mounts_resolve (f->mounts, demand, &resolved, NULL));
  presentation = mounts_use (&resolved, error);
  resolved_clear (&resolved);
  demand_free (demand);
  return presentation;
}

static void
a_choice_starts_at_its_first_use_and_is_shared (Fixture *f, gconstpointer unused)
{
  GError *error = NULL;
  Presentation *first = use (f, "/cam?size=320x180", NULL);
  Presentation *again = use (f, "/cam?size=320x180/stream=0", NULL);
  gchar *path = g_strdup (presentation_get_path (first));
  Presentation *below = use (f, path, NULL);

  g_assert_cmpuint (f->told.published, ==, 1);
  g_assert_cmpstr (presentation_get_path (again), ==, path);
  g_assert_cmpstr (presentation_get_path (below), ==, path);
  g_assert_cmpint (presentation_ask (first, NULL), ==, PRESENTATION_STARTING);
  g_assert_null (use (f, "/cam?size=160x90", &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_error_free (error);
  presentation_leave (first);
  presentation_leave (again);
  presentation_leave (below);
  g_free (path);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/mounts/resolving-starts-nothing", Fixture, NULL, set_up, resolving_starts_nothing,
      tear_down);
  g_test_add ("/mounts/a-choice-starts-at-its-first-use-and-is-shared", Fixture, NULL, set_up,
      a_choice_starts_at_its_first_use_and_is_shared, tear_down);
  return g_test_run ();
}
