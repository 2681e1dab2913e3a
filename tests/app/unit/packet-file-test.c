// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/packet_file.h"

#include <fcntl.h>
#include <gio/gio.h>
#include <string.h>
#include <unistd.h>

#include "broadcast/packet_writer.h"
#include "broadcast/packetizer.h"
#include "rtp/rtp.h"

#define BYTES_MAX (64u << 20)

static gchar *top; // a folder for files

static gboolean
go_on (gpointer n_told, gdouble done)
{
  g_assert_cmpfloat (done, >=, 0);
  g_assert_cmpfloat (done, <=, 1);
  ++*(guint *) n_told;
  return TRUE;
}

static PacketFile *
try_to_make (const gchar *path, guint64 max_bytes, PacketizeProgress progress, GError **error)
{
  const int fd = open (path, O_RDONLY | O_CLOEXEC);
  guint n_told = 0;
  PacketFile *file;

  g_assert_cmpint (fd, >=, 0);
  file = packetize (fd, top, max_bytes, progress, &n_told, error);
  close (fd);
  return file;
}

static PacketFile *
make (const gchar *path)
{
  GError *error = NULL;
  PacketFile *file = try_to_make (path, BYTES_MAX, go_on, &error);

  g_assert_no_error (error);
  return file;
}

static gchar *
clip (void)
{
  return g_build_filename (g_getenv ("WEIR_DATA"), "bigbuckbunny.mp4", NULL);
}

// Reads all blocks.
static GByteArray *
read_all (PacketFile *file)
{
  GByteArray *bytes = g_byte_array_new ();

  for (guint i = 0; i < file->n_blocks; i++) {
    const gsize length = packet_file_block_bytes (file, i);
    const guint at = bytes->len;

    g_byte_array_set_size (bytes, at + (guint) length);
    g_assert_cmpint (packet_file_read (file, i, bytes->data + at), ==, 0);
  }
  return bytes;
}

typedef void (*EachFunc) (
    const PacketFile *file, const PacketRecord *record, guint32 frame, gpointer data);

// Calls `each` for all packets, with their frames by the file's index.
static void
for_each (PacketFile *file, EachFunc each, gpointer data)
{
  GByteArray *bytes = read_all (file);

  for (guint32 frame = 0; frame < file->n_frames; frame++) {
    const guint8 *at = bytes->data + file->offset[frame];
    const guint8 *end = bytes->data + file->offset[frame + 1];
    PacketRecord record;

    while (at < end) {
      g_assert_true (packet_record_next (&at, end, &record));
      each (file, &record, frame, data);
    }
  }
  g_byte_array_unref (bytes);
}

static void
check_numbers (const PacketFile *file, const PacketRecord *record, guint32 frame, gpointer data)
{
  const PacketTrack *track = &file->tracks[record->track];
  guint32 *n = data;
  WeirRtp rtp;

  g_assert_cmpuint (record->track, <, file->n_tracks);
  g_assert_cmpint (weir_rtp_parse (record->packet, record->length, &rtp), ==, 0);
  g_assert_cmpuint (record->number, ==, n[record->track]++);
  g_assert_cmpuint (rtp.seq, ==, record->number & 0xffff);
  g_assert_cmpuint (record->number, >=, track->first[frame]);
  g_assert_cmpuint (record->number, <, track->first[frame + 1]);
  g_assert_cmpuint (packet_file_frame_of (file, record->track, record->number), ==, frame);
}

static void
packets_are_numbered_without_gaps (void)
{
  gchar *path = clip ();
  PacketFile *file = make (path);
  guint32 n[RELAY_MAX_TRACKS] = { 0 };

  g_assert_cmpuint (file->n_tracks, ==, 2);
  for_each (file, check_numbers, n);
  for (guint i = 0; i < file->n_tracks; i++)
    g_assert_cmpuint (n[i], ==, file->tracks[i].n_packets);
  g_assert_cmpuint (file->rate, >, 1000000);
  g_assert_cmpuint (file->rate, <, 2000000);
  packet_file_unref (file);
  g_free (path);
}

static void
the_same_title_gives_the_same_bytes (void)
{
  gchar *path = clip ();
  PacketFile *one = make (path), *other = make (path);
  GByteArray *bytes = read_all (one), *others = read_all (other);

  g_assert_cmpstr (one->id, ==, other->id);
  g_assert_cmpuint (strlen (one->id), ==, 32);
  g_assert_cmpmem (bytes->data, bytes->len, others->data, others->len);
  g_byte_array_unref (bytes);
  g_byte_array_unref (others);
  packet_file_unref (one);
  packet_file_unref (other);
  g_free (path);
}

// ---- titles made here ----

// Makes the title `name` of 90 pictures, with two B-frames in a row, and returns its path.
static gchar *
write_title (const gchar *name, const gchar *rate)
{
  gchar *path = g_build_filename (top, name, NULL);
  gchar *source = g_strdup_printf ("testsrc=size=160x120:rate=%s", rate);
  gchar *words[] = { (gchar *) "ffmpeg", (gchar *) "-v", (gchar *) "error", (gchar *) "-y",
    (gchar *) "-f", (gchar *) "lavfi", (gchar *) "-i", source, (gchar *) "-frames:v",
    (gchar *) "90", (gchar *) "-c:v", (gchar *) "libx264", (gchar *) "-preset",
    (gchar *) "ultrafast", (gchar *) "-bf", (gchar *) "2", (gchar *) "-b_strategy", (gchar *) "0",
    (gchar *) "-pix_fmt", (gchar *) "yuv420p", path, NULL };
  GError *error = NULL;
  gint status;

  g_spawn_sync (NULL, words, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, &status, &error);
  g_assert_no_error (error);
  g_assert_cmpint (status, ==, 0);
  g_free (source);
  return path;
}

typedef struct {
  guint32 frames[1000]; // of the first packets of pictures
  guint n;
  guint32 last_time;
  gint64 latest_ns; // how much later than its presentation a packet is sent, relative to the start
} Pictures;

static void
note_picture (const PacketFile *file, const PacketRecord *record, guint32 frame, gpointer data)
{
  Pictures *pictures = data;
  WeirRtp rtp;
  gint64 shown_ns;

  weir_rtp_parse (record->packet, record->length, &rtp);
  shown_ns = (gint64) gst_util_uint64_scale (rtp.timestamp, GST_SECOND, 90000);
  pictures->latest_ns = MAX (pictures->latest_ns, (gint64) frame * file->frame_ns - shown_ns);
  if (pictures->n > 0 && rtp.timestamp == pictures->last_time)
    return;
  pictures->last_time = rtp.timestamp;
  pictures->frames[pictures->n++] = frame;
}

// Pictures that are shown in another order than they are sent still leave at an even rate, at most
// a picture later than they would be shown.
static void
check_video (const gchar *name, const gchar *rate, gint64 frame_ns)
{
  gchar *path = write_title (name, rate);
  PacketFile *file = make (path);
  Pictures pictures = { .latest_ns = G_MININT64 };

  for_each (file, note_picture, &pictures);
  g_assert_cmpint (ABS (file->frame_ns - frame_ns), <=, 12000);
  for (guint i = 0; i < pictures.n; i++)
    g_assert_cmpuint (pictures.frames[i], ==, i);
  g_assert_cmpint (pictures.latest_ns, <=, frame_ns + 2000000);
  packet_file_unref (file);
  g_free (path);
}

static void
the_frame_is_that_of_the_video (void)
{
  check_video ("a.mp4", "30000/1001", 33366667);
  check_video ("a.mkv", "30000/1001", 33366667);
  check_video ("b.mkv", "50", 20000000);
  check_video ("a.ts", "25", 40000000);
}

// ---- failures ----

static void
assert_refused (
    const gchar *path, guint64 max_bytes, PacketizeProgress progress, gint code, const gchar *words)
{
  GError *error = NULL;

  g_assert_null (try_to_make (path, max_bytes, progress, &error));
  g_assert_error (error, G_IO_ERROR, code);
  g_assert_nonnull (strstr (error->message, words));
  g_error_free (error);
}

static gboolean
give_up (gpointer n_told, gdouble done)
{
  return FALSE;
}

static void
a_failure_says_its_reason (void)
{
  gchar *path = clip (), *text = g_build_filename (top, "a.txt", NULL);
  gchar *cut = g_build_filename (top, "cut.mp4", NULL), *bytes;

  assert_refused (path, 100000, go_on, G_IO_ERROR_NOT_SUPPORTED, "too long");
  assert_refused (path, BYTES_MAX, give_up, G_IO_ERROR_CANCELLED, "not needed");
  g_assert_true (g_file_set_contents (text, "no media", -1, NULL));
  assert_refused (text, BYTES_MAX, go_on, G_IO_ERROR_NOT_SUPPORTED, "type");
  g_assert_true (g_file_get_contents (path, &bytes, NULL, NULL));
  g_assert_true (g_file_set_contents (cut, bytes, 1000, NULL));
  g_assert_null (try_to_make (cut, BYTES_MAX, go_on, NULL));
  g_free (bytes);
  g_free (cut);
  g_free (text);
  g_free (path);
}

static void
a_record_is_not_read_beyond_the_end (void)
{
  const guint8 bytes[] = { 0, 0, 0, 1, 0, 0, 0, 4, 1, 2, 3 }, *at = bytes;
  PacketRecord record;

  g_assert_false (packet_record_next (&at, bytes + sizeof bytes, &record));
  g_assert_false (packet_record_next (&at, bytes + 3, &record));
  g_assert_true (at == bytes);
}

static void
clean_up (void)
{
  gchar *words[] = { (gchar *) "rm", (gchar *) "-rf", top, NULL };

  g_spawn_sync (NULL, words, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL, NULL);
  g_free (top);
}

int
main (int argc, char **argv)
{
  int status;

  g_test_init (&argc, &argv, NULL);
  gst_init (NULL, NULL);
  top = g_dir_make_tmp (NULL, NULL);
  g_test_add_func (
      "/packet-file/packets-are-numbered-without-gaps", packets_are_numbered_without_gaps);
  g_test_add_func (
      "/packet-file/the-same-title-gives-the-same-bytes", the_same_title_gives_the_same_bytes);
  g_test_add_func ("/packet-file/the-frame-is-that-of-the-video", the_frame_is_that_of_the_video);
  g_test_add_func ("/packet-file/a-failure-says-its-reason", a_failure_says_its_reason);
  g_test_add_func (
      "/packet-file/a-record-is-not-read-beyond-the-end", a_record_is_not_read_beyond_the_end);
  status = g_test_run ();
  clean_up ();
  return status;
}
