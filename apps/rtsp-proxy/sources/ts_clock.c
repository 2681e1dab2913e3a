// SPDX-License-Identifier: LGPL-2.1-or-later

// tsdemux fits the sender's clock (PCR) to the arrival times of its packets, and adapts fast while
// it has few samples. If a sender begins with a burst, as FFmpeg 7 does, or if packets are delayed
// on the way, tsdemux outputs timestamps that go back. So this file gives tsdemux times that
// advance like the sender's clock, and that approach the arrival times only as fast as clocks can
// differ.

#include "sources/ts_clock.h"

#include "bits/bytes.h"

#define TS_PACKET 188
#define TS_SYNC 0x47
#define TS_ADAPTATION 0x20
#define TS_PCR 0x10
#define TICKS_PER_SECOND 27000000
#define PCR_RANGE (300 * (G_GUINT64_CONSTANT (1) << 33))
// The shift shrinks by at most 1/200 of the time that passes.
#define MAX_SLEW 200
// After a larger gap in arrival times, or a larger jump of the PCR, the clock starts again.
#define MAX_GAP GST_SECOND
// A PID that has more PCR in a row than this has replaced the one before, as after a new table: all
// of them come every 100 ms (ISO 13818-1, 2.7.2). Several programs send theirs in turn.
#define MAX_OTHERS 3

typedef struct {
  guint16 pid;
  guint64 ticks;
} Pcr;

typedef struct {
  gboolean known;
  guint n_others; // PCR in a row of one other PID
  Pcr other;      // the first of them
  GstClockTime other_arrived;
  Pcr last;
  GstClockTime arrived; // arrival of `last`
  gint64 shift;         // timestamp given to tsdemux - arrival time
} Clock;

// Returns FALSE if the packet has no PCR.
static gboolean
read_pcr (const guint8 *packet, Pcr *pcr)
{
  WeirBytes b = weir_bytes (packet, TS_PACKET);
  guint8 sync, flags, length, fields;
  guint64 base;
  guint16 extension;

  weir_bytes_u8 (&b, &sync);
  weir_bytes_u16 (&b, &pcr->pid);
  weir_bytes_u8 (&b, &flags);
  weir_bytes_u8 (&b, &length);
  weir_bytes_u8 (&b, &fields);
  if (sync != TS_SYNC || !(flags & TS_ADAPTATION) || length < 7 || !(fields & TS_PCR))
    return FALSE;
  pcr->pid &= 0x1fff;
  weir_bytes_number (&b, 4, &base);
  weir_bytes_u16 (&b, &extension);
  pcr->ticks = (base << 1 | extension >> 15) * 300 + (extension & 0x1ff);
  return TRUE;
}

// Notes a PCR of another PID than the last one's. If that PID has replaced it, goes on with the
// first PCR of that PID. The packets since then have had the same shift.
static void
note_other (Clock *self, const Pcr *pcr, GstClockTime now)
{
  if (self->n_others == 0 || pcr->pid != self->other.pid) {
    self->n_others = 0;
    self->other = *pcr;
    self->other_arrived = now;
  }
  if (++self->n_others <= MAX_OTHERS)
    return;
  self->n_others = 0;
  self->last = self->other;
  self->arrived = self->other_arrived;
}

// Finds the first PCR of the PID of the last PCR. Finds a PCR of any PID if that PID has been
// silent for MAX_GAP, or if there was no PCR before.
static gboolean
find_pcr (Clock *self, GstBuffer *buffer, GstClockTime now, Pcr *pcr)
{
  gboolean any = !self->known || now < self->arrived || now - self->arrived > MAX_GAP;
  gboolean found = FALSE;
  GstMapInfo map;

  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    return FALSE;
  for (gsize at = 0; !found && at + TS_PACKET <= map.size; at += TS_PACKET) {
    if (!read_pcr (map.data + at, pcr))
      continue;
    if (!any && pcr->pid != self->last.pid)
      note_other (self, pcr, now);
    found = any || pcr->pid == self->last.pid;
  }
  gst_buffer_unmap (buffer, &map);
  return found;
}

static void
take_pcr (Clock *self, const Pcr *pcr, GstClockTime now)
{
  GstClockTime passed = gst_util_uint64_scale (
      (pcr->ticks + PCR_RANGE - self->last.ticks) % PCR_RANGE, GST_SECOND, TICKS_PER_SECOND);
  GstClockTime elapsed = now - self->arrived;
  gint64 most = (gint64) (passed / MAX_SLEW);

  if (self->known && pcr->pid == self->last.pid && now >= self->arrived
      && passed <= elapsed + MAX_GAP)
    self->shift += (gint64) passed - (gint64) elapsed;
  else
    self->shift = 0;
  if (self->shift < -(gint64) MAX_GAP)
    self->shift = 0;
  self->shift -= CLAMP (self->shift, -most, most);
  *self = (Clock) { .known = TRUE, .last = *pcr, .arrived = now, .shift = self->shift };
}

static GstPadProbeReturn
on_data (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  GstClockTime now = GST_BUFFER_DTS_OR_PTS (buffer);
  Clock *self = data;
  Pcr pcr;

  if (!GST_CLOCK_TIME_IS_VALID (now))
    return GST_PAD_PROBE_OK;
  if (find_pcr (self, buffer, now, &pcr))
    take_pcr (self, &pcr, now);
  buffer = gst_buffer_make_writable (buffer);
  now = (GstClockTime) MAX ((gint64) now + self->shift, 0);
  GST_BUFFER_DTS (buffer) = GST_BUFFER_PTS (buffer) = now;
  info->data = buffer;
  return GST_PAD_PROBE_OK;
}

void
ts_clock_add (GstElement *demux)
{
  GstPad *pad = gst_element_get_static_pad (demux, "sink");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_data, g_new0 (Clock, 1), g_free);
  gst_object_unref (pad);
}
