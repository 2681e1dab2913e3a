// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/description.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bits/bytes.h"
#include "schedule/lines.h"

#define MS INT64_C (1000000)
#define CLOCK_MAX (INT64_C (1) << 61) // ns; sums of two times of the server's clock do not overflow
#define CHANNEL_NUMBERS 65536
#define PORT_MIN 1024

typedef struct {
  WeirDescription *d;
  WeirBytes line; // what is left of it
  unsigned number;
  bool in_media;
  char *why;
  bool failed;
} Reader;

// Keeps the first failure. Returns false.
static bool __attribute__ ((format (printf, 2, 3)))
fail_reading (Reader *r, const char *format, ...)
{
  va_list args;
  int n;

  if (r->failed)
    return false;
  r->failed = true;
  n = snprintf (r->why, WEIR_DESCRIPTION_WHY, "line %u: ", r->number);
  va_start (args, format);
  vsnprintf (r->why + n, WEIR_DESCRIPTION_WHY - (size_t) n, format, args);
  va_end (args);
  return false;
}

// Moves past `text`, which must come next.
static bool
expect (Reader *r, const char *text)
{
  if (r->failed)
    return false;
  if (!weir_line_begins (&r->line, text))
    return fail_reading (r, "\"%s\" is missing before \"%.*s\"", text,
        (int) (weir_bytes_left (&r->line) > 40 ? 40 : weir_bytes_left (&r->line)),
        weir_bytes_left (&r->line) > 0 ? (const char *) r->line.at : "");
  return weir_bytes_skip (&r->line, strlen (text));
}

static bool
take (Reader *r, char c)
{
  if (r->failed || weir_bytes_left (&r->line) == 0 || *r->line.at != (uint8_t) c)
    return false;
  return weir_bytes_skip (&r->line, 1);
}

static bool
digit (Reader *r, unsigned *value)
{
  if (weir_bytes_left (&r->line) == 0 || *r->line.at < '0' || *r->line.at > '9')
    return false;
  *value = *r->line.at - '0';
  return weir_bytes_skip (&r->line, 1);
}

// Reads a decimal number from `min` to `max`; `name` is for the error.
static uint64_t
number (Reader *r, const char *name, uint64_t min, uint64_t max)
{
  uint64_t value = 0;
  unsigned next, n = 0;

  for (; !r->failed && digit (r, &next); n++) {
    if (value > (UINT64_MAX - next) / 10)
      fail_reading (r, "%s is too large", name);
    value = value * 10 + next;
  }
  if (n == 0)
    fail_reading (r, "%s is not a number", name);
  else if (value < min || value > max)
    fail_reading (
        r, "%s %" PRIu64 " is not between %" PRIu64 " and %" PRIu64, name, value, min, max);
  return r->failed ? min : value;
}

// Reads ms with up to six decimals, as ns.
static int64_t
ms (Reader *r, const char *name)
{
  uint64_t ns = number (r, name, 0, CLOCK_MAX / MS - 1) * MS;
  unsigned next;

  if (!take (r, '.'))
    return (int64_t) ns;
  for (uint64_t unit = MS / 10; digit (r, &next); unit /= 10) {
    if (unit == 0) {
      fail_reading (r, "%s has more than six decimals", name);
      break;
    }
    ns += next * unit;
  }
  return (int64_t) ns;
}

// Reads the bytes up to a space or the end of the line.
static void
word (Reader *r, const char *name, char *to, size_t max)
{
  size_t n = 0;
  uint8_t c;

  while (!r->failed && weir_bytes_left (&r->line) > 0 && *r->line.at != ' ') {
    if (n == max) {
      fail_reading (r, "%s is longer than %zu bytes", name, max);
      break;
    }
    weir_bytes_u8 (&r->line, &c);
    if (c == '\0') {
      fail_reading (r, "%s has a zero byte", name);
      break;
    }
    to[n++] = (char) c;
  }
  to[n] = '\0';
  if (n == 0)
    fail_reading (r, "%s is missing", name);
}

// Reads "A-B", both from 0 to `n` - 1, as [A, B + 1).
static void
range (Reader *r, const char *name, uint32_t n, uint32_t *from, uint32_t *to)
{
  uint64_t max = n > 0 ? n - 1 : 0;

  *from = (uint32_t) number (r, name, 0, max);
  expect (r, "-");
  *to = (uint32_t) number (r, name, *from, max) + 1;
}

static void
packet_ranges (Reader *r, WeirPacketRange *packets)
{
  expect (r, " packets=");
  for (uint32_t track = 0; track < r->d->n_tracks && !r->failed; track++) {
    packets[track] = (WeirPacketRange) { 0, 0 };
    if (track > 0)
      expect (r, ",");
    if (!take (r, '-'))
      range (r, "packets", r->d->n_packets[track], &packets[track].from, &packets[track].to);
  }
}

static void
end_of_line (Reader *r)
{
  if (!r->failed && weir_bytes_left (&r->line) > 0)
    fail_reading (r, "more than expected: \"%.*s\"",
        (int) (weir_bytes_left (&r->line) > 40 ? 40 : weir_bytes_left (&r->line)),
        (const char *) r->line.at);
}

static bool
is_live (const WeirDescription *d)
{
  return d->n_frames == 0;
}

static int64_t
title_ns (const WeirDescription *d)
{
  return (int64_t) d->n_frames * d->frame_ns;
}

static void
read_media (Reader *r)
{
  if (r->d->n_tracks == WEIR_DESCRIPTION_TRACKS_MAX)
    fail_reading (r, "more than %d media", WEIR_DESCRIPTION_TRACKS_MAX);
  else
    r->d->n_packets[r->d->n_tracks++] = 0;
}

static void
read_packets (Reader *r)
{
  uint32_t *n;

  if (r->d->n_tracks == 0) {
    fail_reading (r, "x-weir-packets is not of a media");
    return;
  }
  n = &r->d->n_packets[r->d->n_tracks - 1];
  if (*n > 0)
    fail_reading (r, "a second x-weir-packets of the media");
  *n = (uint32_t) number (r, "x-weir-packets", 1, WEIR_DESCRIPTION_PACKETS_MAX);
  end_of_line (r);
}

static void
read_time (Reader *r)
{
  WeirDescribedTime *time;

  if (r->d->n_tracks == 0) {
    fail_reading (r, "x-weir-rtptime is not of a media");
    return;
  }
  time = &r->d->times[r->d->n_tracks - 1];
  if (time->known)
    fail_reading (r, "a second x-weir-rtptime of the media");
  time->timestamp = (uint32_t) number (r, "x-weir-rtptime", 0, UINT32_MAX);
  time->known = true;
  end_of_line (r);
}

static void
read_validity (Reader *r)
{
  r->d->ntp_now = number (r, "t", 0, UINT64_MAX);
  expect (r, " ");
  r->d->ntp_end = number (r, "t", 0, UINT64_MAX);
}

static void
read_schedule (Reader *r)
{
  WeirDescription *d = r->d;

  if (d->id[0] != '\0')
    fail_reading (r, "a second x-weir-schedule");
  expect (r, "1 id=");
  word (r, "id", d->id, WEIR_DESCRIPTION_ID_MAX);
  if (strspn (d->id, "0123456789abcdef") != strlen (d->id))
    fail_reading (r, "id is not hexadecimal");
  expect (r, " scheme=");
  word (r, "scheme", d->scheme, WEIR_DESCRIPTION_SCHEME_MAX);
  if (strspn (d->scheme, "abcdefghijklmnopqrstuvwxyz") != strlen (d->scheme))
    fail_reading (r, "scheme is not a word");
  expect (r, " now=");
  d->now_ns = ms (r, "now");
  expect (r, " play=");
  d->play_ns = ms (r, "play");
  expect (r, " frames=");
  d->n_frames = (uint32_t) number (r, "frames", 0, UINT32_MAX);
  expect (r, " frame=");
  d->frame_ns = (int64_t) number (r, "frame", is_live (d) ? 0 : 1, WEIR_TITLE_NS_MAX);
  end_of_line (r);
  if (r->failed)
    return;
  if (!is_live (d) && d->n_frames > WEIR_TITLE_NS_MAX / d->frame_ns)
    fail_reading (r, "the title is longer than %" PRId64 " s", WEIR_TITLE_NS_MAX / (1000 * MS));
  else if (is_live (d) != (strcmp (d->scheme, "live") == 0))
    fail_reading (r, "no frames are for scheme=live, and only for it");
  else if (d->play_ns < d->now_ns || d->play_ns - d->now_ns > title_ns (d))
    fail_reading (r, "play is before now, or later by more than the title's length");
}

// Reads an address; with `port`, of that port.
static void
address (Reader *r, const char *name, uint16_t port, WeirAddress *out)
{
  char text[INET6_ADDRSTRLEN];
  struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons (port) };
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons (port) };

  word (r, name, text, sizeof text - 1);
  if (r->failed)
    return;
  if (inet_pton (AF_INET, text, &v4.sin_addr) == 1)
    weir_address_normalise ((const struct sockaddr *) &v4, sizeof v4, out);
  else if (inet_pton (AF_INET6, text, &v6.sin6_addr) == 1)
    weir_address_normalise ((const struct sockaddr *) &v6, sizeof v6, out);
  else
    fail_reading (r, "%s is not an IP address", name);
}

static void
set_port (WeirAddress *group, uint16_t port)
{
  if (group->any.sa_family == AF_INET)
    group->v4.sin_port = htons (port);
  else
    group->v6.sin6_port = htons (port);
}

static void
read_channel (Reader *r)
{
  WeirDescription *d = r->d;
  WeirDescribedChannel *channel = &d->channels[d->n_channels];
  uint32_t tracks = d->n_tracks > 0 ? d->n_tracks : 1;
  uint16_t port;

  if (d->n_channels == WEIR_DESCRIPTION_CHANNELS_MAX) {
    fail_reading (r, "more than %d channels", WEIR_DESCRIPTION_CHANNELS_MAX);
    return;
  }
  memset (channel, 0, sizeof *channel);
  channel->number = (uint32_t) number (r, "channel", 0, CHANNEL_NUMBERS - 1);
  expect (r, " group=");
  address (r, "group", 1, &channel->group);
  if (!r->failed && !weir_address_is_multicast (&channel->group))
    fail_reading (r, "group is not a multicast address");
  expect (r, " port=");
  port = (uint16_t) number (r, "port", PORT_MIN, UINT16_MAX - 1 - 2 * (tracks - 1));
  if (port % 2 != 0)
    fail_reading (r, "port %u is odd", port);
  expect (r, " ttl=");
  channel->ttl = (uint8_t) number (r, "ttl", 0, 255);
  end_of_line (r);
  if (r->failed)
    return;
  set_port (&channel->group, port);
  for (uint32_t i = 0; i < d->n_channels; i++) {
    if (d->channels[i].number == channel->number
        || memcmp (&d->channels[i].group, &channel->group, sizeof channel->group) == 0) {
      fail_reading (r, "a second channel with this number or group");
      return;
    }
  }
  d->n_channels++;
}

// Filters of other addresses are none of the schedule's.
static void
read_source_filter (Reader *r)
{
  WeirAddress group, source;

  if (weir_bytes_left (&r->line) > 0)
    take (r, ' ');
  if (!weir_line_begins (&r->line, "incl IN IP4 ") && !weir_line_begins (&r->line, "incl IN IP6 "))
    return;
  weir_bytes_skip (&r->line, strlen ("incl IN IP4 "));
  if (weir_bytes_left (&r->line) > 0 && *r->line.at == '*')
    return;
  address (r, "source-filter", 1, &group);
  expect (r, " ");
  address (r, "source-filter", 1, &source);
  for (uint32_t i = 0; i < r->d->n_channels && !r->failed; i++) {
    WeirDescribedChannel *channel = &r->d->channels[i];

    set_port (&group, weir_address_port (&channel->group));
    if (memcmp (&group, &channel->group, sizeof group) != 0)
      continue;
    if (source.any.sa_family != group.any.sa_family || weir_address_is_multicast (&source))
      fail_reading (r, "the source of a group has another family, or is a multicast address");
    channel->source = source;
  }
}

static void
check_channel (Reader *r, uint32_t channel)
{
  if (!r->failed && !weir_description_find_channel (r->d, channel))
    fail_reading (r, "channel %u is not described", channel);
}

static void
read_send (Reader *r)
{
  WeirDescription *d = r->d;
  WeirDescribedSend *send = &d->sends[d->n_sends];

  if (d->n_sends == WEIR_DESCRIPTION_SENDS_MAX) {
    fail_reading (r, "more than %d sends", WEIR_DESCRIPTION_SENDS_MAX);
    return;
  }
  send->channel = (uint32_t) number (r, "channel", 0, CHANNEL_NUMBERS - 1);
  check_channel (r, send->channel);
  expect (r, " start=");
  send->start_ns = ms (r, "start");
  expect (r, " period=");
  send->period_ns = ms (r, "period");
  expect (r, " repeat=");
  if (take (r, '*'))
    send->repeat = WEIR_REPEAT_FOREVER;
  else
    send->repeat = (uint32_t) number (r, "repeat", 0, WEIR_REPEAT_FOREVER - 1);
  expect (r, " frames=");
  range (r, "frames", d->n_frames, &send->from, &send->to);
  packet_ranges (r, send->packets);
  end_of_line (r);
  if (r->failed)
    return;
  if (send->period_ns < (send->to - send->from) * d->frame_ns)
    fail_reading (r, "period is shorter than the frames");
  else if (send->period_ns > 2 * title_ns (d))
    fail_reading (r, "period is longer than the title twice");
  else if (send->start_ns > d->now_ns + title_ns (d) + send->period_ns)
    fail_reading (r, "start is later than the title's length and a period from now");
  else
    d->n_sends++;
}

static bool
is_within (
    const WeirDescription *d, const WeirDescribedReceive *receive, const WeirDescribedSend *send)
{
  if (receive->channel != send->channel || receive->from < send->from || receive->to > send->to)
    return false;
  for (uint32_t track = 0; track < d->n_tracks; track++) {
    const WeirPacketRange *in = &receive->packets[track], *of = &send->packets[track];

    if (in->from < in->to && (in->from < of->from || in->to > of->to))
      return false;
  }
  return true;
}

static void
check_receive (Reader *r, const WeirDescribedReceive *receive)
{
  const WeirDescription *d = r->d;

  for (uint32_t i = 0; i < d->n_sends; i++) {
    int64_t longest = title_ns (d) + d->sends[i].period_ns;

    if (!is_within (d, receive, &d->sends[i]))
      continue;
    if (receive->join_ns < d->now_ns - longest || receive->join_ns > d->now_ns + longest)
      fail_reading (r, "join is further than the title's length and a period from now");
    else if (receive->leave_ns <= receive->join_ns
             || receive->leave_ns - receive->join_ns > longest)
      fail_reading (
          r, "leave is not after join, or further from it than the title's length and a period");
    return;
  }
  fail_reading (r, "channel %u does not send these frames and packets", receive->channel);
}

static void
read_receive (Reader *r)
{
  WeirDescription *d = r->d;
  WeirDescribedReceive *receive = &d->receives[d->n_receives];

  if (d->n_receives == WEIR_DESCRIPTION_RECEIVES_MAX) {
    fail_reading (r, "more than %d receives", WEIR_DESCRIPTION_RECEIVES_MAX);
    return;
  }
  receive->channel = (uint32_t) number (r, "channel", 0, CHANNEL_NUMBERS - 1);
  check_channel (r, receive->channel);
  expect (r, " join=");
  receive->join_ns = ms (r, "join");
  expect (r, " leave=");
  receive->leave_ns = ms (r, "leave");
  expect (r, " frames=");
  range (r, "frames", d->n_frames, &receive->from, &receive->to);
  packet_ranges (r, receive->packets);
  end_of_line (r);
  if (!r->failed)
    check_receive (r, receive);
  d->n_receives++;
}

// What is read in one pass through the description. A later pass needs what an earlier one has
// read.
static const struct {
  const char *prefix;
  void (*read) (Reader *r);
  unsigned pass;
  bool of_media;
} parts[] = {
  { "m=", read_media, 0, true },
  { "a=x-weir-packets:", read_packets, 0, true },
  { "a=x-weir-rtptime:", read_time, 0, true },
  { "t=", read_validity, 0, false },
  { "a=x-weir-schedule:", read_schedule, 1, false },
  { "a=x-weir-channel:", read_channel, 2, false },
  { "a=source-filter:", read_source_filter, 3, false },
  { "a=x-weir-send:", read_send, 3, false },
  { "a=x-weir-receive:", read_receive, 4, false },
};
#define N_PARTS (sizeof parts / sizeof parts[0])
#define N_PASSES 5

static void
read_line (Reader *r, unsigned pass)
{
  if (weir_line_begins (&r->line, "m="))
    r->in_media = true;
  for (size_t i = 0; i < N_PARTS; i++) {
    if (parts[i].pass != pass || parts[i].of_media != r->in_media
        || !weir_line_begins (&r->line, parts[i].prefix))
      continue;
    weir_bytes_skip (&r->line, strlen (parts[i].prefix));
    parts[i].read (r);
    return;
  }
}

static void
check_whole (Reader *r)
{
  const WeirDescription *d = r->d;
  bool live = is_live (d);

  if (r->failed)
    return;
  if (d->n_tracks == 0)
    fail_reading (r, "no media");
  else if (live && (d->n_channels != 1 || d->n_sends > 0 || d->n_receives > 0))
    fail_reading (r, "a live mount has one channel, and neither sends nor receives");
  for (uint32_t track = 0; track < d->n_tracks; track++) {
    if (live == (d->n_packets[track] > 0))
      fail_reading (
          r, "media %u: x-weir-packets is for stored titles, and for all their media", track);
  }
}

int
weir_description_read (
    WeirDescription *self, const char *sdp, size_t length, char why[WEIR_DESCRIPTION_WHY])
{
  Reader r = { .d = self, .why = why };

  memset (self, 0, offsetof (WeirDescription, channels));
  why[0] = '\0';
  if (length > WEIR_DESCRIPTION_BYTES_MAX) {
    snprintf (why, WEIR_DESCRIPTION_WHY, "the description is longer than %u bytes",
        WEIR_DESCRIPTION_BYTES_MAX);
    return -EINVAL;
  }
  for (unsigned pass = 0; pass < N_PASSES && !r.failed; pass++) {
    WeirBytes text = weir_bytes ((const uint8_t *) sdp, length);

    r.in_media = false;
    r.number = 0;
    while (!r.failed && weir_line_next (&text, &r.line)) {
      r.number++;
      read_line (&r, pass);
    }
    if (pass == 1 && !r.failed && self->id[0] == '\0') {
      snprintf (why, WEIR_DESCRIPTION_WHY, "the description has no line a=x-weir-schedule");
      return -ENOENT;
    }
  }
  check_whole (&r);
  return r.failed ? -EINVAL : 0;
}

const WeirDescribedChannel *
weir_description_find_channel (const WeirDescription *self, uint32_t number)
{
  for (uint32_t i = 0; i < self->n_channels; i++) {
    if (self->channels[i].number == number)
      return &self->channels[i];
  }
  return NULL;
}
