// SPDX-License-Identifier: LGPL-2.1-or-later
#include "hls_text.h"
#include "http_reply.h"

// ---- answers ----

// Reads the answer in pieces of `step` bytes. Returns how many bytes belong to it, or -1.
static gssize
read_in_steps (HttpReply *reply, const gchar *text, gsize step)
{
  gsize len = strlen (text), at = 0;
  gboolean done = FALSE;

  while (at < len && !done) {
    gssize n = http_reply_read (reply, text + at, MIN (step, len - at), &done);

    if (n < 0)
      return -1;
    at += (gsize) n;
  }
  return done ? (gssize) at : -2;
}

static void
answers_are_read_in_any_pieces (void)
{
  static const struct {
    const gchar *text, *body;
    guint status;
    gsize rest; // bytes of the next answer
  } cases[] = {
    { "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP", "hello", 200, 4 },
    { "HTTP/1.1 200 OK\nContent-length:5\n\nhello", "hello", 200, 0 },
    { "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "", 404, 0 },
    { "HTTP/1.1 204 No Content\r\n\r\nH", "", 204, 1 },
    { "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", 200, 0 },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0a;x=y\r\n0123456789\r\n"
      "0\r\nTrailer: x\r\n\r\nH",
        "abc0123456789", 200, 1 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    for (gsize step = 1; step < 40; step++) {
      HttpReply reply;

      http_reply_init (&reply);
      http_reply_reset (&reply, TRUE);
      g_assert_cmpint (read_in_steps (&reply, cases[i].text, step), ==,
          (gssize) (strlen (cases[i].text) - cases[i].rest));
      g_assert_cmpuint (reply.status, ==, cases[i].status);
      g_assert_cmpstr (reply.body->str, ==, cases[i].body);
      g_assert_cmpuint (reply.n_body, ==, strlen (cases[i].body));
      http_reply_clear (&reply);
    }
  }
}

static void
malformed_answers_are_refused (void)
{
  static const gchar *const cases[] = {
    "RTSP/1.0 200 OK\r\n\r\n",
    "HTTP/1.1 abc\r\n\r\n",
    "HTTP/1.1 99999 OK\r\n\r\n",
    "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    HttpReply reply;

    http_reply_init (&reply);
    http_reply_reset (&reply, TRUE);
    g_assert_cmpint (read_in_steps (&reply, cases[i], 3), ==, -1);
    http_reply_clear (&reply);
  }
}

static void
endless_answers_are_refused (void)
{
  gchar *junk = g_strnfill (10000, 'x');
  gboolean done;
  HttpReply reply;

  http_reply_init (&reply);
  http_reply_reset (&reply, TRUE);
  g_assert_cmpint (http_reply_read (&reply, junk, 10000, &done), ==, -1);
  http_reply_reset (&reply, TRUE);
  read_in_steps (&reply, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", 1000);
  for (guint i = 0; i < 419; i++)
    g_assert_cmpint (http_reply_read (&reply, junk, 10000, &done), ==, 10000);
  g_assert_cmpint (http_reply_read (&reply, junk, 10000, &done), ==, -1);
  http_reply_clear (&reply);
  g_free (junk);
}

static void
media_is_counted_without_being_kept (void)
{
  HttpReply reply;

  http_reply_init (&reply);
  http_reply_reset (&reply, FALSE);
  read_in_steps (&reply, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab", 7);
  g_assert_cmpuint (http_reply_skippable (&reply), ==, 98);
  g_assert_false (http_reply_skip (&reply, 90));
  g_assert_true (http_reply_skip (&reply, 8));
  g_assert_cmpuint (reply.n_body, ==, 100);
  g_assert_cmpuint (reply.body->len, ==, 0);
  http_reply_clear (&reply);
}

// ---- playlists ----

static const gchar live[] =
    "#EXTM3U\r\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:1\n"
    "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=0.6\n"
    "#EXT-X-PART-INF:PART-TARGET=0.2\n#EXT-X-MEDIA-SEQUENCE:41\n#EXT-X-MAP:URI=\"init,1.mp4\"\n"
    "#EXT-X-GAP\n#EXTINF:1.0,\nseg41.mp4\n"
    "#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00.500Z\n"
    "#EXT-X-PART:DURATION=0.2,URI=\"a\",INDEPENDENT=YES\n#EXT-X-PART:URI=\"b\",DURATION=0.15\n"
    "#EXTINF:0.35,title\nseg42.mp4?x=1\n"
    "#EXT-X-PART:DURATION=0.2,URI=\"c\"\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"d\"\n";

static void
a_playlist_has_parts_and_their_times (void)
{
  const gint64 begin = G_GINT64_CONSTANT (1767225600500000);
  HlsPlaylist list;

  g_assert_true (hls_text_read (&list, live));
  g_assert_true (list.can_block);
  g_assert_cmpint (list.part_target_us, ==, 200000);
  g_assert_cmpuint (list.sequence, ==, 43);
  g_assert_cmpuint (list.n_open, ==, 1);
  g_assert_cmpstr (list.map, ==, "init,1.mp4");
  g_assert_cmpstr (list.hint, ==, "d");
  g_assert_cmpuint (list.parts->len, ==, 3);
  for (guint i = 0; i < 3; i++) {
    static const gint64 at[] = { 0, 200000, 350000 }, duration[] = { 200000, 150000, 200000 };
    const HlsPart *part = &g_array_index (list.parts, HlsPart, i);

    g_assert_cmpint (part->uri[0], ==, "abc"[i]);
    g_assert_cmpint (part->begin_us, ==, begin + at[i]);
    g_assert_cmpint (part->duration_us, ==, duration[i]);
    g_assert_cmpint (part->independent, ==, i == 0);
  }
  hls_text_clear (&list);
}

// Each beginning of the playlist, and each with one wrong byte, is read without harm.
static void
broken_playlists_do_no_harm (void)
{
  for (gsize len = 0; len < strlen (live); len++) {
    gchar *text = g_strndup (live, len + 1);
    HlsPlaylist list;

    text[len] = "\n\":,=9"[len % 6];
    hls_text_read (&list, text);
    hls_text_clear (&list);
    g_free (hls_text_find_rendition (text));
    g_free (text);
  }
}

static void
other_texts_are_no_playlists (void)
{
  HlsPlaylist list;

  g_assert_false (hls_text_read (&list, ""));
  hls_text_clear (&list);
  g_assert_false (hls_text_read (&list, "<html>"));
  hls_text_clear (&list);
}

static void
a_multivariant_playlist_names_a_rendition (void)
{
  gchar *uri = hls_text_find_rendition (
      "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n# a comment\n\nlow/live.m3u8\nother\n");

  g_assert_cmpstr (uri, ==, "low/live.m3u8");
  g_free (uri);
  g_assert_null (hls_text_find_rendition (live));
  g_assert_null (hls_text_find_rendition ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n"));
}

int
main (int argc, char **argv)
{
#define add(test) g_test_add_func ("/hls-text/" #test, test)
  g_test_init (&argc, &argv, NULL);
  add (answers_are_read_in_any_pieces);
  add (malformed_answers_are_refused);
  add (endless_answers_are_refused);
  add (media_is_counted_without_being_kept);
  add (a_playlist_has_parts_and_their_times);
  add (broken_playlists_do_no_harm);
  add (other_texts_are_no_playlists);
  add (a_multivariant_playlist_names_a_rendition);
  return g_test_run ();
}
