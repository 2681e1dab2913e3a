// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/key_event.h"
#include "relay/feed.h"
#include "relay/relay_link.h"
#include "rtp/rtp.h"

#define SECOND ((gint64) GST_SECOND)
#define VIDEO "application/x-rtp, media=video, encoding-name=H264, clock-rate=90000, payload=96"
#define AUDIO "application/x-rtp, media=audio, encoding-name=OPUS, clock-rate=48000, payload=97"

// The calls that a sink got.
typedef struct {
  guint n_begun, n_tracks, n_packets, n_mapped, n_ended;
  guint track;
  gint64 now;
  guint n_more;
  gboolean closed;
} Received;

static void
on_begun (gpointer sink, Relay *relay, GPtrArray *caps, gint64 start)
{
  Received *self = sink;

  self->n_begun++;
  self->n_tracks = caps->len;
}

static void
on_push (gpointer sink, const RelayPacket *packet)
{
  Received *self = sink;

  self->n_packets++;
  self->track = packet->track;
  self->now = packet->now;
  self->n_more += packet->more;
  gst_buffer_unref (packet->buffer);
}

static void
on_mapped (gpointer sink, guint track, const WeirNtpMap *map)
{
  ((Received *) sink)->n_mapped += map->known;
}

static void
on_ended (gpointer sink)
{
  ((Received *) sink)->n_ended++;
}

static gboolean
is_open (gpointer sink)
{
  return !((Received *) sink)->closed;
}

static const RelaySink any_tracks = { on_begun, on_push, on_mapped, on_ended };
static const RelaySink fixed_tracks = { .push = on_push, .ended = on_ended };
static const RelaySink opens_later = { .push = on_push, .ended = on_ended, .is_open = is_open };

static const RelaySink from_start = {
  .push = on_push, .ended = on_ended, .is_open = is_open, .from_start = TRUE
};

static RelayTracks
begin (RelaySource *source, const gchar *video, const gchar *audio)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  RelayTracks tracks;

  g_ptr_array_add (caps, gst_caps_from_string (video));
  if (audio)
    g_ptr_array_add (caps, gst_caps_from_string (audio));
  tracks = relay_source_begin (source, caps);
  g_ptr_array_unref (caps);
  return tracks;
}

static GstBuffer *
packet_new (guint track, guint16 seq)
{
  guint8 data[WEIR_RTP_HEADER + 1] = { 0x80, 0xe0 };

  weir_rtp_set_seq (data, seq);
  weir_rtp_set_timestamp (data, seq * 3000u);
  weir_rtp_set_ssrc (data, 1 + track);
  return gst_buffer_new_memdup (data, sizeof data);
}

static void
push (RelaySource *source, guint track, guint16 seq, gint64 now)
{
  relay_push (source, track, packet_new (track, seq), now, RELAY_NO_BASE);
}

typedef struct {
  Relay *relay;
  RelaySource *source;
} Fixture;

static void
set_up (Fixture *f, gconstpointer unused)
{
  f->relay = relay_new ();
  f->source = relay_source_new (f->relay, NULL, NULL);
}

static void
tear_down (Fixture *f, gconstpointer unused)
{
  relay_source_end (f->source);
  relay_source_unref (f->source);
  relay_unref (f->relay);
}

static void
a_sink_gets_the_tracks_of_its_mask (Fixture *f, gconstpointer unused)
{
  Received every = { 0 }, second = { 0 };

  begin (f->source, VIDEO, AUDIO);
  relay_add_sink (f->relay, &any_tracks, &every, G_MAXUINT32, 0);
  relay_add_sink (f->relay, &fixed_tracks, &second, 1u << 1, 0);
  g_assert_cmpuint (every.n_begun, ==, 1);
  g_assert_cmpuint (every.n_tracks, ==, 2);

  push (f->source, 0, 1, SECOND);
  g_assert_cmpuint (every.n_packets, ==, 1);
  g_assert_cmpuint (second.n_packets, ==, 0);
  push (f->source, 1, 1, SECOND + 5);
  g_assert_cmpuint (every.n_packets, ==, 2);
  g_assert_cmpuint (second.n_packets, ==, 1);
  g_assert_cmpuint (second.track, ==, 1);
  g_assert_cmpint (second.now, ==, SECOND + 5);

  relay_set_ntp_map (f->source, 0, &(WeirNtpMap) { .known = TRUE, .ssrc = 1 });
  g_assert_cmpuint (every.n_mapped, ==, 1);

  relay_remove_sink (f->relay, &second);
  g_assert_cmpuint (second.n_ended, ==, 1);
  push (f->source, 1, 2, SECOND + 10);
  g_assert_cmpuint (second.n_packets, ==, 1);
  g_assert_cmpuint (every.n_packets, ==, 3);
  relay_remove_sink (f->relay, &every);
  g_assert_cmpuint (every.n_ended, ==, 1);
}

// A sink with begun() gets the changed tracks; a sink without is removed.
static void
changed_tracks_remove_a_sink_without_begun (Fixture *f, gconstpointer unused)
{
  Received every = { 0 }, first = { 0 };

  relay_add_sink (f->relay, &any_tracks, &every, G_MAXUINT32, 0);
  g_assert_cmpuint (every.n_begun, ==, 0);
  g_assert_cmpint (begin (f->source, VIDEO, NULL), ==, RELAY_TRACKS_FIRST);
  g_assert_cmpuint (every.n_begun, ==, 1);
  relay_add_sink (f->relay, &fixed_tracks, &first, 1, 0);

  g_assert_cmpint (begin (f->source, VIDEO, NULL), ==, RELAY_TRACKS_SAME);
  g_assert_cmpuint (every.n_begun, ==, 1);
  g_assert_cmpuint (first.n_ended, ==, 0);

  g_assert_cmpint (begin (f->source, AUDIO, NULL), ==, RELAY_TRACKS_CHANGED);
  g_assert_cmpuint (every.n_begun, ==, 2);
  g_assert_cmpuint (first.n_ended, ==, 1);
  push (f->source, 0, 1, SECOND);
  g_assert_cmpuint (first.n_packets, ==, 0);
  g_assert_cmpuint (every.n_packets, ==, 1);
  relay_remove_sink (f->relay, &first);
  g_assert_cmpuint (first.n_ended, ==, 1);
  relay_remove_sink (f->relay, &every);
}

// The first packets of a run are held for a sink that opens late; other sinks get them at once.
static void
a_sink_that_opens_late_gets_the_held_packets (Fixture *f, gconstpointer unused)
{
  Received late = { .closed = TRUE }, other = { 0 };

  relay_expect_sinks (f->relay, TRUE);
  begin (f->source, VIDEO, NULL);
  relay_add_sink (f->relay, &opens_later, &late, 1, 0);
  relay_add_sink (f->relay, &fixed_tracks, &other, 1, 0);
  push (f->source, 0, 1, SECOND);
  push (f->source, 0, 2, SECOND + 1);
  g_assert_cmpuint (other.n_packets, ==, 2);
  g_assert_cmpuint (late.n_packets, ==, 0);
  late.closed = FALSE;
  push (f->source, 0, 3, SECOND + 2);
  g_assert_cmpuint (other.n_packets, ==, 3);
  g_assert_cmpuint (late.n_packets, ==, 3);
  relay_remove_sink (f->relay, &late);
  relay_remove_sink (f->relay, &other);
}

// ---- the newest group ----

static void
push_slice (RelaySource *source, guint16 seq, gboolean key, gint64 now)
{
  // Of H.264: a slice of an IDR picture or of another one, with the first macroblock.
  const guint8 payload[] = { key ? 0x65 : 0x41, 0x88 };
  GstBuffer *packet = packet_new (0, seq);

  gst_buffer_resize (packet, 0, WEIR_RTP_HEADER);
  packet = gst_buffer_append (packet, gst_buffer_new_memdup (payload, sizeof payload));
  relay_push (source, 0, packet, now, RELAY_NO_BASE);
}

static const RelaySink from_join = { .push = on_push, .ended = on_ended, .from_join = TRUE };

// Adds a sink, and returns what it gets at once.
static Received
join (Relay *relay)
{
  Received got = { 0 }, at_once;

  relay_add_sink (relay, &from_join, &got, G_MAXUINT32, 0);
  at_once = got;
  relay_remove_sink (relay, &got);
  g_assert_cmpuint (got.n_packets, ==, at_once.n_packets);
  return at_once;
}

// A sink that begins at the newest join point gets at once what has gone by since then.
static void
a_sink_gets_the_newest_group (Fixture *f, gconstpointer unused)
{
  Received got = { 0 }, plain = { 0 }, at_once;

  begin (f->source, VIDEO, AUDIO);
  push_slice (f->source, 1, TRUE, SECOND);
  g_assert_cmpuint (join (f->relay).n_packets, ==, 0); // nobody has asked for it
  relay_keep_group (f->relay);
  push_slice (f->source, 2, FALSE, SECOND + 1);
  g_assert_cmpuint (join (f->relay).n_packets, ==, 0);
  push_slice (f->source, 3, TRUE, SECOND + 2);
  push_slice (f->source, 4, FALSE, SECOND + 3);
  push (f->source, 1, 1, SECOND + 4);
  push_slice (f->source, 5, FALSE, SECOND + 5);

  relay_add_sink (f->relay, &fixed_tracks, &plain, 1, 0);
  g_assert_cmpuint (plain.n_packets, ==, 0);
  relay_add_sink (f->relay, &from_join, &got, G_MAXUINT32, 0);
  g_assert_cmpuint (got.n_packets, ==, 3);
  g_assert_cmpuint (got.n_more, ==, 2);
  g_assert_cmpuint (got.track, ==, 0);
  g_assert_cmpint (got.now, ==, SECOND + 5); // when it arrived
  push_slice (f->source, 6, FALSE, SECOND + 6);
  push (f->source, 1, 2, SECOND + 7);
  g_assert_cmpuint (got.n_packets, ==, 5);
  g_assert_cmpuint (plain.n_packets, ==, 1);
  relay_remove_sink (f->relay, &got);
  relay_remove_sink (f->relay, &plain);

  at_once = join (f->relay);
  g_assert_cmpuint (at_once.n_packets, ==, 4);
  push_slice (f->source, 7, TRUE, SECOND + 8);
  g_assert_cmpuint (join (f->relay).n_packets, ==, 1);
  begin (f->source, VIDEO, AUDIO); // what comes now does not refer to what came before
  g_assert_cmpuint (join (f->relay).n_packets, ==, 0);
}

// A group that is too long is not kept, and the next one is.
static void
a_group_is_bounded (Fixture *f, gconstpointer unused)
{
  guint16 seq = 1;

  relay_keep_group (f->relay);
  begin (f->source, VIDEO, NULL);
  push_slice (f->source, seq++, TRUE, SECOND);
  for (gint64 at = 2; at <= 31; at++)
    push_slice (f->source, seq++, FALSE, at * SECOND);
  g_assert_cmpuint (join (f->relay).n_packets, ==, 31);
  push_slice (f->source, seq++, FALSE, 32 * SECOND);
  g_assert_cmpuint (join (f->relay).n_packets, ==, 0);
  push_slice (f->source, seq++, FALSE, 33 * SECOND);
  g_assert_cmpuint (join (f->relay).n_packets, ==, 0);
  push_slice (f->source, seq++, TRUE, 34 * SECOND);
  g_assert_cmpuint (join (f->relay).n_packets, ==, 1);
}

typedef struct {
  guint n;
  guint16 last;
} Following;

static void
follow (gpointer sink, const RelayPacket *packet)
{
  Following *self = sink;
  guint8 data[WEIR_RTP_HEADER + 1];
  guint16 seq;

  gst_buffer_extract (packet->buffer, 0, data, sizeof data);
  seq = GST_READ_UINT16_BE (data + 2);
  if (self->n++ == 0)
    g_assert_cmpuint (data[WEIR_RTP_HEADER], ==, 0x65);
  else
    g_assert_cmpuint (seq, ==, (guint16) (self->last + 1));
  self->last = seq;
  gst_buffer_unref (packet->buffer);
}

static gpointer
push_many (gpointer source)
{
  for (guint i = 0; i < 200000; i++)
    push_slice (source, (guint16) i, i % 50 == 0, SECOND + i);
  return NULL;
}

// While another thread pushes packets, a new sink gets each packet once, from a join point on.
static void
a_group_has_no_gap_and_no_overlap (Fixture *f, gconstpointer unused)
{
  static const RelaySink functions = { .push = follow, .ended = g_free, .from_join = TRUE };
  GThread *thread;

  relay_keep_group (f->relay);
  begin (f->source, VIDEO, NULL);
  push_slice (f->source, 65535, TRUE, SECOND);
  thread = g_thread_new ("source", push_many, f->source);
  for (guint i = 0; i < 500; i++) {
    Following *sink = g_new0 (Following, 1);

    relay_add_sink (f->relay, &functions, sink, 1, 0);
    g_usleep (i % 3 * 100);
    relay_remove_sink (f->relay, sink);
  }
  g_thread_join (thread);
}

// ---- keyframes ----

typedef struct {
  guint n, track, n_freed;
  gint64 now;
} Asked;

static void
push_second (RelaySource *source, guint16 seq)
{
  GstBuffer *packet = packet_new (0, seq);
  guint8 timestamp[4];

  GST_WRITE_UINT32_BE (timestamp, seq * 90000u);
  gst_buffer_fill (packet, 4, timestamp, sizeof timestamp);
  relay_push (source, 0, packet, (seq + 1) * SECOND, RELAY_NO_BASE);
}

// A sink that is awaited gets a run from its first packet, though another one has opened before;
// but nothing is kept for ever, or without being asked for.
static void
an_awaited_sink_gets_the_run_from_its_start (Fixture *unused, gconstpointer data)
{
  static const struct {
    guint before, between; // packets, a second apart, before and after the awaited one is added
    gboolean awaits;
    guint wanted; // packets with the one for which it is open
  } cases[] = { { 2, 2, TRUE, 5 }, { 5, 0, TRUE, 6 }, { 0, 5, TRUE, 6 }, { 5, 20, TRUE, 1 },
    { 2, 2, FALSE, 1 } };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const guint n = cases[i].before + cases[i].between;
    Received first = { 0 }, awaited = { .closed = TRUE }, other = { .closed = TRUE };
    guint16 seq = 0;
    Fixture own;

    set_up (&own, NULL);
    relay_expect_sinks (own.relay, TRUE);
    relay_await_sink (own.relay, cases[i].awaits);
    begin (own.source, VIDEO, NULL);
    relay_add_sink (own.relay, &opens_later, &first, 1, 0);
    relay_add_sink (own.relay, &opens_later, &other, 1, 0);
    while (seq < cases[i].before)
      push_second (own.source, seq++);
    relay_add_sink (own.relay, &from_start, &awaited, 1, 0);
    while (seq < n)
      push_second (own.source, seq++);
    g_assert_cmpuint (first.n_packets, ==, n);
    if (cases[i].wanted > 1)
      g_assert_cmpuint (awaited.n_packets, ==, 0);
    awaited = other = (Received) { 0 };
    push_second (own.source, seq++);
    g_assert_cmpuint (awaited.n_packets, ==, cases[i].wanted);
    g_assert_cmpuint (other.n_packets, ==, 1);
    push_second (own.source, seq++);
    g_assert_cmpuint (awaited.n_packets, ==, cases[i].wanted + 1);
    g_assert_cmpuint (first.n_packets, ==, n + 2);
    relay_remove_sink (own.relay, &first);
    relay_remove_sink (own.relay, &other);
    relay_remove_sink (own.relay, &awaited);
    tear_down (&own, NULL);
  }
}

static void
on_ask (gpointer data, guint track, gint64 now)
{
  Asked *self = data;

  self->n++;
  self->track = track;
  self->now = now;
}

static void
on_free (gpointer data)
{
  ((Asked *) data)->n_freed++;
}

static void
a_source_is_asked_for_a_keyframe_once_a_second (Fixture *f, gconstpointer unused)
{
  Asked asked = { 0 }, other = { 0 };

  begin (f->source, VIDEO, AUDIO);
  relay_ask_key (f->relay, 0, SECOND); // the source has no handler
  relay_source_set_key_handler (f->source, on_ask, &asked, on_free);
  push (f->source, 0, 1, SECOND);
  g_assert_cmpuint (asked.n, ==, 0);

  for (gint64 i = 0; i < 10; i++)
    relay_ask_key (f->relay, 0, 2 * SECOND + i);
  g_assert_cmpuint (asked.n, ==, 1);
  g_assert_cmpint (asked.now, ==, 2 * SECOND);
  relay_ask_key (f->relay, 1, 2 * SECOND + 20); // the limit is for each track
  g_assert_cmpuint (asked.n, ==, 2);
  g_assert_cmpuint (asked.track, ==, 1);

  // The requests after the first are merged into one, a second later.
  push (f->source, 0, 2, 3 * SECOND - 1);
  g_assert_cmpuint (asked.n, ==, 2);
  push (f->source, 0, 3, 3 * SECOND);
  g_assert_cmpuint (asked.n, ==, 3);
  g_assert_cmpuint (asked.track, ==, 0);
  push (f->source, 0, 4, 5 * SECOND);
  relay_ask_key (f->relay, 7, 5 * SECOND);
  g_assert_cmpuint (asked.n, ==, 3);

  relay_source_set_key_handler (f->source, on_ask, &other, on_free);
  g_assert_cmpuint (asked.n_freed, ==, 1);
  relay_ask_key (f->relay, 0, 6 * SECOND);
  g_assert_cmpuint (asked.n, ==, 3);
  g_assert_cmpuint (other.n, ==, 1);
  relay_source_set_key_handler (f->source, NULL, NULL, NULL);
  g_assert_cmpuint (other.n_freed, ==, 1);
}

// A sink's event passes two relays to the handler of the first relay's source.
static void
keyframe_requests_pass_linked_relays (Fixture *f, gconstpointer unused)
{
  Relay *behind = relay_new ();
  RelaySource *linked = relay_source_new (behind, NULL, NULL);
  GstCaps *caps = gst_caps_from_string (VIDEO);
  Feed *feed = gst_object_ref_sink (feed_new (caps, FALSE));
  GstPad *pad = gst_element_get_static_pad (GST_ELEMENT (feed), "src");
  Asked asked = { 0 };

  begin (f->source, VIDEO, NULL);
  relay_source_set_key_handler (f->source, on_ask, &asked, on_free);
  relay_link (f->relay, linked);
  gst_pad_set_active (pad, TRUE);
  g_assert_false (gst_pad_send_event (pad, key_event_new ()));
  feed_attach (feed, behind, 0);
  g_assert_true (gst_pad_send_event (pad, key_event_new ()));
  g_assert_cmpuint (asked.n, ==, 1);

  relay_unlink (f->relay, linked);
  relay_ask_key (behind, 0, asked.now + 2 * SECOND);
  g_assert_cmpuint (asked.n, ==, 1);
  feed_detach (feed, behind);
  g_assert_cmpint (GST_OBJECT_REFCOUNT_VALUE (feed), ==, 1);
  gst_pad_set_active (pad, FALSE);
  gst_object_unref (pad);
  gst_object_unref (feed);
  gst_caps_unref (caps);
  relay_source_unref (linked);
  relay_unref (behind);
  relay_source_set_key_handler (f->source, NULL, NULL, NULL);
}

static guint64
overflow_of (Relay *relay)
{
  RelayStats stats;

  relay_get_stats (relay, &stats);
  return stats.counts[RELAY_OVERFLOW];
}

// What a source that stands by loses, readers do not miss.
static void
an_overflow_of_the_current_source_passes_linked_relays (Fixture *f, gconstpointer unused)
{
  Relay *behind = relay_new ();
  RelaySource *linked = relay_source_new (behind, NULL, NULL);
  RelaySource *spare = relay_source_new (f->relay, NULL, NULL);

  relay_link (f->relay, linked);
  begin (f->source, VIDEO, NULL);
  relay_count (f->source, RELAY_OVERFLOW, 3);
  relay_count (spare, RELAY_OVERFLOW, 5);
  g_assert_cmpuint (overflow_of (f->relay), ==, 3);
  g_assert_cmpuint (overflow_of (behind), ==, 3);
  relay_unlink (f->relay, linked);
  relay_count (f->source, RELAY_OVERFLOW, 1);
  g_assert_cmpuint (overflow_of (f->relay), ==, 4);
  g_assert_cmpuint (overflow_of (behind), ==, 3);
  relay_source_end (spare);
  relay_source_unref (spare);
  relay_source_end (linked);
  relay_source_unref (linked);
  relay_unref (behind);
}

static void
packets_of_a_batch_are_marked (Fixture *f, gconstpointer unused)
{
  Relay *behind = relay_new ();
  RelaySource *link = relay_source_new (behind, NULL, NULL);
  Received direct = { 0 }, linked = { 0 };

  begin (f->source, VIDEO, NULL);
  relay_link (f->relay, link);
  relay_add_sink (f->relay, &any_tracks, &direct, G_MAXUINT32, 0);
  relay_add_sink (behind, &any_tracks, &linked, G_MAXUINT32, 0);
  for (guint16 seq = 1; seq <= 3; seq++)
    relay_push_more (f->source, 0, packet_new (0, seq), SECOND, RELAY_NO_BASE);
  g_assert_cmpuint (direct.n_packets, ==, 0);
  relay_settle (f->source, 0);
  g_assert_cmpuint (direct.n_packets, ==, 3);
  g_assert_cmpuint (linked.n_packets, ==, 3);
  g_assert_cmpuint (direct.n_more, ==, 2);
  g_assert_cmpuint (linked.n_more, ==, 2);

  // A packet that does not wait takes those with it that do.
  relay_push_more (f->source, 0, packet_new (0, 4), SECOND, RELAY_NO_BASE);
  push (f->source, 0, 5, SECOND);
  g_assert_cmpuint (direct.n_packets, ==, 5);
  g_assert_cmpuint (linked.n_packets, ==, 5);
  relay_settle (f->source, 0);
  relay_settle (f->source, 9);
  g_assert_cmpuint (linked.n_packets, ==, 5);

  relay_unlink (f->relay, link);
  relay_source_end (link);
  relay_source_unref (link);
  relay_remove_sink (behind, &linked);
  relay_remove_sink (f->relay, &direct);
  relay_unref (behind);
}

#define ADD(name, function) g_test_add (name, Fixture, NULL, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  ADD ("/relay-sinks/a-sink-gets-the-tracks-of-its-mask", a_sink_gets_the_tracks_of_its_mask);
  ADD ("/relay-sinks/changed-tracks-remove-a-sink-without-begun",
      changed_tracks_remove_a_sink_without_begun);
  ADD ("/relay-sinks/a-sink-that-opens-late-gets-the-held-packets",
      a_sink_that_opens_late_gets_the_held_packets);
  ADD ("/relay-sinks/a-sink-gets-the-newest-group", a_sink_gets_the_newest_group);
  ADD ("/relay-sinks/a-group-is-bounded", a_group_is_bounded);
  ADD ("/relay-sinks/a-group-has-no-gap-and-no-overlap", a_group_has_no_gap_and_no_overlap);
  ADD ("/relay-sinks/an-awaited-sink-gets-the-run-from-its-start",
      an_awaited_sink_gets_the_run_from_its_start);
  ADD ("/relay-sinks/a-source-is-asked-for-a-keyframe-once-a-second",
      a_source_is_asked_for_a_keyframe_once_a_second);
  ADD ("/relay-sinks/packets-of-a-batch-are-marked", packets_of_a_batch_are_marked);
  ADD ("/relay-sinks/keyframe-requests-pass-linked-relays", keyframe_requests_pass_linked_relays);
  ADD ("/relay-sinks/an-overflow-of-the-current-source-passes-linked-relays",
      an_overflow_of_the_current_source_passes_linked_relays);
  return g_test_run ();
}
