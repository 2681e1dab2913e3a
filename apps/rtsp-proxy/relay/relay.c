// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/feed.h"
#include "relay/relay_caps.h"
#include "relay/relay_private.h"

// A track this far behind the others has nothing to send now.
#define SPARSE_AFTER GST_SECOND
// What is held of a track for its first feed, at most. Beyond that nobody is coming.
#define HELD_BYTES (4 * 1024 * 1024)
#define HELD_PACKETS 8192

// ---- tracks, with the lock held ----

static void
drop_held (RelayTrack *track)
{
  track->holding = FALSE;
  track->held_bytes = 0;
  g_queue_clear_full (&track->held, (GDestroyNotify) gst_buffer_unref);
  g_array_set_size (track->held_times, 0);
}

static void
clear_track (RelayTrack *track)
{
  RelayItem *item;

  gst_clear_caps (&track->caps);
  track->first.known = FALSE;
  g_ptr_array_unref (track->feeds);
  track->feeds = g_ptr_array_new_with_free_func (gst_object_unref);
  drop_held (track);
  while ((item = gst_queue_array_pop_head_struct (track->out)))
    gst_buffer_unref (item->packet);
}

gboolean
relay_has_tracks (Relay *self, GPtrArray *caps)
{
  if (self->n_tracks != MIN (caps->len, RELAY_MAX_TRACKS))
    return FALSE;
  for (guint i = 0; i < self->n_tracks; i++) {
    if (!relay_caps_same (self->tracks[i].caps, g_ptr_array_index (caps, i)))
      return FALSE;
  }
  return TRUE;
}

void
relay_set_tracks (Relay *self, GPtrArray *caps)
{
  for (guint i = 0; i < self->n_tracks; i++)
    clear_track (&self->tracks[i]);
  self->n_tracks = MIN (caps->len, RELAY_MAX_TRACKS);
  self->last_arrival = 0;
  for (guint i = 0; i < self->n_tracks; i++) {
    RelayTrack *track = &self->tracks[i];
    GstCaps *told = g_ptr_array_index (caps, i);
    gint clock_rate = 0;

    gst_structure_get_int (gst_caps_get_structure (told, 0), "clock-rate", &clock_rate);
    track->payload = -1;
    gst_structure_get_int (gst_caps_get_structure (told, 0), "payload", &track->payload);
    track->ssrc = g_random_int ();
    track->caps = relay_caps_publish (told, track->ssrc);
    track->mid_frame = track->resumes = FALSE;
    weir_splice_init (&track->splice, (guint32) MAX (clock_rate, 0));
  }
}

void
relay_drop_held (Relay *self)
{
  for (guint i = 0; i < self->n_tracks; i++)
    drop_held (&self->tracks[i]);
}

void
relay_hold (Relay *self)
{
  relay_drop_held (self);
  for (guint i = 0; i < self->n_tracks; i++)
    self->tracks[i].holding = self->expects_feeds;
}

// Media time up to which all tracks have come. A sparse track says nothing about it.
static gint64
common_time (Relay *self)
{
  gint64 latest = 0, common;

  for (guint i = 0; i < self->n_tracks; i++)
    latest = MAX (latest, weir_splice_end (&self->tracks[i].splice));
  common = latest;
  for (guint i = 0; i < self->n_tracks; i++) {
    gint64 end = weir_splice_end (&self->tracks[i].splice);

    if (end > latest - (gint64) SPARSE_AFTER)
      common = MIN (common, end);
  }
  return common;
}

// ---- handing on ----

void
relay_queue (Relay *self, guint track, GstBuffer *packet, gint64 now, gint64 time)
{
  RelayItem item = { packet, now, time };

  gst_queue_array_push_tail_struct (self->tracks[track].out, &item);
}

static RelayNumbers
read_numbers (GstBuffer *packet)
{
  RelayNumbers numbers = { FALSE };
  guint8 header[8];

  if (!packet || gst_buffer_extract (packet, 0, header, sizeof header) < sizeof header)
    return numbers;
  return (RelayNumbers) { TRUE, GST_READ_UINT16_BE (header + 2), GST_READ_UINT32_BE (header + 4) };
}

// Who gets the packet now, after those in `before`. With the lock held.
static GPtrArray *
take_feeds (RelayTrack *track, const RelayItem *item, GQueue *before, GArray **before_times)
{
  if (track->feeds->len > 0 && feed_is_open (g_ptr_array_index (track->feeds, 0))) {
    if (!track->first.known)
      track->first =
          read_numbers (track->held.head ? g_queue_peek_head (&track->held) : item->packet);
    *before = track->held;
    *before_times = track->held_times;
    g_queue_init (&track->held);
    track->held_times = g_array_new (FALSE, FALSE, sizeof (gint64));
    drop_held (track);
  } else if (track->holding) {
    g_queue_push_tail (&track->held, gst_buffer_ref (item->packet));
    g_array_append_val (track->held_times, item->time);
    track->held_bytes += gst_buffer_get_size (item->packet);
    if (track->held_bytes > HELD_BYTES || track->held.length > HELD_PACKETS)
      drop_held (track);
  }
  return track->feeds->len > 0 ? g_ptr_array_ref (track->feeds) : NULL;
}

// With the lock held. The base is not made once when a link starts: a track's first packet may come
// after that, and push_to_links() reads it without the lock, in the thread that has written it
// here.
static GPtrArray *
take_links (Relay *self, guint index)
{
  RelayTrack *track = &self->tracks[index];

  for (guint i = 0; i < self->links->len; i++) {
    RelayLink *link = g_ptr_array_index (self->links, i);

    if (link->tracks & 1u << index)
      link->base[index] = weir_splice_timestamp_at (&track->splice, link->start);
  }
  return self->links->len > 0 ? g_ptr_array_ref (self->links) : NULL;
}

static void
push_to_feeds (GPtrArray *feeds, GstBuffer *packet, gint64 time)
{
  for (guint i = 0; i < feeds->len; i++)
    feed_push (g_ptr_array_index (feeds, i), packet, time);
}

// Takes the packet: the last link gets it, and needs no copy to write its own header.
static void
push_to_links (GPtrArray *links, guint index, const RelayItem *item)
{
  RelayLink *last = NULL;

  for (guint i = 0; links && i < links->len; i++) {
    RelayLink *link = g_ptr_array_index (links, i);

    if (!(link->tracks & 1u << index))
      continue;
    if (last)
      relay_push (last->to, index, gst_buffer_ref (item->packet), item->now, last->base[index]);
    last = link;
  }
  if (last)
    relay_push (last->to, index, item->packet, item->now, last->base[index]);
  else
    gst_buffer_unref (item->packet);
}

// Packets of one track may come from two threads while one source takes over from another. Whoever
// finds nobody at it hands on what is there, in order; nobody waits.
void
relay_drain (Relay *self, guint index)
{
  RelayTrack *track = &self->tracks[index];
  RelayItem *head;

  if (track->draining)
    return;
  track->draining = TRUE;
  while ((head = gst_queue_array_pop_head_struct (track->out))) {
    RelayItem item = *head;
    GQueue before = G_QUEUE_INIT;
    GArray *before_times = NULL;
    GPtrArray *feeds = take_feeds (track, &item, &before, &before_times);
    GPtrArray *links = take_links (self, index);
    GstBuffer *held;

    g_mutex_unlock (&self->lock);
    for (guint i = 0; (held = g_queue_pop_head (&before)); i++) {
      push_to_feeds (feeds, held, g_array_index (before_times, gint64, i));
      gst_buffer_unref (held);
    }
    g_clear_pointer (&before_times, g_array_unref);
    if (feeds) {
      push_to_feeds (feeds, item.packet, item.time);
      g_ptr_array_unref (feeds);
    }
    push_to_links (links, index, &item);
    g_clear_pointer (&links, g_ptr_array_unref);
    g_mutex_lock (&self->lock);
  }
  track->draining = FALSE;
}

// ---- feeds ----

static void
replace_feeds (Relay *self, guint index, Feed *without, Feed *with)
{
  GPtrArray *old = NULL;

  g_mutex_lock (&self->lock);
  if (index < self->n_tracks) {
    RelayTrack *track = &self->tracks[index];

    old = track->feeds;
    track->feeds = g_ptr_array_new_with_free_func (gst_object_unref);
    for (guint i = 0; i < old->len; i++) {
      if (g_ptr_array_index (old, i) != without)
        g_ptr_array_add (track->feeds, gst_object_ref (g_ptr_array_index (old, i)));
    }
    if (with) {
      g_ptr_array_add (track->feeds, gst_object_ref (with));
      track->first.known = FALSE;
    }
  }
  g_mutex_unlock (&self->lock);
  // Outside of the lock: this may drop the last reference of a feed.
  g_clear_pointer (&old, g_ptr_array_unref);
}

void
relay_expect_feeds (Relay *self)
{
  g_mutex_lock (&self->lock);
  self->expects_feeds = TRUE;
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

// ---- relays behind this one ----

static void
link_unref (gpointer data)
{
  RelayLink *link = data;

  if (!g_atomic_ref_count_dec (&link->refs))
    return;
  relay_source_unref (link->to);
  g_free (link);
}

static void
replace_links (Relay *self, RelaySource *without, RelayLink *with)
{
  GPtrArray *old;

  g_mutex_lock (&self->lock);
  old = self->links;
  self->links = g_ptr_array_new_with_free_func (link_unref);
  for (guint i = 0; i < old->len; i++) {
    RelayLink *link = g_ptr_array_index (old, i);

    if (link->to != without) {
      g_atomic_ref_count_inc (&link->refs);
      g_ptr_array_add (self->links, link);
    }
  }
  if (with)
    g_ptr_array_add (self->links, with);
  g_mutex_unlock (&self->lock);
  g_ptr_array_unref (old);
}

static GPtrArray *
dup_all_caps (Relay *self)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->n_tracks; i++)
    g_ptr_array_add (caps, gst_caps_ref (self->tracks[i].caps));
  g_mutex_unlock (&self->lock);
  return caps;
}

static void
add_link (Relay *self, RelaySource *to, guint32 tracks, gboolean begins, gint64 start)
{
  RelayLink *link = g_new0 (RelayLink, 1);

  g_atomic_ref_count_init (&link->refs);
  link->to = relay_source_ref (to);
  link->tracks = tracks;
  link->begins = begins;
  link->start = start;
  replace_links (self, NULL, link);
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    relay_pass_ntp (self, i);
}

void
relay_link (Relay *self, RelaySource *to)
{
  GPtrArray *caps = dup_all_caps (self);
  gint64 start = relay_get_time (self);

  if (caps->len > 0)
    relay_source_begin_from (to, caps, self, start);
  g_ptr_array_unref (caps);
  add_link (self, to, G_MAXUINT32, TRUE, start);
}

void
relay_link_some (Relay *self, RelaySource *to, guint32 tracks, gint64 start)
{
  add_link (self, to, tracks, FALSE, start);
}

void
relay_unlink (Relay *self, RelaySource *to)
{
  replace_links (self, to, NULL);
}

void
relay_begin_links (Relay *self)
{
  GPtrArray *caps = dup_all_caps (self);
  GPtrArray *links;
  gint64 start;

  g_mutex_lock (&self->lock);
  links = g_ptr_array_ref (self->links);
  start = common_time (self);
  for (guint i = 0; i < links->len; i++) {
    RelayLink *link = g_ptr_array_index (links, i);

    if (link->begins)
      link->start = start;
  }
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < links->len; i++) {
    RelayLink *link = g_ptr_array_index (links, i);

    if (link->begins)
      relay_source_begin_from (link->to, caps, self, start);
  }
  g_ptr_array_unref (links);
  g_ptr_array_unref (caps);
}

// ---- NTP ----

// The current source's mapping in outgoing timestamps. With the lock held.
static WeirNtpMap
outgoing_ntp (Relay *self, guint index)
{
  WeirNtpMap map = { 0 };

  if (self->current && self->current->tracks[index].alive) {
    map = self->current->tracks[index].ntp;
    map.timestamp += self->tracks[index].splice.ts_offset;
    map.ssrc = self->tracks[index].ssrc;
  }
  return map;
}

void
relay_pass_ntp (Relay *self, guint index)
{
  WeirNtpMap map;
  GPtrArray *links;

  g_mutex_lock (&self->lock);
  if (index >= self->n_tracks || self->links->len == 0) {
    g_mutex_unlock (&self->lock);
    return;
  }
  map = outgoing_ntp (self, index);
  links = g_ptr_array_ref (self->links);
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < links->len; i++) {
    RelayLink *link = g_ptr_array_index (links, i);

    if (link->tracks & 1u << index)
      relay_set_ntp_map (link->to, index, &map);
  }
  g_ptr_array_unref (links);
}

gboolean
relay_get_ntp (Relay *self, guint index, guint64 *ntp, gint64 *time)
{
  WeirNtpMap map = { 0 };

  g_mutex_lock (&self->lock);
  if (index < self->n_tracks && self->current && self->current->tracks[index].alive) {
    map = self->current->tracks[index].ntp;
    *ntp = map.ntp;
    *time = weir_splice_time (&self->tracks[index].splice, map.timestamp);
  }
  g_mutex_unlock (&self->lock);
  return map.known;
}

gsize
relay_rewrite_sr (Relay *self, guint index, guint8 *packet, gsize len)
{
  g_mutex_lock (&self->lock);
  if (index < self->n_tracks) {
    WeirNtpMap map = outgoing_ntp (self, index);

    len = weir_rtcp_rewrite_sr (packet, len, &map, self->tracks[index].splice.clock_rate);
  }
  g_mutex_unlock (&self->lock);
  return len;
}

// ---- what it gives ----

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

// What feeds have had first, or is held for them, is what a first reader begins with.
static RelayNumbers
get_first (RelayTrack *track)
{
  return track->first.known ? track->first : read_numbers (g_queue_peek_head (&track->held));
}

gboolean
relay_get_rtp_info (Relay *self, guint index, guint16 *seq, guint32 *timestamp)
{
  RelayNumbers first;
  gboolean known;

  g_mutex_lock (&self->lock);
  known = index < self->n_tracks && self->current && self->current->tracks[index].alive;
  first = known ? get_first (&self->tracks[index]) : (RelayNumbers) { FALSE };
  if (first.known) {
    *seq = first.seq;
    *timestamp = first.timestamp;
  } else if (known) {
    const WeirSplice *splice = &self->tracks[index].splice;

    *seq = (guint16) (splice->last_seq + 1);
    *timestamp = weir_splice_timestamp_at (splice, common_time (self));
  }
  g_mutex_unlock (&self->lock);
  return known;
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

gint64
relay_get_time (Relay *self)
{
  gint64 time;

  g_mutex_lock (&self->lock);
  time = common_time (self);
  g_mutex_unlock (&self->lock);
  return time;
}

guint32
relay_get_timestamp (Relay *self, guint index, gint64 time)
{
  guint32 timestamp = 0;

  g_mutex_lock (&self->lock);
  if (index < self->n_tracks)
    timestamp = weir_splice_timestamp_at (&self->tracks[index].splice, time);
  g_mutex_unlock (&self->lock);
  return timestamp;
}

guint64
relay_get_origin (Relay *self, gint64 *offset)
{
  guint64 origin;

  g_mutex_lock (&self->lock);
  origin = self->origin ? self->origin : self->id;
  *offset = self->origin ? self->origin_offset : 0;
  g_mutex_unlock (&self->lock);
  return origin;
}

void
relay_get_stats (Relay *self, RelayStats *stats)
{
  g_mutex_lock (&self->lock);
  *stats = self->stats;
  g_mutex_unlock (&self->lock);
}

// ---- life ----

Relay *
relay_new (void)
{
  static guint64 last_id; // atomic
  Relay *self = g_new0 (Relay, 1);

  g_atomic_ref_count_init (&self->refs);
  self->id = __atomic_add_fetch (&last_id, 1, __ATOMIC_RELAXED);
  g_mutex_init (&self->lock);
  self->links = g_ptr_array_new_with_free_func (link_unref);
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    RelayTrack *track = &self->tracks[i];

    track->feeds = g_ptr_array_new_with_free_func (gst_object_unref);
    track->held_times = g_array_new (FALSE, FALSE, sizeof (gint64));
    track->out = gst_queue_array_new_for_struct (sizeof (RelayItem), 16);
  }
  return self;
}

Relay *
relay_ref (Relay *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
relay_unref (Relay *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    clear_track (&self->tracks[i]);
    g_ptr_array_unref (self->tracks[i].feeds);
    g_array_unref (self->tracks[i].held_times);
    gst_queue_array_free (self->tracks[i].out);
  }
  g_ptr_array_unref (self->links);
  g_mutex_clear (&self->lock);
  g_free (self);
}
