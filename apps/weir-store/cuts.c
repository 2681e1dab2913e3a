// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuts.h"

#include "bits/bytes.h"
#include "disks/index.h"

#include <string.h>

#define TS_BYTES 188
#define TS_SYNC 0x47
#define NO_PID 0xffff
#define NOWHERE G_MAXUINT64
#define PTS_NS(pts) ((pts) * 100000 / 9)

struct _Cuts {
  CutsKind kind;
  guint64 at; // bytes seen

  // MPEG-TS: the packet that is not complete, the PIDs of the first program's map and video, where
  // the tables begin that precede the next packet, and the last time with its wraps.
  guint8 packet[TS_BYTES];
  guint n_packet;
  guint16 map_pid, video_pid;
  guint64 tables_at;
  gint64 pts, first_pts;

  // H.264 and H.265: the last bytes, the header of the unit that has begun and its bytes still to
  // come, and where the access unit begins.
  guint64 last;
  guint header, n_wait;
  guint64 unit_at, access_at;
};

CutsKind
cuts_guess (const guint8 *bytes, gsize length, const gchar *caps)
{
  if (length > 2 * TS_BYTES && bytes[0] == TS_SYNC && bytes[TS_BYTES] == TS_SYNC
      && bytes[2 * TS_BYTES] == TS_SYNC)
    return CUTS_TS;
  if (length < 4 || bytes[0] != 0 || bytes[1] != 0
      || (bytes[2] != 1 && (bytes[2] || bytes[3] != 1)))
    return CUTS_NONE;
  if (g_str_has_prefix (caps, "video/x-h264"))
    return CUTS_H264;
  return g_str_has_prefix (caps, "video/x-h265") ? CUTS_H265 : CUTS_NONE;
}

Cuts *
cuts_new (CutsKind kind)
{
  Cuts *self = g_new0 (Cuts, 1);

  self->kind = kind;
  self->map_pid = self->video_pid = NO_PID;
  self->tables_at = self->access_at = NOWHERE;
  self->first_pts = -1;
  self->last = G_MAXUINT64;
  return self;
}

void
cuts_free (Cuts *self)
{
  g_free (self);
}

static void
add_keyframe (GArray *keyframes, guint64 offset, gint64 time_ns)
{
  CutsKeyframe keyframe = { offset, time_ns };

  g_array_append_val (keyframes, keyframe);
}

/* MPEG-TS */

// Moves past the adaptation field. Returns its flags.
static guint8
read_adaptation (WeirBytes *b, guint8 control)
{
  guint8 length = 0, flags = 0;

  if (!(control & 0x20) || !weir_bytes_u8 (b, &length) || length == 0)
    return 0;
  weir_bytes_u8 (b, &flags);
  weir_bytes_skip (b, length - 1);
  return flags;
}

// Moves to the body of a section that begins in this packet, and reads its length.
static gboolean
read_section (WeirBytes *b, guint8 table, guint16 *length)
{
  guint8 pointer, id;

  if (!weir_bytes_u8 (b, &pointer) || !weir_bytes_skip (b, pointer) || !weir_bytes_u8 (b, &id)
      || id != table || !weir_bytes_u16 (b, length) || !weir_bytes_skip (b, 5))
    return FALSE;
  *length &= 0xfff;
  return *length > 9;
}

static void
read_programs (Cuts *self, WeirBytes b)
{
  guint16 length, program, pid;

  if (!read_section (&b, 0, &length))
    return;
  for (guint16 at = 9; at + 4 <= length; at += 4) {
    if (!weir_bytes_u16 (&b, &program) || !weir_bytes_u16 (&b, &pid))
      return;
    if (program != 0) {
      self->map_pid = pid & 0x1fff;
      return;
    }
  }
}

static gboolean
is_video (guint8 type)
{
  // MPEG-1, MPEG-2, MPEG-4, H.264, SVC, JPEG 2000, H.265, H.266
  static const guint8 types[] = { 0x01, 0x02, 0x10, 0x1b, 0x1f, 0x21, 0x24, 0x33 };

  return memchr (types, type, sizeof types) != NULL;
}

static void
read_map (Cuts *self, WeirBytes b)
{
  guint16 length, pid, info;
  guint8 type;

  if (!read_section (&b, 2, &length) || !weir_bytes_skip (&b, 2) || !weir_bytes_u16 (&b, &info)
      || !weir_bytes_skip (&b, info & 0xfff))
    return;
  for (guint at = 13 + (info & 0xfffu); at + 5 <= length; at += 5 + (info & 0xfffu)) {
    if (!weir_bytes_u8 (&b, &type) || !weir_bytes_u16 (&b, &pid) || !weir_bytes_u16 (&b, &info)
        || !weir_bytes_skip (&b, info & 0xfff))
      return;
    if (is_video (type)) {
      self->video_pid = pid & 0x1fff;
      return;
    }
  }
}

// Reads the presentation time of a PES packet, without its wraps. Returns -1 if it has none.
static gint64
read_pts (WeirBytes b)
{
  guint64 begin, pts;
  guint16 flags;
  guint32 start;

  if (!weir_bytes_u32 (&b, &start) || start >> 8 != 1 || !weir_bytes_skip (&b, 2)
      || !weir_bytes_u16 (&b, &flags) || !(flags & 0x80) || !weir_bytes_skip (&b, 1)
      || !weir_bytes_number (&b, 5, &begin))
    return -1;
  pts = (begin >> 33 & 7) << 30 | (begin >> 17 & 0x7fff) << 15 | (begin >> 1 & 0x7fff);
  return (gint64) pts;
}

// Returns the time of a keyframe in ns since the first one.
static gint64
time_of (Cuts *self, gint64 pts)
{
  gint64 wrap = G_GINT64_CONSTANT (1) << 33, step;

  if (pts < 0)
    return WEIR_INDEX_NO_TIME;
  if (self->first_pts < 0) {
    self->first_pts = self->pts = pts;
  } else {
    step = (pts - self->pts) & (wrap - 1);
    self->pts += step < wrap / 2 ? step : step - wrap;
  }
  return PTS_NS (self->pts - self->first_pts);
}

static void
read_packet (Cuts *self, guint64 offset, GArray *keyframes)
{
  WeirBytes b = weir_bytes (self->packet, TS_BYTES);
  guint8 sync, control, flags;
  gboolean begins;
  guint16 pid;

  weir_bytes_u8 (&b, &sync);
  weir_bytes_u16 (&b, &pid);
  weir_bytes_u8 (&b, &control);
  if (sync != TS_SYNC) {
    self->kind = CUTS_NONE; // lost: the rest is cut by size
    return;
  }
  begins = (pid & 0x4000) != 0;
  pid &= 0x1fff;
  flags = read_adaptation (&b, control);
  if (pid <= 0x1f || pid == self->map_pid) {
    if (begins && pid == 0)
      read_programs (self, b);
    else if (begins && pid == self->map_pid)
      read_map (self, b);
    if (self->tables_at == NOWHERE)
      self->tables_at = offset;
    return;
  }
  if (pid == self->video_pid && begins && flags & 0x40)
    add_keyframe (keyframes, self->tables_at != NOWHERE ? self->tables_at : offset,
        time_of (self, read_pts (b)));
  self->tables_at = NOWHERE;
}

static void
feed_ts (Cuts *self, const guint8 *bytes, gsize length, GArray *keyframes)
{
  for (gsize at = 0; at < length && self->kind == CUTS_TS;) {
    gsize n = MIN (length - at, TS_BYTES - self->n_packet);

    memcpy (self->packet + self->n_packet, bytes + at, n);
    self->n_packet += (guint) n;
    at += n;
    if (self->n_packet == TS_BYTES) {
      read_packet (self, self->at + at - TS_BYTES, keyframes);
      self->n_packet = 0;
    }
  }
}

/* H.264 and H.265 */

typedef enum { UNIT_OTHER, UNIT_FIRST, UNIT_SLICE, UNIT_KEYFRAME } Unit;

static Unit
kind_of (const Cuts *self, guint8 after)
{
  guint type;

  if (self->kind == CUTS_H264) {
    type = self->header & 31;
    // Prefix units and what may begin an access unit; slices, whose first_mb_in_slice is 0 if the
    // first bit is set (H.264, 7.4.1.2.3).
    if ((type >= 6 && type <= 9) || (type >= 14 && type <= 18))
      return UNIT_FIRST;
    return type == 5 && after >> 7  ? UNIT_KEYFRAME
           : type >= 1 && type <= 5 ? UNIT_SLICE
                                    : UNIT_OTHER;
  }
  type = self->header >> 1 & 63;
  if ((type >= 32 && type <= 35) || type == 39 || (type >= 41 && type <= 44)
      || (type >= 48 && type <= 55))
    return UNIT_FIRST;
  return type >= 16 && type <= 21 && after >> 7 ? UNIT_KEYFRAME
         : type < 32                            ? UNIT_SLICE
                                                : UNIT_OTHER;
}

static void
end_of_header (Cuts *self, guint8 after, GArray *keyframes)
{
  Unit unit = kind_of (self, after);

  if (unit == UNIT_FIRST && self->access_at == NOWHERE)
    self->access_at = self->unit_at;
  if (unit == UNIT_KEYFRAME)
    add_keyframe (keyframes, self->access_at != NOWHERE ? self->access_at : self->unit_at,
        WEIR_INDEX_NO_TIME);
  if (unit == UNIT_KEYFRAME || unit == UNIT_SLICE)
    self->access_at = NOWHERE;
}

static void
feed_units (Cuts *self, const guint8 *bytes, gsize length, GArray *keyframes)
{
  for (gsize i = 0; i < length; i++) {
    if (self->n_wait > 0 && --self->n_wait == 0)
      end_of_header (self, bytes[i], keyframes);
    self->last = self->last << 8 | bytes[i];
    if ((self->last & 0xffffff00) != 0x100)
      continue;
    self->header = bytes[i];
    self->n_wait = self->kind == CUTS_H264 ? 1 : 2;
    // The start code has three bytes, or four.
    self->unit_at = self->at + i - 3 - ((self->last >> 32 & 0xff) == 0 ? 1 : 0);
  }
}

void
cuts_feed (Cuts *self, const guint8 *bytes, gsize length, GArray *keyframes)
{
  if (self->kind == CUTS_TS)
    feed_ts (self, bytes, length, keyframes);
  else if (self->kind != CUTS_NONE)
    feed_units (self, bytes, length, keyframes);
  self->at += length;
}
