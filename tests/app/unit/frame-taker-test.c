// SPDX-License-Identifier: LGPL-2.1-or-later
#include "avc.h"
#include "frames/frame_taker.h"
#include "relay/relay.h"

#include <string.h>

#define CAPS "application/x-rtp, media=video, encoding-name=H264, clock-rate=90000, payload=96"
#define AAC                                                                                        \
  "application/x-rtp, media=audio, encoding-name=MPEG4-GENERIC, clock-rate=48000, payload=97, "    \
  "mode=AAC-hbr, config=(string)1190, sizelength=(string)13, indexlength=(string)3, "              \
  "indexdeltalength=(string)3"
#define PICTURE (G_GINT64_CONSTANT (3000) * GST_SECOND / 90000)
#define LEVEL (gint64) GST_SECOND // when the first packet comes
#define SECOND_IDR 64             // of the plain stream
#define N_MAX 512

// Fields of what a taker got, and the frames themselves, to compare.
typedef struct {
  FrameTaker *taker;
  GstBuffer *frames[N_MAX];
  gint64 pts[N_MAX];
  gboolean keys[N_MAX], lost[N_MAX], begins[N_MAX];
  guint n, n_arrived, n_formats, n_ended, n_failed;
  gchar reason[80];
} Taken;

typedef struct {
  Relay *relay;
  RelaySource *source;
  GPtrArray *caps;
} Fixture;

static Avc plain, svc;
static GMutex ended_lock;
static GCond ended;

static void
on_arrived (gpointer owner, gint64 time)
{
  ((Taken *) owner)->n_arrived++;
}

static void
on_format (gpointer owner, const GstCaps *caps)
{
  const GstStructure *format = gst_caps_get_structure (caps, 0);

  g_assert_true (gst_structure_has_field (format, "codec_data"));
  ((Taken *) owner)->n_formats++;
}

static void
on_frame (gpointer owner, const Frame *frame)
{
  Taken *self = owner;

  g_assert_cmpuint (self->n_formats, >, 0);
  g_assert_cmpuint (self->n, <, N_MAX);
  self->pts[self->n] = frame->pts;
  self->keys[self->n] = frame->key;
  self->lost[self->n] = frame->lost;
  self->begins[self->n] = frame->begins;
  self->frames[self->n++] = gst_buffer_ref (frame->data);
}

static void
on_ended (gpointer owner)
{
  g_mutex_lock (&ended_lock);
  ((Taken *) owner)->n_ended++;
  g_cond_signal (&ended);
  g_mutex_unlock (&ended_lock);
}

static void
on_failed (gpointer owner, const gchar *reason)
{
  Taken *self = owner;

  self->n_failed++;
  g_strlcpy (self->reason, reason, sizeof self->reason);
}

static const FrameTakerFunctions functions = { on_arrived, on_format, on_frame, on_ended,
  on_failed };

static FrameWish
wish (gboolean is_plain, FrameStart start)
{
  return (FrameWish) { WEIR_LAYER_SET_ALL, is_plain, start };
}

static void
take_as (Fixture *f, Taken *taken, FrameWish as)
{
  GError *error = NULL;

  *taken = (Taken) { frame_taker_new (f->relay, 0, g_ptr_array_index (f->caps, 0), &as, &error) };
  g_assert_no_error (error);
  frame_taker_start (taken->taker, &functions, taken, "test");
}

static void
take (Fixture *f, Taken *taken)
{
  take_as (f, taken, wish (FALSE, FRAMES_FROM_NOW));
}

static void
leave (Taken *taken)
{
  frame_taker_free (taken->taker);
  g_mutex_lock (&ended_lock);
  while (taken->n_ended == 0)
    g_cond_wait (&ended, &ended_lock);
  g_mutex_unlock (&ended_lock);
  g_assert_cmpuint (taken->n_ended, ==, 1);
  for (guint i = 0; i < taken->n; i++)
    gst_buffer_unref (taken->frames[i]);
}

static void
iterate (void)
{
  while (g_main_context_iteration (NULL, FALSE))
    ;
}

static RelayTracks
begin (Fixture *f, const gchar *caps)
{
  g_clear_pointer (&f->caps, g_ptr_array_unref);
  f->caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  g_ptr_array_add (f->caps, gst_caps_from_string (caps));
  return relay_source_begin (f->source, f->caps);
}

static void
set_up (Fixture *f, gconstpointer unused)
{
  *f = (Fixture) { relay_new () };
  f->source = relay_source_new (f->relay, NULL, NULL);
  begin (f, CAPS);
}

static void
tear_down (Fixture *f, gconstpointer unused)
{
  relay_source_end (f->source);
  relay_source_unref (f->source);
  relay_unref (f->relay);
  g_ptr_array_unref (f->caps);
}

// Pushes the access units from `from` up to, and without, `until`, but for the packet with the
// number `without`. The times of packets are when they come.
static void
push (Fixture *f, const Avc *avc, guint from, guint until, gint without)
{
  AvcRtp rtp = avc_packetize (avc, FALSE, 1000);

  for (gsize i = 0; i < rtp.n; i++) {
    const AvcPacket *packet = &rtp.packets[i];
    guint au = (GST_READ_UINT32_BE (packet->data + 4) - 1000) / 3000;

    if (au >= from && au < until && (gint) i != without)
      relay_push (f->source, 0, gst_buffer_new_memdup (packet->data, packet->len),
          LEVEL + au * PICTURE, RELAY_NO_BASE);
  }
  free (rtp.packets);
}

static gint
find_packet (const Avc *avc, guint of_au)
{
  AvcRtp rtp = avc_packetize (avc, FALSE, 1000);
  gint found = -1;

  for (gsize i = 0; i < rtp.n && found < 0; i++) {
    if ((GST_READ_UINT32_BE (rtp.packets[i].data + 4) - 1000) / 3000 == of_au)
      found = (gint) i;
  }
  free (rtp.packets);
  return found;
}

// Returns whether the last `n` frames of both are the same buffers.
static gboolean
are_same (const Taken *a, const Taken *b, guint n)
{
  gboolean same = a->n >= n && b->n >= n && n > 0;

  for (guint i = 1; i <= n && same; i++)
    same = a->frames[a->n - i] == b->frames[b->n - i];
  return same;
}

// Returns whether a frame of avc has a unit that only SVC has.
static gboolean
has_svc (GstBuffer *frame)
{
  gboolean found = FALSE;
  GstMapInfo map;

  gst_buffer_map (frame, &map, GST_MAP_READ);
  for (gsize at = 0; at + 4 < map.size;) {
    guint8 type = map.data[at + 4] & 31;
    guint32 size;

    found |= type == 14 || type == 15 || type == 20;
    memcpy (&size, map.data + at, sizeof size);
    at += sizeof size + GUINT32_FROM_BE (size);
  }
  gst_buffer_unmap (frame, &map);
  return found;
}

static void
takers_share_frames (Fixture *f, gconstpointer unused)
{
  Taken first, second;

  take (f, &first);
  push (f, &plain, 0, 5, -1);
  g_assert_cmpuint (first.n, ==, 5);
  g_assert_cmpuint (first.n_formats, ==, 1);
  g_assert_cmpuint (first.n_arrived, >=, 5);
  g_assert_true (first.keys[0] && first.begins[0]);
  g_assert_false (first.keys[1] || first.begins[1] || first.lost[1]);
  for (guint i = 1; i < 5; i++)
    g_assert_cmpint (ABS (first.pts[i] - first.pts[i - 1] - PICTURE), <=, 1);
  take (f, &second);
  push (f, &plain, 5, 10, -1);
  g_assert_cmpuint (first.n, ==, 10);
  g_assert_cmpuint (second.n, ==, 5);
  g_assert_cmpuint (second.n_formats, ==, 1);
  g_assert_true (are_same (&first, &second, 5));
  leave (&first);
  push (f, &plain, 10, 15, -1);
  g_assert_cmpuint (second.n, ==, 10);
  leave (&second);
  push (f, &plain, 15, 20, -1);
  g_assert_cmpuint (second.n, ==, 10);
}

static void
a_frame_after_a_loss_says_so (Fixture *f, gconstpointer unused)
{
  Taken taken;

  take (f, &taken);
  push (f, &plain, 0, 20, find_packet (&plain, 7));
  g_assert_cmpuint (taken.n, >=, 19);
  for (guint i = 1; i < taken.n; i++)
    g_assert_cmpint (taken.lost[i], ==, i == 7);
  leave (&taken);
}

static void
plain_h264_is_shared_when_it_is_known_to_be_plain (Fixture *f, gconstpointer unused)
{
  Taken as_is, early, late;

  take (f, &as_is);
  take_as (f, &early, wish (TRUE, FRAMES_FROM_NOW));
  push (f, &plain, 0, 5, -1);
  take_as (f, &late, wish (TRUE, FRAMES_FROM_NOW));
  push (f, &plain, 5, 10, -1);
  g_assert_cmpuint (late.n, ==, 5);
  g_assert_true (are_same (&as_is, &late, 5));
  g_assert_false (are_same (&as_is, &early, 1));
  leave (&early);
  leave (&as_is);
  leave (&late);
  // As it is, too, if the plain one came first.
  take_as (f, &late, wish (TRUE, FRAMES_FROM_NOW));
  push (f, &plain, SECOND_IDR, SECOND_IDR + 5, -1);
  take (f, &as_is);
  push (f, &plain, SECOND_IDR + 5, SECOND_IDR + 10, -1);
  g_assert_cmpuint (as_is.n, >=, 4); // the filter holds a frame until it is whole
  g_assert_true (are_same (&as_is, &late, 4));
  leave (&late);
  leave (&as_is);
}

static void
svc_has_both_forms (Fixture *f, gconstpointer unused)
{
  Taken as_is, as_plain;

  take (f, &as_is);
  push (f, &svc, 0, 5, -1);
  take_as (f, &as_plain, wish (TRUE, FRAMES_FROM_NOW));
  push (f, &svc, 60, 70, -1);
  g_assert_cmpuint (as_plain.n, >=, 9);
  g_assert_true (has_svc (as_is.frames[as_is.n - 1]));
  for (guint i = 0; i < as_plain.n; i++)
    g_assert_false (has_svc (as_plain.frames[i]));
  iterate ();
  g_assert_cmpuint (as_is.n_failed + as_plain.n_failed, ==, 0);
  leave (&as_is);
  leave (&as_plain);
}

static void
svc_ends_takers_of_the_other_form (Fixture *f, gconstpointer unused)
{
  Taken as_is, as_plain, again;

  take (f, &as_is);
  push (f, &plain, 0, 5, -1);
  take_as (f, &as_plain, wish (TRUE, FRAMES_FROM_NOW));
  push (f, &svc, 60, 70, -1);
  iterate ();
  g_assert_cmpuint (as_is.n_failed, ==, 0);
  g_assert_cmpuint (as_plain.n_failed, ==, 1);
  leave (&as_plain);
  take_as (f, &again, wish (TRUE, FRAMES_FROM_NOW));
  push (f, &svc, 70, 75, -1);
  g_assert_false (are_same (&as_is, &again, 1));
  leave (&as_is);
  leave (&again);
}

static void
the_awaited_taker_gets_the_beginning (Fixture *f, gconstpointer unused)
{
  Taken now, awaited, held;

  relay_expect_sinks (f->relay, TRUE);
  relay_await_sink (f->relay, TRUE);
  begin (f, CAPS);
  take (f, &now);
  push (f, &plain, 0, 5, -1);
  take_as (f, &awaited, wish (FALSE, FRAMES_FROM_START));
  take_as (f, &held, wish (FALSE, FRAMES_FROM_HELD));
  push (f, &plain, 5, 10, -1);
  g_assert_cmpuint (now.n, ==, 10);
  g_assert_cmpuint (awaited.n, ==, 10);
  g_assert_true (are_same (&awaited, &held, 10));
  leave (&now);
  leave (&awaited);
  leave (&held);
  // Nothing is held any more, so one is as good as another.
  take (f, &now);
  take_as (f, &awaited, wish (FALSE, FRAMES_FROM_START));
  push (f, &plain, SECOND_IDR, SECOND_IDR + 5, -1);
  g_assert_true (are_same (&now, &awaited, 5));
  leave (&now);
  leave (&awaited);
}

static void
other_tracks_have_other_frames (Fixture *f, gconstpointer unused)
{
  Taken before, after;

  take (f, &before);
  push (f, &plain, 0, 5, -1);
  g_assert_cmpint (begin (f, AAC), ==, RELAY_TRACKS_CHANGED);
  g_assert_cmpint (begin (f, CAPS), ==, RELAY_TRACKS_CHANGED);
  take (f, &after);
  push (f, &plain, SECOND_IDR, SECOND_IDR + 5, -1);
  g_assert_cmpuint (before.n, ==, 5);
  g_assert_cmpuint (after.n, ==, 5);
  leave (&before);
  leave (&after);
}

static void
elements_that_fail_end_all_takers (Fixture *f, gconstpointer unused)
{
  Taken first, second, third;

  // The depayloader takes no such caps.
  begin (f, "application/x-rtp, media=audio, encoding-name=MPEG4-GENERIC, clock-rate=48000, "
            "payload=97");
  take (f, &first);
  take (f, &second);
  push (f, &plain, 0, 1, -1);
  iterate ();
  g_assert_cmpuint (first.n_failed, ==, 1);
  g_assert_cmpuint (second.n_failed, ==, 1);
  g_assert_cmpuint (strlen (first.reason), >, 0);
  take (f, &third);
  iterate ();
  g_assert_cmpuint (first.n_failed, ==, 1);
  leave (&first);
  leave (&second);
  leave (&third);
}

static void
on_packet (GstElement *sink, GstBuffer *packet, GstPad *pad, Fixture *f)
{
  relay_push (f->source, 0, gst_buffer_copy_deep (packet), LEVEL + (gint64) GST_BUFFER_PTS (packet),
      RELAY_NO_BASE);
}

// The payloader puts parameter sets before each slice of a keyframe.
static void
a_keyframe_of_several_slices_is_one_frame (Fixture *f, gconstpointer unused)
{
  GstElement *pipeline, *sink;
  GError *error = NULL;
  GstMessage *end;
  Taken taken;

  if (!gst_registry_check_feature_version (gst_registry_get (), "openh264enc", 1, 0, 0)) {
    g_test_skip ("there is no openh264enc");
    return;
  }
  pipeline = gst_parse_launch (
      "videotestsrc num-buffers=10 ! video/x-raw,format=I420,width=320,height=240 ! openh264enc "
      "slice-mode=n-slices num-slices=2 gop-size=5 ! h264parse ! rtph264pay config-interval=-1 ! "
      "fakesink name=sink signal-handoffs=true",
      &error);
  g_assert_no_error (error);
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  g_signal_connect (sink, "handoff", G_CALLBACK (on_packet), f);
  take (f, &taken);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  end = gst_bus_timed_pop_filtered (
      GST_ELEMENT_BUS (pipeline), 30 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  g_assert_nonnull (end);
  g_assert_cmpint (GST_MESSAGE_TYPE (end), ==, GST_MESSAGE_EOS);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  g_assert_cmpuint (taken.n, ==, 10);
  leave (&taken);
  gst_message_unref (end);
  gst_object_unref (sink);
  gst_object_unref (pipeline);
}

#define ROUNDS 300

typedef struct {
  Fixture *f;
  gint stops; // atomic
} Pusher;

// Pushes the first access units again and again, as a stream that goes on.
static gpointer
push_on (gpointer data)
{
  Pusher *self = data;
  AvcRtp rtp = avc_packetize (&plain, FALSE, 0);
  guint32 n_aus = 0;
  guint16 seq = 0;

  while (!g_atomic_int_get (&self->stops)) {
    for (gsize i = 0; i < rtp.n && GST_READ_UINT32_BE (rtp.packets[i].data + 4) < 1000 + 30000;
        i++) {
      AvcPacket packet = rtp.packets[i];
      guint32 au = n_aus + (GST_READ_UINT32_BE (packet.data + 4) - 1000) / 3000;

      GST_WRITE_UINT16_BE (packet.data + 2, seq++);
      GST_WRITE_UINT32_BE (packet.data + 4, 1000 + au * 3000);
      relay_push (self->f->source, 0, gst_buffer_new_memdup (packet.data, packet.len),
          LEVEL + au * PICTURE, RELAY_NO_BASE);
    }
    n_aus += 10;
  }
  free (rtp.packets);
  return NULL;
}

// Counts frames.
static void
count (gpointer owner, const Frame *frame)
{
  Taken *self = owner;

  g_assert_cmpuint (self->n_formats, >, 0);
  g_assert_cmpuint (self->n_ended, ==, 0);
  g_assert_cmpuint (gst_buffer_get_size (frame->data), >, 0);
  g_atomic_int_inc (&self->n_arrived);
}

static void
takers_come_and_go_while_packets_pass (Fixture *f, gconstpointer unused)
{
  static const FrameTakerFunctions counting = { NULL, on_format, count, on_ended, on_failed };
  const FrameWish all = wish (FALSE, FRAMES_FROM_NOW);
  Pusher pusher = { f };
  GThread *thread = g_thread_new ("pusher", push_on, &pusher);
  Taken *taken = g_new0 (Taken, 3);
  guint n = 0;

  for (guint i = 0; i < ROUNDS; i++) {
    Taken *each = &taken[i % 3];

    if (each->taker) {
      leave (each);
      n += each->n_arrived > 0;
    }
    *each = (Taken) { frame_taker_new (f->relay, 0, g_ptr_array_index (f->caps, 0), &all, NULL) };
    frame_taker_start (each->taker, &counting, each, "test");
    while (i % 10 == 0 && g_atomic_int_get (&each->n_arrived) == 0)
      g_thread_yield ();
  }
  for (guint i = 0; i < 3; i++)
    leave (&taken[i]);
  g_atomic_int_set (&pusher.stops, 1);
  g_thread_join (thread);
  g_assert_cmpuint (n, >=, ROUNDS / 10 - 1);
  g_free (taken);
}

#define ADD(name, function)                                                                        \
  g_test_add ("/frame-taker/" name, Fixture, NULL, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  gint status;

  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_assert_true (avc_load (&plain, "avc_4t.264") && avc_load (&svc, "svc_3s3t.264"));
  ADD ("takers-share-frames", takers_share_frames);
  ADD ("a-frame-after-a-loss-says-so", a_frame_after_a_loss_says_so);
  ADD ("plain-h264-is-shared-when-it-is-known-to-be-plain",
      plain_h264_is_shared_when_it_is_known_to_be_plain);
  ADD ("svc-has-both-forms", svc_has_both_forms);
  ADD ("svc-ends-takers-of-the-other-form", svc_ends_takers_of_the_other_form);
  ADD ("the-awaited-taker-gets-the-beginning", the_awaited_taker_gets_the_beginning);
  ADD ("other-tracks-have-other-frames", other_tracks_have_other_frames);
  ADD ("elements-that-fail-end-all-takers", elements_that_fail_end_all_takers);
  ADD ("a-keyframe-of-several-slices-is-one-frame", a_keyframe_of_several_slices_is_one_frame);
  ADD ("takers-come-and-go-while-packets-pass", takers_come_and_go_while_packets_pass);
  status = g_test_run ();
  avc_free (&plain);
  avc_free (&svc);
  return status;
}
