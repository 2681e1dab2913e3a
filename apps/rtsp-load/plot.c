// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "plot.h"

#include <gio/gio.h>
#include <stdio.h>

#define MAX_CURVES 3
#define LEAST_MS 0.01 // time axes are logarithmic, so 0 cannot be drawn

typedef enum { RATE, READERS, LOSS } TimeLine;

// A picture has one or more curves of one unit. The data of all curves is in this order, as blocks
// of lines "x y", each block followed by an empty line.
typedef struct {
  const gchar *title;
  const gchar *unit; // of y
  const gchar *names[MAX_CURVES + 1];
  const WeirHistogram *histograms[MAX_CURVES]; // NULL: a time line
  TimeLine line;
} Picture;

#define N_PICTURES 6

gboolean
plot_can_draw (void)
{
  gchar *gnuplot = g_find_program_in_path ("gnuplot");
  gboolean can = gnuplot != NULL;

  if (!can)
    fputs ("rtsp-load: --plot needs gnuplot; install it\n", stderr);
  g_free (gnuplot);
  return can;
}

static void
add_histogram (GString *data, const WeirHistogram *h)
{
  size_t last = weir_histogram_bucket (h->max);

  // Includes the empty bucket behind each full one, so that the curve returns to 0 there.
  for (size_t i = 0; h->n && i <= last + 1 && i < WEIR_HISTOGRAM_BUCKETS; i++) {
    if (h->buckets[i] || (i > 0 && h->buckets[i - 1]))
      g_string_append_printf (data, "%.6f %" G_GUINT64_FORMAT "\n",
          MAX ((gdouble) weir_histogram_bucket_start (i) / 1e6, LEAST_MS), h->buckets[i]);
  }
  if (h->n == 0)
    g_string_append (data, "0.01 0\n1 0\n");
}

static void
add_time_line (GString *data, const GArray *samples, TimeLine what)
{
  Sample last = { 0 };

  for (guint i = 0; i < samples->len; i++) {
    Sample sample = g_array_index (samples, Sample, i);
    gdouble time = sample.at - last.at;

    if (time < 0.1)
      continue;
    g_string_append_printf (data, "%.3f %.6f\n", last.at,
        what == RATE      ? (gdouble) (sample.bytes - last.bytes) * 8e-6 / time
        : what == READERS ? (gdouble) sample.playing
                          : ((gdouble) sample.lost - (gdouble) last.lost) / time);
    last = sample;
  }
  if (last.at == 0)
    g_string_append (data, "0 0\n1 0\n");
}

static GString *
make_data (const Load *load, const Picture *pictures)
{
  GString *data = g_string_new (NULL);

  for (guint i = 0; i < N_PICTURES; i++) {
    for (guint c = 0; c < MAX_CURVES && pictures[i].names[c]; c++) {
      if (pictures[i].histograms[c])
        add_histogram (data, pictures[i].histograms[c]);
      else
        add_time_line (data, load->results.samples, pictures[i].line);
      g_string_append_c (data, '\n');
    }
  }
  return data;
}

static const gchar *
x_label (const Picture *picture)
{
  return picture->histograms[0] ? "ms" : "s";
}

// Returns what was measured: "rtsp-load: 100 readers over TCP, 10 s, rtsp://192.0.2.7/cam". The
// caller owns the result.
static gchar *
dup_title (const Load *load)
{
  static const gchar *const over[] = { "UDP", "TCP", "UDP and TCP" };
  gchar *more =
      load->n_targets > 1 ? g_strdup_printf (" and %u more", load->n_targets - 1) : g_strdup ("");
  gchar *title = g_strdup_printf ("rtsp-load: %u reader%s over %s, %g s, %s%s", load->n_readers,
      load->n_readers == 1 ? "" : "s", over[load->options->transport], load->options->duration,
      load->targets[0].uri, more);

  g_free (more);
  return title;
}

// Quotes a text for gnuplot, which reads two apostrophes as one.
static gchar *
quote (const gchar *text)
{
  gchar **parts = g_strsplit (text, "'", -1), *quoted = g_strjoinv ("''", parts);

  g_strfreev (parts);
  return quoted;
}

static gchar *
gnuplot_script (const GString *data, const Picture *pictures, const gchar *title, const gchar *file)
{
  GString *script = g_string_new (NULL);
  gchar **blocks = g_strsplit (data->str, "\n\n", -1), **block = blocks;
  gchar *name = quote (file), *heading = quote (title);

  g_string_append_printf (script,
      "set terminal png noenhanced size 1800,900\nset output '%s'\n"
      "set multiplot layout 2,3 title '%s'\nset grid\n",
      name, heading);
  for (guint i = 0; i < N_PICTURES; i++) {
    for (guint c = 0; c < MAX_CURVES && pictures[i].names[c]; c++)
      g_string_append_printf (script, "$curve%u << e\n%s\ne\n", c, *block++);
    g_string_append_printf (script, "set title '%s'\nset xlabel '%s'\nset ylabel '%s'\n%s\n",
        pictures[i].title, x_label (&pictures[i]), pictures[i].unit,
        pictures[i].histograms[0] ? "set logscale xy\nset yrange [0.5:10<*]"
                                  : "set yrange [0:1<*]");
    for (guint c = 0; c < MAX_CURVES && pictures[i].names[c]; c++)
      g_string_append_printf (script, "%s $curve%u using 1:(%s) with steps lw 2 title '%s'",
          c ? "," : "plot", c, pictures[i].histograms[0] ? "$2 > 0 ? $2 : 0.5" : "$2",
          pictures[i].names[c]);
    g_string_append_c (script, '\n');
  }
  g_free (heading);
  g_free (name);
  g_strfreev (blocks);
  return g_string_free (script, FALSE);
}

static gboolean
run_gnuplot (const gchar *script)
{
  GError *error = NULL;
  GSubprocess *process =
      g_subprocess_new (G_SUBPROCESS_FLAGS_STDIN_PIPE, &error, "gnuplot", (const gchar *) NULL);
  gboolean ok = process && g_subprocess_communicate_utf8 (process, script, NULL, NULL, NULL, &error)
                && g_subprocess_wait_check (process, NULL, &error);

  if (!ok) {
    fprintf (stderr, "rtsp-load: --plot: gnuplot failed: %s\n", error->message);
    g_error_free (error);
  }
  g_clear_object (&process);
  return ok;
}

gboolean
plot_draw (const Load *load, const gchar *file)
{
  const Results *r = &load->results;
  const Picture pictures[N_PICTURES] = {
    { "rate", "Mb/s", { "received" }, { NULL }, RATE },
    { "readers", "readers", { "readers that play" }, { NULL }, READERS },
    { "loss", "packets per second", { "lost" }, { NULL }, LOSS },
    { "frame gap", "frames", { "frame gap" }, { &r->frame_gap }, 0 },
    { "start-up", "readers", { "PLAY to first packet", "PLAY to first frame", "answer to PLAY" },
        { &r->first_packet, &r->first_frame, &r->play }, 0 },
    { "delay", "measurements", { "added by the server", "playout delay", "jitter" },
        { &r->added_delay, &r->playout_delay, &r->jitter }, 0 },
  };
  gchar *title = dup_title (load);
  GString *data = make_data (load, pictures);
  gchar *script = gnuplot_script (data, pictures, title, file);
  gboolean ok = run_gnuplot (script);

  g_free (script);
  g_free (title);
  g_string_free (data, TRUE);
  return ok;
}
