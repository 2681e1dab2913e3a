// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay.h"

#include <errno.h>
#include <string.h>

#include "feed.h"
#include "rtp.h"
#include "splice.h"

// At the least this far ahead of the last packet of one life begins the next, so that timestamps
// grow over the splice.
#define SPLICE_GAP (20 * GST_MSECOND)
// Another SSRC takes a track over once the one before has been silent for so long: a stray packet,
// or two sources at once, must not make the numbers flap.
#define SSRC_SILENCE (100 * GST_MSECOND)
// A track this far behind the others has nothing to send now.
#define SPARSE_AFTER GST_SECOND
// What is held of a track for its first feed, at most. Beyond that nobody is coming.
#define HELD_BYTES (4 * 1024 * 1024)
#define HELD_PACKETS 8192
// RTP-Info that is further from the first packet than this is not believed.
#define BASE_TOLERANCE_S 10

typedef struct {
  GstCaps *upstream_caps;
  GstCaps *caps;
  guint32 ssrc;
  guint32 upstream_ssrc; // of this life, once `alive`
  gboolean alive;        // this life has had a packet
  gint64 last_arrival;   // now of its last packet
  WeirSplice splice;
  WeirNtpMap ntp;   // in outgoing timestamps
  GPtrArray *feeds; // of Feed; replaced, never changed, so that it can be walked without the lock
  // What this life brought while the reader who started it was still being answered.
  gboolean holding;
  GQueue held; // of GstBuffer
  gsize held_bytes;
} Track;

struct _Relay {
  gatomicrefcount refs;
  GMutex lock; // all below
  Track tracks[RELAY_MAX_TRACKS];
  guint n_tracks;
  gboolean life_open;  // this life's start is fixed
  gint64 life_arrival; // now of its first packet
  gint64 life_start;   // ns on the splice's time
  gint64 last_arrival; // now of the last packet of any life
  RelayStats stats;
};

Relay *
relay_new (void)
{
  Relay *self = g_new0 (Relay, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  return self;
}

Relay *
relay_ref (Relay *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
drop_held (Track *track)
{
  track->holding = FALSE;
  track->held_bytes = 0;
  g_queue_clear_full (&track->held, (GDestroyNotify) gst_buffer_unref);
}

static void
clear_tracks (Relay *self)
{
  for (guint i = 0; i < self->n_tracks; i++) {
    Track *track = &self->tracks[i];

    gst_caps_unref (track->upstream_caps);
    gst_caps_unref (track->caps);
    g_ptr_array_unref (track->feeds);
    drop_held (track);
  }
  memset (self->tracks, 0, sizeof self->tracks);
  self->n_tracks = 0;
}

void
relay_unref (Relay *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  clear_tracks (self);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static gboolean
printable (const gchar *text)
{
  if (strlen (text) > 8192)
    return FALSE;
  for (; *text; text++) {
    if (*text < 0x20 || *text > 0x7e)
      return FALSE;
  }
  return TRUE;
}

// Caps of an upstream hold all of its SDP: other attributes, control URLs, its SSRC. Only what
// describes the codec is published, and nothing that could break out of a line of SDP.
static gboolean
publishable (GQuark field, GValue *value, gpointer unused)
{
  static const gchar *const private_prefixes[] = { "a-", "x-", "ssrc", "clock-base", "seqnum-base",
    "timestamp-offset", "seqnum-offset", "npt-", "play-", "onvif-", "rtcp-", "rtx-", NULL };
  const gchar *name = g_quark_to_string (field);

  if (g_str_equal (name, "a-framerate"))
    return G_VALUE_HOLDS_STRING (value) && printable (g_value_get_string (value));
  for (guint i = 0; private_prefixes[i]; i++) {
    if (g_str_has_prefix (name, private_prefixes[i]))
      return FALSE;
  }
  if (!printable (name))
    return FALSE;
  if (G_VALUE_HOLDS_STRING (value))
    return g_value_get_string (value) && printable (g_value_get_string (value));
  return G_VALUE_HOLDS_INT (value) || G_VALUE_HOLDS_UINT (value);
}

static GstCaps *
published_caps (GstCaps *upstream, guint32 ssrc)
{
  GstStructure *s = gst_structure_copy (gst_caps_get_structure (upstream, 0));
  GstCaps *caps = gst_caps_new_empty ();

  gst_structure_filter_and_map_in_place (s, publishable, NULL);
  gst_structure_set (s, "ssrc", G_TYPE_UINT, ssrc, NULL);
  gst_caps_append_structure (caps, s);
  return caps;
}

// Parameter sets may differ from life to life: they come in-band as well. A change in anything else
// makes another track of it.
static gboolean
same_track (GstCaps *a, GstCaps *b)
{
  static const gchar *const in_band[] = { "sprop-parameter-sets", "sprop-vps", "sprop-sps",
    "sprop-pps", "profile-level-id", "a-framerate", "ssrc", NULL };
  GstStructure *sa = gst_structure_copy (gst_caps_get_structure (a, 0));
  GstStructure *sb = gst_structure_copy (gst_caps_get_structure (b, 0));
  gboolean has_in_band, same;

  has_in_band = !g_strcmp0 (gst_structure_get_string (sa, "encoding-name"), "H264")
                || !g_strcmp0 (gst_structure_get_string (sa, "encoding-name"), "H265");
  for (guint i = 0; in_band[i]; i++) {
    if (has_in_band || i >= 5) {
      gst_structure_remove_field (sa, in_band[i]);
      gst_structure_remove_field (sb, in_band[i]);
    }
  }
  same = gst_structure_is_equal (sa, sb);
  gst_structure_free (sa);
  gst_structure_free (sb);
  return same;
}

static gboolean
same_tracks (Relay *self, GPtrArray *caps)
{
  if (self->n_tracks != MIN (caps->len, RELAY_MAX_TRACKS))
    return FALSE;
  for (guint i = 0; i < self->n_tracks; i++) {
    GstCaps *now = published_caps (g_ptr_array_index (caps, i), 0);
    gboolean same = same_track (self->tracks[i].caps, now);

    gst_caps_unref (now);
    if (!same)
      return FALSE;
  }
  return TRUE;
}

static void
set_tracks (Relay *self, GPtrArray *caps)
{
  clear_tracks (self);
  self->n_tracks = MIN (caps->len, RELAY_MAX_TRACKS);
  for (guint i = 0; i < self->n_tracks; i++) {
    Track *track = &self->tracks[i];
    GstCaps *upstream = g_ptr_array_index (caps, i);
    gint clock_rate = 0;

    gst_structure_get_int (gst_caps_get_structure (upstream, 0), "clock-rate", &clock_rate);
    track->ssrc = g_random_int ();
    track->upstream_caps = gst_caps_ref (upstream);
    track->caps = published_caps (upstream, track->ssrc);
    track->feeds = g_ptr_array_new_with_free_func (gst_object_unref);
    weir_splice_init (&track->splice, (guint32) MAX (clock_rate, 0));
  }
}

RelayTracks
relay_begin (Relay *self, GPtrArray *caps)
{
  RelayTracks result;

  g_mutex_lock (&self->lock);
  if (self->n_tracks == 0) {
    set_tracks (self, caps);
    result = RELAY_TRACKS_FIRST;
  } else if (same_tracks (self, caps)) {
    result = RELAY_TRACKS_SAME;
  } else {
    set_tracks (self, caps);
    self->last_arrival = 0;
    result = RELAY_TRACKS_CHANGED;
  }
  self->life_open = FALSE;
  for (guint i = 0; i < self->n_tracks; i++) {
    self->tracks[i].alive = FALSE;
    self->tracks[i].ntp.known = FALSE;
    drop_held (&self->tracks[i]);
    self->tracks[i].holding = TRUE;
  }
  g_mutex_unlock (&self->lock);
  return result;
}

guint
relay_n_tracks (Relay *self)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = self->n_tracks;
  g_mutex_unlock (&self->lock);
  return n;
}

GstCaps *
relay_dup_caps (Relay *self, guint index)
{
  GstCaps *caps = NULL;

  g_mutex_lock (&self->lock);
  if (index < self->n_tracks)
    caps = gst_caps_ref (self->tracks[index].caps);
  g_mutex_unlock (&self->lock);
  return caps;
}

// Media time up to which all tracks have come. A sparse track says nothing about it.
static gint64
common_time (Relay *self)
{
  gint64 latest = 0, common;

  for (guint i = 0; i < self->n_tracks; i++) {
    if (self->tracks[i].alive)
      latest = MAX (latest, weir_splice_end (&self->tracks[i].splice));
  }
  common = latest;
  for (guint i = 0; i < self->n_tracks; i++) {
    gint64 end = weir_splice_end (&self->tracks[i].splice);

    if (self->tracks[i].alive && end > latest - (gint64) SPARSE_AFTER)
      common = MIN (common, end);
  }
  return common;
}

gboolean
relay_get_rtp_info (Relay *self, guint index, guint16 *seq, guint32 *timestamp)
{
  gboolean alive;

  g_mutex_lock (&self->lock);
  alive = index < self->n_tracks && self->tracks[index].alive;
  if (alive) {
    const WeirSplice *splice = &self->tracks[index].splice;

    *seq = (guint16) (splice->last_seq + 1);
    *timestamp = weir_splice_timestamp_at (splice, common_time (self));
  }
  g_mutex_unlock (&self->lock);
  return alive;
}

gboolean
relay_has_ssrc (Relay *self, guint32 ssrc)
{
  gboolean found = FALSE;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->n_tracks; i++)
    found |= self->tracks[i].ssrc == ssrc;
  g_mutex_unlock (&self->lock);
  return found;
}

// Where on the splice's time what comes now belongs: as far behind the furthest packet of any track
// as the silence lasted.
static gint64
next_start (Relay *self, gint64 now)
{
  gint64 end = 0;

  if (self->last_arrival == 0)
    return 0;
  for (guint i = 0; i < self->n_tracks; i++)
    end = MAX (end, weir_splice_end (&self->tracks[i].splice));
  return end + MAX (now - self->last_arrival, (gint64) SPLICE_GAP);
}

static void
begin_track (Relay *self, Track *track, const WeirRtp *rtp, gint64 now, guint64 base)
{
  guint32 rate = track->splice.clock_rate;
  gint64 since_start;

  if (!self->life_open) {
    self->life_open = TRUE;
    self->life_start = next_start (self, now);
    self->life_arrival = now;
  }
  since_start = now - self->life_arrival;
  if (base != RELAY_NO_BASE) {
    gint32 ahead = (gint32) (rtp->timestamp - (guint32) base);

    if (ABS ((gint64) ahead) > (gint64) rate * BASE_TOLERANCE_S)
      base = RELAY_NO_BASE;
  }
  if (base == RELAY_NO_BASE)
    base = (guint32) (rtp->timestamp - gst_util_uint64_scale (since_start, rate, GST_SECOND));
  weir_splice_begin (&track->splice, (guint32) base, self->life_start);
  track->alive = TRUE;
  track->upstream_ssrc = rtp->ssrc;
}

// The upstream went on with another SSRC in the same life: a splice of this track alone.
static void
replace_ssrc (Relay *self, Track *track, const WeirRtp *rtp, gint64 now)
{
  gint64 start =
      weir_splice_end (&track->splice) + MAX (now - self->last_arrival, (gint64) SPLICE_GAP);

  track->upstream_ssrc = rtp->ssrc;
  track->ntp.known = FALSE;
  weir_splice_begin (&track->splice, rtp->timestamp, start);
}

// The numbers under which the packet goes out. FALSE: it goes nowhere.
static gboolean
renumber (Relay *self, Track *track, const WeirRtp *rtp, gint64 now, guint64 base, guint16 *seq,
    guint32 *timestamp)
{
  if (!track->alive) {
    begin_track (self, track, rtp, now, base);
  } else if (rtp->ssrc != track->upstream_ssrc) {
    if (now - track->last_arrival < (gint64) SSRC_SILENCE) {
      self->stats.n_stale++;
      return FALSE;
    }
    replace_ssrc (self, track, rtp, now);
  }
  self->last_arrival = track->last_arrival = now;
  if (weir_splice_map (&track->splice, rtp->seq, rtp->timestamp, seq, timestamp) < 0) {
    self->stats.n_stale++;
    return FALSE;
  }
  return TRUE;
}

// Who gets the packet now, after those in `before`. With the lock held.
static GPtrArray *
take_feeds (Track *track, GstBuffer *packet, GQueue *before)
{
  if (track->feeds->len > 0 && feed_is_open (g_ptr_array_index (track->feeds, 0))) {
    *before = track->held;
    g_queue_init (&track->held);
    drop_held (track);
  } else if (track->holding) {
    g_queue_push_tail (&track->held, gst_buffer_ref (packet));
    track->held_bytes += gst_buffer_get_size (packet);
    if (track->held_bytes > HELD_BYTES || track->held.length > HELD_PACKETS)
      drop_held (track);
  }
  return g_ptr_array_ref (track->feeds);
}

static void
push_to (GPtrArray *feeds, GstBuffer *packet)
{
  for (guint i = 0; i < feeds->len; i++)
    feed_push (g_ptr_array_index (feeds, i), packet);
}

void
relay_push (Relay *self, guint index, GstBuffer *packet, gint64 now, guint64 base)
{
  GPtrArray *feeds = NULL;
  GQueue before = G_QUEUE_INIT;
  GstBuffer *held;
  GstMapInfo map;
  WeirRtp rtp;

  packet = gst_buffer_make_writable (packet);
  if (!gst_buffer_map (packet, &map, GST_MAP_READWRITE)) {
    gst_buffer_unref (packet);
    return;
  }

  g_mutex_lock (&self->lock);
  if (index < self->n_tracks) {
    Track *track = &self->tracks[index];
    guint16 seq;
    guint32 timestamp;

    self->stats.n_packets++;
    if (weir_rtp_parse (map.data, map.size, &rtp) < 0) {
      self->stats.n_bad++;
    } else if (renumber (self, track, &rtp, now, base, &seq, &timestamp)) {
      weir_rtp_set_seq (map.data, seq);
      weir_rtp_set_timestamp (map.data, timestamp);
      weir_rtp_set_ssrc (map.data, track->ssrc);
      feeds = take_feeds (track, packet, &before);
    }
  }
  g_mutex_unlock (&self->lock);
  gst_buffer_unmap (packet, &map);

  if (feeds) {
    while ((held = g_queue_pop_head (&before))) {
      push_to (feeds, held);
      gst_buffer_unref (held);
    }
    push_to (feeds, packet);
    g_ptr_array_unref (feeds);
  }
  gst_buffer_unref (packet);
}

void
relay_set_ntp_map (Relay *self, guint index, const WeirNtpMap *map)
{
  g_mutex_lock (&self->lock);
  if (index < self->n_tracks) {
    Track *track = &self->tracks[index];

    if (track->alive && map->ssrc == track->upstream_ssrc) {
      track->ntp = *map;
      track->ntp.timestamp += track->splice.ts_offset;
    }
  }
  g_mutex_unlock (&self->lock);
}

gsize
relay_rewrite_sr (Relay *self, guint index, guint8 *packet, gsize len)
{
  g_mutex_lock (&self->lock);
  if (index < self->n_tracks) {
    Track *track = &self->tracks[index];

    len = weir_rtcp_rewrite_sr (packet, len, &track->ntp, track->splice.clock_rate);
  }
  g_mutex_unlock (&self->lock);
  return len;
}

static void
replace_feeds (Relay *self, guint index, Feed *without, Feed *with)
{
  g_mutex_lock (&self->lock);
  if (index < self->n_tracks) {
    Track *track = &self->tracks[index];
    GPtrArray *old = track->feeds;

    track->feeds = g_ptr_array_new_with_free_func (gst_object_unref);
    for (guint i = 0; i < old->len; i++) {
      if (g_ptr_array_index (old, i) != without)
        g_ptr_array_add (track->feeds, gst_object_ref (g_ptr_array_index (old, i)));
    }
    if (with)
      g_ptr_array_add (track->feeds, gst_object_ref (with));
    g_mutex_unlock (&self->lock);
    // Outside of the lock: this may drop the last reference of a feed.
    g_ptr_array_unref (old);
    return;
  }
  g_mutex_unlock (&self->lock);
}

void
relay_attach (Relay *self, guint index, Feed *feed)
{
  replace_feeds (self, index, NULL, feed);
}

void
relay_detach (Relay *self, guint index, Feed *feed)
{
  replace_feeds (self, index, feed, NULL);
}

void
relay_get_stats (Relay *self, RelayStats *stats)
{
  g_mutex_lock (&self->lock);
  *stats = self->stats;
  g_mutex_unlock (&self->lock);
}
