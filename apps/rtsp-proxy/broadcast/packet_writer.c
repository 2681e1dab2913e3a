// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/packet_writer.h"

#include <errno.h>
#include <gio/gio.h>
#include <string.h>
#include <unistd.h>

#include "rtp/rtp.h"
#include "window/blocks.h"

#define CHUNK_BYTES (1u << 20)
#define PACKETS_MAX (1u << 28) // of a track
#define MOMENTS_MAX (1u << 22) // different times of packets
#define SSRC 0x57454952        // of the first track
#define CONSTANT_NS 1500000    // how far a video frame of a constant rate is from its time at most
#define NETWORK_HEADERS (20 + 8) // bytes of IPv4 and UDP

// What had been written when the first packet of a time came.
typedef struct {
  gint64 at_ns;
  guint64 offset;
} Moment;

struct _PacketWriter {
  PacketFile *file;
  guint64 max_bytes, n_bytes, n_packets;
  guint8 *chunk; // the end of the file, which is not written yet
  gsize in_chunk;
  guint32 rtp_offsets[RELAY_MAX_TRACKS];
  gint clock_rates[RELAY_MAX_TRACKS];
  gint64 behind_ns; // by which packets are sent after the times of their RTP timestamps, at most
  GArray *moments;  // of Moment
  GArray *firsts;   // of guint32: for each moment, the next number of each track
  GArray *video;    // of gint64: times of the frames of the first video track
  gint video_track;
  GChecksum *sum;
};

static gint last_number; // atomic

PacketWriter *
packet_writer_new (const gchar *dir, guint64 max_bytes, GError **error)
{
  const int fd = weir_spill_open (dir);
  PacketWriter *self;

  if (fd < 0) {
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (-fd),
        "no file for packets can be made in %s: %s", dir, g_strerror (-fd));
    return NULL;
  }
  self = g_new0 (PacketWriter, 1);
  self->file = g_new0 (PacketFile, 1);
  g_atomic_ref_count_init (&self->file->refs);
  self->file->fd = fd;
  self->file->number = (guint32) g_atomic_int_add (&last_number, 1);
  self->max_bytes = max_bytes;
  self->chunk = g_malloc (CHUNK_BYTES);
  self->moments = g_array_new (FALSE, FALSE, sizeof (Moment));
  self->firsts = g_array_new (FALSE, FALSE, sizeof (guint32));
  self->video = g_array_new (FALSE, FALSE, sizeof (gint64));
  self->video_track = -1;
  self->sum = g_checksum_new (G_CHECKSUM_SHA256);
  return self;
}

void
packet_writer_free (PacketWriter *self)
{
  g_clear_pointer (&self->file, packet_file_unref);
  g_free (self->chunk);
  g_array_unref (self->moments);
  g_array_unref (self->firsts);
  g_array_unref (self->video);
  g_checksum_free (self->sum);
  g_free (self);
}

gboolean
packet_writer_add_track (PacketWriter *self, GstCaps *caps, GError **error)
{
  const guint n = self->file->n_tracks;
  const GstStructure *of = gst_caps_get_structure (caps, 0);
  const gchar *media = gst_structure_get_string (of, "media");

  if (n == RELAY_MAX_TRACKS || !media || !gst_structure_has_field (of, "payload")
      || !gst_structure_has_field (of, "clock-rate")
      || !gst_structure_get_uint (of, "timestamp-offset", &self->rtp_offsets[n])) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
        "track %u is one too many, or does not say how it is sent", n + 1);
    return FALSE;
  }
  gst_structure_get_int (of, "clock-rate", &self->clock_rates[n]);
  if (self->video_track < 0 && g_str_equal (media, "video"))
    self->video_track = (gint) n;
  self->file->tracks[n].caps = gst_caps_ref (caps);
  self->file->n_tracks++;
  return TRUE;
}

// ---- packets ----

static gboolean
flush (PacketWriter *self, GError **error)
{
  const guint8 *at = self->chunk;

  while (self->in_chunk > 0) {
    const gssize n = write (self->file->fd, at, self->in_chunk);

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      g_set_error (error, G_IO_ERROR, g_io_error_from_errno (n < 0 ? errno : EIO),
          "the packets cannot be written: %s", g_strerror (n < 0 ? errno : EIO));
      return FALSE;
    }
    at += n;
    self->in_chunk -= (gsize) n;
  }
  return TRUE;
}

// Begins a moment, unless the last one has the same time.
static void
note_time (PacketWriter *self, guint track, gint64 at_ns)
{
  const guint n = self->moments->len;
  const Moment moment = { at_ns, self->n_bytes };

  if ((gint) track == self->video_track
      && (self->video->len == 0
          || g_array_index (self->video, gint64, self->video->len - 1) < at_ns))
    g_array_append_val (self->video, at_ns);
  if (n > 0 && g_array_index (self->moments, Moment, n - 1).at_ns >= at_ns)
    return;
  g_array_append_val (self->moments, moment);
  for (guint i = 0; i < self->file->n_tracks; i++)
    g_array_append_val (self->firsts, self->file->tracks[i].n_packets);
}

static gboolean
has_room (PacketWriter *self, guint track, gsize length, GError **error)
{
  if (self->n_bytes + PACKET_RECORD_HEAD + length <= self->max_bytes
      && self->file->tracks[track].n_packets < PACKETS_MAX && self->moments->len < MOMENTS_MAX)
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
      "the title is too long: its packets need more than %" G_GUINT64_FORMAT " bytes, or it has "
      "more than %u in a track",
      self->max_bytes, PACKETS_MAX);
  return FALSE;
}

// Notes by how much a packet is sent after its time. With reordered frames, a container may count
// from the first one that is shown, which is decoded later than it would be shown.
static void
note_behind (PacketWriter *self, guint track, guint32 timestamp, gint64 at_ns)
{
  const gint64 rate = MAX (self->clock_rates[track], 1);
  const gint64 at =
      (gint64) gst_util_uint64_scale ((guint64) MAX (at_ns, 0), (guint64) rate, GST_SECOND);
  const gint64 behind = (gint32) ((guint32) at - timestamp);

  self->behind_ns = MAX (self->behind_ns, behind * (gint64) GST_SECOND / rate);
}

// Gives a packet the fields that are the same in each file.
static gboolean
renumber (PacketWriter *self, guint track, gint64 at_ns, guint8 *packet, gsize length)
{
  WeirRtp rtp;

  if (weir_rtp_parse (packet, length, &rtp) < 0)
    return FALSE;
  weir_rtp_set_seq (packet, (guint16) self->file->tracks[track].n_packets);
  weir_rtp_set_timestamp (packet, rtp.timestamp - self->rtp_offsets[track]);
  weir_rtp_set_ssrc (packet, SSRC + track);
  note_behind (self, track, rtp.timestamp - self->rtp_offsets[track], at_ns);
  return TRUE;
}

static void
put_head (guint8 *at, guint32 number, guint track, gsize length)
{
  const guint32 big_number = GUINT32_TO_BE (number);
  const guint16 big_track = GUINT16_TO_BE ((guint16) track);
  const guint16 big_length = GUINT16_TO_BE ((guint16) length);

  memcpy (at, &big_number, 4);
  memcpy (at + 4, &big_track, 2);
  memcpy (at + 6, &big_length, 2);
}

gboolean
packet_writer_add (PacketWriter *self, guint track, gint64 at_ns, GstBuffer *packet, GError **error)
{
  const gsize length = gst_buffer_get_size (packet);
  PacketTrack *of = &self->file->tracks[track];
  guint8 *at;

  if (!has_room (self, track, length, error))
    return FALSE;
  if (self->in_chunk + PACKET_RECORD_HEAD + length > CHUNK_BYTES && !flush (self, error))
    return FALSE;
  at = self->chunk + self->in_chunk;
  if (length <= G_MAXUINT16)
    gst_buffer_extract (packet, 0, at + PACKET_RECORD_HEAD, length);
  if (length > G_MAXUINT16 || !renumber (self, track, at_ns, at + PACKET_RECORD_HEAD, length)) {
    g_set_error (
        error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "a packet of track %u is malformed", track + 1);
    return FALSE;
  }
  note_time (self, track, at_ns);
  put_head (at, of->n_packets++, track, length);
  g_checksum_update (self->sum, at, (gssize) (PACKET_RECORD_HEAD + length));
  self->in_chunk += PACKET_RECORD_HEAD + length;
  self->n_bytes += PACKET_RECORD_HEAD + length;
  self->n_packets++;
  return TRUE;
}

// ---- frames ----

static gint
compare (gconstpointer a, gconstpointer b)
{
  const gint64 one = *(const gint64 *) a, other = *(const gint64 *) b;

  return (one > other) - (one < other);
}

// Returns the median time from one video frame to the next.
static gint64
median_step (const gint64 *times, guint n)
{
  g_autoptr (GArray) steps = g_array_sized_new (FALSE, FALSE, sizeof (gint64), n);

  for (guint i = 1; i < n; i++) {
    const gint64 step = times[i] - times[i - 1];

    g_array_append_val (steps, step);
  }
  g_array_sort (steps, compare);
  return g_array_index (steps, gint64, steps->len / 2);
}

// Returns the time of a video frame if all are at multiples of it, within the precision of file
// formats that count in ms; else 0. Frames may be missing.
static gint64
constant_frame (const GArray *video)
{
  const gint64 *times = (const gint64 *) (const void *) video->data;
  const gint64 step = video->len >= 3 ? median_step (times, video->len) : 0;
  gdouble frame;
  gint64 n = 0;

  if (step < 4 * CONSTANT_NS || step > (gint64) GST_SECOND)
    return 0;
  for (guint i = 1; i < video->len; i++)
    n += (times[i] - times[i - 1] + step / 2) / step;
  frame = (gdouble) (times[video->len - 1] - times[0]) / (gdouble) n;
  n = 0;
  for (guint i = 1; i < video->len; i++) {
    gdouble error;

    n += (times[i] - times[i - 1] + step / 2) / step;
    error = (gdouble) (times[i] - times[0]) - (gdouble) n * frame;
    if (error > CONSTANT_NS || error < -CONSTANT_NS)
      return 0;
  }
  return (gint64) (frame + 0.5);
}

// Frame 0 begins at the first packet or, if the rate is constant, so that video frames begin with
// frames.
static gint64
find_start (const PacketWriter *self)
{
  const gint64 first = g_array_index (self->moments, Moment, 0).at_ns;
  gint64 start = first;

  if (self->video->len > 0) {
    const gint64 ahead = g_array_index (self->video, gint64, 0) - first;
    const gint64 frame_ns = self->file->frame_ns;

    start -= (frame_ns - ahead % frame_ns) % frame_ns;
  }
  return start;
}

// A video frame may come up to CONSTANT_NS before its time.
static guint64
frame_at (const PacketWriter *self, gint64 start_ns, gint64 at_ns)
{
  return (guint64) (at_ns - start_ns + CONSTANT_NS) / (guint64) self->file->frame_ns;
}

// Sets the offset and the numbers at the start of all frames up to `to`.
static void
fill (PacketWriter *self, guint32 *frame, guint64 to, guint64 offset, const guint32 *firsts)
{
  PacketFile *file = self->file;

  for (; *frame <= to; ++*frame) {
    file->offset[*frame] = offset;
    for (guint i = 0; i < file->n_tracks; i++)
      file->tracks[i].first[*frame] = firsts[i];
  }
}

static void
make_index (PacketWriter *self, gint64 start_ns)
{
  PacketFile *file = self->file;
  guint32 ends[RELAY_MAX_TRACKS], frame = 0;

  file->offset = g_new (guint64, file->n_frames + 1);
  for (guint i = 0; i < file->n_tracks; i++) {
    file->tracks[i].first = g_new (guint32, file->n_frames + 1);
    ends[i] = file->tracks[i].n_packets;
  }
  for (guint i = 0; i < self->moments->len; i++) {
    const Moment *moment = &g_array_index (self->moments, Moment, i);

    fill (self, &frame, frame_at (self, start_ns, moment->at_ns), moment->offset,
        &g_array_index (self->firsts, guint32, i * file->n_tracks));
  }
  fill (self, &frame, file->n_frames, self->n_bytes, ends);
}

// Hashes the times of the frames, and what players are told.
static void
hash_index (PacketWriter *self)
{
  PacketFile *file = self->file;

  g_checksum_update (self->sum, (const guint8 *) &file->frame_ns, sizeof file->frame_ns);
  g_checksum_update (self->sum, (const guint8 *) file->offset,
      (gssize) ((file->n_frames + 1) * sizeof *file->offset));
  file->id = g_strndup (g_checksum_get_string (self->sum), 32);
}

PacketFile *
packet_writer_finish (PacketWriter *self, GError **error)
{
  PacketFile *file = self->file;
  const guint n = self->moments->len;
  gint64 start_ns;
  guint64 n_frames;

  if (n == 0) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "the title has no packets");
    return NULL;
  }
  file->frame_ns = constant_frame (self->video);
  if (file->frame_ns == 0)
    file->frame_ns = PACKET_FRAME_NS;
  start_ns = find_start (self);
  file->delay_ns = MAX (self->behind_ns - start_ns, 0);
  n_frames = frame_at (self, start_ns, g_array_index (self->moments, Moment, n - 1).at_ns) + 1;
  if (n_frames > PACKET_FRAMES_MAX) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
        "the title is too long: %" G_GUINT64_FORMAT " frames of %g ms, and at most %u", n_frames,
        (gdouble) file->frame_ns / 1e6, PACKET_FRAMES_MAX);
    return NULL;
  }
  if (!flush (self, error))
    return NULL;
  file->n_frames = (guint32) n_frames;
  file->block_frames = (guint32) MAX (GST_SECOND / (guint64) file->frame_ns, 1);
  file->n_blocks = (file->n_frames + file->block_frames - 1) / file->block_frames;
  make_index (self, start_ns);
  hash_index (self);
  file->rate = (guint64) ((gdouble) (self->n_bytes
                                     + self->n_packets * (NETWORK_HEADERS - PACKET_RECORD_HEAD))
                          * 8e9 / ((gdouble) n_frames * (gdouble) file->frame_ns));
  return g_steal_pointer (&self->file);
}
