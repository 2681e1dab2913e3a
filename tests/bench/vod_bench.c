// SPDX-License-Identifier: LGPL-2.1-or-later
// A storage server for video on demand: each stream has its own position in one file, reads whole
// blocks past the page cache, and has its own ratepacer mode=block.
//
//     vod_bench reads FILE ARM SECONDS SIZE...
//     vod_bench streams FILE ARM BITRATE BLOCK STREAMS BLOCKS stop|go ADDRESS PORT
//
// `reads` measures how long the disk is busy with a read of SIZE bytes at a random position, with
// several readers at once, so that one is always waiting. `streams` runs pipelines for BLOCKS
// blocks or, with `stop`, until one is late. All streams go to the same port.
//
// ARM is `none`, or `ACCESS_US,RATE` to simulate a disk with one arm: it does one read at a time,
// in order of request, and each takes ACCESS_US plus the transfer time at RATE bytes per second.
//
// Prints one line "name value" for each figure.

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <gst/base/gstpushsrc.h>
#include <gst/gst.h>

#define PAGE 4096 // O_DIRECT needs multiples of this
#define PACKET "1316"
#define READERS 4          // at once, when the disk is measured
#define WARM_UP_US 300000  // before reads are counted: a throttle lets the first ones through
#define SETTLE 2           // blocks before the measurement begins
#define BEHIND_NS 10000000 // a block that begins later than this is late

/* The disk */

static struct {
  int fd;
  guint64 size;
  gboolean has_arm;
  guint64 access_us, rate;
  GMutex lock;
  GCond next;
  guint64 tickets, turn;
  gint closed; // atomic: streams stop reading
} disk;

static void
open_disk (const char *path, const char *arm)
{
  struct stat info;
  gchar *end;

  disk.fd = open (path, O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (disk.fd < 0 || fstat (disk.fd, &info) < 0)
    g_error ("%s: %s", path, g_strerror (errno));
  disk.size = (guint64) info.st_size;
  disk.has_arm = strcmp (arm, "none") != 0;
  if (!disk.has_arm)
    return;
  disk.access_us = g_ascii_strtoull (arm, &end, 10);
  disk.rate = *end == ',' ? g_ascii_strtoull (end + 1, NULL, 10) : 0;
  if (disk.rate == 0)
    g_error ("invalid ARM: %s", arm);
}

static void
sleep_until (gint64 time)
{
  gint64 left = time - g_get_monotonic_time ();

  if (left > 0)
    g_usleep ((gulong) left);
}

static gint64
take_arm (void)
{
  guint64 ticket;

  g_mutex_lock (&disk.lock);
  ticket = disk.tickets++;
  while (disk.turn != ticket)
    g_cond_wait (&disk.next, &disk.lock);
  g_mutex_unlock (&disk.lock);
  return g_get_monotonic_time ();
}

static void
give_arm (gint64 since, gsize size)
{
  guint64 takes = disk.access_us + size * G_USEC_PER_SEC / disk.rate;

  sleep_until (since + (gint64) takes);
  g_mutex_lock (&disk.lock);
  disk.turn++;
  g_cond_broadcast (&disk.next);
  g_mutex_unlock (&disk.lock);
}

static void
read_disk (void *to, gsize size, guint64 from)
{
  gint64 since = disk.has_arm ? take_arm () : 0;
  gssize n = pread (disk.fd, to, size, (off_t) from);

  if (disk.has_arm)
    give_arm (since, size);
  if (n != (gssize) size)
    g_error ("%" G_GSSIZE_FORMAT " of %" G_GSIZE_FORMAT " bytes read", n, size);
}

typedef struct {
  gsize size;
  gint64 begin, end;
  GMutex lock;
  gint64 first, last; // completion times of reads, relative to `begin`
  guint n;
} Reads;

static void
note_read (Reads *reads)
{
  g_mutex_lock (&reads->lock);
  reads->last = g_get_monotonic_time ();
  if (reads->last >= reads->begin && reads->n++ == 0)
    reads->first = reads->last;
  g_mutex_unlock (&reads->lock);
}

static gpointer
keep_reading (gpointer data)
{
  Reads *reads = data;
  const guint64 places = (disk.size - reads->size) / PAGE;
  void *memory = aligned_alloc (PAGE, reads->size);

  while (g_get_monotonic_time () < reads->end) {
    guint64 place = (guint64) (g_random_double () * (double) places);

    read_disk (memory, reads->size, place * PAGE);
    note_read (reads);
  }
  free (memory);
  return NULL;
}

static void
measure_reads (gsize size, double seconds)
{
  gint64 begin = g_get_monotonic_time () + WARM_UP_US;
  Reads reads = {
    .size = size, .begin = begin, .end = begin + (gint64) (seconds * G_USEC_PER_SEC)
  };
  GThread *readers[READERS];

  for (guint i = 0; i < READERS; i++)
    readers[i] = g_thread_new ("reader", keep_reading, &reads);
  for (guint i = 0; i < READERS; i++)
    g_thread_join (readers[i]);
  if (reads.n < 2)
    g_error ("the disk is too slow to be measured in %g s", seconds);
  g_print ("%" G_GSIZE_FORMAT " %.9f\n", size,
      (double) (reads.last - reads.first) / G_USEC_PER_SEC / (reads.n - 1));
}

/* The source: reads blocks of the disk without end */

typedef struct {
  GstPushSrc parent;
  guint64 at;
  gsize block;
} BlockSrc;

typedef GstPushSrcClass BlockSrcClass;

GType block_src_get_type (void);
G_DEFINE_TYPE (BlockSrc, block_src, GST_TYPE_PUSH_SRC)

static GstFlowReturn
block_src_create (GstPushSrc *src, GstBuffer **buffer)
{
  BlockSrc *self = (BlockSrc *) src;
  GstAllocationParams params = { .align = PAGE - 1 };
  GstMapInfo map;

  if (g_atomic_int_get (&disk.closed))
    return GST_FLOW_FLUSHING;
  *buffer = gst_buffer_new_allocate (NULL, self->block, &params);
  gst_buffer_map (*buffer, &map, GST_MAP_WRITE);
  read_disk (map.data, self->block, self->at);
  gst_buffer_unmap (*buffer, &map);
  self->at += self->block;
  if (self->at + self->block > disk.size)
    self->at = 0;
  return GST_FLOW_OK;
}

static void
block_src_init (BlockSrc *self)
{
}

static void
block_src_class_init (BlockSrcClass *klass)
{
  static GstStaticPadTemplate template =
      GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

  gst_element_class_add_static_pad_template (GST_ELEMENT_CLASS (klass), &template);
  gst_element_class_set_static_metadata (
      GST_ELEMENT_CLASS (klass), "Blocks", "Source", "Reads a file past the page cache", "Weir");
  klass->create = block_src_create;
}

/* The streams */

typedef struct {
  GstElement *pipeline, *pacer, *sink;
} Stream;

typedef struct {
  double at, cpu;
  guint64 behind; // streams whose block has begun late
  guint64 late, dropped, bytes_out, bytes_read;
} Sums;

static void
make_stream (Stream *stream, guint64 place, const gchar *line, gsize block)
{
  BlockSrc *src = g_object_new (block_src_get_type (), NULL);
  GError *error = NULL;

  stream->pipeline = gst_parse_launch (line, &error);
  if (!stream->pipeline)
    g_error ("%s: %s", line, error->message);
  stream->pacer = gst_bin_get_by_name (GST_BIN (stream->pipeline), "pacer");
  stream->sink = gst_bin_get_by_name (GST_BIN (stream->pipeline), "sink");
  src->at = place / PAGE * PAGE;
  src->block = block;
  gst_bin_add (GST_BIN (stream->pipeline), GST_ELEMENT (src));
  gst_element_link (GST_ELEMENT (src), stream->pacer);
}

static Stream *
make_streams (guint n, guint64 bitrate, gsize block, const gchar *address, const gchar *port)
{
  Stream *streams = g_new0 (Stream, n);
  gchar *line = g_strdup_printf ("ratepacer name=pacer mode=block blocksize=" PACKET
                                 " bitrate=%" G_GUINT64_FORMAT " block-time=%" G_GUINT64_FORMAT
                                 " ! fanoutsink name=sink sync=false async=false "
                                 "clients=%s:%s",
      bitrate, gst_util_uint64_scale (block * 8, GST_SECOND, bitrate), address, port);

  for (guint i = 0; i < n; i++)
    make_stream (&streams[i], gst_util_uint64_scale (disk.size - block, i, n), line, block);
  g_free (line);
  return streams;
}

static void
stop_streams (Stream *streams, guint n)
{
  g_atomic_int_set (&disk.closed, TRUE);
  for (guint i = 0; i < n; i++) {
    gst_element_set_state (streams[i].pipeline, GST_STATE_NULL);
    gst_object_unref (streams[i].sink);
    gst_object_unref (streams[i].pacer);
    gst_object_unref (streams[i].pipeline);
  }
  g_free (streams);
}

// Starts the streams over one block's time, as readers arrive at random. Each first reads two
// blocks ahead.
static void
start_streams (Stream *streams, guint n, gint64 block_us)
{
  gint64 begin = g_get_monotonic_time ();

  for (guint i = 0; i < n; i++) {
    sleep_until (begin + block_us * i / n);
    if (gst_element_set_state (streams[i].pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE)
      g_error ("stream %u of %u doesn't start", i, n);
  }
  sleep_until (begin + (1 + SETTLE) * block_us);
}

static guint64
get (GstElement *element, const gchar *property, const gchar *field)
{
  GstStructure *stats;
  guint64 value = 0;

  g_object_get (element, property, &stats, NULL);
  gst_structure_get_uint64 (stats, field, &value);
  gst_structure_free (stats);
  return value;
}

// Returns the bytes that this process has read from disks, as the kernel counts them.
static guint64
bytes_from_disk (void)
{
  gchar *text = NULL;
  guint64 bytes = 0;

  if (g_file_get_contents ("/proc/self/io", &text, NULL, NULL))
    bytes = g_ascii_strtoull (strstr (text, "read_bytes:") + strlen ("read_bytes:"), NULL, 10);
  g_free (text);
  return bytes;
}

static Sums
sum_up (const Stream *streams, guint n)
{
  Sums sums = { .at = (double) g_get_monotonic_time () / 1e6, .bytes_read = bytes_from_disk () };
  struct timespec cpu;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &cpu);
  sums.cpu = (double) cpu.tv_sec + (double) cpu.tv_nsec / 1e9;
  for (guint i = 0; i < n; i++) {
    sums.behind += get (streams[i].pacer, "stats", "deficit") > BEHIND_NS;
    sums.late += get (streams[i].pacer, "stats", "late");
    sums.bytes_out += get (streams[i].pacer, "stats", "bytes-out");
    sums.dropped += get (streams[i].sink, "fanout-stats", "dropped");
  }
  return sums;
}

static void
report (const Sums *before, const Sums *after, guint64 behind)
{
  double seconds = after->at - before->at;

  if (after->bytes_read < after->bytes_out)
    g_error ("the data sent was not read from a disk");
  g_print ("behind %" G_GUINT64_FORMAT "\n", behind);
  g_print ("late %" G_GUINT64_FORMAT "\n", after->late - before->late);
  g_print ("dropped %" G_GUINT64_FORMAT "\n", after->dropped - before->dropped);
  g_print ("cpu %.1f\n", 100 * (after->cpu - before->cpu) / seconds);
  g_print ("sent %.0f\n", (double) (after->bytes_out - before->bytes_out) / seconds);
  g_print ("read %.0f\n", (double) (after->bytes_read - before->bytes_read) / seconds);
}

static void
run_streams (Stream *streams, guint n, gint64 block_us, guint blocks, gboolean stop)
{
  Sums before, after;
  guint64 behind = 0;
  gint64 begin;

  start_streams (streams, n, block_us);
  before = after = sum_up (streams, n);
  begin = g_get_monotonic_time ();
  for (guint k = 1; k <= blocks && !(stop && behind > 0); k++) {
    sleep_until (begin + block_us * k);
    after = sum_up (streams, n);
    behind += after.behind;
  }
  report (&before, &after, behind);
}

static int
streams (char **argv)
{
  const guint64 bitrate = g_ascii_strtoull (argv[0], NULL, 10);
  const gsize block = strtoul (argv[1], NULL, 10);
  const guint n = (guint) atoi (argv[2]);
  Stream *all = make_streams (n, bitrate, block, argv[5], argv[6]);

  run_streams (all, n, (gint64) gst_util_uint64_scale (block * 8, G_USEC_PER_SEC, bitrate),
      (guint) atoi (argv[3]), !strcmp (argv[4], "stop"));
  stop_streams (all, n);
  return 0;
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  if (argc > 3)
    open_disk (argv[2], argv[3]);
  if (argc == 11 && !strcmp (argv[1], "streams"))
    return streams (argv + 4);
  if (argc < 6 || strcmp (argv[1], "reads")) {
    g_printerr ("usage: vod_bench reads FILE ARM SECONDS SIZE...\n"
                "       vod_bench streams FILE ARM BITRATE BLOCK STREAMS BLOCKS stop|go "
                "ADDRESS PORT\n");
    return 2;
  }
  for (int i = 5; i < argc; i++)
    measure_reads (strtoul (argv[i], NULL, 10), g_ascii_strtod (argv[4], NULL));
  return 0;
}
