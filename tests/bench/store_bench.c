// SPDX-License-Identifier: LGPL-2.1-or-later
// Paced streams from a block store, without a network.
//
//     store_bench DIR MEMORY_BYTES SLICES stop|go < STREAMS
//
// STREAMS has a line "START_MS TITLE" for each stream. A stream begins to play when its first block
// is there. When it begins to play a block, it asks for the next one, which is due one slice later:
// it reads one slice ahead, no more. If that block comes late, the stream stops until it is there,
// which is a stoppage. A title is played again from its first block when it has ended.
//
// Ends SLICES slices after the last stream has begun to play; with `stop` at the first stoppage.
// With `go`, a stream that plays and whose next block cannot be read stops for good.
// Prints one line "name value" for each figure.

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "store/reading.h"

typedef struct {
  gchar *name;
  WeirStoredTitle *title;
  WeirBlockRequest *request;
  guint32 next;      // block that is asked for
  gint64 due_ns;     // when to start, and then when the block is needed
  gboolean started;  // the first block was asked for
  gboolean playing;  // the first block was there
  gboolean starving; // due, and the block is not there
  gboolean stopped;  // it has had a stoppage
  // Under the lock of `arrivals`.
  gint64 arrived_ns; // 0: not there
} Stream;

static struct {
  WeirBlockStore *store;
  gint64 slice_ns, begin_ns;
  GPtrArray *streams;
  GSequence *timers; // streams that are not starving, by due_ns
  guint n_playing;
  gint64 end_ns;
  gboolean stop;

  GMutex lock;
  GCond arrived;
  GPtrArray *arrivals; // streams whose block is there
  gchar *problem;      // the first block that could not be read
  guint64 blocks, bytes;

  guint64 stoppages, stopped;
  gint64 stopped_ns, longest_ns, start_ns, longest_start_ns, late_ns;
} bench;

static gint64
now_ns (void)
{
  return g_get_monotonic_time () * 1000;
}

static gint
compare_due (gconstpointer a, gconstpointer b, gpointer data)
{
  const gint64 left = ((const Stream *) a)->due_ns, right = ((const Stream *) b)->due_ns;

  return left < right ? -1 : left > right;
}

static void
set_timer (Stream *stream, gint64 due_ns)
{
  stream->due_ns = due_ns;
  g_sequence_insert_sorted (bench.timers, stream, compare_due, NULL);
}

// In a thread of the store, or in ours.
static void
have_block (WeirBlock *block, const GError *error, gpointer data)
{
  Stream *stream = data;

  g_mutex_lock (&bench.lock);
  stream->arrived_ns = now_ns ();
  if (block) {
    gsize length;

    weir_block_get_bytes (block, &length);
    bench.bytes += length;
    bench.blocks++;
  } else if (!bench.stop && stream->playing) {
    stream->arrived_ns = 0; // the stream stops for good
    g_mutex_unlock (&bench.lock);
    return;
  } else if (!bench.problem) {
    bench.problem = g_strdup (error->message);
  }
  g_ptr_array_add (bench.arrivals, stream);
  g_cond_signal (&bench.arrived);
  g_mutex_unlock (&bench.lock);
  // The reader has it: what it has not played is in its own memory.
  g_clear_pointer (&block, weir_block_unref);
}

static void
ask (Stream *stream, gint64 deadline_ns)
{
  const guint32 n = weir_stored_title_get_index (stream->title)->n_blocks;

  g_clear_pointer (&stream->request, weir_block_request_free);
  stream->arrived_ns = 0;
  stream->request =
      weir_block_request (stream->title, stream->next++ % n, deadline_ns, have_block, stream);
}

// Begins to play a block that is there.
static void
play (Stream *stream, gint64 at_ns)
{
  ask (stream, at_ns + bench.slice_ns);
  set_timer (stream, at_ns + bench.slice_ns);
}

static void
note_stoppage (Stream *stream, gint64 length_ns)
{
  bench.stoppages++;
  bench.stopped += !stream->stopped;
  stream->stopped = TRUE;
  bench.stopped_ns += length_ns;
  bench.longest_ns = MAX (bench.longest_ns, length_ns);
}

// The first block is there.
static void
begin (Stream *stream)
{
  gint64 took_ns = stream->arrived_ns - stream->due_ns;

  stream->playing = TRUE;
  bench.start_ns += took_ns;
  bench.longest_start_ns = MAX (bench.longest_start_ns, took_ns);
  bench.n_playing++;
  play (stream, stream->arrived_ns);
}

static void
take_arrival (Stream *stream)
{
  if (!stream->playing) {
    begin (stream);
  } else if (stream->starving) {
    stream->starving = FALSE;
    if (stream->arrived_ns > stream->due_ns)
      note_stoppage (stream, stream->arrived_ns - stream->due_ns);
    play (stream, MAX (stream->arrived_ns, stream->due_ns));
  }
}

static gboolean
is_there (const Stream *stream)
{
  gboolean there;

  g_mutex_lock (&bench.lock);
  there = stream->arrived_ns != 0;
  g_mutex_unlock (&bench.lock);
  return there;
}

static void
take_timer (Stream *stream)
{
  bench.late_ns = MAX (bench.late_ns, now_ns () - stream->due_ns);
  if (!stream->started) {
    stream->started = TRUE;
    ask (stream, stream->due_ns + bench.slice_ns);
  } else if (is_there (stream)) {
    play (stream, stream->due_ns);
  } else {
    stream->starving = TRUE;
  }
}

// Returns the streams whose blocks have come, after waiting for one until `until_ns`.
static GPtrArray *
wait_for_blocks (gint64 until_ns)
{
  GPtrArray *come;

  g_mutex_lock (&bench.lock);
  while (
      bench.arrivals->len == 0 && g_cond_wait_until (&bench.arrived, &bench.lock, until_ns / 1000))
    continue;
  come = g_steal_pointer (&bench.arrivals);
  bench.arrivals = g_ptr_array_new ();
  g_mutex_unlock (&bench.lock);
  return come;
}

static gboolean
is_over (void)
{
  gboolean broken;

  g_mutex_lock (&bench.lock);
  broken = bench.problem != NULL;
  g_mutex_unlock (&bench.lock);
  return broken || (bench.stop && bench.stoppages > 0) || now_ns () >= bench.end_ns;
}

static void
take_arrivals (GPtrArray *come)
{
  for (guint i = 0; i < come->len; i++)
    take_arrival (come->pdata[i]);
  g_ptr_array_unref (come);
}

static Stream *
first_timer (void)
{
  GSequenceIter *first = g_sequence_get_begin_iter (bench.timers);

  return g_sequence_iter_is_end (first) ? NULL : g_sequence_get (first);
}

static void
take_timers (void)
{
  Stream *stream;

  while ((stream = first_timer ()) && stream->due_ns <= now_ns ()) {
    g_sequence_remove (g_sequence_get_begin_iter (bench.timers));
    take_timer (stream);
  }
}

static void
serve (gint64 slices)
{
  bench.end_ns = G_MAXINT64;
  while (!is_over ()) {
    Stream *first = first_timer ();
    gint64 until_ns = MIN (now_ns () + bench.slice_ns, bench.end_ns);

    take_arrivals (wait_for_blocks (first ? MIN (until_ns, first->due_ns) : until_ns));
    take_timers ();
    if (bench.end_ns == G_MAXINT64 && bench.n_playing == bench.streams->len)
      bench.end_ns = now_ns () + slices * bench.slice_ns;
  }
}

// Streams that still wait for a block have stopped, too.
static void
count_waiting (void)
{
  const gint64 now = now_ns ();

  for (guint i = 0; i < bench.streams->len; i++) {
    Stream *stream = bench.streams->pdata[i];

    if (stream->starving && !is_there (stream))
      note_stoppage (stream, now - stream->due_ns);
  }
}

static void
free_stream (gpointer data)
{
  Stream *stream = data;

  g_clear_pointer (&stream->request, weir_block_request_free);
  weir_stored_title_unref (stream->title);
  g_free (stream);
}

static void
read_streams (void)
{
  g_autoptr (GError) error = NULL;
  gchar title[256];
  double start_ms;

  bench.streams = g_ptr_array_new_with_free_func (free_stream);
  bench.timers = g_sequence_new (NULL);
  while (scanf ("%lf %255s", &start_ms, title) == 2) {
    Stream *stream = g_new0 (Stream, 1);

    stream->title = weir_block_store_open_title (bench.store, title, &error);
    if (!stream->title)
      g_error ("%s", error->message);
    stream->due_ns = (gint64) (start_ms * 1e6);
    g_ptr_array_add (bench.streams, stream);
  }
  bench.begin_ns = now_ns ();
  for (guint i = 0; i < bench.streams->len; i++) {
    Stream *stream = bench.streams->pdata[i];

    set_timer (stream, bench.begin_ns + stream->due_ns);
  }
}

static void
print (const gchar *name, double value)
{
  g_print ("%s %.9g\n", name, value);
}

static double
cpu_s (void)
{
  struct rusage usage;

  getrusage (RUSAGE_SELF, &usage);
  return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
         + (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void
print_results (double cpu)
{
  const double seconds = (double) (now_ns () - bench.begin_ns) / 1e9;
  WeirDiskStats disks[64];
  WeirReadStats reads;
  guint64 blocks, bytes, second = 0;
  guint n_disks = weir_block_store_get_stats (bench.store, disks, G_N_ELEMENTS (disks));

  weir_block_store_get_read_stats (bench.store, &reads);
  // Reads go on.
  g_mutex_lock (&bench.lock);
  blocks = bench.blocks;
  bytes = bench.bytes;
  g_mutex_unlock (&bench.lock);
  print ("streams", bench.streams->len);
  print ("playing", bench.n_playing);
  print ("stoppages", (double) bench.stoppages);
  print ("stopped", (double) bench.stopped);
  print ("mean", bench.stoppages ? (double) bench.stopped_ns / 1e9 / (double) bench.stoppages : 0);
  print ("longest", (double) bench.longest_ns / 1e9);
  print ("start", bench.n_playing ? (double) bench.start_ns / 1e9 / bench.n_playing : 0);
  print ("longest_start", (double) bench.longest_start_ns / 1e9);
  print ("late", (double) bench.late_ns / 1e9);
  print ("seconds", seconds);
  print ("cpu", 100 * (cpu_s () - cpu) / seconds);
  print ("blocks", (double) blocks);
  print ("bytes", (double) bytes);
  print ("hits", (double) (reads.hits + reads.shared));
  print ("repaired", (double) reads.repaired);
  for (guint i = 0; i < n_disks; i++) {
    g_autofree gchar *access = g_strdup_printf ("access%u", disks[i].number);
    g_autofree gchar *rate = g_strdup_printf ("rate%u", disks[i].number);

    second += disks[i].second_choices;
    print (access, (double) disks[i].access_ns / 1e9);
    print (rate, (double) disks[i].rate);
  }
  print ("second", (double) second);
}

// As other work of the machine is not measured. The disks have the same priority.
static void
hurry (void)
{
  const struct sched_param first = { .sched_priority = 1 };

  if (sched_setscheduler (0, SCHED_RR, &first) < 0)
    fprintf (stderr, "no real-time priority\n");
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  double cpu;

  if (argc != 5) {
    fprintf (stderr, "Usage: store_bench DIR MEMORY_BYTES SLICES stop|go < STREAMS\n");
    return 2;
  }
  hurry ();
  bench.store = weir_block_store_open (argv[1], &error);
  if (!bench.store)
    g_error ("%s", error->message);
  weir_block_store_set_memory (bench.store, g_ascii_strtoull (argv[2], NULL, 10));
  bench.slice_ns = weir_block_store_get_slice (bench.store);
  bench.stop = strcmp (argv[4], "stop") == 0;
  bench.arrivals = g_ptr_array_new ();
  read_streams ();
  cpu = cpu_s ();
  serve (g_ascii_strtoll (argv[3], NULL, 10));
  count_waiting ();
  print_results (cpu);
  if (bench.problem)
    fprintf (stderr, "%s\n", bench.problem);
  g_sequence_free (bench.timers);
  g_ptr_array_unref (bench.streams);
  weir_block_store_unref (bench.store);
  return bench.problem != NULL;
}
