// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/synced_sink.h"

#include "base/buffer_memory.h"
#include "base/log.h"

#define WAIT (2 * GST_SECOND)
#define HELD_BYTES (4 * 1024 * 1024) // of memory, of a track
#define STEP (40 * GST_MSECOND)      // sooner than that, sound ahead of the picture is noticed
#define NEAR (2 * GST_MSECOND)       // as exact as reports of cameras are
#define SLEW 1000                    // ns of media for each ns

typedef struct {
  GArray *held; // of RelayPacket, or NULL
  gsize held_bytes;
  guint run; // 0: none
  gboolean waits;
  gint64 offset, followed; // the latter is the time of the last packet before the offset was added
  gint64 end;              // of what was passed
  gboolean overlaps;       // packets up to `end` are dropped
} Track;

struct _SyncedSink {
  gatomicrefcount refs; // the owner's and the relay's
  Relay *relay;
  gchar *label;
  const RelaySink *functions;
  RelaySink own; // what the relay calls
  gpointer sink;
  LogLimit limit;
  // Each is used only in push(), which the relay calls for one packet of a track at a time.
  Track tracks[RELAY_MAX_TRACKS];
};

static void
begun (gpointer data, Relay *relay, GPtrArray *caps, gint64 start)
{
  SyncedSink *self = data;

  self->functions->begun (self->sink, relay, caps, start);
}

static gboolean
is_open (gpointer data)
{
  SyncedSink *self = data;

  return self->functions->is_open (self->sink);
}

// ---- times ----

static void
move (SyncedSink *self, guint index, gint64 offset)
{
  Track *track = &self->tracks[index];

  track->overlaps = offset < track->offset;
  track->offset = offset;
}

// Follows the reports.
static void
follow (SyncedSink *self, guint index, gint64 offset, gint64 time)
{
  Track *track = &self->tracks[index];
  gint64 error = offset - track->offset;
  gint64 most = MAX (time - track->followed, 0) / SLEW;

  if (ABS (error) > (gint64) STEP) {
    log_event_limited (&self->limit,
        "%s: track %u moves by %" G_GINT64_FORMAT " ms, by the sender reports", self->label, index,
        error / (gint64) GST_MSECOND);
    move (self, index, offset);
  } else if (ABS (error) > (gint64) NEAR) {
    track->offset += CLAMP (error, -most, most);
  }
  track->followed = MAX (track->followed, time);
}

// ---- packets ----

// Takes ownership of the packet's buffer.
static void
pass (SyncedSink *self, const RelayPacket *packet)
{
  Track *track = &self->tracks[packet->track];
  RelayPacket moved = *packet;

  moved.time += track->offset;
  if (track->overlaps && moved.time <= track->end) {
    gst_buffer_unref (packet->buffer);
    return;
  }
  track->overlaps = FALSE;
  track->end = MAX (track->end, moved.time);
  self->functions->push (self->sink, &moved);
}

static void
hold (Track *track, const RelayPacket *packet)
{
  RelayPacket held = *packet;

  held.more = TRUE;
  if (!track->held)
    track->held = g_array_new (FALSE, FALSE, sizeof (RelayPacket));
  g_array_append_val (track->held, held);
  track->held_bytes += buffer_memory (packet->buffer);
}

static void
pass_held (SyncedSink *self, Track *track)
{
  g_autoptr (GArray) held = g_steal_pointer (&track->held);

  track->held_bytes = 0;
  for (guint i = 0; held && i < held->len; i++)
    pass (self, &g_array_index (held, RelayPacket, i));
}

static gboolean
must_wait (const Track *track, const RelaySync *sync, gint64 now)
{
  return !sync->known && now - sync->opened < (gint64) WAIT && track->held_bytes < HELD_BYTES;
}

static void
push (gpointer data, const RelayPacket *packet)
{
  SyncedSink *self = data;
  Track *track = &self->tracks[packet->track];
  RelaySync sync;

  relay_get_sync (self->relay, &sync);
  if (sync.run != track->run) {
    pass_held (self, track);
    track->run = sync.run;
    track->waits = TRUE;
  }
  if (track->waits && must_wait (track, &sync, packet->now)) {
    hold (track, packet);
    return;
  }
  if (track->waits) {
    move (self, packet->track, sync.offsets[packet->track]);
    track->followed = packet->time;
    track->waits = FALSE;
  } else if (sync.known) {
    follow (self, packet->track, sync.offsets[packet->track], packet->time);
  }
  pass_held (self, track);
  pass (self, packet);
}

// ---- construction ----

static void
unref (SyncedSink *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  relay_unref (self->relay);
  g_free (self->label);
  g_free (self);
}

static void
ended (gpointer data)
{
  SyncedSink *self = data;

  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    GArray *held = self->tracks[i].held;

    for (guint k = 0; held && k < held->len; k++)
      gst_buffer_unref (g_array_index (held, RelayPacket, k).buffer);
    g_clear_pointer (&self->tracks[i].held, g_array_unref);
  }
  self->functions->ended (self->sink);
  unref (self);
}

SyncedSink *
synced_sink_add (
    Relay *relay, const gchar *label, const RelaySink *functions, gpointer sink, guint32 tracks)
{
  SyncedSink *self = g_new0 (SyncedSink, 1);

  g_atomic_ref_count_init (&self->refs);
  g_atomic_ref_count_inc (&self->refs);
  self->relay = relay_ref (relay);
  self->label = g_strdup (label);
  self->functions = functions;
  // A function that may be NULL says something by that.
  self->own = (RelaySink) { .begun = functions->begun ? begun : NULL,
    .push = push,
    .ended = ended,
    .is_open = functions->is_open ? is_open : NULL,
    .from_start = functions->from_start };
  self->sink = sink;
  self->limit = LOG_LIMIT_FAILURES;
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    self->tracks[i].end = G_MININT64;
  relay_add_sink (relay, &self->own, self, tracks, 0);
  return self;
}

void
synced_sink_remove (SyncedSink *self)
{
  relay_remove_sink (self->relay, self);
  unref (self);
}
