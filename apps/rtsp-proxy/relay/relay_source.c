// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/relay_private.h"

// A new SSRC takes over a track after the old SSRC has been silent for this long. A stray packet,
// or two senders at once, must not make the numbers alternate.
#define SSRC_SILENCE (100 * GST_MSECOND)
// RTP-Info that is further than this from the first packet is ignored.
#define BASE_TOLERANCE_S 10

// ---- callbacks to the owner ----

typedef struct {
  RelaySource *source;
  gboolean flows;
  RelayTracks tracks;
} Notice;

static gboolean
notify_owner (gpointer data)
{
  Notice *notice = data;
  RelaySource *source = notice->source;

  if (source->callbacks && notice->flows)
    source->callbacks->flows (source->owner);
  else if (source->callbacks)
    source->callbacks->begun (source->owner, notice->tracks);
  return G_SOURCE_REMOVE;
}

static void
notice_free (gpointer data)
{
  relay_source_unref (((Notice *) data)->source);
  g_free (data);
}

static void
post (RelaySource *self, gboolean flows, RelayTracks tracks)
{
  Notice *notice = g_new (Notice, 1);

  *notice = (Notice) { relay_source_ref (self), flows, tracks };
  g_idle_add_full (G_PRIORITY_DEFAULT, notify_owner, notice, notice_free);
}

// ---- numbers; with the lock held ----

gint64
relay_next_start (Relay *relay, gint64 now)
{
  gint64 end = 0;

  if (relay->last_arrival == 0)
    return 0;
  for (guint i = 0; i < relay->n_tracks; i++)
    end = MAX (end, relay_track_end (&relay->tracks[i]));
  return end + MAX (now - relay->last_arrival, (gint64) RELAY_SPLICE_GAP);
}

void
relay_drop_overlap (Relay *relay)
{
  for (guint i = 0; i < relay->n_tracks; i++) {
    relay->tracks[i].resumes = relay->tracks[i].splice.n_runs > 0;
    relay->tracks[i].resume_after = relay_track_end (&relay->tracks[i]);
  }
}

// If the origin is the same as before, the run continues in the origin's time. If all media of the
// relay come from one origin, the relay has that origin's time.
gint64
relay_source_find_start (RelaySource *self, gint64 now)
{
  Relay *relay = self->relay;

  if (self->pinned) {
    self->pinned = FALSE;
    return self->pin;
  }
  if (self->origin && relay->last_arrival == 0)
    return self->start;
  if (!self->origin || self->origin != relay->origin)
    return relay_next_start (relay, now);
  relay_drop_overlap (relay);
  return self->start + relay->origin_offset;
}

gint64
relay_ticks_from (guint64 base, guint32 timestamp)
{
  return (gint32) (timestamp - (guint32) base);
}

void
relay_source_open_run (RelaySource *self, gint64 start, gint64 now, gint64 tolerance_s)
{
  Relay *relay = self->relay;

  self->run_open = TRUE;
  self->tolerance_s = tolerance_s;
  self->run_start = start;
  self->run_arrival = now;
  relay->n_runs++;
  relay->origin = self->origin;
  relay->origin_offset = start - self->start;
}

// Returns the RTP timestamp of a track at the start of the run, by the arrival of a packet at
// `now`; by the sender reports if they agree within 1 s.
static guint32
find_base (RelaySource *self, guint index, const WeirRtp *rtp, gint64 now)
{
  guint64 rate = self->relay->tracks[index].splice.clock_rate;
  guint64 reported = self->tracks[index].base;
  guint64 since = (guint64) MAX (now - self->run_arrival, 0);
  guint32 base = rtp->timestamp - (guint32) gst_util_uint64_scale (since, rate, GST_SECOND);

  if (reported != RELAY_NO_BASE && ABS (relay_ticks_from (reported, base)) <= (gint64) rate)
    return (guint32) reported;
  return base;
}

static void
begin_track (RelaySource *self, guint index, const WeirRtp *rtp, gint64 now, guint64 base)
{
  RelayTrack *track = &self->relay->tracks[index];
  guint32 rate = track->splice.clock_rate;

  if (!self->run_open)
    relay_source_open_run (self, relay_source_find_start (self, now), now, BASE_TOLERANCE_S);
  if (base != RELAY_NO_BASE && !self->origin
      && ABS (relay_ticks_from (base, rtp->timestamp)) > (gint64) rate * self->tolerance_s)
    base = RELAY_NO_BASE;
  self->tracks[index].stated = base != RELAY_NO_BASE;
  if (self->place.known && self->place.placed[index]) {
    base = self->place.bases[index];
    self->tracks[index].stated = self->place.stated[index];
  }
  if (base == RELAY_NO_BASE)
    base = find_base (self, index, rtp, now);
  weir_splice_begin (&track->splice, (guint32) base, self->run_start - self->offsets[index]);
  self->tracks[index].alive = TRUE;
  self->tracks[index].ssrc = rtp->ssrc;
  if (self->is_clip)
    relay_insert_keep_clock (self, index);
}

// Handles a new SSRC within a run: splices this track only.
static void
replace_ssrc (RelaySource *self, guint index, const WeirRtp *rtp, gint64 now)
{
  Relay *relay = self->relay;
  WeirSplice *splice = &relay->tracks[index].splice;
  gint64 start = relay_track_end (&relay->tracks[index])
                 + MAX (now - relay->last_arrival, (gint64) RELAY_SPLICE_GAP);

  self->tracks[index].ssrc = rtp->ssrc;
  self->tracks[index].ntp.known = FALSE;
  self->tracks[index].stated = FALSE;
  weir_splice_begin (splice, rtp->timestamp, start);
}

typedef struct {
  guint16 seq;
  guint32 timestamp;
  gint64 time;
} Numbers;

// Gives a packet of a source that catches up its compressed time.
static void
compress (RelaySource *self, guint index, Numbers *to)
{
  RelayTrack *track = &self->relay->tracks[index];
  gint64 time = relay_compress (self, index, to->time);

  if (time == to->time)
    return;
  to->time = time;
  to->timestamp = weir_splice_timestamp_at (&track->splice, time);
  track->sent_until = MAX (track->sent_until, time);
}

// Sets the outgoing numbers of a packet. Returns FALSE if the packet is dropped.
static gboolean
renumber (RelaySource *self, guint index, const WeirRtp *rtp, gint64 now, guint64 base, Numbers *to)
{
  Relay *relay = self->relay;
  RelayTrack *track = &relay->tracks[index];
  SourceTrack *from = &self->tracks[index];
  gboolean counted;
  gint64 last;

  if (!from->alive) {
    begin_track (self, index, rtp, now, base);
  } else if (rtp->ssrc != from->ssrc) {
    if (now - from->last_arrival < (gint64) SSRC_SILENCE) {
      relay->stats.n_stale++;
      return FALSE;
    }
    replace_ssrc (self, index, rtp, now);
  }
  from->last_arrival = now;
  to->time = weir_splice_time (&track->splice, rtp->timestamp);
  if (track->resumes && to->time <= track->resume_after + (gint64) RELAY_SAME_INSTANT) {
    relay->stats.n_stale++;
    return FALSE;
  }
  track->resumes = FALSE;
  counted = track->splice.seq_known;
  last = track->splice.last_seq;
  if (weir_splice_map (&track->splice, rtp->seq, rtp->timestamp, &to->seq, &to->timestamp) < 0) {
    relay->stats.n_stale++;
    return FALSE;
  }
  compress (self, index, to);
  if (counted)
    relay->n_missing += track->splice.last_seq - last - 1;
  relay->stats.n_lost = MAX (relay->stats.n_lost, (guint64) MAX (relay->n_missing, 0));
  return TRUE;
}

// ---- packets; with the lock held ----

static void
write_header (RelaySource *self, guint index, const WeirRtp *rtp, const Numbers *to, guint8 *data)
{
  RelayTrack *track = &self->relay->tracks[index];

  weir_rtp_set_seq (data, to->seq);
  weir_rtp_set_timestamp (data, to->timestamp);
  weir_rtp_set_ssrc (data, track->ssrc);
  if (rtp->pt == self->tracks[index].payload && track->payload >= 0)
    weir_rtp_set_pt (data, (guint8) track->payload);
}

void
relay_source_send (
    RelaySource *self, guint index, GstBuffer *packet, gint64 arrival, gint64 now, guint64 base)
{
  Relay *relay = self->relay;
  GstMapInfo map;
  WeirRtp rtp;
  Numbers to;
  gboolean sent = FALSE;

  if (!gst_buffer_map (packet, &map, GST_MAP_READWRITE)) {
    gst_buffer_unref (packet);
    return;
  }
  relay->stats.n_packets++;
  relay->stats.n_bytes += map.size;
  if (index >= relay->n_tracks || weir_rtp_parse (map.data, map.size, &rtp) < 0) {
    relay->stats.n_bad++;
  } else if (renumber (self, index, &rtp, arrival, base, &to)) {
    write_header (self, index, &rtp, &to, map.data);
    relay->tracks[index].mid_frame = !rtp.marker;
    if (relay->tracks[index].sets)
      relay_sets_take (relay->tracks[index].sets, map.data + rtp.payload_offset, rtp.payload_length,
          &relay->tracks[index].caps);
    relay->last_arrival = now;
    sent = TRUE;
  }
  gst_buffer_unmap (packet, &map);
  if (!sent) {
    gst_buffer_unref (packet);
    return;
  }
  relay_queue (relay, index, packet, now, to.time);
  if (!self->flows) {
    self->flows = TRUE;
    post (self, TRUE, RELAY_TRACKS_SAME);
  }
}

// Keeps a packet that is not sent yet, and sends those that are due. Takes ownership of `packet`.
// Returns FALSE if the packet is to be sent at once; then the caller still owns it.
static gboolean
keep (RelaySource *self, guint index, GstBuffer *packet, gint64 now, guint64 base)
{
  Relay *relay = self->relay;
  gboolean waits;

  if (!self->standby)
    return FALSE;
  if (self == relay->next) {
    standby_push (self->standby, index, packet, now, base);
    if (relay->next_is_warm && standby_is_full (self->standby, now))
      standby_clear (self->standby);
    return TRUE;
  }
  if (self != relay->current)
    return FALSE;
  waits = index == self->key_track;
  if (waits)
    standby_append (self->standby, index, packet, now, base);
  relay_catch_up (self, now);
  relay_drain_all (relay);
  return waits;
}

static void
push (RelaySource *self, guint index, GstBuffer *packet, gint64 now, guint64 base, gboolean more)
{
  Relay *relay = self->relay;
  RelayKeyHandler *handler, *clip = NULL;
  guint key = 0;
  gboolean switched, waited;

  if (index >= RELAY_MAX_TRACKS) {
    gst_buffer_unref (packet);
    return;
  }
  packet = gst_buffer_make_writable (packet);
  g_mutex_lock (&relay->lock);
  if (!self->born)
    self->born = now;
  waited = !self->tracks[index].alive && self->tracks[index].ntp.known;
  if (keep (self, index, packet, now, base))
    packet = NULL;
  switched = relay_is_switch_time (relay, index, self == relay->current ? packet : NULL, now);
  if (switched)
    relay_switch (relay, now);
  if (packet && relay->insert && self == relay->current && self->caps) {
    clip = relay_insert_pass (self, index, g_steal_pointer (&packet), now, base, &key);
  } else if (packet && self == relay->current && self->caps) {
    relay_source_send (self, index, g_steal_pointer (&packet), now, now, base);
    if (!more)
      relay_drain (relay, index);
  } else if (packet) {
    relay->stats.n_idle++;
  }
  if (switched)
    relay_drain_all (relay);
  waited = waited && self->tracks[index].alive;
  handler = relay_take_key_request (relay, index, now);
  g_mutex_unlock (&relay->lock);
  relay_pass_key_request (handler, index, now);
  relay_pass_key_request (clip, key, now);
  gst_clear_buffer (&packet);
  if (switched)
    relay_pass_all_ntp (relay);
  else if (waited) // the report came before the track's first packet
    relay_pass_ntp (relay, index);
}

void
relay_push (RelaySource *self, guint index, GstBuffer *packet, gint64 now, guint64 base)
{
  push (self, index, packet, now, base, FALSE);
}

void
relay_push_more (RelaySource *self, guint index, GstBuffer *packet, gint64 now, guint64 base)
{
  push (self, index, packet, now, base, TRUE);
}

void
relay_settle (RelaySource *self, guint index)
{
  Relay *relay = self->relay;

  g_mutex_lock (&relay->lock);
  if (index < relay->n_tracks)
    relay_drain (relay, index);
  g_mutex_unlock (&relay->lock);
}

// ---- runs ----

static void
begin_run (RelaySource *self)
{
  self->run_open = FALSE;
  self->flows = FALSE;
  self->born = 0;
  self->catch_up.rate = 0;
  self->place.known = self->pinned = FALSE;
  for (guint i = 0; i < self->caps->len && i < RELAY_MAX_TRACKS; i++) {
    GstStructure *s = gst_caps_get_structure (g_ptr_array_index (self->caps, i), 0);
    SourceTrack *track = &self->tracks[i];

    *track = (SourceTrack) { .payload = -1, .base = RELAY_NO_BASE };
    gst_structure_get_int (s, "payload", &track->payload);
  }
}

static RelayTracks
compare_tracks (Relay *relay, GPtrArray *caps)
{
  if (relay->n_tracks == 0)
    return RELAY_TRACKS_FIRST;
  return relay_has_tracks (relay, caps) ? RELAY_TRACKS_SAME : RELAY_TRACKS_CHANGED;
}

// Makes the source the current one, at once. Call with the lock held.
static RelayTracks
take (RelaySource *self)
{
  Relay *relay = self->relay;
  RelayTracks tracks = compare_tracks (relay, self->caps);

  relay_insert_rearm (relay);
  if (relay->current != self && relay->current) {
    relay->stats.n_switches++;
    g_clear_pointer (&relay->current->standby, standby_free);
  }
  relay->current = self;
  if (relay->next == self)
    relay->next = NULL;
  g_clear_pointer (&self->standby, standby_free);
  if (tracks != RELAY_TRACKS_SAME) {
    relay_set_tracks (relay, self->caps);
    relay_insert_rearm (relay);
    relay_stand_by (relay);
  }
  relay_hold (relay);
  begin_run (self);
  // Relays behind this one read the origin before the first packet.
  if (self->origin && relay->last_arrival == 0) {
    relay->origin = self->origin;
    relay->origin_offset = 0;
  }
  return tracks;
}

static RelayTracks
begin_source (RelaySource *self, GPtrArray *caps, Relay *from, guint64 origin, gint64 start)
{
  Relay *relay = self->relay;
  RelayTracks tracks;
  gboolean current;
  Relay *old;

  g_mutex_lock (&relay->lock);
  old = self->from;
  self->from = from ? relay_ref (from) : NULL;
  g_clear_pointer (&self->caps, g_ptr_array_unref);
  self->caps = g_ptr_array_ref (caps);
  self->origin = origin;
  self->start = start;
  tracks = compare_tracks (relay, caps);
  current = self == relay->current || (!relay->current && !relay->next && !self->is_clip);
  if (current) {
    take (self);
  } else {
    begin_run (self);
    if (self == relay->next)
      relay_stand_by (relay);
  }
  g_mutex_unlock (&relay->lock);
  g_clear_pointer (&old, relay_unref);
  if (current && tracks != RELAY_TRACKS_SAME)
    relay_begin_sinks (relay);
  post (self, FALSE, tracks);
  return tracks;
}

RelayTracks
relay_source_begin (RelaySource *self, GPtrArray *caps)
{
  return begin_source (self, caps, NULL, 0, 0);
}

RelayTracks
relay_source_begin_from (RelaySource *self, GPtrArray *caps, Relay *from, gint64 start)
{
  gint64 offset;
  guint64 origin = relay_get_origin (from, &offset);

  return begin_source (self, caps, from, origin, start - offset);
}

void
relay_prefer (Relay *relay, RelaySource *source)
{
  gboolean first = FALSE;

  g_mutex_lock (&relay->lock);
  // A warm source takes over at a fresh join point: the current source still sends.
  if (source && source == relay->next && !(relay->next_is_warm && relay_has_join (relay, source))) {
    relay->next_is_warm = FALSE;
    g_mutex_unlock (&relay->lock);
    return;
  }
  if (relay->next)
    g_clear_pointer (&relay->next->standby, standby_free);
  relay->next = NULL;
  relay->next_is_warm = FALSE;
  if (source && source != relay->current) {
    // Without tracks, the current source has not begun.
    first = relay->n_tracks == 0;
    if (first)
      relay->current = source;
    else
      relay->next = source;
    relay_stand_by (relay);
    if (first && source->caps)
      take (source);
  }
  g_mutex_unlock (&relay->lock);
  if (first && source->caps)
    relay_begin_sinks (relay);
}

RelayTracks
relay_take (Relay *relay, RelaySource *source)
{
  RelayTracks tracks = RELAY_TRACKS_FIRST;
  gboolean begun;

  g_mutex_lock (&relay->lock);
  begun = source->caps != NULL;
  if (begun)
    tracks = take (source);
  else
    relay->current = source;
  g_mutex_unlock (&relay->lock);
  if (begun && tracks != RELAY_TRACKS_SAME)
    relay_begin_sinks (relay);
  return tracks;
}

gboolean
relay_is_current (Relay *relay, RelaySource *source)
{
  gboolean is;

  g_mutex_lock (&relay->lock);
  is = relay->current == source;
  g_mutex_unlock (&relay->lock);
  return is;
}

// ---- construction ----

RelaySource *
relay_source_new (Relay *relay, const RelaySourceCallbacks *callbacks, gpointer owner)
{
  RelaySource *self = g_new0 (RelaySource, 1);

  g_atomic_ref_count_init (&self->refs);
  self->relay = relay_ref (relay);
  self->callbacks = callbacks;
  self->owner = owner;
  return self;
}

RelaySource *
relay_source_ref (RelaySource *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
relay_source_unref (gpointer data)
{
  RelaySource *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_pointer (&self->caps, g_ptr_array_unref);
  g_clear_pointer (&self->standby, standby_free);
  relay_source_set_key_handler (self, NULL, NULL, NULL);
  g_clear_pointer (&self->from, relay_unref);
  relay_unref (self->relay);
  g_free (self);
}

void
relay_source_end (RelaySource *self)
{
  Relay *relay = self->relay;

  self->callbacks = NULL;
  g_mutex_lock (&relay->lock);
  relay_insert_rearm (relay);
  if (relay->insert == self)
    relay_insert_forget (relay);
  if (relay->current == self) {
    relay->current = NULL;
    relay_drop_held (relay);
    relay_group_clear (relay);
  }
  if (relay->next == self) {
    relay->next = NULL;
    relay->next_is_warm = FALSE;
  }
  g_clear_pointer (&self->standby, standby_free);
  g_mutex_unlock (&relay->lock);
}
