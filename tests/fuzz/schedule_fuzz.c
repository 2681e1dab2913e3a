// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the reader of schedules in session descriptions. The input is a description. What was
// accepted is within its bounds, and is read again as it is written.

#include <string.h>

#include "fuzz.h"
#include "schedule/description.h"

static void
check (const WeirDescription *d)
{
  require (d->n_tracks > 0 && d->n_tracks <= WEIR_DESCRIPTION_TRACKS_MAX);
  require (d->n_frames == 0 || d->n_frames <= WEIR_TITLE_NS_MAX / d->frame_ns);
  for (uint32_t i = 0; i < d->n_channels; i++)
    require (weir_address_is_multicast (&d->channels[i].group));
  for (uint32_t i = 0; i < d->n_receives; i++) {
    const WeirDescribedReceive *receive = &d->receives[i];

    require (weir_description_find_channel (d, receive->channel) != NULL);
    require (receive->from < receive->to && receive->to <= d->n_frames);
    require (receive->join_ns < receive->leave_ns);
    for (uint32_t track = 0; track < d->n_tracks; track++)
      require (receive->packets[track].to <= d->n_packets[track]);
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static WeirDescription first, second;
  static const char media[] = "v=0\nt=0 0\nm=a\nm=a\nm=a\nm=a\nm=a\nm=a\nm=a\nm=a\n";
  char why[WEIR_DESCRIPTION_WHY];
  char *text;
  int result;

  memset (&first, 0, sizeof first);
  memset (&second, 0, sizeof second);
  result = weir_description_read (&first, (const char *) data, size, why);
  require ((result == 0) == (why[0] == '\0') && memchr (why, 0, sizeof why));
  if (result != 0)
    return 0;
  check (&first);
  result = weir_description_write (&first, media, 10 + 4 * first.n_tracks, &text);
  require (result == 0 && weir_description_read (&second, text, strlen (text), why) == 0);
  require (memcmp (&first, &second, offsetof (WeirDescription, channels)) == 0);
  require (memcmp (first.channels, second.channels, sizeof first.channels) == 0);
  require (memcmp (first.sends, second.sends, first.n_sends * sizeof first.sends[0]) == 0);
  require (
      memcmp (first.receives, second.receives, first.n_receives * sizeof first.receives[0]) == 0);
  free (text);
  return 0;
}
