// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/description.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bits/bytes.h"
#include "schedule/lines.h"

#define MS INT64_C (1000000)

static void
put_ms (FILE *to, const char *name, int64_t ns)
{
  char decimals[8];
  int n;

  fprintf (to, " %s=%" PRId64, name, ns / MS);
  if (ns % MS == 0)
    return;
  n = snprintf (decimals, sizeof decimals, "%06d", (int) (ns % MS));
  while (decimals[n - 1] == '0')
    n--;
  fprintf (to, ".%.*s", n, decimals);
}

static void
put_packets (FILE *to, const WeirDescription *d, uint32_t from_frame, uint32_t to_frame,
    const WeirPacketRange *packets)
{
  fprintf (to, " frames=%" PRIu32 "-%" PRIu32 " packets=", from_frame, to_frame - 1);
  for (uint32_t track = 0; track < d->n_tracks; track++) {
    if (track > 0)
      fputc (',', to);
    if (packets[track].from < packets[track].to)
      fprintf (to, "%" PRIu32 "-%" PRIu32, packets[track].from, packets[track].to - 1);
    else
      fputc ('-', to);
  }
  fputs ("\r\n", to);
}

static void
put_channel (FILE *to, const WeirDescribedChannel *channel)
{
  char group[INET6_ADDRSTRLEN], source[INET6_ADDRSTRLEN];
  int family = channel->group.any.sa_family;

  if (family == AF_INET) {
    inet_ntop (family, &channel->group.v4.sin_addr, group, sizeof group);
    inet_ntop (family, &channel->source.v4.sin_addr, source, sizeof source);
  } else {
    inet_ntop (family, &channel->group.v6.sin6_addr, group, sizeof group);
    inet_ntop (family, &channel->source.v6.sin6_addr, source, sizeof source);
  }
  if (channel->source.any.sa_family == family)
    fprintf (
        to, "a=source-filter: incl IN IP%d %s %s\r\n", family == AF_INET ? 4 : 6, group, source);
  fprintf (to, "a=x-weir-channel:%" PRIu32 " group=%s port=%u ttl=%u\r\n", channel->number, group,
      weir_address_port (&channel->group), channel->ttl);
}

static void
put_send (FILE *to, const WeirDescription *d, const WeirDescribedSend *send)
{
  fprintf (to, "a=x-weir-send:%" PRIu32, send->channel);
  put_ms (to, "start", send->start_ns);
  put_ms (to, "period", send->period_ns);
  if (send->repeat == WEIR_REPEAT_FOREVER)
    fputs (" repeat=*", to);
  else
    fprintf (to, " repeat=%" PRIu32, send->repeat);
  put_packets (to, d, send->from, send->to, send->packets);
}

// Writes what stands before the first media.
static void
put_session (FILE *to, const WeirDescription *d)
{
  fprintf (to, "a=x-weir-schedule:1 id=%s scheme=%s", d->id, d->scheme);
  put_ms (to, "now", d->now_ns);
  put_ms (to, "play", d->play_ns);
  fprintf (to, " frames=%" PRIu32 " frame=%" PRId64 "\r\n", d->n_frames, d->frame_ns);
  for (uint32_t i = 0; i < d->n_channels; i++)
    put_channel (to, &d->channels[i]);
  for (uint32_t i = 0; i < d->n_sends; i++)
    put_send (to, d, &d->sends[i]);
  for (uint32_t i = 0; i < d->n_receives; i++) {
    const WeirDescribedReceive *receive = &d->receives[i];

    fprintf (to, "a=x-weir-receive:%" PRIu32, receive->channel);
    put_ms (to, "join", receive->join_ns);
    put_ms (to, "leave", receive->leave_ns);
    put_packets (to, d, receive->from, receive->to, receive->packets);
  }
}

// Writes what stands at the end of media `number`, or, for 0, of the session.
static void
put_end (FILE *to, const WeirDescription *d, uint32_t number)
{
  if (number == 0)
    put_session (to, d);
  else if (number <= d->n_tracks && d->n_packets[number - 1] > 0)
    fprintf (to, "a=x-weir-packets:%" PRIu32 "\r\n", d->n_packets[number - 1]);
  if (number > 0 && number <= d->n_tracks && d->times[number - 1].known)
    fprintf (to, "a=x-weir-rtptime:%" PRIu32 "\r\n", d->times[number - 1].timestamp);
}

int
weir_description_write (const WeirDescription *self, const char *sdp, size_t length, char **text)
{
  WeirBytes b = weir_bytes ((const uint8_t *) sdp, length), line;
  uint32_t n_media = 0;
  size_t written;
  FILE *to;

  *text = NULL;
  to = open_memstream (text, &written);
  if (!to)
    return -ENOMEM;
  while (weir_line_next (&b, &line)) {
    if (weir_line_begins (&line, "m="))
      put_end (to, self, n_media++);
    if (weir_line_begins (&line, "t=") && n_media == 0)
      fprintf (to, "t=%" PRIu64 " %" PRIu64, self->ntp_now, self->ntp_end);
    else
      fwrite (line.at, 1, weir_bytes_left (&line), to);
    fputs ("\r\n", to);
  }
  put_end (to, self, n_media);
  if (fclose (to) != 0 || n_media != self->n_tracks) {
    int result = n_media != self->n_tracks ? -EINVAL : -ENOMEM;

    free (*text);
    *text = NULL;
    return result;
  }
  return 0;
}
