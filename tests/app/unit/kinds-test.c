// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/features.h"
#include "sources/kinds.h"

static PullConfig
good (const gchar *uri)
{
  PullConfig config = { 0 };
  gchar *wrong = kinds_check (uri, PULL_URI_FROM_API, &config);

  g_assert_cmpstr (wrong, ==, NULL);
  return config;
}

static void
an_address_is_read_from_the_uri (void)
{
  static const struct {
    const gchar *uri;
    PullMakeFunc make;
    const PullLight *light;
    const gchar *address;
    guint16 port;
    const gchar *iface;
  } cases[] = {
    { "udp://239.1.2.3:5000?iface=eth0", ts_pull_new, NULL, "239.1.2.3", 5000, "eth0" },
    { "udp://:5000", ts_pull_new, NULL, "0.0.0.0", 5000, NULL },
    { "udp://[ff02::1]:65535", ts_pull_new, NULL, "ff02::1", 65535, NULL },
    { "rtp://[::]:5004?encoding-name=VP8&payload=100", NULL, &rtp_pull_light, "::", 5004, NULL },
    { "rtp://127.0.0.1:5004?encoding-name=MP2T", ts_pull_new, NULL, "127.0.0.1", 5004, NULL },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    PullConfig config = good (cases[i].uri);

    g_assert_true (config.make == cases[i].make);
    g_assert_true (config.light == cases[i].light);
    g_assert_cmpstr (config.uri, ==, cases[i].uri);
    g_assert_cmpstr (config.endpoint.address, ==, cases[i].address);
    g_assert_cmpuint (config.endpoint.port, ==, cases[i].port);
    g_assert_cmpstr (config.endpoint.iface, ==, cases[i].iface);
    pull_config_clear (&config);
  }
}

static void
a_broadcast_is_received_on_an_interface (void)
{
  static const gchar *const cases[][3] = {
    { "rtsp-schedule://h/cam", "rtsp-schedule://h/cam", NULL },
    { "rtsp-schedule://h/cam?iface=eth0", "rtsp-schedule://h/cam", "eth0" },
    { "rtsp-schedule://h/cam?a=b&iface=eth0&c=d", "rtsp-schedule://h/cam?a=b&c=d", "eth0" },
  };

  if (feature_get_lack (FEATURE_BROADCAST)) {
    g_test_skip (feature_get_lack (FEATURE_BROADCAST));
    return;
  }
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    PullConfig config = good (cases[i][0]);

    g_assert_cmpstr (config.uri, ==, cases[i][1]);
    g_assert_cmpstr (config.endpoint.iface, ==, cases[i][2]);
    pull_config_clear (&config);
  }
}

static void
rtp_caps_are_read_from_the_uri (void)
{
  static const gchar *const cases[][2] = {
    { "rtp://:5004?encoding-name=h264&payload=96",
        "application/x-rtp, media=(string)video, encoding-name=(string)H264, payload=(int)96, "
        "clock-rate=(int)90000, packetization-mode=(string)1" },
    { "rtp://"
      ":5004?encoding-name=H264&payload=97&packetization-mode=0&sprop-parameter-sets=Z0%3D,aA",
        "application/x-rtp, media=(string)video, encoding-name=(string)H264, payload=(int)97, "
        "clock-rate=(int)90000, packetization-mode=(string)0, "
        "sprop-parameter-sets=(string)\"Z0=,aA\"" },
    { "rtp://:5004?encoding-name=PCMU",
        "application/x-rtp, media=(string)audio, encoding-name=(string)PCMU, payload=(int)0, "
        "clock-rate=(int)8000" },
    { "rtp://:5004?encoding-name=NEW&payload=127&media=audio&clock-rate=16000",
        "application/x-rtp, media=(string)audio, encoding-name=(string)NEW, payload=(int)127, "
        "clock-rate=(int)16000" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    PullConfig config = good (cases[i][0]);
    GstCaps *expected = gst_caps_from_string (cases[i][1]);

    g_assert_true (gst_caps_is_equal (config.rtp, expected));
    gst_caps_unref (expected);
    pull_config_clear (&config);
  }
}

// Each kind refuses an incomplete URI of its scheme.
static void
an_incomplete_uri_is_refused_with_a_reason (void)
{
#define BAD_RTSP                                                                                   \
  "not a valid URI like rtsp://HOST:PORT/PATH; in a password, write @ as %40 and / as %2F"
#define SRT_CALLER                                                                                 \
  "an srt:// upstream calls a server; for senders that call this proxy, set the key srt, and "     \
  "upstream: publish"
  const gchar *no_broadcast = feature_get_lack (FEATURE_BROADCAST);
  const gchar *const cases[][2] = {
    { "rtsp:", BAD_RTSP },
    { "rtsps:host/x", BAD_RTSP },
    { "file:x", "not a file URI like file:///dir/clip.mp4" },
    { "rtsp-schedule://h/cam?iface=", no_broadcast ? no_broadcast : "iface is empty" },
    { "srt://host", "the port is missing; write it like srt://host:port" },
    { "srt://host:1?passphrase=x", "the URI must not contain the passphrase; set password" },
    { "srt://host:1?latency=x", "latency=x must be a number of milliseconds, at most 60000" },
    { "srt://host:1?mode=x", "unknown parameter \"mode\"; known parameter: streamid, latency" },
    { "srt://:9000?mode=listener", SRT_CALLER },
    { "srt://host:1?mode=listener", SRT_CALLER },
    { "srt://:9000", SRT_CALLER },
    { "rtmps://host/app/x", "rtmps:// is for push only; an upstream is read from rtmp://" },
    { "rtmp://host/app", "the path must have an application and a stream: rtmp://host/app/stream" },
    { "rtmp://host", "the path must have an application and a stream: rtmp://host/app/stream" },
    { "rtmp:///a/b", "not a URL like rtmp://host/app/stream" },
    { "http://u:p@host/x.ts",
        "the URL must not contain a user or a password; set user and password" },
    { "http:///x.ts", "not a URL like http://host/stream.ts" },
    { "ftp://host/x",
        "unsupported URI scheme; use rtsp://, rtsps://, rtsp-schedule://, udp://, "
        "rtp://, sdp://, file://, store://, swarm://, https://, http://, srt://, rtmp://, "
        "publish or "
        "launch:" },
  };
#undef BAD_RTSP
#undef SRT_CALLER

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    PullConfig config = { 0 };
    gchar *wrong = kinds_check (cases[i][0], 0, &config);

    g_assert_cmpstr (wrong, ==, cases[i][1]);
    g_free (wrong);
    pull_config_clear (&config);
  }
}

static void
the_api_accepts_no_launch_line (void)
{
  static const gchar line[] = "launch: fakesrc ! identity name=pay0";
  PullConfig config = { 0 };
  gchar *wrong = kinds_check (line, 0, &config);

  g_assert_cmpstr (wrong, ==, NULL);
  g_assert_cmpstr (config.launch, ==, "fakesrc ! identity name=pay0");
  pull_config_clear (&config);
  wrong = kinds_check (line, PULL_URI_FROM_API, &config);
  g_assert_cmpstr (
      wrong, ==, "launch lines are accepted only in the configuration file and as arguments");
  g_assert_null (config.launch);
  g_free (wrong);
  pull_config_clear (&config);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/kinds/an-address-is-read-from-the-uri", an_address_is_read_from_the_uri);
  g_test_add_func (
      "/kinds/a-broadcast-is-received-on-an-interface", a_broadcast_is_received_on_an_interface);
  g_test_add_func ("/kinds/rtp-caps-are-read-from-the-uri", rtp_caps_are_read_from_the_uri);
  g_test_add_func ("/kinds/an-incomplete-uri-is-refused-with-a-reason",
      an_incomplete_uri_is_refused_with_a_reason);
  g_test_add_func ("/kinds/the-api-accepts-no-launch-line", the_api_accepts_no_launch_line);
  return g_test_run ();
}
