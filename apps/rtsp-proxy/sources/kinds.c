// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "sources/kinds.h"

#include "text/schema.h"

#include <string.h>

#include "sources/rtsp_client.h"

typedef struct {
  const gchar *uri;
  const gchar *help; // in Markdown
} Form;

typedef struct {
  const gchar *prefix; // only the scheme, up to the ':', is compared
  gchar *(*check) (const gchar *uri, PullUriFlags flags, PullConfig *config);
  PullMakeFunc make;      // NULL: this kind needs no pipeline
  const PullLight *light; // NULL: there is no light client for this kind
  PullParser parser;
  Form forms[2]; // for the documentation
  Feature feature;
} Kind;

#define IF(is_in, function) ((is_in) ? (function) : NULL)

static const Kind kinds[] = {
  { "rtsp://", rtsp_pull_check, rtsp_pull_new, &rtsp_client_light, PULL_PASSES,
      { { "rtsp://HOST[:PORT]/PATH", "an RTSP camera or server" } } },
  { "rtsps://", rtsp_pull_check, rtsp_pull_new, &rtsp_client_light, PULL_PASSES,
      { { "rtsps://HOST[:PORT]/PATH", "the same over TLS" } } },
  { "rtsp-schedule://", IF (WITH_BROADCAST, schedule_pull_check),
      IF (WITH_BROADCAST, schedule_pull_new), NULL, PULL_PASSES,
      { { "rtsp-schedule://HOST[:PORT]/PATH[?iface=NAME]",
          "a title or a stream that another rtsp-proxy broadcasts on multicast groups" } },
      FEATURE_BROADCAST },
  { "udp://", ts_pull_check, ts_pull_new, NULL, PULL_PARSES,
      { { "udp://ADDR:PORT[?iface=NAME]", "MPEG-TS over UDP" } } },
  { "rtp://", rtp_pull_check, NULL, &rtp_pull_light, PULL_PASSES,
      { { "rtp://ADDR:PORT?encoding-name=H264&payload=96[&clock-rate=90000][&iface=NAME]",
          "one track of RTP over UDP, with RTCP on the next port; `encoding-name=MP2T` is MPEG-TS "
          "in RTP" } } },
  { "sdp://", sdp_pull_check, NULL, &rtp_pull_light, PULL_PASSES,
      { { "sdp:///DIR/SESSION.sdp[?iface=NAME]",
          "the RTP tracks that a session description lists" } } },
  { "file://", file_pull_check, file_pull_new, NULL, PULL_PARSES,
      { { "file:///DIR/CLIP.mp4", "a clip in a loop, in real time" },
          { "file:///DIR/", "a folder: `rtsp://HOST/MOUNT/NAME` plays its file `NAME`, for each "
                            "reader from the beginning" } } },
  { "store://", IF (WITH_STORE, store_pull_check), NULL, NULL, PULL_PASSES,
      { { "store:///DIR/", "a block store, with its titles on several disks: "
                           "`rtsp://HOST/MOUNT/NAME` plays its title `NAME`, for each reader from "
                           "the beginning" } },
      FEATURE_STORE },
  { "swarm://", IF (WITH_SWARM, swarm_pull_check), NULL, NULL, PULL_PASSES,
      { { "swarm:///DIR/", "a folder of torrents: `rtsp://HOST/MOUNT/NAME` plays the file of "
                           "`NAME.torrent`, and `NAME/FILE` one of several, which peers and an "
                           "HTTP server have, for each reader from the beginning" } },
      FEATURE_SWARM },
  { "https://", origin_pull_check, NULL, NULL, PULL_PASSES,
      { { "https://HOST[:PORT]/PATH/",
            "an HTTP server with ranges, or a bucket of an S3-compatible one: "
            "`rtsp://HOST/MOUNT/NAME` plays its file `NAME`, for each reader from the "
            "beginning" },
          { "https://HOST[:PORT]/STREAM", "a stream over HTTP: MPEG-TS, MP4, Matroska and others, "
                                          "or a playlist of HLS" } } },
  { "http://", origin_pull_check, NULL, NULL, PULL_PASSES,
      { { "http://HOST[:PORT]/...", "both without TLS" } } },
  { "srt://", srt_pull_check, stream_pull_new, NULL, PULL_PARSES_ONLINE,
      { { "srt://HOST:PORT[?streamid=TEXT][&latency=MS]",
          "MPEG-TS from an SRT listener; `password` is the passphrase" } } },
  { "rtmp://", rtmp_pull_check, stream_pull_new, NULL, PULL_PARSES_ONLINE,
      { { "rtmp://HOST[:PORT]/APP/STREAM", "an RTMP server; H.264, AAC and MP3 only" } } },
  { "publish", publish_pull_check, NULL, &publish_pull_light, PULL_PASSES,
      { { "publish", "what a client publishes to the mount, over RTSP, SRT or RTMP" } } },
  { "launch:", launch_pull_check, launch_pull_new, NULL, PULL_PARSES_ONLINE,
      { { "launch:LINE", "a GStreamer launch line with payloaders named `pay0`, `pay1`, ..." } } },
};

static gchar *
dup_prefixes (void)
{
  GString *text = g_string_new (kinds[0].prefix);

  for (guint i = 1; i < G_N_ELEMENTS (kinds); i++)
    g_string_append_printf (
        text, "%s%s", i + 1 < G_N_ELEMENTS (kinds) ? ", " : " or ", kinds[i].prefix);
  return g_string_free (text, FALSE);
}

gchar *
kinds_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  gchar *prefixes, *wrong;

  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    const gchar *prefix = kinds[i].prefix;

    if (!strncmp (uri, prefix, strcspn (prefix, ":") + 1)) {
      if (feature_get_lack (kinds[i].feature))
        return g_strdup (feature_get_lack (kinds[i].feature));
      config->make = kinds[i].make;
      config->light = kinds[i].light;
      config->parser = kinds[i].parser;
      return kinds[i].check (uri, flags, config);
    }
  }
  if (g_str_has_prefix (uri, "rtmps:"))
    return g_strdup ("rtmps:// is for push only; an upstream is read from rtmp://");
  prefixes = dup_prefixes ();
  wrong = g_strdup_printf ("unsupported URI scheme; use %s", prefixes);
  g_free (prefixes);
  return wrong;
}

static void
append_markdown (GString *out, const Form *form)
{
  g_string_append_printf (out, "| `%s` | %s |\n", form->uri, form->help);
}

static void
append_help (GString *out, const Form *form)
{
  gchar *uri = g_strconcat ("  ", form->uri, NULL);

  schema_append_help (out, uri, form->help);
  g_free (uri);
}

static gchar *
dup_forms (const gchar *head, void (*append) (GString *out, const Form *form))
{
  GString *out = g_string_new (head);

  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    for (guint j = 0; j < G_N_ELEMENTS (kinds[i].forms) && kinds[i].forms[j].uri; j++)
      append (out, &kinds[i].forms[j]);
  }
  return g_string_free (out, FALSE);
}

gchar *
kinds_to_markdown (void)
{
  return dup_forms ("| URI | upstream |\n|---|---|\n", append_markdown);
}

gchar *
kinds_to_help (void)
{
  return dup_forms ("", append_help);
}
