// SPDX-License-Identifier: LGPL-2.1-or-later
// blockstoresink and blockstoresrc, with a store of four folders and blocks of a second.
#include "disks/table.h"
#include "store/reading.h"

#include <glib/gstdio.h>
#include <gst/gst.h>

#define CLIP_SLICES 5 // of the clip
#define N_DISKS 4

static gchar *top, *location, *clip;

// ---- pipelines ----

// What an identity called "tap" has seen.
typedef struct {
  GString *text;       // a line for each buffer: times, flags and size
  GChecksum *checksum; // of all bytes
  guint n;
} Tap;

static void
on_handoff (GstElement *tap, GstBuffer *buffer, gpointer data)
{
  Tap *self = data;
  GstMapInfo map;

  g_assert_true (gst_buffer_map (buffer, &map, GST_MAP_READ));
  g_checksum_update (self->checksum, map.data, (gssize) map.size);
  g_string_append_printf (self->text,
      "%" G_GINT64_FORMAT " %" G_GINT64_FORMAT " %" G_GINT64_FORMAT " %x %" G_GSIZE_FORMAT "\n",
      (gint64) GST_BUFFER_PTS (buffer), (gint64) GST_BUFFER_DTS (buffer),
      (gint64) GST_BUFFER_DURATION (buffer),
      GST_BUFFER_FLAGS (buffer) & ~(guint) (GST_BUFFER_FLAG_TAG_MEMORY | GST_BUFFER_FLAG_DISCONT),
      map.size);
  gst_buffer_unmap (buffer, &map);
  self->n++;
}

static GstElement *
make (Tap *tap, const gchar *format, ...)
{
  GError *error = NULL;
  GstElement *pipeline, *identity;
  va_list args;
  gchar *line;

  va_start (args, format);
  line = g_strdup_vprintf (format, args);
  va_end (args);
  pipeline = gst_parse_launch (line, &error);
  g_assert_no_error (error);
  identity = tap ? gst_bin_get_by_name (GST_BIN (pipeline), "tap") : NULL;
  if (tap)
    *tap = (Tap) { g_string_new (NULL), g_checksum_new (G_CHECKSUM_SHA256), 0 };
  if (identity)
    g_signal_connect (identity, "handoff", G_CALLBACK (on_handoff), tap);
  g_clear_object (&identity);
  g_free (line);
  return pipeline;
}

// Waits for the end. Returns NULL, or the error. (transfer full)
static GError *
wait_for_end (GstElement *pipeline)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message =
      gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  GError *error = NULL;

  g_assert_nonnull (message);
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    gst_message_parse_error (message, &error, NULL);
  gst_message_unref (message);
  gst_object_unref (bus);
  return error;
}

static GError *
play (GstElement *pipeline)
{
  GError *error;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  error = wait_for_end (pipeline);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
  return error;
}

static void
clear (Tap *tap)
{
  g_string_free (tap->text, TRUE);
  g_checksum_free (tap->checksum);
}

// A keyframe every 0.4 s.
#define FILM                                                                                       \
  "videotestsrc num-buffers=150 ! video/x-raw,width=320,height=180,framerate=25/1 ! "              \
  "vp8enc deadline=1 keyframe-max-dist=10"

// Writes a stream as a title and reads it back: the buffers must be the same.
static void
check_round_trip (const gchar *title, const gchar *stream)
{
  Tap given, got;

  g_assert_no_error (play (make (&given,
      "%s ! identity name=tap ! blockstoresink location=%s "
      "title=%s",
      stream, location, title)));
  g_assert_no_error (play (make (
      &got, "blockstoresrc location=%s title=%s ! identity name=tap ! fakesink", location, title)));
  g_assert_cmpuint (given.n, >, 100);
  g_assert_cmpstr (got.text->str, ==, given.text->str);
  g_assert_cmpstr (
      g_checksum_get_string (got.checksum), ==, g_checksum_get_string (given.checksum));
  clear (&given);
  clear (&got);
}

static WeirStoredTitle *
open_title (const gchar *name)
{
  GError *error = NULL;
  WeirBlockStore *store = weir_block_store_open (location, &error);
  WeirStoredTitle *title;

  g_assert_no_error (error);
  title = weir_block_store_open_title (store, name, &error);
  g_clear_error (&error);
  weir_block_store_unref (store);
  return title;
}

// ---- titles with times ----

static void
test_blocks_begin_with_keyframes (void)
{
  WeirStoredTitle *title;
  const WeirIndex *index;

  check_round_trip ("a.vp8", FILM);
  title = open_title ("a.vp8");
  index = weir_stored_title_get_index (title);
  g_assert_cmpuint (index->n_blocks, ==, 5);
  for (guint i = 0; i < index->n_blocks; i++)
    g_assert_true (index->blocks[i].flags & WEIR_BLOCK_KEYFRAME);
  g_assert_true (g_str_has_prefix (index->caps, "video/x-vp8"));
  g_assert_cmpint (index->duration_ns, >, 5 * GST_SECOND);
  weir_stored_title_unref (title);
}

static void
test_buffers_of_mpeg_ts (void)
{
  gchar *stream = g_strdup_printf ("filesrc location=%s ! qtdemux ! h264parse ! mpegtsmux", clip);

  check_round_trip ("a.ts", stream);
  g_free (stream);
}

// The clip has one keyframe: blocks end without one after four slices.
static void
test_buffers_of_h264 (void)
{
  gchar *stream = g_strdup_printf ("filesrc location=%s ! qtdemux ! h264parse ! "
                                   "video/x-h264,stream-format=byte-stream,alignment=au",
      clip);
  WeirStoredTitle *title;

  check_round_trip ("a.h264", stream);
  title = open_title ("a.h264");
  g_assert_cmpuint (weir_stored_title_get_index (title)->n_blocks, ==, 2);
  weir_stored_title_unref (title);
  g_free (stream);
}

// Returns how many blocks were asked for since the store was opened.
static guint64
count_asked (WeirStoredTitle *title)
{
  WeirReadStats stats;

  weir_block_store_get_read_stats (weir_stored_title_get_store (title), &stats);
  return stats.asked;
}

// Seeks in a paused pipeline: only the block with the keyframe is read.
static void
test_a_seek_reads_one_block (void)
{
  WeirStoredTitle *title = open_title ("a.vp8");
  const WeirIndex *index = weir_stored_title_get_index (title);
  GstElement *pipeline =
      make (NULL, "blockstoresrc name=src location=%s title=a.vp8 ! fakesink name=sink", location);
  GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");

  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  gst_element_get_state (pipeline, NULL, NULL, GST_CLOCK_TIME_NONE);
  for (guint i = 0; i < index->n_blocks; i++) {
    guint64 before = count_asked (title), pts;
    GstSample *sample = NULL;

    g_assert_true (gst_element_seek_simple (pipeline, GST_FORMAT_TIME,
        GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_KEY_UNIT, index->blocks[i].time_ns + 1000));
    gst_element_get_state (pipeline, NULL, NULL, GST_CLOCK_TIME_NONE);
    g_object_get (sink, "last-sample", &sample, NULL);
    g_assert_nonnull (sample);
    pts = GST_BUFFER_PTS (gst_sample_get_buffer (sample));
    g_assert_cmpint ((gint64) pts, ==, index->blocks[i].time_ns);
    gst_sample_unref (sample);
    g_assert_cmpuint (count_asked (title) - before, <=, 1);
  }
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (sink);
  gst_object_unref (pipeline);
  weir_stored_title_unref (title);
}

// ---- titles without times ----

static void
test_bytes_of_a_file (void)
{
  gchar *path = g_build_filename (top, "out.mp4", NULL), *given, *got;
  gsize n_given, n_got;
  WeirStoredTitle *title;

  g_assert_no_error (play (
      make (NULL, "filesrc location=%s ! blockstoresink location=%s title=a/b.mp4 bitrate=1600000",
          clip, location)));
  g_assert_no_error (play (make (
      NULL, "blockstoresrc location=%s title=a/b.mp4 ! filesink location=%s", location, path)));
  g_assert_true (g_file_get_contents (clip, &given, &n_given, NULL));
  g_assert_true (g_file_get_contents (path, &got, &n_got, NULL));
  g_assert_cmpmem (got, n_got, given, n_given);
  title = open_title ("a/b.mp4");
  g_assert_cmpuint (weir_stored_title_get_index (title)->n_blocks, >=, CLIP_SLICES);
  weir_stored_title_unref (title);
  g_free (given);
  g_free (got);
  g_free (path);
}

// The bytes of a multiplexer have times, which give the rate.
static void
test_bytes_with_times_have_a_rate (void)
{
  const WeirIndex *index;
  WeirStoredTitle *title;

  g_assert_no_error (play (make (NULL,
      "filesrc location=%s ! qtdemux ! h264parse ! mp4mux fragment-duration=1000 ! "
      "blockstoresink location=%s title=muxed.mp4",
      clip, location)));
  title = open_title ("muxed.mp4");
  index = weir_stored_title_get_index (title);
  g_assert_cmpint (index->duration_ns, >, 5 * GST_SECOND);
  g_assert_cmpuint (
      index->rate, ==, (guint64) ((gdouble) index->bytes * 8e9 / (gdouble) index->duration_ns));
  weir_stored_title_unref (title);
}

// A demuxer pulls across blocks.
static void
test_a_demuxer_pulls (void)
{
  Tap given, got;

  g_assert_no_error (
      play (make (&given, "filesrc location=%s ! qtdemux ! identity name=tap ! fakesink", clip)));
  g_assert_no_error (play (make (&got,
      "blockstoresrc location=%s title=a/b.mp4 ! qtdemux ! identity name=tap ! fakesink",
      location)));
  g_assert_cmpuint (given.n, >, 100);
  g_assert_cmpstr (got.text->str, ==, given.text->str);
  g_assert_cmpstr (
      g_checksum_get_string (got.checksum), ==, g_checksum_get_string (given.checksum));
  clear (&given);
  clear (&got);
}

// ---- URIs ----

static gchar *
make_uri (const gchar *title)
{
  return g_strdup_printf ("store://%s/%s", location, title);
}

static void
check_uri (const gchar *uri, const gchar *folder, const gchar *title)
{
  GError *error = NULL;
  GstElement *src = gst_element_make_from_uri (GST_URI_SRC, uri, NULL, &error);
  gchar *got_folder, *got_title, *got_uri;

  g_assert_no_error (error);
  g_object_get (src, "location", &got_folder, "title", &got_title, NULL);
  got_uri = gst_uri_handler_get_uri (GST_URI_HANDLER (src));
  g_assert_cmpstr (got_folder, ==, folder);
  g_assert_cmpstr (got_title, ==, title);
  g_assert_cmpstr (got_uri, ==, uri);
  g_free (got_folder);
  g_free (got_title);
  g_free (got_uri);
  gst_object_unref (src);
}

static void
check_bad_uri (const gchar *uri, gint code)
{
  GstElement *src = gst_element_factory_make ("blockstoresrc", NULL);
  GError *error = NULL;

  g_object_set (src, "location", location, "title", "a", NULL);
  g_assert_false (gst_uri_handler_set_uri (GST_URI_HANDLER (src), uri, &error));
  g_assert_error (error, GST_URI_ERROR, code);
  g_error_free (error);
  gst_object_unref (src);
}

static void
test_a_uri_names_store_and_title (void)
{
  gchar *uri = make_uri ("comedy/duck%20soup%3F%25.mp4"), *bad = make_uri ("a?b");
  gchar *no_title = make_uri ("");
  GstElement *src = gst_element_factory_make ("blockstoresrc", NULL);

  g_assert_null (gst_uri_handler_get_uri (GST_URI_HANDLER (src)));
  gst_object_unref (src);
  check_uri (uri, location, "comedy/duck soup?%.mp4");
  check_bad_uri (bad, GST_URI_ERROR_BAD_URI);
  check_bad_uri ("store://host/a/b", GST_URI_ERROR_BAD_URI);
  check_bad_uri ("store:a", GST_URI_ERROR_BAD_URI);
  check_bad_uri ("store:///a%00b/c", GST_URI_ERROR_BAD_URI);
  check_bad_uri ("store:///", GST_URI_ERROR_BAD_REFERENCE);
  check_bad_uri ("store:///tmp/none/a", GST_URI_ERROR_BAD_REFERENCE);
  check_bad_uri (no_title, GST_URI_ERROR_BAD_REFERENCE);
  g_free (uri);
  g_free (bad);
  g_free (no_title);
}

// Of a title with times and of one without.
static void
test_uridecodebin_plays_a_uri (void)
{
  gchar *timed = make_uri ("a.vp8"), *bytes = make_uri ("a/b.mp4");
  Tap got, given;

  g_assert_no_error (
      play (make (&got, "uridecodebin uri=%s ! identity name=tap ! fakesink", timed)));
  g_assert_cmpuint (got.n, ==, 150);
  clear (&got);
  g_assert_no_error (play (make (&given,
      "uridecodebin uri=file://%s caps=video/x-h264 ! identity name=tap ! fakesink", clip)));
  g_assert_no_error (play (
      make (&got, "uridecodebin uri=%s caps=video/x-h264 ! identity name=tap ! fakesink", bytes)));
  g_assert_cmpuint (got.n, >, 100);
  g_assert_cmpstr (got.text->str, ==, given.text->str);
  clear (&given);
  clear (&got);
  g_free (timed);
  g_free (bytes);
}

// ---- errors ----

static void
check_error (GstElement *pipeline, gint code)
{
  GError *error = play (pipeline);

  g_assert_error (error, GST_RESOURCE_ERROR, code);
  g_error_free (error);
}

static void
test_wrong_places_are_named (void)
{
  check_error (make (NULL,
                   "fakesrc num-buffers=1 sizetype=fixed ! blockstoresink location=%s/no "
                   "title=x",
                   top),
      GST_RESOURCE_ERROR_OPEN_WRITE);
  check_error (make (NULL, "fakesrc num-buffers=1 sizetype=fixed ! blockstoresink title=x"),
      GST_RESOURCE_ERROR_SETTINGS);
  check_error (make (NULL,
                   "fakesrc num-buffers=1 sizetype=fixed ! blockstoresink location=%s "
                   "title=a.vp8",
                   location),
      GST_RESOURCE_ERROR_WRITE);
  check_error (make (NULL,
                   "fakesrc num-buffers=1 sizetype=fixed ! blockstoresink location=%s "
                   "title=../x",
                   location),
      GST_RESOURCE_ERROR_WRITE);
  check_error (make (NULL, "blockstoresrc location=%s title=none ! fakesink", location),
      GST_RESOURCE_ERROR_NOT_FOUND);
  check_error (make (NULL, "blockstoresrc location=%s/no title=none ! fakesink", top),
      GST_RESOURCE_ERROR_OPEN_READ);
}

// Without EOS there is no title.
static void
test_a_title_that_is_not_finished_is_not_there (void)
{
  GstElement *pipeline = make (NULL,
      "fakesrc num-buffers=100 sizetype=fixed sizemax=4096 ! identity eos-after=-1 ! "
      "blockstoresink "
      "name=sink location=%s title=half bitrate=1000",
      location);

  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  gst_element_get_state (pipeline, NULL, NULL, GST_CLOCK_TIME_NONE);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  g_assert_null (open_title ("half"));
  gst_object_unref (pipeline);
}

// Takes or gives back the disks' block 2 of the title that is being written: a folder in its place
// fails its writes, for root, too.
static void
hinder_block (gboolean hinder)
{
  g_autofree gchar *store = g_build_filename (location, "adding", NULL);
  GDir *dir = g_dir_open (store, 0, NULL);
  const gchar *id;

  while ((id = g_dir_read_name (dir))) {
    for (guint i = 0; i < N_DISKS; i++) {
      g_autofree gchar *path = g_strdup_printf ("%s/disk%u/blocks/%s/00000002.part", top, i, id);

      g_assert_cmpint (hinder ? g_mkdir_with_parents (path, 0700) : g_rmdir (path), ==, 0);
    }
  }
  g_dir_close (dir);
}

static GstPadProbeReturn
hinder_after_a_block (GstPad *pad, GstPadProbeInfo *info, gpointer n)
{
  if (++*(guint *) n == 11)
    hinder_block (TRUE);
  return GST_PAD_PROBE_OK;
}

// A source that meets an error sends EOS.
static void
check_failed_write (const gchar *title, const gchar *stream)
{
  GstElement *pipeline = make (NULL,
      "%s ! blockstoresink name=sink location=%s title=%s bitrate=8000", stream, location, title);
  GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  GstPad *pad = gst_element_get_static_pad (sink, "sink");
  guint n = 0;

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, hinder_after_a_block, &n, NULL);
  gst_object_unref (pad);
  gst_object_unref (sink);
  check_error (pipeline, GST_RESOURCE_ERROR_WRITE);
  g_assert_null (open_title (title));
  hinder_block (FALSE);
}

// An avimux writes its header anew at the end, for which it goes back.
static void
test_a_stream_that_goes_back_is_refused (void)
{
  check_error (make (NULL,
                   "filesrc location=%s ! qtdemux ! h264parse ! avimux ! "
                   "blockstoresink location=%s title=a.avi",
                   clip, location),
      GST_RESOURCE_ERROR_WRITE);
  g_assert_null (open_title ("a.avi"));
}

// Removes the block from all disks. Returns its offset in the title.
static guint64
lose_block (const gchar *name, guint32 number)
{
  WeirStoredTitle *title = open_title (name);
  const WeirIndexBlock *block = &weir_stored_title_get_index (title)->blocks[number];
  guint64 offset = block->offset;

  for (guint i = 0; i < block->n_copies; i++) {
    g_autofree gchar *path = weir_stored_title_dup_block_path (title, number, block->disks[i]);

    g_assert_cmpint (g_remove (path), ==, 0);
  }
  weir_stored_title_unref (title);
  return offset;
}

static void
test_the_bytes_before_a_lost_block_are_given (void)
{
  g_autofree gchar *path = g_build_filename (top, "out", NULL), *bytes = NULL;
  guint64 right;
  gsize n;

  // Blocks of 5001 bytes, which end in the middle of a buffer.
  g_assert_no_error (play (make (NULL,
      "filesrc location=%s num-buffers=10 ! blockstoresink location=%s title=lossy bitrate=40008",
      clip, location)));
  right = lose_block ("lossy", 3);
  // The store warns of the lost block, at times after the source has posted its error.
  g_log_set_always_fatal (G_LOG_FATAL_MASK);
  // A stopped filesink drops what it has buffered.
  check_error (
      make (NULL,
          "blockstoresrc location=%s title=lossy ! filesink location=%s buffer-mode=unbuffered",
          location, path),
      GST_RESOURCE_ERROR_READ);
  g_assert_true (g_file_get_contents (path, &bytes, &n, NULL));
  g_assert_cmpuint (n, ==, right);
}

static void
test_a_title_with_a_block_that_cannot_be_written_is_not_there (void)
{
  check_failed_write (
      "bytes", "fakesrc num-buffers=100 sizetype=fixed sizemax=100 format=bytes filltype=zero");
  check_failed_write (
      "times", "videotestsrc num-buffers=100 ! video/x-raw,width=32,height=32,framerate=10/1");
}

// ---- the store ----

static void
set_up (void)
{
  const gchar *disks[N_DISKS + 1] = { NULL };
  GError *error = NULL;
  gchar *warning = NULL;

  top = g_dir_make_tmp (NULL, NULL);
  location = g_build_filename (top, "store", NULL);
  clip = g_build_filename (g_getenv ("WEIR_DATA"), "bigbuckbunny.mp4", NULL);
  for (guint i = 0; i < N_DISKS; i++) {
    gchar *name = g_strdup_printf ("disk%u", i);

    disks[i] = g_build_filename (top, name, NULL);
    g_assert_cmpint (g_mkdir (disks[i], 0700), ==, 0);
    g_free (name);
  }
  weir_block_store_init (location, disks, WEIR_PLACEMENT_RDA, GST_SECOND, &warning, &error);
  g_assert_no_error (error);
  g_free (warning);
  for (guint i = 0; i < N_DISKS; i++)
    g_free ((gpointer) disks[i]);
}

static void
tear_down (void)
{
  const gchar *rm[] = { "rm", "-rf", top, NULL };

  g_assert_true (g_spawn_sync (
      NULL, (gchar **) rm, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL, NULL));
  g_free (top);
  g_free (location);
  g_free (clip);
}

int
main (int argc, char **argv)
{
  int status;

  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  set_up ();
  g_test_add_func ("/blockstore/blocks-begin-with-keyframes", test_blocks_begin_with_keyframes);
  g_test_add_func ("/blockstore/buffers-of-mpeg-ts", test_buffers_of_mpeg_ts);
  g_test_add_func ("/blockstore/buffers-of-h264", test_buffers_of_h264);
  g_test_add_func ("/blockstore/a-seek-reads-one-block", test_a_seek_reads_one_block);
  g_test_add_func ("/blockstore/bytes-of-a-file", test_bytes_of_a_file);
  g_test_add_func ("/blockstore/bytes-with-times-have-a-rate", test_bytes_with_times_have_a_rate);
  g_test_add_func ("/blockstore/a-demuxer-pulls", test_a_demuxer_pulls);
  g_test_add_func ("/blockstore/a-uri-names-store-and-title", test_a_uri_names_store_and_title);
  g_test_add_func ("/blockstore/uridecodebin-plays-a-uri", test_uridecodebin_plays_a_uri);
  g_test_add_func ("/blockstore/wrong-places-are-named", test_wrong_places_are_named);
  g_test_add_func ("/blockstore/a-title-that-is-not-finished-is-not-there",
      test_a_title_that_is_not_finished_is_not_there);
  g_test_add_func ("/blockstore/a-title-with-a-block-that-cannot-be-written-is-not-there",
      test_a_title_with_a_block_that_cannot_be_written_is_not_there);
  g_test_add_func (
      "/blockstore/a-stream-that-goes-back-is-refused", test_a_stream_that_goes_back_is_refused);
  g_test_add_func ("/blockstore/the-bytes-before-a-lost-block-are-given",
      test_the_bytes_before_a_lost_block_are_given);
  status = g_test_run ();
  tear_down ();
  return status;
}
