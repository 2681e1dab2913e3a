// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/kinds.h"

#include <string.h>

typedef struct {
  const gchar *prefix; // only the scheme, up to the ':', is compared
  gchar *(*check) (const gchar *uri, PullUriFlags flags, PullConfig *config);
  PullMakeFunc make;
  const gchar *help; // NULL: the help of the row before covers it
} Kind;

static const Kind kinds[] = {
  { "rtsp://", rtsp_pull_check, rtsp_pull_new,
      "  rtsp://HOST/PATH, rtsps://HOST/PATH     cameras and servers\n" },
  { "rtsps://", rtsp_pull_check, rtsp_pull_new },
  { "udp://", ts_pull_check, ts_pull_new,
      "  udp://ADDR:PORT[?iface=NAME]            MPEG-TS; ADDR is a local or multicast address\n" },
  { "rtp://", rtp_pull_check, rtp_pull_new,
      "  rtp://ADDR:PORT?encoding-name=H264&payload=96[&clock-rate=90000][&iface=NAME]\n"
      "                                          one track of RTP, with RTCP on PORT + 1\n" },
  { "sdp://", sdp_pull_check, rtp_pull_new,
      "  sdp:///DIR/SESSION.sdp[?iface=NAME]     the RTP tracks of a session description\n" },
  { "file://", file_pull_check, file_pull_new,
      "  file:///DIR/CLIP.mp4                    a clip, looped\n" },
  { "launch:", launch_pull_check, launch_pull_new,
      "  launch:LINE                             a launch line with payloaders pay0, pay1 ...\n" },
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
      config->make = kinds[i].make;
      return kinds[i].check (uri, flags, config);
    }
  }
  prefixes = dup_prefixes ();
  wrong = g_strdup_printf ("unsupported URI scheme; use %s", prefixes);
  g_free (prefixes);
  return wrong;
}

gchar *
kinds_dup_help (void)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    g_string_append (text, kinds[i].help ? kinds[i].help : "");
  return g_string_free (text, FALSE);
}
