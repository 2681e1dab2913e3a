// SPDX-License-Identifier: LGPL-2.1-or-later

// Offers of browsers and other clients, and what the proxy answers to them.

#include "outlets/webrtc/sdp_sent.h"

#include <gio/gio.h>
#include <gst/gst.h>
#include <string.h>

#define WORDS 16
#define TRANSPORT_CC "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
#define SAME_8 ":5A:5A:5A:5A:5A:5A:5A:5A"
#define SAME_31 SAME_8 SAME_8 SAME_8 ":5A:5A:5A:5A:5A:5A:5A"

static const AnswerTrack baseline = { TRUE, "H264", "profile-level-id=42c01e" };
static const AnswerTrack high = { TRUE, "H264", "packetization-mode=1; profile-level-id=640028" };
static const AnswerTrack h265 = { TRUE, "H265", NULL };
static const AnswerTrack vp8 = { TRUE, "VP8", NULL };
static const AnswerTrack vp9 = { TRUE, "VP9", "profile-id=2" };
static const AnswerTrack av1 = { TRUE, "AV1", NULL };
static const AnswerTrack opus = { FALSE, "OPUS", NULL };
static const AnswerTrack alaw = { FALSE, "PCMA", NULL };

static const AnswerCandidate candidates[] = {
  { "192.0.2.7", 8189, FALSE },
  { "2001:db8::7", 8189, FALSE },
  { "192.0.2.7", 8189, TRUE },
};
static const AnswerOwn own = { 7, "ourfrag", "ourpassword0123456789x", "AA:BB", FALSE, "ourname",
  candidates, G_N_ELEMENTS (candidates) };

static gchar *
load (const gchar *name)
{
  gchar *path = g_strdup_printf (WEIR_OFFERS "/%s.sdp", name), *text;
  GError *error = NULL;

  g_file_get_contents (path, &text, NULL, &error);
  g_assert_no_error (error);
  g_free (path);
  return text;
}

static SdpOffer *
read_offer (const gchar *name)
{
  gchar *text = load (name);
  GError *error = NULL;
  SdpOffer *offer = sdp_offer_new (text, strlen (text), &error);

  g_assert_no_error (error);
  g_free (text);
  return offer;
}

// ---- answers ----

typedef struct {
  const gchar *offer;
  const AnswerTrack *tracks[2];
  const gchar *has[WORDS]; // lines of the answer; one that begins with "!" is not in it
} Row;

static const Row rows[] = {
  { "chromium", { &baseline, &opus },
      { "a=ice-lite", "a=group:BUNDLE 0 1", "m=video 9 UDP/TLS/RTP/SAVPF 108 109",
          "a=rtpmap:108 H264/90000", "a=fmtp:109 apt=108", "a=rtcp-fb:108 nack pli",
          "m=audio 9 UDP/TLS/RTP/SAVPF 111", "a=rtpmap:111 opus/48000/2", "a=setup:passive",
          "a=fmtp:108 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
          "a=extmap:4 " TRANSPORT_CC, "a=rtcp-fb:108 transport-cc", "a=rtcp-fb:111 transport-cc",
          "!a=rtcp-fb:109 transport-cc", "!a=rtcp-fb:108 goog-remb",
          "a=extmap:5 http://www.webrtc.org/experiments/rtp-hdrext/playout-delay" } },
  { "chromium", { &high, NULL },
      { "m=video 9 UDP/TLS/RTP/SAVPF 108 109", "m=audio 0 UDP/TLS/RTP/SAVPF 111",
          "a=group:BUNDLE 0", "!a=group:BUNDLE 0 1", "a=rtcp-rsize", "a=sendonly" } },
  { "chromium", { &av1, &alaw },
      { "m=video 9 UDP/TLS/RTP/SAVPF 45 46", "m=audio 9 UDP/TLS/RTP/SAVPF 8",
          "a=rtpmap:8 PCMA/8000", "!a=rtpmap:47 AV1/90000" } },
  { "chromium", { &vp9, &vp8 }, // one track of a kind
      { "m=video 9 UDP/TLS/RTP/SAVPF 100 101", "a=fmtp:100 profile-id=2" } },
  { "firefox", { &baseline, &opus },
      { "m=video 9 UDP/TLS/RTP/SAVPF 126 127", "m=audio 9 UDP/TLS/RTP/SAVPF 109",
          "a=fmtp:109 maxplaybackrate=48000;stereo=1;useinbandfec=1", "a=rtcp-fb:126 ccm fir",
          "a=extmap:6 http://www.webrtc.org/experiments/rtp-hdrext/playout-delay",
          "!a=rtcp-fb:109 nack", "a=extmap:7 " TRANSPORT_CC, "a=rtcp-fb:126 transport-cc" } },
  { "firefox", { &high, NULL }, { "m=video 9 UDP/TLS/RTP/SAVPF 126 127" } },
  { "safari", { &high, &opus },
      { "m=audio 9 UDP/TLS/RTP/SAVPF 111", "m=video 9 UDP/TLS/RTP/SAVPF 96 97",
          "a=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=640c1f" } },
  { "safari", { &h265, NULL },
      { "m=audio 0 UDP/TLS/RTP/SAVPF 111", "m=video 9 UDP/TLS/RTP/SAVPF 100 101",
          "a=fmtp:100 level-id=93;tx-mode=SRST" } },
  { "gstreamer", { &high, &opus },
      { "m=video 9 UDP/TLS/RTP/SAVPF 96 97", "m=audio 9 UDP/TLS/RTP/SAVPF 98",
          "a=rtpmap:98 OPUS/48000/2", "a=group:BUNDLE video0 audio1", "!a=extmap" } },
  { "pion", { &high, &opus },
      { "m=video 9 UDP/TLS/RTP/SAVPF 112 113", "a=rtpmap:111 opus/48000/2" } },
  { "pion", { &baseline, NULL },
      { "m=video 9 UDP/TLS/RTP/SAVPF 106 107", "a=rtcp-fb:106 nack", "!a=rtcp-fb:106 ccm fir" } },
};

static gboolean
has_line (const gchar *text, const gchar *line)
{
  gchar **lines = g_strsplit (text, "\r\n", -1);
  gboolean found = g_strv_contains ((const gchar *const *) lines, line);

  g_strfreev (lines);
  return found;
}

static guint
count (const gchar *text, const gchar *word)
{
  guint n = 0;

  for (const gchar *at = text; (at = strstr (at, word)); at++)
    n++;
  return n;
}

static void
check_row (const Row *row)
{
  const AnswerTrack tracks[] = { *row->tracks[0], row->tracks[1] ? *row->tracks[1] : vp8 };
  SdpOffer *offer = read_offer (row->offer);
  GError *error = NULL;
  GArray *choices = sdp_answer_choose (offer, tracks, row->tracks[1] ? 2 : 1, &error);
  gchar *text;

  g_assert_no_error (error);
  text = sdp_answer_write (offer, choices, &own);
  g_test_message ("%s:\n%s", row->offer, text);
  for (guint i = 0; i < WORDS && row->has[i]; i++)
    g_assert_true (
        *row->has[i] == '!' ? !has_line (text, row->has[i] + 1) : has_line (text, row->has[i]));
  g_assert_cmpuint (count (text, "\nm="), ==, offer->media->len);
  g_assert_cmpuint (count (text, "a=candidate:"), ==, G_N_ELEMENTS (candidates));
  g_assert_cmpuint (count (text, "a=ice-ufrag:ourfrag\r\n"), ==, choices->len);
  g_assert_true (g_str_has_suffix (text, "\r\n"));
  g_free (text);
  g_array_unref (choices);
  sdp_offer_free (offer);
}

static void
offers_of_clients_are_answered (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    check_row (&rows[i]);
}

// A packet that is sent again with the same header would have another transport-wide number.
static void
what_is_sent_again_as_it_was_has_no_transport_wide_number (void)
{
  static const AnswerTrack tracks[] = { { TRUE, "H264", "profile-level-id=42c01e" },
    { FALSE, "OPUS", NULL } };
  gchar *text = load ("chromium"), **parts = g_strsplit (text, "a=fmtp:109 apt=108\n", -1);
  gchar *without = g_strjoinv (NULL, parts), *answer;
  SdpOffer *offer;
  GArray *choices;
  GError *error = NULL;

  g_assert_cmpuint (g_strv_length (parts), ==, 2);
  offer = sdp_offer_new (without, strlen (without), &error);
  g_assert_no_error (error);
  choices = sdp_answer_choose (offer, tracks, 2, &error);
  g_assert_no_error (error);
  answer = sdp_answer_write (offer, choices, &own);
  g_assert_true (has_line (answer, "m=video 9 UDP/TLS/RTP/SAVPF 108"));
  g_assert_true (has_line (answer, "a=rtcp-fb:108 nack"));
  g_assert_false (has_line (answer, "a=rtcp-fb:108 transport-cc"));
  g_assert_true (has_line (answer, "a=rtcp-fb:111 transport-cc"));
  g_assert_cmpuint (count (answer, TRANSPORT_CC), ==, 1);
  for (guint i = 0; i < choices->len; i++) {
    const AnswerChoice *choice = &g_array_index (choices, AnswerChoice, i);

    g_assert_cmpuint (sdp_answer_get_transport_id (offer, choice), ==, i == 0 ? 0 : 4);
  }
  g_free (answer);
  g_array_unref (choices);
  sdp_offer_free (offer);
  g_free (without);
  g_strfreev (parts);
  g_free (text);
}

// ---- publishers ----

static const Row published[] = {
  { "chromium-publish", { NULL },
      { "a=group:BUNDLE 0 1", "m=audio 9 UDP/TLS/RTP/SAVPF 111",
          "m=video 9 UDP/TLS/RTP/SAVPF 102 103", "a=recvonly", "!a=sendonly", "a=rtcp-rsize",
          "a=rtcp-fb:102 transport-cc", "!a=rtcp-fb:102 goog-remb", "a=rtcp-fb:102 nack",
          "a=fmtp:103 apt=102", "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid",
          "a=extmap:3 " TRANSPORT_CC } },
  { "chromium-simulcast", { NULL }, // one layer
      { "m=video 9 UDP/TLS/RTP/SAVPF 102 103", "!a=simulcast:recv h;m;l", "!a=rid:h recv",
          "a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id" } },
  { "obs", { NULL },
      { "m=audio 9 UDP/TLS/RTP/SAVPF 111", "m=video 9 UDP/TLS/RTP/SAVPF 96 97",
          "a=rtcp-fb:96 goog-remb", "a=rtcp-fb:96 nack pli", "a=fmtp:97 apt=96", "a=recvonly",
          "!a=rtcp-rsize" } },
  { "ffmpeg", { NULL }, // it sends nothing again, and makes no keyframes
      { "m=audio 9 UDP/TLS/RTP/SAVPF 111", "m=video 9 UDP/TLS/RTP/SAVPF 106", "!a=rtcp-fb:106 nack",
          "!a=rtcp-fb:106 nack pli", "a=recvonly" } },
};

static const Row layered[] = {
  { "chromium-simulcast", { NULL },
      { "m=video 9 UDP/TLS/RTP/SAVPF 102 103", "a=simulcast:recv h;m;l", "a=rid:h recv",
          "a=rid:m recv", "a=rid:l recv", "a=recvonly", "a=rtcp-fb:102 transport-cc",
          "a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id",
          "a=extmap:11 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id" } },
  { "obs", { NULL }, { "m=video 9 UDP/TLS/RTP/SAVPF 96 97" } },
};

static void
check_published (const Row *row, gboolean simulcast)
{
  SdpOffer *offer = read_offer (row->offer);
  AnswerOwn receiver = own;
  GError *error = NULL;
  GArray *choices = sdp_sent_choose (offer, simulcast, &error);
  gchar *text;

  g_assert_no_error (error);
  g_assert_true (sdp_sent_is (offer));
  receiver.receives = TRUE;
  text = sdp_answer_write (offer, choices, &receiver);
  g_test_message ("%s:\n%s", row->offer, text);
  for (guint i = 0; i < WORDS && row->has[i]; i++)
    g_assert_true (
        *row->has[i] == '!' ? !has_line (text, row->has[i] + 1) : has_line (text, row->has[i]));
  g_assert_cmpuint (choices->len, ==, 2);
  g_assert_cmpuint (count (text, "a=ssrc"), ==, 0);
  g_assert_cmpuint (count (text, "a=msid:"), ==, 0);
  g_free (text);
  g_array_unref (choices);
  sdp_offer_free (offer);
}

static void
offers_of_publishers_are_answered (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (published); i++)
    check_published (&published[i], FALSE);
  for (guint i = 0; i < G_N_ELEMENTS (layered); i++)
    check_published (&layered[i], TRUE);
}

static void
layers_are_what_the_client_sends (void)
{
  static const struct {
    const gchar *old, *new, *layers;
  } lists[] = {
    { "a=simulcast:send h;m;l", "a=simulcast:send h;m;l", "h m l" },
    { "a=simulcast:send h;m;l", "a=simulcast:recv x send ~l;m", "l m" },
    { "a=simulcast:send h;m;l", "a=simulcast:send m,h;h,l", "m h" }, // alternatives
    { "a=simulcast:send h;m;l", "a=simulcast:send h;h;m;", "h m" },
    { "a=simulcast:send h;m;l", "a=simulcast:send h;k;hh;l", "h l" }, // of no a=rid
    { "a=simulcast:send h;m;l", "a=simulcast:recv h;m;l", "" },
    { "a=simulcast:send h;m;l", "a=simulcast:send", "" },
    { "a=simulcast:send h;m;l", "a=simulcast:", "" },
    { "a=simulcast:send h;m;l", "a=x", "" },
    { "a=rid:m send", "a=rid:m recv", "h l" },
    { "a=rid:m send", "a=rid:m send pt=102;max-width=640", "h m l" },
    { "a=rid:m send", "a=rid:", "h l" },
    { "sdes:rtp-stream-id", "sdes:other", "" },
    { "a=simulcast:send h;m;l", "a=rid:1 send\r\na=rid:2 send\r\na=simulcast:send 1;2;h;m;l",
        "1 2 h m" },
    { "a=simulcast:send h;m;l",
        "a=rid:A1234567890-_456 send\r\na=rid:A1234567890-_4567 send\r\na=rid:a/b send\r\n"
        "a=simulcast:send A1234567890-_456;A1234567890-_4567;a/b",
        "A1234567890-_456" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    GString *text = g_string_new (NULL), *layers = g_string_new (NULL);
    gchar *plain = load ("chromium-simulcast");
    SdpOffer *offer;
    const OfferMedia *line;
    GError *error = NULL;

    g_string_append (text, plain);
    g_assert_cmpuint (g_string_replace (text, lists[i].old, lists[i].new, 1), ==, 1);
    offer = sdp_offer_new (text->str, text->len, &error);
    g_assert_no_error (error);
    line = g_ptr_array_index (offer->media, 1);
    for (guint j = 0; j < line->layers.n; j++)
      g_string_append_printf (layers, "%s%s", j > 0 ? " " : "", line->layers.rids[j]);
    g_assert_cmpstr (layers->str, ==, lists[i].layers);
    sdp_offer_free (offer);
    g_string_free (layers, TRUE);
    g_string_free (text, TRUE);
    g_free (plain);
  }
}

static void
the_tracks_of_a_publisher_are_described (void)
{
  static const gchar *const wanted[] = {
    "application/x-rtp, media=(string)audio, payload=(int)111, clock-rate=(int)48000, "
    "encoding-name=(string)OPUS, encoding-params=(string)2, sprop-stereo=(string)1",
    "application/x-rtp, media=(string)video, payload=(int)96, clock-rate=(int)90000, "
    "encoding-name=(string)H264, packetization-mode=(string)1, profile-level-id=(string)42e01f",
  };
  SdpOffer *offer = read_offer ("obs");
  GArray *choices = sdp_sent_choose (offer, FALSE, NULL);

  for (guint i = 0; i < choices->len; i++) {
    GstCaps *caps = sdp_sent_make_caps (offer, &g_array_index (choices, AnswerChoice, i));
    gchar *text = gst_caps_to_string (caps);

    g_assert_cmpstr (text, ==, wanted[i]);
    g_free (text);
    gst_caps_unref (caps);
  }
  g_array_unref (choices);
  sdp_offer_free (offer);
}

static void
candidates_are_numbers_and_udp_is_first (void)
{
  SdpOffer *offer = read_offer ("pion");
  const AnswerTrack tracks[] = { baseline };
  GArray *choices = sdp_answer_choose (offer, tracks, 1, NULL);
  gchar *text = sdp_answer_write (offer, choices, &own);

  g_assert_nonnull (
      strstr (text, "a=candidate:1 1 udp 2130706431 192.0.2.7 8189 typ host\r\n"
                    "a=candidate:2 1 udp 2130706175 2001:db8::7 8189 typ host\r\n"
                    "a=candidate:3 1 tcp 2130705919 192.0.2.7 8189 typ host tcptype passive\r\n"
                    "a=end-of-candidates\r\n"));
  g_free (text);
  g_array_unref (choices);
  sdp_offer_free (offer);
}

static void
sources_have_numbers_of_their_own (void)
{
  SdpOffer *offer = read_offer ("chromium");
  const AnswerTrack tracks[] = { opus, baseline };
  GArray *choices = sdp_answer_choose (offer, tracks, 2, NULL);
  const AnswerChoice *video = &g_array_index (choices, AnswerChoice, 0), *audio = video + 1;
  gchar *text = sdp_answer_write (offer, choices, &own), *group;
  GBytes *delay = sdp_answer_make_extensions (offer, video);

  g_assert_cmpuint (choices->len, ==, 2);
  g_assert_cmpuint (video->track, ==, 1);
  g_assert_cmpuint (audio->track, ==, 0);
  g_assert_true (video->ssrc && video->rtx_ssrc && audio->ssrc && !audio->rtx_ssrc);
  g_assert_true (video->ssrc != video->rtx_ssrc && video->ssrc != audio->ssrc);
  group = g_strdup_printf ("a=ssrc-group:FID %u %u", video->ssrc, video->rtx_ssrc);
  g_assert_true (has_line (text, group));
  // From 0 to 400 ms, in units of 10 ms and 12 bits each.
  g_assert_cmpmem (g_bytes_get_data (delay, NULL), g_bytes_get_size (delay), "\x52\x00\x00\x28", 4);
  g_assert_null (sdp_answer_make_extensions (offer, audio));
  g_bytes_unref (delay);
  g_free (group);
  g_free (text);
  g_array_unref (choices);
  sdp_offer_free (offer);
}

static void
nothing_in_common_names_both_lists (void)
{
  SdpOffer *offer = read_offer ("gstreamer");
  const AnswerTrack tracks[] = { h265, { FALSE, "MPEG4-GENERIC", NULL } };
  GError *error = NULL;

  g_assert_null (sdp_answer_choose (offer, tracks, 2, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (
      error->message, ==, "the client takes H264, OPUS, but the stream has H265, MPEG4-GENERIC");
  g_error_free (error);
  sdp_offer_free (offer);
}

static void
a_profile_that_does_not_fit_is_named (void)
{
  static const gchar text[] = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"
                              "a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\n"
                              "a=fingerprint:sha-256 00" SAME_31 "\r\n"
                              "m=video 9 UDP/TLS/RTP/SAVPF 98\r\na=rtcp-mux\r\na=recvonly\r\n"
                              "a=rtpmap:98 VP9/90000\r\na=fmtp:98 profile-id=0\r\n";
  GError *error = NULL;
  SdpOffer *offer = sdp_offer_new (text, strlen (text), &error);

  g_assert_no_error (error);
  g_assert_null (sdp_answer_choose (offer, &vp9, 1, &error));
  g_assert_cmpstr (
      error->message, ==, "the client takes VP9, but the stream has VP9 (profile-id=2)");
  g_error_free (error);
  sdp_offer_free (offer);
}

static void
who_publishes_receives_nothing (void)
{
  static const gchar *const publishers[] = { "obs", "ffmpeg", "chromium-publish" };

  for (guint i = 0; i < G_N_ELEMENTS (publishers); i++) {
    SdpOffer *offer = read_offer (publishers[i]);

    g_assert_false (sdp_answer_receives (offer));
    g_assert_true (offer->is_passive == (i == 1));
    sdp_offer_free (offer);
  }
}

static void
the_transport_is_read (void)
{
  static const struct {
    const gchar *name, *ufrag;
  } offers[] = { { "chromium", "An0v" }, { "firefox", "fd5dcb3d" }, { "obs", "Zlqy" } };

  for (guint i = 0; i < G_N_ELEMENTS (offers); i++) {
    SdpOffer *offer = read_offer (offers[i].name);

    g_assert_cmpstr (offer->ufrag, ==, offers[i].ufrag);
    g_assert_cmpmem (offer->fingerprint, 3, "\x7c\xd6\x73", 3);
    g_assert_false (offer->is_passive);
    sdp_offer_free (offer);
  }
}

// ---- wrong offers ----

// A change of the offer of GStreamer, and what its error says.
static const struct {
  const gchar *from, *to, *says;
} changes[] = {
  { "v=0", "w=0", "v=0" },
  { "UDP/TLS/RTP/SAVPF", "RTP/AVP", "over DTLS" },
  { "a=group:BUNDLE video0 audio1", "a=group:LS video0 audio1", "a=group:BUNDLE" },
  { "a=group:BUNDLE video0 audio1", "a=group:BUNDLE none", "over DTLS" },
  { "a=rtcp-mux", "a=x", "m=video has no line a=rtcp-mux" },
  { "a=ice-ufrag:sbJW1bOuQ1NzlXl8MrFP3h7Y5yBxTRcG", "a=ice-ufrag:a b", "a=ice-ufrag" },
  { "a=ice-ufrag:", "a=ice-flag:", "no line a=ice-ufrag" },
  { "a=ice-pwd:4v6T0uXfPrJyQZsnTCVXnnQgSKd8kqTb", "a=ice-pwd:short", "a=ice-pwd" },
  { "a=fingerprint:sha-256", "a=fingerprint:sha-1", "a=fingerprint:sha-256" },
  { "7C:D6:", "7C:D6", "32 bytes" },
  { "7C:D6:", "7C:D6:00:", "32 bytes" },
  { "a=setup:actpass", "a=setup:holdconn", "a=setup:holdconn" },
  { "a=rtpmap:96 H264/90000", "a=rtpmap:96 H264", "a=rtpmap:96 H264" },
  { "a=rtpmap:96 H264/90000", "a=rtpmap:96 H264/0", "a=rtpmap:96 H264/0" },
  { "a=rtpmap:96 H264/90000", "a=rtpmap:96 H264/90000/x", "a=rtpmap:96 H264/90000/x" },
  { "SAVPF 96 97", "SAVPF 96 128", "128" },
  { "SAVPF 96 97", "SAVPF 96 x", "\"x\"" },
  { "SAVPF 96 97", "SAVPF 96 96", "96 is twice" },
  { "a=mid:video0", "a=mid:two words", "a=mid" },
  { "a=rtcp-rsize", "a=extmap:0 urn:x", "a=extmap:0 urn:x" },
  { "s=-", "s=\001", "control character" },
};

static gchar *
replace (const gchar *text, const gchar *from, const gchar *to)
{
  gchar **parts = g_strsplit (text, from, -1), *result = g_strjoinv (to, parts);

  g_assert_nonnull (parts[1]);
  g_strfreev (parts);
  return result;
}

static void
an_error_names_the_line (void)
{
  gchar *text = load ("gstreamer");

  for (guint i = 0; i < G_N_ELEMENTS (changes); i++) {
    gchar *changed = replace (text, changes[i].from, changes[i].to);
    GError *error = NULL;

    g_test_message ("%s -> %s", changes[i].from, changes[i].to);
    g_assert_null (sdp_offer_new (changed, strlen (changed), &error));
    g_test_message ("%s", error->message);
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA);
    g_assert_nonnull (strstr (error->message, changes[i].says));
    g_error_free (error);
    g_free (changed);
  }
  g_free (text);
}

static void
offers_are_bounded (void)
{
  GString *text = g_string_new (NULL);
  gchar *start = load ("gstreamer");
  GError *error = NULL;

  g_string_assign (text, start);
  for (guint i = 0; i < 1000; i++)
    g_string_append (text, "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n");
  g_assert_null (sdp_offer_new (text->str, text->len, &error));
  g_assert_nonnull (strstr (error->message, "1002 lines m="));
  g_clear_error (&error);
  g_string_assign (text, start);
  for (guint i = 0; i < 1000; i++)
    g_string_append (text, " m=a 9 a 0\n"); // blanks before a line are no matter to the library
  g_assert_null (sdp_offer_new (text->str, text->len, &error));
  g_assert_nonnull (strstr (error->message, "1002 lines m="));
  g_clear_error (&error);
  g_string_assign (text, start);
  while (text->len <= SDP_OFFER_BYTES_MAX)
    g_string_append (text, "a=x\r\n");
  g_assert_null (sdp_offer_new (text->str, text->len, &error));
  g_clear_error (&error);
  g_assert_null (sdp_offer_new (start, 0, &error));
  g_clear_error (&error);
  g_assert_null (sdp_offer_new ("v=0\n\xff", 5, NULL));
  g_string_free (text, TRUE);
  g_free (start);
}

// Every beginning of an offer, and the offer with each byte lost, is read or refused.
static void
spoilt_offers_are_read_or_refused (void)
{
  gchar *text = load ("pion");
  const gsize size = strlen (text);

  for (gsize i = 0; i < size; i++) {
    gchar *copy = g_memdup2 (text, size + 1);
    GError *error = NULL;
    SdpOffer *offer = sdp_offer_new (text, i, &error);

    g_assert_true ((offer != NULL) != (error != NULL));
    g_clear_pointer (&offer, sdp_offer_free);
    g_clear_error (&error);
    memmove (copy + i, copy + i + 1, size - i);
    offer = sdp_offer_new (copy, size - 1, &error);
    g_assert_true ((offer != NULL) != (error != NULL));
    g_clear_pointer (&offer, sdp_offer_free);
    g_clear_error (&error);
    g_free (copy);
  }
  g_free (text);
}

// ---- fragments ----

static void
fragments_have_ice_texts_or_none (void)
{
  static const gchar restart[] = "a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\n"
                                 "m=audio 9 RTP/AVP 0\r\na=mid:0\r\na=end-of-candidates\r\n";
  static const gchar trickle[] =
      "m=audio 9 RTP/AVP 0\r\na=mid:0\r\n"
      "a=candidate:1 1 udp 1 abc.local 9 typ host\r\na=end-of-candidates\r\n";
  static const gchar wrong[] = "a=ice-ufrag:EsAw\r\na=ice-pwd:short\r\n";
  static const struct {
    const gchar *text, *wrong;
  } others[] = {
    { "m=audio 9 RTP/AVP 0\r\na=mid:0\r\n"
      "m=audio 9 RTP/AVP 0\r\na=mid:9\r\na=end-of-candidates\r\n",
        "a=mid:9" },
    { "m=audio 9 RTP/AVP 0\r\na=mid:0\r\na=inactive\r\n", "neither candidates" },
    { "a=group:BUNDLE 0 1\r\n", "neither candidates" },
  };
  SdpOffer *offer = read_offer ("chromium");
  gchar *ufrag;
  GError *error = NULL;

  g_assert_true (sdp_offer_read_fragment (offer, restart, strlen (restart), &ufrag, &error));
  g_assert_cmpstr (ufrag, ==, "EsAw");
  g_free (ufrag);
  g_assert_true (sdp_offer_read_fragment (offer, trickle, strlen (trickle), &ufrag, &error));
  g_assert_null (ufrag);
  g_assert_false (sdp_offer_read_fragment (offer, wrong, strlen (wrong), &ufrag, &error));
  g_assert_nonnull (strstr (error->message, "a=ice-pwd"));
  g_clear_error (&error);
  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    const gchar *text = others[i].text;

    g_assert_false (sdp_offer_read_fragment (offer, text, strlen (text), &ufrag, &error));
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED);
    g_assert_nonnull (strstr (error->message, others[i].wrong));
    g_clear_error (&error);
  }
  sdp_offer_free (offer);
}

int
main (int argc, char **argv)
{
  gst_init (NULL, NULL);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/offer/offers-of-clients-are-answered", offers_of_clients_are_answered);
  g_test_add_func ("/offer/offers-of-publishers-are-answered", offers_of_publishers_are_answered);
  g_test_add_func ("/offer/layers-are-what-the-client-sends", layers_are_what_the_client_sends);
  g_test_add_func (
      "/offer/the-tracks-of-a-publisher-are-described", the_tracks_of_a_publisher_are_described);
  g_test_add_func (
      "/offer/candidates-are-numbers-and-udp-is-first", candidates_are_numbers_and_udp_is_first);
  g_test_add_func ("/offer/sources-have-numbers-of-their-own", sources_have_numbers_of_their_own);
  g_test_add_func ("/offer/nothing-in-common-names-both-lists", nothing_in_common_names_both_lists);
  g_test_add_func (
      "/offer/a-profile-that-does-not-fit-is-named", a_profile_that_does_not_fit_is_named);
  g_test_add_func ("/offer/who-publishes-receives-nothing", who_publishes_receives_nothing);
  g_test_add_func ("/offer/what-is-sent-again-as-it-was",
      what_is_sent_again_as_it_was_has_no_transport_wide_number);
  g_test_add_func ("/offer/the-transport-is-read", the_transport_is_read);
  g_test_add_func ("/offer/an-error-names-the-line", an_error_names_the_line);
  g_test_add_func ("/offer/offers-are-bounded", offers_are_bounded);
  g_test_add_func ("/offer/spoilt-offers-are-read-or-refused", spoilt_offers_are_read_or_refused);
  g_test_add_func ("/offer/fragments-have-ice-texts-or-none", fragments_have_ice_texts_or_none);
  return g_test_run ();
}
