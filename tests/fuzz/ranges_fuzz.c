// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of requests for packets of a broadcast: of a title with two tracks, and of a
// live stream. The input is the body of a request.

#include "app.h"
#include "broadcast/live_ranges.h"
#include "broadcast/packet_ranges.h"

#define TRACKS 2
#define PACKETS 1000

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  only_critical ();
  return 0;
}

static void
read_live (const gchar *text, gsize length)
{
  LiveRange ranges[LIVE_RANGES_MAX];
  GError *error = NULL;
  gint n = live_ranges_parse (text, length, ranges, &error);

  require ((n < 0) == (error != NULL) && n <= LIVE_RANGES_MAX);
  for (gint i = 0; i < n; i++)
    require (ranges[i].track <= G_MAXUINT16 && ranges[i].n >= 1 && ranges[i].n <= 65536);
  g_clear_error (&error);
}

static void
read_title (const gchar *text, gsize length)
{
  PacketFile file = { .n_tracks = TRACKS };
  PacketRange ranges[PACKET_RANGES_MAX];
  GError *error = NULL;
  guint n;

  for (guint i = 0; i < TRACKS; i++)
    file.tracks[i].n_packets = PACKETS;
  n = packet_ranges_parse (&file, text, length, ranges, &error);
  require ((n == 0) == (error != NULL) && n <= PACKET_RANGES_MAX);
  for (guint i = 0; i < n; i++)
    require (ranges[i].track < TRACKS && ranges[i].from <= ranges[i].to && ranges[i].to < PACKETS);
  g_clear_error (&error);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  gchar *text = g_memdup2 (data, size); // so that a read beyond the end is found

  read_live (text, size);
  read_title (text ? text : "", size);
  g_free (text);
  return 0;
}
