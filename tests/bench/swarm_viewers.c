// SPDX-License-Identifier: LGPL-2.1-or-later
// Viewers of a title in real sessions of swarmsrc, over loopback, for ./dev bench swarm_sessions.
//
// swarm_viewers NAME=VALUE...
//   torrent, file, origin   the title: its torrent, its bytes, and the URL of its origin
//   port                    of the first viewer; the others have those above it
//   viewers, rate (bits a second), gap (s between arrivals), arrivals (uniform, poisson, together)
//   upload (in rates of the title), picker, window (s), leave, storage, choking, unchoke (s), seed
//   source                  upload of a seed beside the viewers, in rates of the title, which has
//   read
//                           the title from the origin before they come; 0: none
//   outage, outage_s        s after the start, the origin is to be stopped for so long; 0: never.
//                           "down" and "up" are printed, and each waits for a line from stdin
//   delays                  one way, in ms, of the viewers in turn ("4", "0,4,5"); the last one is
//                           that of the origin; "": nothing is relayed
// Each viewer reads the title at its rate, and compares it with the file. At the end it prints one
// line of sums over the viewers, their start-up times and stalls, the CPU time, how late viewers
// woke, and what each met of the outage, as JSON.

#include <gst/gst.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "swarm_delay.h"

#define CHUNK 16384
#define PEERS 50                       // that a viewer is told of
#define LATE_US 250000                 // what a player has in its buffer
#define AFTER_US (15 * G_USEC_PER_SEC) // the outage: so long its stalls are counted
#define WAKES 1000 // ms: the longest delay of a wake that is told from longer ones

typedef struct {
  guint number;
  gint64 arrival_us; // since the start
  GThread *thread;
  guint64 peer, origin, duplicate, late, wrong, sent, read;
  gint64 start_up_us, stalled_us;
  guint stalls;
  gboolean failed, here; // `here`: it can be told of; under `lock`
  GstElement *element;   // while it reads; under `lock`
  gdouble ahead_s;       // that it had when the outage began; under `lock`
  guint outage_stalls;   // from then on
  gint64 outage_stalled_us;
} Viewer;

static GHashTable *values;
static Viewer *viewers;
static guint n_viewers;
static GMappedFile *file;
static gint64 began_us;
static gint n_reading; // atomic
static GMutex lock;
static gint64 down_us, up_us; // the outage; under `lock`
static gint wakes[WAKES + 1]; // by how many ms they were late; atomic
static const gchar *origin;   // its URL, as viewers know it
static GstElement *source;    // the seed; NULL: none

static const gchar *
get (const gchar *name)
{
  const gchar *value = g_hash_table_lookup (values, name);

  if (!value)
    g_error ("swarm_viewers: %s is missing", name);
  return value;
}

static gdouble
number (const gchar *name)
{
  return g_ascii_strtod (get (name), NULL);
}

static void
sleep_until (gint64 us)
{
  const gint64 left = us - g_get_monotonic_time ();

  if (left <= 0)
    return;
  g_usleep ((gulong) left);
  g_atomic_int_inc (&wakes[MIN ((g_get_monotonic_time () - us) / 1000, WAKES)]);
}

// Returns the time in ms that 99 of 100 wakes were not later than.
static gint
late_wakes_ms (void)
{
  gint n = 0, upto = 0, ms = 0;

  for (gint i = 0; i <= WAKES; i++)
    n += wakes[i];
  while ((upto += wakes[ms]) < n - n / 100)
    ms++;
  return ms;
}

// ---- delays ----

// Starts the relays, if there are delays.
static void
start_delays (void)
{
  gchar **ms = g_strsplit (get ("delays"), ",", 0);
  const guint n_ms = g_strv_length (ms), port = (guint) number ("port");
  SwarmDelay *delays = g_new (SwarmDelay, n_viewers + 1);
  GUri *uri = g_uri_parse (get ("origin"), G_URI_FLAGS_NONE, NULL);

  origin = get ("origin");
  if (n_ms > 0) {
    for (guint i = 0; i <= n_viewers; i++)
      delays[i] = (SwarmDelay) { (guint16) (port + n_viewers + i), (guint16) (port + i),
        (gint64) (g_ascii_strtod (ms[i < n_viewers ? i % n_ms : n_ms - 1], NULL) * 1000) };
    delays[n_viewers].to = (guint16) g_uri_get_port (uri);
    origin =
        g_strdup_printf ("http://127.0.0.1:%u%s", delays[n_viewers].from, g_uri_get_path (uri));
    swarm_delay_start (delays, n_viewers + 1);
  }
  g_uri_unref (uri);
  g_strfreev (ms);
}

// ---- an outage ----

static gdouble
get_ahead_s (GstElement *element)
{
  GstStructure *stats = NULL;
  guint64 bytes = 0;

  g_object_get (element, "stats", &stats, NULL);
  gst_structure_get_uint64 (stats, "ahead-bytes", &bytes);
  gst_structure_free (stats);
  return (gdouble) bytes * 8 / number ("rate");
}

static void
tell (const gchar *line)
{
  puts (line);
  fflush (stdout);
  if (getchar () == EOF)
    g_error ("swarm_viewers: nobody answers \"%s\"", line);
}

static void
cut_origin (void)
{
  sleep_until (began_us + (gint64) (number ("outage") * 1e6));
  tell ("down");
  g_mutex_lock (&lock);
  down_us = g_get_monotonic_time ();
  for (guint i = 0; i < n_viewers; i++)
    viewers[i].ahead_s = viewers[i].element ? get_ahead_s (viewers[i].element) : -1;
  g_mutex_unlock (&lock);
  sleep_until (down_us + (gint64) (number ("outage_s") * 1e6));
  tell ("up");
  g_mutex_lock (&lock);
  up_us = g_get_monotonic_time ();
  g_mutex_unlock (&lock);
}

// Counts a stall at `due_us` if it may be one of the outage.
static void
note_stall (Viewer *self, gint64 due_us, gint64 late_us)
{
  self->stalls++;
  self->stalled_us += late_us;
  g_mutex_lock (&lock);
  if (down_us && due_us + late_us >= down_us && (!up_us || due_us < up_us + AFTER_US)) {
    self->outage_stalls++;
    self->outage_stalled_us += late_us;
  }
  g_mutex_unlock (&lock);
}

static void
set_here (Viewer *self, gboolean here)
{
  g_mutex_lock (&lock);
  self->here = here;
  g_mutex_unlock (&lock);
}

static void
set_element (Viewer *self, GstElement *element)
{
  g_mutex_lock (&lock);
  self->element = element;
  g_mutex_unlock (&lock);
}

// ---- a viewer ----

// Behind the ports of the viewers and of their relays.
static guint
source_port (void)
{
  return (guint) number ("port") + 2 * n_viewers + 1;
}

// Returns the viewers that a tracker would tell of: those who came before and have not left; all,
// if they come together.
static GArray *
find_others (const Viewer *self)
{
  const gboolean together = g_str_equal (get ("arrivals"), "together");
  GArray *others = g_array_new (FALSE, FALSE, sizeof (guint));

  g_mutex_lock (&lock);
  for (guint i = 0; i < n_viewers; i++) {
    if (i != self->number && (together || viewers[i].here))
      g_array_append_val (others, i);
  }
  g_mutex_unlock (&lock);
  return others;
}

// Returns addresses of other viewers, at random.
static gchar *
dup_peers (const Viewer *self)
{
  const guint port = (guint) number ("port") + (*get ("delays") ? n_viewers : 0);
  GRand *dice = g_rand_new_with_seed ((guint32) number ("seed") * 1000 + self->number);
  GArray *others = find_others (self);
  GString *peers = g_string_new (NULL);

  for (guint n = 0; others->len > 0 && n < PEERS; n++) {
    const guint i = (guint) g_rand_int_range (dice, 0, (gint) others->len);

    g_string_append_printf (
        peers, "%s127.0.0.1:%u", n ? "," : "", port + g_array_index (others, guint, i));
    g_array_remove_index_fast (others, i);
  }
  if (source)
    g_string_append_printf (peers, "%s127.0.0.1:%u", peers->len ? "," : "", source_port ());
  g_array_unref (others);
  g_rand_free (dice);
  return g_string_free (peers, FALSE);
}

static GstElement *
make_swarmsrc (void)
{
  GstElement *element = gst_element_factory_make ("swarmsrc", NULL);

  if (!element)
    g_error ("swarm_viewers: there is no swarmsrc");
  return gst_object_ref_sink (element);
}

static GstElement *
make_element (const Viewer *self)
{
  static const gchar *const same[] = { "torrent", "picker", "leave", "storage", "choking" };
  GstElement *element = make_swarmsrc ();
  gchar *peers = dup_peers (self);
  gchar *listen = g_strdup_printf ("127.0.0.1:%u", (guint) number ("port") + self->number);

  for (guint i = 0; i < G_N_ELEMENTS (same); i++)
    gst_util_set_object_arg (G_OBJECT (element), same[i], get (same[i]));
  // A viewer would be told of those who have left.
  g_object_set (element, "origin", origin, "own-session", TRUE, "tracker", FALSE, "exchange", FALSE,
      "listen", listen, "peers", *peers ? peers : NULL, "bitrate", (guint64) number ("rate"),
      "upload", (guint64) (number ("upload") * number ("rate")), "window",
      (guint64) (number ("window") * 1e9), "unchoke-interval", (guint) number ("unchoke"),
      "timeout", 0, NULL);
  g_free (listen);
  g_free (peers);
  return element;
}

// Reads the title at its rate.
static void
view (Viewer *self, GstPad *pad)
{
  const gsize size = g_mapped_file_get_length (file);
  const gdouble us = CHUNK * 8e6 / number ("rate");
  gint64 from_us = g_get_monotonic_time (), playing_us = 0;

  for (gsize at = 0; at < size && !self->failed; at += CHUNK) {
    const gint64 due_us = playing_us + (gint64) ((gdouble) (at / CHUNK) * us);
    GstBuffer *buffer = NULL;
    gint64 late_us;

    if (at > 0)
      sleep_until (due_us);
    self->failed =
        gst_pad_get_range (pad, at, (guint) MIN (CHUNK, size - at), &buffer) != GST_FLOW_OK
        || gst_buffer_get_size (buffer) != MIN (CHUNK, size - at)
        || gst_buffer_memcmp (
               buffer, 0, g_mapped_file_get_contents (file) + at, MIN (CHUNK, size - at))
               != 0;
    if (buffer)
      self->read += gst_buffer_get_size (buffer);
    gst_clear_buffer (&buffer);
    if (at == 0) {
      playing_us = g_get_monotonic_time ();
      self->start_up_us = playing_us - from_us;
      continue;
    }
    late_us = g_get_monotonic_time () - due_us;
    if (late_us > LATE_US) {
      note_stall (self, due_us, late_us);
      playing_us += late_us;
    }
  }
}

static void
take_stats (Viewer *self, GstElement *element)
{
  GstStructure *stats = NULL;
  guint port = 0;

  g_object_get (element, "stats", &stats, NULL);
  gst_structure_get_uint (stats, "port", &port);
  if (port != (guint) number ("port") + self->number)
    self->failed = TRUE; // another run has its port
  gst_structure_get (stats, "peer-bytes", G_TYPE_UINT64, &self->peer, "origin-bytes", G_TYPE_UINT64,
      &self->origin, "duplicate-bytes", G_TYPE_UINT64, &self->duplicate, "late-bytes",
      G_TYPE_UINT64, &self->late, "wrong-bytes", G_TYPE_UINT64, &self->wrong, "sent-bytes",
      G_TYPE_UINT64, &self->sent, NULL);
  gst_structure_free (stats);
}

static gpointer
run (gpointer data)
{
  Viewer *self = data;
  GstElement *element;
  GstPad *pad;

  sleep_until (began_us + self->arrival_us);
  element = make_element (self);
  pad = gst_element_get_static_pad (element, "src");
  gst_element_set_state (element, GST_STATE_READY);
  self->failed = !gst_pad_activate_mode (pad, GST_PAD_MODE_PULL, TRUE);
  if (!self->failed) {
    set_here (self, TRUE);
    set_element (self, element);
    view (self, pad);
    set_element (self, NULL);
  }
  g_atomic_int_add (&n_reading, -1);
  set_here (self, g_str_equal (get ("leave"), "seed"));
  if (g_str_equal (get ("leave"), "seed")) {
    gst_pad_activate_mode (pad, GST_PAD_MODE_PULL, FALSE);
    while (g_atomic_int_get (&n_reading) > 0)
      g_usleep (100000);
  }
  take_stats (self, element);
  gst_pad_activate_mode (pad, GST_PAD_MODE_PULL, FALSE);
  gst_element_set_state (element, GST_STATE_NULL);
  gst_object_unref (pad);
  gst_object_unref (element);
  return NULL;
}

// ---- a seed ----

static void
start_source (void)
{
  const gsize size = g_mapped_file_get_length (file);
  gchar *listen = g_strdup_printf ("127.0.0.1:%u", source_port ());
  GstElement *element;
  GstPad *pad;

  if (number ("source") > 0) {
    element = make_swarmsrc ();
    g_object_set (element, "torrent", get ("torrent"), "origin", get ("origin"), "own-session",
        TRUE, "tracker", FALSE, "exchange", FALSE, "listen", listen, "bitrate",
        (guint64) number ("rate"), "upload", (guint64) (number ("source") * number ("rate")),
        "timeout", 0, NULL);
    gst_util_set_object_arg (G_OBJECT (element), "leave", "seed");
    gst_util_set_object_arg (G_OBJECT (element), "storage", "100%");
    gst_element_set_state (element, GST_STATE_READY);
    pad = gst_element_get_static_pad (element, "src");
    if (!gst_pad_activate_mode (pad, GST_PAD_MODE_PULL, TRUE))
      g_error ("swarm_viewers: the seed does not start");
    for (gsize at = 0; at < size; at += CHUNK) {
      GstBuffer *buffer = NULL;

      if (gst_pad_get_range (pad, at, (guint) MIN (CHUNK, size - at), &buffer) != GST_FLOW_OK)
        g_error ("swarm_viewers: the seed cannot read the title");
      gst_buffer_unref (buffer);
    }
    gst_object_unref (pad);
    source = element;
  }
  g_free (listen);
}

// Stores what the seed has sent to viewers, and what it has read from the origin.
static void
stop_source (guint64 *sent, guint64 *read)
{
  GstStructure *stats = NULL;

  *sent = *read = 0;
  if (!source)
    return;
  g_object_get (source, "stats", &stats, NULL);
  gst_structure_get (
      stats, "sent-bytes", G_TYPE_UINT64, sent, "origin-bytes", G_TYPE_UINT64, read, NULL);
  gst_structure_free (stats);
  gst_element_set_state (source, GST_STATE_NULL);
  gst_clear_object (&source);
}

// ---- all ----

static void
set_arrivals (void)
{
  const gchar *arrivals = get ("arrivals");
  const gdouble gap_us = number ("gap") * 1e6;
  GRand *dice = g_rand_new_with_seed ((guint32) number ("seed"));
  gdouble at_us = 0;

  for (guint i = 0; i < n_viewers; i++) {
    viewers[i] = (Viewer) { .number = i, .arrival_us = (gint64) at_us };
    if (g_str_equal (arrivals, "uniform"))
      at_us += gap_us;
    else if (g_str_equal (arrivals, "poisson"))
      at_us -= log (1 - g_rand_double (dice)) * gap_us;
    else
      at_us += 10000; // "at approximately the same time"
  }
  g_rand_free (dice);
}

static gint
compare_start_ups (gconstpointer a, gconstpointer b)
{
  const gint64 x = ((const Viewer *) a)->start_up_us, y = ((const Viewer *) b)->start_up_us;

  return x < y ? -1 : x > y;
}

static void
print_sums (void)
{
  Viewer sum = { 0 };
  struct rusage usage;
  guint64 seed_sent, seed_read;
  guint failed = 0;

  stop_source (&seed_sent, &seed_read);
  for (guint i = 0; i < n_viewers; i++) {
    const Viewer *viewer = &viewers[i];

    sum.peer += viewer->peer;
    sum.origin += viewer->origin;
    sum.duplicate += viewer->duplicate;
    sum.late += viewer->late;
    sum.wrong += viewer->wrong;
    sum.sent += viewer->sent;
    sum.read += viewer->read;
    sum.stalls += viewer->stalls;
    sum.stalled_us += viewer->stalled_us;
    failed += (guint) viewer->failed;
  }
  getrusage (RUSAGE_SELF, &usage);
  qsort (viewers, n_viewers, sizeof *viewers, compare_start_ups);
#define N G_GUINT64_FORMAT
  printf ("{\"size\": %" G_GSIZE_FORMAT ", \"failed\": %u, \"read\": %" N ", \"peer\": %" N
          ", \"origin\": %" N ", \"duplicate\": %" N ", \"late\": %" N ", \"wrong\": %" N
          ", \"sent\": %" N ", \"seed_sent\": %" N ", \"seed_read\": %" N
          ", \"stalls\": %u, \"stalled_s\": %.3f, \"start_up_s\": %.3f, "
          "\"start_up_most_s\": %.3f, \"cpu_s\": %.3f, \"late_wakes_ms\": %d, \"outage\": [",
      g_mapped_file_get_length (file), failed, sum.read, sum.peer, sum.origin, sum.duplicate,
      sum.late, sum.wrong, sum.sent, seed_sent, seed_read, sum.stalls,
      (gdouble) sum.stalled_us / 1e6, (gdouble) viewers[n_viewers / 2].start_up_us / 1e6,
      (gdouble) viewers[n_viewers - 1].start_up_us / 1e6,
      (gdouble) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
          + (gdouble) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
      late_wakes_ms ());
#undef N
  for (guint i = 0; up_us && i < n_viewers; i++)
    printf ("%s[%.1f, %u, %.1f]", i ? ", " : "", viewers[i].ahead_s, viewers[i].outage_stalls,
        (gdouble) viewers[i].outage_stalled_us / 1e6);
  puts ("]}");
}

int
main (int argc, char **argv)
{
  gst_init (NULL, NULL);
  values = g_hash_table_new (g_str_hash, g_str_equal);
  for (gint i = 1; i < argc; i++) {
    gchar **pair = g_strsplit (argv[i], "=", 2);

    g_hash_table_insert (values, pair[0], pair[1]);
  }
  file = g_mapped_file_new (get ("file"), FALSE, NULL);
  if (!file)
    g_error ("swarm_viewers: cannot read %s", get ("file"));
  n_viewers = (guint) number ("viewers");
  n_reading = (gint) n_viewers;
  viewers = g_new0 (Viewer, n_viewers);
  set_arrivals ();
  start_delays ();
  start_source ();
  began_us = g_get_monotonic_time ();
  for (guint i = 0; i < n_viewers; i++)
    viewers[i].thread = g_thread_new ("viewer", run, &viewers[i]);
  if (number ("outage") > 0)
    cut_origin ();
  for (guint i = 0; i < n_viewers; i++)
    g_thread_join (viewers[i].thread);
  print_sums ();
  return 0;
}
