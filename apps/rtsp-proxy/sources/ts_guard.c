// SPDX-License-Identifier: LGPL-2.1-or-later

// tsdemux of GStreamer 1.22 has two assertions that a stream can trigger:
//
// - Before tsdemux knows the time it keeps packets, and the first of them must not be a PES packet
//   without a time. Only tsdemux knows when it forgets the time again, so it gets none of them.
// - An Opus descriptor has an unknown number of channels.
//
// It would also drop the data of such packets, although a picture may have several PES packets, and
// a time is needed every 0.7 s only. So a PES packet without a time becomes part of the one before
// it: its head becomes stuffing of the transport packet, and the next heads of that PID say no
// length, which ends a PES packet where the next one begins. A head that does not leave room for
// data gets an invalid start code instead; tsdemux then skips the packet.
//
// Buffers are not always aligned to packets, packets are not always 188 bytes long, and only the
// demultiplexer finds where a packet begins. So each byte that may begin a packet is treated as the
// beginning of one. The bytes of video often match the head of a PES packet without a time: a sync
// byte, and a start code at any distance behind it. They are not changed, as they are in no run of
// sync bytes.
//
// A change can make another one necessary: a byte of an Opus descriptor may also be one of a start
// code. So the data is checked again after each change.

#include "sources/ts_guard.h"

#include <string.h>

#include "base/log.h"
#include "bits/bytes.h"
#include "sources/ts_runs.h"

#define TS_PACKET 188
#define TS_SYNC 0x47
#define TS_ERROR 0x80
#define TS_START 0x40
#define TS_SCRAMBLED 0xc0
#define TS_PAYLOAD 0x10
#define TS_ADAPTATION 0x20
#define START_CODE 3 // bytes
#define PES_TIME 0x80
#define PES_HEAD 9 // bytes, and more as its last one says
#define N_PIDS 8192
// The descriptors of one elementary stream.
#define DESCRIPTORS_MAX 128
// A buffer that needs more rounds of changes was made to: all of its bytes become invalid.
#define ROUNDS_MAX 8

static LogLimit dropped = { .burst = 8, .interval_ms = 10000 };

typedef enum {
  VALID,
  INVALIDATE,
  MERGE, // with the PES packet before it
  TIMED,
  INCOMPLETE, // the rest of the packet is needed to decide
} Result;

typedef struct {
  gsize at;
  guint8 value;
} Change;

// A packet that may be changed, with offsets from its beginning.
typedef struct {
  guint pid;
  gsize payload;
  gsize head; // bytes of the PES head
} Found;

typedef struct {
  TsRuns runs;
  GArray *changes;
  gboolean pulls;             // the demultiplexer does, so a buffer may end before a packet
  guint64 offset;             // of the next buffer, if it continues the last one
  guint8 untimed[N_PIDS / 8]; // bits of the PIDs that had PES packets without a time
  guint n_dropped;            // PES packets
} Guard;

static gboolean
id_has_time (guint8 id)
{
  return !memchr ("\xbc\xbe\xbf\xf0\xf1\xf2\xf8\xff", id, 8);
}

// Checks the PES packet that may begin at `payload`. Sets `head` if it has no time, whatever
// follows.
static Result
check_pes (const guint8 *payload, gsize left, gboolean is_cut, gsize *head)
{
  static const guint8 start_code[START_CODE] = { 0, 0, 1 };

  for (gsize i = 0; i < MIN (left, START_CODE); i++) {
    if (payload[i] != start_code[i])
      return VALID;
  }
  if (left >= 8 && payload[7] & PES_TIME && id_has_time (payload[3]))
    return TIMED;
  if (left < PES_HEAD - 1)
    return is_cut ? INCOMPLETE : left == 0 ? VALID : INVALIDATE;
  *head = PES_HEAD + (left < PES_HEAD ? 0 : (gsize) payload[PES_HEAD - 1]);
  if (!id_has_time (payload[3]) || payload[6] >> 6 != 2)
    return INVALIDATE;
  if (*head < left)
    return MERGE;
  return is_cut ? INCOMPLETE : INVALIDATE;
}

// Checks a packet that may begin at `data`.
static Result
check_packet (const guint8 *data, gsize size, Found *found)
{
  WeirBytes b = weir_bytes (data, MIN (size, TS_PACKET));
  guint8 sync, start, pid, flags, adaptation = 0;

  weir_bytes_u8 (&b, &sync);
  weir_bytes_u8 (&b, &start);
  weir_bytes_u8 (&b, &pid);
  weir_bytes_u8 (&b, &flags);
  if (!b.failed && !(start & TS_START && flags & TS_PAYLOAD))
    return VALID;
  if (!b.failed && (start & TS_ERROR || flags & TS_SCRAMBLED)) // the demultiplexer drops it
    return VALID;
  if (flags & TS_ADAPTATION) {
    weir_bytes_u8 (&b, &adaptation);
    weir_bytes_skip (&b, adaptation);
  }
  if (b.failed)
    return size < TS_PACKET ? INCOMPLETE : VALID;
  found->pid = (start & 0x1fu) << 8 | pid;
  found->payload = (gsize) (b.at - data);
  return check_pes (b.at, weir_bytes_left (&b), size < TS_PACKET, &found->head);
}

// ---- changes ----

static void
change (Guard *self, const guint8 *data, gsize at, guint8 value)
{
  const Change made = { at, value };

  if (data[at] != value)
    g_array_append_val (self->changes, made);
}

static void
invalidate (Guard *self, const guint8 *data, gsize packet, const Found *found, gsize size)
{
  const gsize end = packet + MIN (size - packet, TS_PACKET);
  const gsize id = packet + found->payload + START_CODE;

  change (self, data, MIN (id, end) - 1, 0xff);
  if (id >= end || id_has_time (data[id]))
    self->n_dropped++;
}

static void
merge (Guard *self, const guint8 *data, gsize packet, const Found *found)
{
  const gsize first = packet + 4, end = packet + found->payload + found->head;

  self->untimed[found->pid / 8] |= (guint8) (1 << found->pid % 8);
  change (self, data, packet + 1, data[packet + 1] & (guint8) ~TS_START);
  change (self, data, packet + 3, data[packet + 3] | TS_ADAPTATION);
  change (self, data, first, (guint8) (end - first - 1));
  for (gsize at = packet + found->payload; at < end; at++) {
    if (at > first)
      change (self, data, at, at == first + 1 ? 0 : 0xff);
  }
}

// Lets a PES packet end where the next one begins, as packets without a time can follow.
static void
unbind (Guard *self, const guint8 *data, gsize packet, const Found *found)
{
  const gsize length = packet + found->payload + START_CODE + 1;

  change (self, data, length, 0);
  change (self, data, length + 1, 0);
}

static gboolean
opus_is_known (guint8 channels)
{
  return channels <= 8 || (channels >= 0x80 && channels <= 0x88);
}

// Finds the byte that gives the number of channels of an Opus stream, near the descriptor that
// names Opus.
static void
find_opus (const guint8 *data, gsize size, GArray *changes)
{
  static const guint8 opus[] = { 5, 4, 'O', 'p', 'u', 's' };
  const guint8 *at = data, *end = data + size;

  while ((at = memmem (at, (gsize) (end - at), opus, sizeof opus))) {
    const guint8 *first = data + MAX (at - data, DESCRIPTORS_MAX) - DESCRIPTORS_MAX;
    gsize length = (gsize) MIN (end - first, 2 * DESCRIPTORS_MAX);

    for (gsize i = 0; i + 4 <= length; i++) {
      if (first[i] == 0x7f && first[i + 2] == 0x80 && !opus_is_known (first[i + 3])) {
        Change change = { (gsize) (first - data) + i + 3, 0 };

        g_array_append_val (changes, change);
      }
    }
    at += sizeof opus;
  }
}

// Returns the number of bytes that were checked.
static gsize
find_changes (Guard *self, const guint8 *data, gsize size)
{
  const guint8 *at = data, *end = data + size;

  find_opus (data, size, self->changes);
  while ((at = memchr (at, TS_SYNC, (gsize) (end - at)))) {
    const gsize packet = (gsize) (at - data);
    Found found = { 0 };
    Result result = check_packet (at, size - packet, &found);

    if (result == INCOMPLETE && self->pulls)
      return packet;
    if (result == INCOMPLETE)
      result = found.head > 0 ? INVALIDATE : VALID;
    if (result == TIMED && !(self->untimed[found.pid / 8] >> found.pid % 8 & 1))
      result = VALID;
    if (result != VALID && ts_runs_may_begin (&self->runs, data, size, packet)) {
      if (result == INVALIDATE)
        invalidate (self, data, packet, &found, size);
      else if (result == MERGE)
        merge (self, data, packet, &found);
      else
        unbind (self, data, packet, &found);
    }
    at++;
  }
  return size;
}

static void
apply (guint8 *data, GArray *changes)
{
  for (guint i = 0; i < changes->len; i++) {
    const Change *change = &g_array_index (changes, Change, i);

    data[change->at] = change->value;
  }
  g_array_set_size (changes, 0);
}

// Makes the changes, and those that they make necessary. Returns the number of bytes that were
// checked.
static gsize
make_changes (Guard *self, guint8 *data, gsize size)
{
  gsize checked = size;

  for (guint round = 0; self->changes->len > 0; round++) {
    if (round == ROUNDS_MAX) {
      memset (data, 0xff, size);
      g_array_set_size (self->changes, 0);
      return size;
    }
    apply (data, self->changes);
    checked = find_changes (self, data, size);
  }
  return checked;
}

// Forgets the bytes before the buffer if it does not continue them.
static void
note_jump (Guard *self, GstBuffer *buffer)
{
  guint64 offset = GST_BUFFER_OFFSET (buffer);

  if (GST_BUFFER_IS_DISCONT (buffer)
      || (offset != GST_BUFFER_OFFSET_NONE && self->offset != GST_BUFFER_OFFSET_NONE
          && offset != self->offset))
    ts_runs_jump (&self->runs);
}

static GstPadProbeReturn
on_data (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  Guard *self = data;
  gsize size, checked;
  GstMapInfo map;

  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    return GST_PAD_PROBE_OK;
  note_jump (self, buffer);
  self->pulls = (info->type & GST_PAD_PROBE_TYPE_PULL) != 0;
  size = map.size;
  ts_runs_begin (&self->runs, map.data, size);
  checked = find_changes (self, map.data, size);
  if (self->changes->len > 0) {
    gst_buffer_unmap (buffer, &map);
    info->data = buffer = gst_buffer_make_writable (buffer);
    if (!gst_buffer_map (buffer, &map, GST_MAP_READWRITE)) {
      g_array_set_size (self->changes, 0);
      return GST_PAD_PROBE_DROP;
    }
    checked = make_changes (self, map.data, size);
  }
  // A demultiplexer that pulls continues where the buffer ends.
  if (checked == 0)
    checked = size;
  ts_runs_end (&self->runs, map.data, checked);
  gst_buffer_unmap (buffer, &map);
  if (checked < size) {
    info->data = buffer = gst_buffer_make_writable (buffer);
    gst_buffer_resize (buffer, 0, (gssize) checked);
  }
  self->offset = GST_BUFFER_OFFSET_IS_VALID (buffer) ? GST_BUFFER_OFFSET (buffer) + checked
                                                     : GST_BUFFER_OFFSET_NONE;
  return GST_PAD_PROBE_OK;
}

static void
guard_free (gpointer data)
{
  Guard *self = data;

  if (self->n_dropped > 0)
    log_event_limited (&dropped,
        "MPEG-TS: dropped %u PES packets without a timestamp (PTS): they could not be joined to "
        "the packets before them",
        self->n_dropped);
  g_array_unref (self->changes);
  g_free (self);
}

void
ts_guard_add (GstElement *demux)
{
  GstPad *pad = gst_element_get_static_pad (demux, "sink");
  Guard *self = g_new0 (Guard, 1);

  self->changes = g_array_new (FALSE, FALSE, sizeof (Change));
  self->offset = GST_BUFFER_OFFSET_NONE;
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_data, self, guard_free);
  gst_object_unref (pad);
}
