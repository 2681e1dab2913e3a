// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "sources/rtsp_auth.h"
#include "sources/rtsp_control.h"
#include "sources/rtsp_parser.h"
#include "sources/sdp.h"

// ---- the parser ----

static void
note_message (gpointer data, const RtspMessage *message)
{
  GString *log = data;

  if (message->method)
    g_string_append_printf (log, "%s %s", message->method, message->uri);
  else
    g_string_append_printf (log, "%u", message->status);
  for (guint i = 0; i < message->n_headers; i++)
    g_string_append_printf (log, "|%s=%s", message->headers[i].name, message->headers[i].value);
  g_string_append_printf (log, "|%.*s\n", (gint) message->body_len, message->body);
}

static void
note_packet (gpointer data, guint8 channel, guint8 *bytes, gsize len)
{
  g_string_append_printf (data, "$%u %.*s\n", channel, (gint) len, (gchar *) bytes);
}

static gboolean expects;
static guint n_skips;

static void
note_skip (gpointer data)
{
  n_skips++;
}

static const RtspParserOps notes = { note_message, note_packet, note_skip };

// Parses bytes in pieces of `piece` bytes. Returns the log, or what is wrong. (transfer full)
static gchar *
parse (const gchar *bytes, gsize len, gsize piece)
{
  guint8 *buffer = g_malloc (RTSP_KEPT_MAX + len + 1);
  GString *log = g_string_new (NULL);
  const gchar *wrong = NULL;
  RtspParser parser;

  rtsp_parser_init (&parser, &notes, log);
  if (expects)
    rtsp_parser_expect (&parser, 0);
  for (gsize at = 0; at < len && !wrong; at += piece) {
    gsize kept = rtsp_parser_restore (&parser, buffer), n = MIN (piece, len - at);

    memcpy (buffer + kept, bytes + at, n);
    wrong = rtsp_parser_take (&parser, buffer, kept + n);
    g_assert_cmpuint (parser.n_kept, <=, RTSP_KEPT_MAX);
  }
  if (wrong)
    g_string_assign (log, wrong);
  rtsp_parser_clear (&parser);
  g_free (buffer);
  return g_string_free (log, FALSE);
}

static void
check (const gchar *bytes, gsize len, const gchar *expected)
{
  for (gsize piece = 1; piece <= len; piece++) {
    gchar *log = parse (bytes, len, piece);

    g_assert_cmpstr (log, ==, expected);
    g_free (log);
  }
}

static void
data_may_be_split_anywhere (void)
{
  static const gchar bytes[] = "RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-length :  3\r\n\r\nv=0"
                               "$\1\0\4abcd$\0\0\0\r\n\r\n"
                               "OPTIONS rtsp://h/a b RTSP/1.0\nX:\n  y\n\tz\nnonsense\n: x\n\n"
                               "RTSP/1.0 454 \r\n\r\n$\2\0\1e";

  check (bytes, sizeof bytes - 1,
      "200|CSeq=1|Content-length=3|v=0\n$1 abcd\n$0 \nOPTIONS rtsp://h/a b|X=y \tz|\n"
      "454|\n$2 e\n");
}

static void
invalid_data_is_refused (void)
{
  static const gchar *const invalid[] = { "\1", "5", "RTSP/1.0 99 x\r\n\r\n",
    "RTSP/1.0 2000 x\r\n\r\n", "RTSP/1.0\r\n\r\n", "x\r\n\r\n", "a b\r\n\r\n",
    "HTTP/1.0 200 OK\r\n\r\n", "RTSP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n",
    "RTSP/1.0 200 OK\r\nContent-Length: 65537\r\n\r\n",
    "RTSP/1.0 200 OK\r\nContent-Length: x\r\n\r\n",
    "RTSP/1.0 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n" };

  for (guint i = 0; i < G_N_ELEMENTS (invalid); i++) {
    gchar *log = parse (invalid[i], strlen (invalid[i]), 7);

    g_assert_cmpstr (log, !=, "");
    g_assert_null (strchr (log, '|'));
    g_free (log);
  }
}

static void
stray_bytes_between_packets_are_skipped (void)
{
#define PACKET(text) "$\0\0\x0c\x80" text
#define SHOWN(text) "$0 \x80" text "\n"
  static const gchar zeros[] = PACKET ("abcdefghijk") "\0\0\0\0" PACKET ("lmnopqrstuv");
  static const gchar *const shown = SHOWN ("abcdefghijk") SHOWN ("lmnopqrstuv");
  static const gchar dollars[] =
      PACKET ("abcdefghijk") "x$$\1\0$\2\0\x0c\x80" PACKET ("lmnopqrstuv");
  static const gchar letters[] = PACKET ("abcdefghijk") "RTSq\xff" PACKET ("lmnopqrstuv");
  static const gchar answer[] = PACKET ("abcdefghijk") "\1\2RTSP/1.0 200 OK\r\n\r\n";
  GString *noise = g_string_new_len (zeros, 16);
  gchar *log;

  expects = TRUE;
  check (zeros, sizeof zeros - 1, shown);
  check (dollars, sizeof dollars - 1, shown);
  check (letters, sizeof letters - 1, shown);
  check (answer, sizeof answer - 1, SHOWN ("abcdefghijk") "200|\n");
  n_skips = 0;
  g_free (parse (zeros, sizeof zeros - 1, 3));
  g_assert_cmpuint (n_skips, ==, 1);
  while (noise->len <= RTSP_SKIP_MAX + 100)
    g_string_append (noise, "\1$$$");
  log = parse (noise->str, noise->len, 1000);
  g_assert_cmpstr (log, ==, "it is neither an RTSP message nor an interleaved packet");
  g_free (log);
  g_string_free (noise, TRUE);
  log = parse (zeros + 16, sizeof zeros - 17, 3); // before the first packet
  g_assert_cmpstr (log, ==, "it is neither an RTSP message nor an interleaved packet");
  g_free (log);
  expects = FALSE;
}

static void
headers_without_an_end_are_refused (void)
{
  GString *bytes = g_string_new ("RTSP/1.0 200 OK\r\n");
  gchar *log;

  while (bytes->len < 4 * RTSP_HEAD_MAX)
    g_string_append (bytes, "X: y\r\n");
  log = parse (bytes->str, bytes->len, 100);
  g_assert_cmpstr (log, ==, "a message's headers do not end");
  g_free (log);
  g_string_free (bytes, TRUE);
}

static void
only_the_first_headers_count (void)
{
  GString *bytes = g_string_new ("RTSP/1.0 200 OK\r\n");
  gchar *log;

  for (guint i = 0; i < 2 * RTSP_HEADERS_MAX; i++)
    g_string_append (bytes, "X: y\r\n");
  g_string_append (bytes, "\r\n");
  log = parse (bytes->str, bytes->len, bytes->len);
  g_assert_cmpuint (strlen (log), ==, strlen ("200") + RTSP_HEADERS_MAX * strlen ("|X=y") + 2);
  g_free (log);
  g_string_free (bytes, TRUE);
}

// Runs the parser, and the readers of challenges and URLs, on the values that it finds.
static void
use_values (gpointer data, const RtspMessage *message)
{
  RtspAuth auth = { .user = "u", .password = "p" };

  for (guint i = 0; i < message->n_headers; i++) {
    RtspMessage challenge = { .status = 401, .n_headers = 1 };
    gchar *url = rtsp_control_join ("rtsp://h/s?x", message->headers[i].value), *header;

    challenge.headers[0] = (RtspHeader) { "WWW-Authenticate", message->headers[i].value };
    if (rtsp_auth_take (&auth, &challenge, 1)) {
      header = rtsp_auth_dup_header (&auth, "PLAY", "rtsp://h/s");
      g_assert_null (strpbrk (header, "\r\n"));
      g_free (header);
    }
    rtsp_control_is_sound (url);
    g_free (url);
  }
  rtsp_auth_clear (&auth);
}

static void
changed_bytes_do_no_harm (void)
{
  static const gchar bytes[] =
      "RTSP/1.0 401 Unauthorized\r\nCSeq: 1\r\nWWW-Authenticate: Digest realm=\"a\\\"b\", "
      "nonce=\"n\", opaque=o, stale=true, Basic realm=x\r\nContent-Base: rtsp://h:5/s/\r\n"
      "Content-Length: 3\r\n\r\nv=0$\0\0\4abcdOPTIONS * RTSP/1.0\r\nX: /s/t\r\n y\r\n\r\n";
  static const RtspParserOps ops = { use_values, note_packet };
  GRand *random = g_rand_new_with_seed (7);
  GString *log = g_string_new (NULL);
  guint8 *buffer = g_malloc (RTSP_KEPT_MAX + sizeof bytes);

  for (guint round = 0; round < 20000; round++) {
    gchar *copy = g_memdup2 (bytes, sizeof bytes);
    const gchar *wrong = NULL;
    RtspParser parser;
    gsize piece = (gsize) g_rand_int_range (random, 1, sizeof bytes);

    for (gint n = g_rand_int_range (random, 1, 6); n > 0; n--)
      copy[g_rand_int_range (random, 0, sizeof bytes)] = (gchar) g_rand_int_range (random, 0, 256);
    rtsp_parser_init (&parser, &ops, log);
    for (gsize at = 0; at < sizeof bytes && !wrong; at += piece) {
      gsize kept = rtsp_parser_restore (&parser, buffer), n = MIN (piece, sizeof bytes - at);

      memcpy (buffer + kept, copy + at, n);
      wrong = rtsp_parser_take (&parser, buffer, kept + n);
    }
    rtsp_parser_clear (&parser);
    g_string_truncate (log, 0);
    g_free (copy);
  }
  g_free (buffer);
  g_string_free (log, TRUE);
  g_rand_free (random);
}

// ---- authentication ----

static RtspMessage
challenges (const gchar *first, const gchar *second)
{
  RtspMessage message = { .status = 401 };

  message.headers[message.n_headers++] = (RtspHeader) { "WWW-authenticate", first };
  if (second)
    message.headers[message.n_headers++] = (RtspHeader) { "WWW-Authenticate", second };
  return message;
}

// Returns the Authorization header for "DESCRIBE rtsp://h/x", or NULL. (transfer full)
static gchar *
answer (const gchar *first, const gchar *second)
{
  RtspAuth auth = { .user = "Mufasa", .password = "Circle" };
  RtspMessage message = challenges (first, second);
  gchar *header = NULL;

  if (rtsp_auth_take (&auth, &message, 1))
    header = rtsp_auth_dup_header (&auth, "DESCRIBE", "rtsp://h/x");
  rtsp_auth_clear (&auth);
  return header;
}

static void
challenges_are_answered (void)
{
  static const gchar basic[] = "Basic TXVmYXNhOkNpcmNsZQ==";
  static const gchar digest[] = "Digest username=\"Mufasa\", realm=\"a b\", nonce=\"n,\", "
                                "uri=\"rtsp://h/x\", response=\"";
  static const gchar sha256[] =
      "Digest username=\"Mufasa\", realm=\"a\", nonce=\"b\", uri=\"rtsp://h/x\", response=\""
      "e977a149923b373ab6fd31e53e364bb0029c6d5caf01b866ac38c5def75b712b\", algorithm=SHA-256";
  static const struct {
    const gchar *first, *second, *begin;
  } cases[] = {
    { "Basic realm=\"x\"", NULL, basic },
    { "basic", NULL, basic },
    { "Digest realm=\"a b\", nonce=\"n,\"", NULL, digest },
    { "Digest realm= \"a b\",nonce=\"n,\",algorithm=MD5 , qop=\"auth,auth-int\"", NULL, digest },
    { "Basic realm=\"x\"", "Digest realm=\"a b\", nonce=\"n,\"", digest },
    { "Basic realm=\"x\", Digest realm=\"a b\", nonce=\"n,\", opaque=\"o\"", NULL, digest },
    { "Digest realm=\"a\", nonce=\"b\", algorithm=SHA-512-256", "Basic realm=\"x\"", basic },
    { "Digest realm=\"a\", nonce=\"b\", algorithm=MD5-sess", NULL, NULL },
    { "Digest realm=\"a\", nonce=\"b\", qop=\"auth-int\"", NULL, NULL },
    { "Digest realm=\"a\", nonce=\"b\", qop=\"auth-int\"", "Basic realm=\"x\"", basic },
    { "Digest realm=\"a\", nonce=\"b\", algorithm=\"sha-256\"", "Basic realm=\"x\"", sha256 },
    { "Digest realm=\"a\", nonce=\"b\"", "Digest algorithm=SHA-256,realm=a,nonce=b", sha256 },
    { "Digest realm=a, nonce=b, algorithm=SHA-256, Digest realm=a, nonce=b", NULL, sha256 },
    { "Digest", NULL, NULL },
    { "Digest realm=\"", NULL, NULL },
    { "Digest realm=\"x\\\"y\", nonce=\"z\"", NULL, NULL },
    { "=,=\"", NULL, NULL },
    { "Negotiate abc==", NULL, NULL },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *header = answer (cases[i].first, cases[i].second);

    g_assert_cmpint (header != NULL, ==, cases[i].begin != NULL);
    if (header)
      g_assert_true (g_str_has_prefix (header, cases[i].begin));
    g_free (header);
  }
}

// A server that did not accept a digest may ask for something else later, but a password that may
// be wrong is not shown.
static void
what_a_server_asks_for_later_is_answered (void)
{
  static const gchar sha2[] = "Digest realm=a, nonce=b, algorithm=SHA-256";
  static const gchar md5[] = "Digest realm=a, nonce=b", new_md5[] = "Digest realm=a, nonce=c";
  static const gchar old_md5[] = "Digest realm=a, nonce=c, stale=true", basic[] = "Basic realm=x";
  static const struct {
    const gchar *first, *second;
    guint nth;
    RtspScheme taken; // or RTSP_SCHEME_NONE
    gboolean goes_on; // what was taken before still counts
  } asked[] = {
    { sha2, md5, 1, RTSP_SCHEME_SHA256, FALSE },
    { sha2, md5, 2, RTSP_SCHEME_MD5, TRUE },
    { sha2, md5, 3, RTSP_SCHEME_NONE, TRUE },
    { new_md5, basic, 1, RTSP_SCHEME_MD5, TRUE },
    { old_md5, sha2, 1, RTSP_SCHEME_MD5, TRUE },
    { sha2, basic, 1, RTSP_SCHEME_NONE, TRUE },
    { basic, sha2, 1, RTSP_SCHEME_NONE, TRUE },
    { basic, NULL, 1, RTSP_SCHEME_BASIC, TRUE },
    { basic, NULL, 2, RTSP_SCHEME_NONE, TRUE },
    { md5, NULL, 1, RTSP_SCHEME_MD5, TRUE },
    { md5, basic, 2, RTSP_SCHEME_NONE, TRUE },
    { sha2, basic, 1, RTSP_SCHEME_SHA256, FALSE },
    { sha2, basic, 2, RTSP_SCHEME_NONE, TRUE },
    { basic, NULL, 1, RTSP_SCHEME_BASIC, TRUE },
    { basic, md5, 2, RTSP_SCHEME_MD5, TRUE },
  };
  RtspAuth auth = { .user = "Mufasa", .password = "Circle" };

  for (guint i = 0; i < G_N_ELEMENTS (asked); i++) {
    RtspMessage message = challenges (asked[i].first, asked[i].second);

    g_test_message ("%u: %s; %s", i, asked[i].first, asked[i].second);
    if (!asked[i].goes_on) {
      rtsp_auth_clear (&auth);
      auth = (RtspAuth) { .user = "Mufasa", .password = "Circle" };
    }
    g_assert_cmpint (rtsp_auth_take (&auth, &message, asked[i].nth), ==, asked[i].taken > 0);
    g_assert_true (!asked[i].taken || auth.scheme == asked[i].taken);
  }
  rtsp_auth_clear (&auth);
}

// The examples of RFC 7616, section 3.9.1.
static void
qop_is_answered_as_the_rfc_shows (void)
{
  static const struct {
    const gchar *algorithm, *response;
  } cases[] = {
    { "MD5", "response=\"8ca523f5e9506fed4657c9700eebdbec\"" },
    { "SHA-256", "response=\"753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1\"" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    RtspAuth auth = { .user = "Mufasa", .password = "Circle of Life" };
    gchar *text = g_strdup_printf (
        "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=%s, "
        "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", "
        "opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"",
        cases[i].algorithm);
    RtspMessage message = challenges (text, NULL);
    gchar *header, *first;

    g_assert_true (rtsp_auth_take (&auth, &message, 1));
    first = g_steal_pointer (&auth.cnonce);
    g_assert_cmpuint (strlen (first), ==, 16);
    auth.cnonce = g_strdup ("f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ");
    header = rtsp_auth_dup_header (&auth, "GET", "/dir/index.html");
    g_assert_nonnull (strstr (header, cases[i].response));
    g_assert_nonnull (strstr (header, ", qop=auth, nc=00000001, cnonce=\"f2/wE4q74E6z"));
    g_free (header);
    header = rtsp_auth_dup_header (&auth, "GET", "/dir/index.html");
    g_assert_nonnull (strstr (header, ", nc=00000002, "));
    g_assert_null (strstr (header, cases[i].response));
    g_free (header);
    g_free (first);
    g_free (text);
    rtsp_auth_clear (&auth);
  }
}

static void
a_digest_that_is_refused_gives_way_to_the_weaker_one (void)
{
  RtspMessage both = challenges ("Digest realm=\"x\", nonce=\"1\", algorithm=SHA-256, qop=\"auth\"",
      "Digest realm=\"x\", nonce=\"1\", Basic realm=\"x\"");
  RtspMessage fresh = challenges ("Digest realm=\"x\", nonce=\"2\", algorithm=SHA-256",
      "Digest realm=\"x\", nonce=\"2\", Basic realm=\"x\"");

  for (guint i = 0; i < 2; i++) {
    RtspAuth auth = { .user = "u", .password = "p" };

    g_assert_true (rtsp_auth_take (&auth, &both, 1));
    g_assert_cmpint (auth.scheme, ==, RTSP_SCHEME_SHA256);
    if (i == 1) { // each challenge has its own nonce
      g_assert_true (rtsp_auth_take (&auth, &fresh, 2));
      g_assert_cmpint (auth.scheme, ==, RTSP_SCHEME_SHA256);
    }
    g_assert_true (rtsp_auth_take (&auth, &both, i + 2));
    g_assert_cmpint (auth.scheme, ==, RTSP_SCHEME_MD5);
    g_assert_false (rtsp_auth_take (&auth, &both, i + 3)); // not Basic
    rtsp_auth_clear (&auth);
  }
}

static void
a_repeated_challenge_means_wrong_credentials (void)
{
  RtspMessage one = challenges ("Digest realm=\"x\", nonce=\"1\"", NULL);
  RtspMessage two = challenges ("Digest realm=\"x\", nonce=\"2\"", NULL);
  RtspMessage stale = challenges ("Digest realm=\"x\", nonce=\"2\", stale=TRUE", NULL);
  RtspMessage basic = challenges ("Basic realm=\"x\"", NULL);
  RtspAuth auth = { .user = "u", .password = "p" };

  g_assert_true (rtsp_auth_take (&auth, &one, 1));
  g_assert_false (rtsp_auth_take (&auth, &one, 1));
  g_assert_true (rtsp_auth_take (&auth, &two, 1));
  g_assert_true (rtsp_auth_take (&auth, &stale, 1));
  g_assert_false (rtsp_auth_take (&auth, &two, 1));
  g_assert_true (rtsp_auth_take (&auth, &basic, 1));
  g_assert_false (rtsp_auth_take (&auth, &basic, 1));
  rtsp_auth_clear (&auth);
  auth.user = NULL;
  g_assert_false (rtsp_auth_take (&auth, &one, 1));
  g_assert_null (rtsp_auth_dup_header (&auth, "PLAY", "x"));
}

// ---- control URLs ----

static void
control_urls_are_joined_as_servers_mean_them (void)
{
  static const struct {
    const gchar *base, *control, *url;
  } cases[] = {
    { "rtsp://h/s", NULL, "rtsp://h/s" },
    { "rtsp://h/s/", "*", "rtsp://h/s/" },
    { "rtsp://h/s", "", "rtsp://h/s" },
    { "rtsp://h/s", "rtsp://10.0.0.1/t/0", "rtsp://10.0.0.1/t/0" },
    { "rtsp://h/s", "track0", "rtsp://h/s/track0" },
    { "rtsp://h/s/", "track0", "rtsp://h/s/track0" },
    { "rtsp://h/s/", "/track0", "rtsp://h/s/track0" },
    { "rtsp://h/s", "/track0", "rtsp://h/s/track0" },
    { "rtsp://h/s/", "/s/track0", "rtsp://h/s/track0" },
    { "rtsp://h/s?a=b", "/s/track0?a=b", "rtsp://h/s/track0?a=b" },
    { "rtsp://h/s", "/star", "rtsp://h/s/star" },
    { "rtsp://h/s?a=b&c", "trackID=1", "rtsp://h/s?a=b&c/trackID=1" },
    { "rtsp://h/s", "?track=1", "rtsp://h/s?track=1" },
    { "rtsp://h", "track0", "rtsp://h/track0" },
    { "rtsp://h", "/track0", "rtsp://h/track0" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *url = rtsp_control_join (cases[i].base, cases[i].control);

    g_assert_cmpstr (url, ==, cases[i].url);
    g_free (url);
  }
}

static void
unsound_urls_are_recognised (void)
{
  gchar *lengthy = g_strnfill (5000, 'x'), *url = g_strconcat ("rtsp://", lengthy, NULL);

  g_assert_true (rtsp_control_is_sound ("rtsp://h/x?y=z"));
  g_assert_true (rtsp_control_is_sound ("rtsps://h/"));
  g_assert_false (rtsp_control_is_sound ("http://h/"));
  g_assert_false (rtsp_control_is_sound ("*"));
  g_assert_false (rtsp_control_is_sound ("//h/x"));
  g_assert_false (rtsp_control_is_sound ("rtsp://[::1"));
  g_assert_false (rtsp_control_is_sound ("rtsp://h/\r\nX: y"));
  g_assert_false (rtsp_control_is_sound ("rtsp://h/a b"));
  g_assert_false (rtsp_control_is_sound (url));
  g_free (lengthy);
  g_free (url);
}

// ---- descriptions ----

static guint
n_fields (const gchar *text)
{
  GstSDPMessage *sdp = sdp_parse (text, strlen (text));
  GstCaps *caps = sdp_media_caps (sdp, gst_sdp_message_get_media (sdp, 0));
  guint n = (guint) gst_structure_n_fields (gst_caps_get_structure (caps, 0));

  gst_caps_unref (caps);
  gst_sdp_message_free (sdp);
  return n;
}

// Each name that the library learns stays in memory.
static void
new_names_of_attributes_come_to_an_end (void)
{
  static const gchar plain[] = "v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n";
  guint own = n_fields (plain), n = 0;

  for (guint round = 0; round < 4 * SDP_NAMES_MAX / 100; round++) {
    GString *text = g_string_new (plain);

    for (guint i = 0; i < 50; i++)
      g_string_append_printf (text, "a=x%u-%u:1\r\na=fmtp:96 y%u-%u=1\r\n", round, i, round, i);
    n += n_fields (text->str) - own;
    g_string_free (text, TRUE);
  }
  g_assert_cmpuint (n, >, 0);
  g_assert_cmpuint (n, <=, SDP_NAMES_MAX);
  g_assert_cmpuint (n_fields (plain), ==, own);
}

int
main (int argc, char **argv)
{
  gst_init (NULL, NULL);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/rtsp-parser/stray-bytes-between-packets-are-skipped",
      stray_bytes_between_packets_are_skipped);
  g_test_add_func ("/rtsp-parser/data-may-be-split-anywhere", data_may_be_split_anywhere);
  g_test_add_func ("/rtsp-parser/invalid-data-is-refused", invalid_data_is_refused);
  g_test_add_func (
      "/rtsp-parser/headers-without-an-end-are-refused", headers_without_an_end_are_refused);
  g_test_add_func ("/rtsp-parser/only-the-first-headers-count", only_the_first_headers_count);
  g_test_add_func ("/rtsp-parser/changed-bytes-do-no-harm", changed_bytes_do_no_harm);
  g_test_add_func ("/rtsp-auth/challenges-are-answered", challenges_are_answered);
  g_test_add_func ("/rtsp-auth/qop-is-answered-as-the-rfc-shows", qop_is_answered_as_the_rfc_shows);
  g_test_add_func ("/rtsp-auth/what-a-server-asks-for-later-is-answered",
      what_a_server_asks_for_later_is_answered);
  g_test_add_func ("/rtsp-auth/a-digest-that-is-refused-gives-way-to-the-weaker-one",
      a_digest_that_is_refused_gives_way_to_the_weaker_one);
  g_test_add_func ("/rtsp-auth/a-repeated-challenge-means-wrong-credentials",
      a_repeated_challenge_means_wrong_credentials);
  g_test_add_func ("/rtsp-control/urls-are-joined-as-servers-mean-them",
      control_urls_are_joined_as_servers_mean_them);
  g_test_add_func ("/rtsp-control/unsound-urls-are-recognised", unsound_urls_are_recognised);
  g_test_add_func (
      "/sdp/new-names-of-attributes-come-to-an-end", new_names_of_attributes_come_to_an_end);
  return g_test_run ();
}
