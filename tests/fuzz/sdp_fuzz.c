// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of session descriptions: of an RTSP upstream, of a sdp:// upstream and of a
// relaysrc. The input is a description. Its first line is also read as an RTP-Info header.

#include <sys/mman.h>
#include <unistd.h>

#include "app.h"
#include "ingest/description.h"
#include "sources/rtsp_client_private.h"
#include "sources/sdp.h"

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  init_gst ();
  only_critical ();
  return 0;
}

static void
read_of_upstream (gchar *text, gsize size)
{
  static const PullContext context = { 0 };
  RtspClient client = { .context = &context,
    .config.uri = (gchar *) "rtsp://192.0.2.1/s",
    .session_uri = g_strdup ("rtsp://192.0.2.1/s") };
  const RtspMessage answer = { .status = 200, .body = text, .body_len = size };

  client.tracks = g_ptr_array_new_with_free_func (rtsp_track_free);
  rtsp_client_read_sdp (&client, "rtsp://192.0.2.1/s", &answer);
  require (client.session_uri && client.tracks->len <= RELAY_MAX_TRACKS);
  for (guint i = 0; i < client.tracks->len; i++) {
    RtspTrack *track = g_ptr_array_index (client.tracks, i);

    require (track->url && gst_caps_is_fixed (track->media.caps));
  }
  rtsp_client_read_rtp_info (&client, text);
  g_ptr_array_unref (client.tracks);
  g_free (client.session_uri);
}

static void
read_of_relaysrc (const gchar *text)
{
  for (guint track = 0; track < 3; track++) {
    RelayDescription description;
    GError *error = NULL;
    gboolean ok = relay_description_from_sdp (text, track, &description, &error);

    check_error (ok, &error);
    if (!ok)
      break;
    require (description.rtcp_port > 0 && description.caps);
    relay_description_clear (&description);
  }
}

static void
read_of_file (const uint8_t *data, gsize size)
{
  int fd = memfd_create ("sdp", MFD_CLOEXEC);
  gchar *path = g_strdup_printf ("/proc/self/fd/%d", fd);
  GError *error = NULL;
  GPtrArray *streams;

  require (fd >= 0 && write (fd, data, size) == (gssize) size);
  streams = sdp_read (path, NULL, &error);
  check_error (streams != NULL, &error);
  for (guint i = 0; streams && i < streams->len; i++) {
    RtpStream *stream = g_ptr_array_index (streams, i);

    require (stream->rtp.port > 0 && stream->rtcp_port > 0 && stream->caps);
  }
  g_clear_pointer (&streams, g_ptr_array_unref);
  g_free (path);
  close (fd);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  gchar *text = g_strndup ((const gchar *) data, size);

  read_of_upstream (text, size);
  read_of_relaysrc (text);
  read_of_file (data, size);
  g_free (text);
  return 0;
}
