// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/description.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "tap.h"

#define SDP                                                                                        \
  "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=a film\r\nt=0 0\r\na=control:*\r\n"                        \
  "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:0\r\n"                              \
  "m=audio 0 RTP/AVP 97\r\na=rtpmap:97 MPEG4-GENERIC/48000\r\na=control:1\r\n"

static WeirAddress
ipv4 (const char *text, uint16_t port)
{
  WeirAddress address;

  memset (&address, 0, sizeof address);
  address.v4.sin_family = AF_INET;
  address.v4.sin_port = htons (port);
  inet_pton (AF_INET, text, &address.v4.sin_addr);
  return address;
}

static WeirAddress
ipv6 (const char *text, uint16_t port)
{
  WeirAddress address;

  memset (&address, 0, sizeof address);
  address.v6.sin6_family = AF_INET6;
  address.v6.sin6_port = htons (port);
  inet_pton (AF_INET6, text, &address.v6.sin6_addr);
  return address;
}

// A title of 40 s in segments of 10 s and 20 s, and 10 s that only unicast has.
static WeirDescription example;

static void
make_example (void)
{
  example = (WeirDescription) { .ntp_now = 4000000000,
    .ntp_end = 4000000300,
    .id = "0123456789abcdef",
    .scheme = "gdb",
    .now_ns = 500000000001,
    .play_ns = 507500000000,
    .n_frames = 1200,
    .frame_ns = 33366700,
    .n_tracks = 2,
    .n_packets = { 5000, 1875 },
    .n_channels = 2,
    .n_sends = 2,
    .n_receives = 2 };
  example.channels[0] =
      (WeirDescribedChannel) { .number = 3, .group = ipv4 ("239.1.2.3", 5004), .ttl = 2 };
  example.channels[0].source = ipv4 ("10.0.0.1", 1);
  example.channels[1] =
      (WeirDescribedChannel) { .number = 65535, .group = ipv6 ("ff15::7", 65000), .ttl = 255 };
  example.sends[0] = (WeirDescribedSend) { .channel = 3,
    .from = 0,
    .to = 300,
    .repeat = WEIR_REPEAT_FOREVER,
    .start_ns = 7500000000,
    .period_ns = 300 * INT64_C (33366700),
    .packets = { { 0, 1250 }, { 0, 470 } } };
  example.sends[1] = (WeirDescribedSend) { .channel = 65535,
    .from = 300,
    .to = 900,
    .repeat = 7,
    .start_ns = 0,
    .period_ns = 600 * INT64_C (33366700),
    .packets = { { 1250, 3750 }, { 0, 0 } } };
  for (int i = 0; i < 2; i++) {
    const WeirDescribedSend *send = &example.sends[i];

    example.receives[i] = (WeirDescribedReceive) { .channel = send->channel,
      .from = send->from + 1,
      .to = send->to,
      .join_ns = 507533366700 + i * INT64_C (1000000000),
      .leave_ns = 507533366700 + send->period_ns + i,
      .packets = { send->packets[0], send->packets[1] } };
  }
}

static WeirDescription got;
static char why[WEIR_DESCRIPTION_WHY];

static int
read_text (const char *text)
{
  return weir_description_read (&got, text, strlen (text), why);
}

static void
what_is_written_is_read (void)
{
  char *text;

  CHECK_INT (weir_description_write (&example, SDP, strlen (SDP), &text), 0);
  CHECK_INT (read_text (text), 0);
  CHECK (why[0] == '\0');
  CHECK (memcmp (&got, &example, sizeof got) == 0);
  free (text);
}

static void
attributes_are_where_sdp_has_them (void)
{
  char *text;

  CHECK_INT (weir_description_write (&example, SDP, strlen (SDP), &text), 0);
  CHECK (strstr (text, "\r\nt=4000000000 4000000300\r\na=control:*\r\na=x-weir-schedule:1 "
                       "id=0123456789abcdef scheme=gdb now=500000.000001 play=507500 frames=1200 "
                       "frame=33366700\r\n"));
  CHECK (strstr (text, "\r\na=source-filter: incl IN IP4 239.1.2.3 10.0.0.1\r\n"
                       "a=x-weir-channel:3 group=239.1.2.3 port=5004 ttl=2\r\n"
                       "a=x-weir-channel:65535 group=ff15::7 port=65000 ttl=255\r\n"
                       "a=x-weir-send:3 start=7500 period=10010.01 repeat=* frames=0-299 "
                       "packets=0-1249,0-469\r\n"));
  CHECK (strstr (text, "packets=1250-3749,-\r\nm=video"));
  CHECK (strstr (text, "a=control:0\r\na=x-weir-packets:5000\r\nm=audio"));
  CHECK (strcmp (strstr (text, "a=control:1"), "a=control:1\r\na=x-weir-packets:1875\r\n") == 0);
  free (text);
}

static void
a_description_without_a_schedule_is_told_apart (void)
{
  CHECK_INT (read_text (SDP), -ENOENT);
  CHECK_INT (read_text (""), -ENOENT);
  CHECK (strlen (why) > 0);
}

static void
a_description_with_other_media_is_not_written (void)
{
  char *text;

  CHECK_INT (weir_description_write (&example, SDP, strlen (SDP) / 2, &text), -EINVAL);
  CHECK (!text);
}

#define LIVE                                                                                       \
  "v=0\na=x-weir-schedule:1 id=a1 scheme=live now=5 play=5 frames=0 frame=10000000\n"              \
  "a=x-weir-channel:0 group=239.1.2.3 port=5004 ttl=2\nm=video 0 RTP/AVP 96\n"

static void
a_live_mount_has_only_a_channel (void)
{
  CHECK_INT (read_text (LIVE), 0);
  CHECK_INT (got.n_channels, 1);
  CHECK_INT (got.n_frames, 0);
  CHECK_INT (read_text (LIVE "a=x-weir-packets:7\n"), -EINVAL);
  CHECK_INT (read_text ("a=x-weir-send:0 start=0 period=10 repeat=* frames=0-0 packets=-\n" LIVE),
      -EINVAL);
}

static const char title[] =
    "a=x-weir-schedule:1 id=0f scheme=gdb now=1000 play=2000 frames=100 frame=10000000\r\n"
    "a=source-filter: incl IN IP4 239.1.2.3 10.0.0.1\r\n"
    "a=x-weir-channel:0 group=239.1.2.3 port=5004 ttl=2\r\n"
    "a=x-weir-send:0 start=1000 period=500 repeat=* frames=0-49 packets=0-99,-\r\n"
    "a=x-weir-receive:0 join=2000 leave=2500 frames=0-49 packets=0-99,-\r\n"
    "m=video 0 RTP/AVP 96\r\na=x-weir-packets:200\r\n"
    "m=audio 0 RTP/AVP 97\r\na=x-weir-packets:50\r\n";

// Replaces the first `old` in the title, expects a refusal, and that `why` has `line` and `words`.
static void
check_refused (const char *old, const char *new, int line, const char *words)
{
  const char *at = strstr (title, old);
  char text[2048], prefix[32];

  CHECK (at != NULL);
  if (!at)
    return;
  snprintf (text, sizeof text, "%.*s%s%s", (int) (at - title), title, new, at + strlen (old));
  snprintf (prefix, sizeof prefix, "line %d: ", line);
  CHECK_INT (read_text (text), -EINVAL);
  CHECK (strstr (why, prefix) == why && strstr (why, words));
  if (!tap_ok)
    printf ("# %s -> %s: %s\n", old, new, why);
}

static void
the_place_of_a_mistake_is_told (void)
{
  CHECK_INT (read_text (title), 0);
  check_refused ("schedule:1 ", "schedule:2 ", 1, "\"1 id=\" is missing");
  check_refused ("id=0f", "id=0g", 1, "hexadecimal");
  check_refused ("id=0f", "id=", 1, "id is missing");
  check_refused ("scheme=gdb", "scheme=live", 1, "scheme=live");
  check_refused ("now=1000", "now=x", 1, "not a number");
  check_refused ("now=1000", "now=2000.0000000", 1, "decimals");
  check_refused ("play=2000", "play=999.999999", 1, "play");
  check_refused ("play=2000", "play=2001", 1, "play");
  check_refused ("frames=100", "frames=4294967296", 1, "frames");
  check_refused ("frame=10000000", "frame=10000000000001", 1, "longer than 1000000 s");
  check_refused ("frame=10000000", "frame=0", 1, "frame");
  check_refused ("frame=10000000", "frame=10000000 x", 1, "more than expected");
  check_refused ("10.0.0.1", "239.0.0.1", 2, "source");
  check_refused ("10.0.0.1", "::1", 2, "source");
  check_refused ("group=239.1.2.3", "group=192.0.2.1", 3, "multicast");
  check_refused ("group=239.1.2.3", "group=localhost", 3, "IP address");
  check_refused ("port=5004", "port=5005", 3, "odd");
  check_refused ("port=5004", "port=1022", 3, "port");
  check_refused ("port=5004", "port=65534", 3, "port");
  check_refused ("ttl=2", "ttl=256", 3, "ttl");
  check_refused ("send:0", "send:1", 4, "channel 1");
  check_refused ("start=1000", "start=2500.000001", 4, "start");
  check_refused ("period=500", "period=499.999999", 4, "shorter");
  check_refused ("period=500", "period=2001", 4, "longer");
  check_refused ("repeat=*", "repeat=4294967295", 4, "repeat");
  check_refused ("frames=0-49", "frames=50-49", 4, "frames");
  check_refused ("frames=0-49", "frames=0-100", 4, "frames");
  check_refused ("packets=0-99", "packets=0-200", 4, "packets");
  check_refused ("packets=0-99,-", "packets=0-99", 4, "\",\" is missing");
  check_refused ("packets=0-99,-", "packets=0-99,-,-", 4, "more than expected");
  check_refused ("receive:0", "receive:1", 5, "channel 1");
  check_refused ("join=2000", "join=2500.000001", 5, "join");
  check_refused ("leave=2500", "leave=2000", 5, "leave");
  check_refused ("leave=2500", "leave=3500.000001", 5, "leave");
  check_refused ("leave=2500 frames=0-49", "leave=2500 frames=0-50", 5, "does not send");
  check_refused ("packets:200", "packets:268435457", 7, "x-weir-packets");
  check_refused ("packets:200\r\n", "packets:200\r\na=x-weir-packets:200\r\n", 8, "second");
  check_refused ("a=x-weir-packets:50\r\n", "", 8, "x-weir-packets");
}

// Writes a title with this many lines of a kind.
static int
read_many (int channels, int sends, int receives, int tracks)
{
  char *text;
  size_t length;
  FILE *to = open_memstream (&text, &length);
  int result;

  fputs ("a=x-weir-schedule:1 id=0f scheme=gdb now=1000 play=2000 frames=100 frame=10000000\n", to);
  for (int i = 0; i < channels; i++)
    fprintf (to, "a=x-weir-channel:%d group=239.1.%d.%d port=5004 ttl=2\n", i, i / 256, i % 256);
  for (int i = 0; i < sends; i++) {
    fputs ("a=x-weir-send:0 start=1000 period=500 repeat=* frames=0-49 packets=0-99", to);
    for (int track = 1; track < tracks; track++)
      fputs (",-", to);
    fputc ('\n', to);
  }
  for (int i = 0; i < receives; i++) {
    fputs ("a=x-weir-receive:0 join=2000 leave=2500 frames=0-49 packets=0-99", to);
    for (int track = 1; track < tracks; track++)
      fputs (",-", to);
    fputc ('\n', to);
  }
  for (int i = 0; i < tracks; i++)
    fputs ("m=video 0 RTP/AVP 96\na=x-weir-packets:200\n", to);
  fclose (to);
  result = read_text (text);
  free (text);
  return result;
}

static void
numbers_of_lines_are_bounded (void)
{
  CHECK_INT (read_many (256, 256, 256, 8), 0);
  CHECK_INT (got.n_channels + got.n_sends + got.n_receives + got.n_tracks, 3 * 256 + 8);
  CHECK_INT (read_many (257, 1, 1, 1), -EINVAL);
  CHECK_INT (read_many (1, 257, 1, 1), -EINVAL);
  CHECK_INT (read_many (1, 1, 257, 1), -EINVAL);
  CHECK_INT (read_many (1, 1, 1, 9), -EINVAL);
  CHECK_INT (read_many (1, 1, 1, 0), -EINVAL);
}

static void
a_second_channel_of_a_group_is_refused (void)
{
  char text[4096];

  snprintf (text, sizeof text, "a=x-weir-channel:1 group=239.1.2.3 port=5004 ttl=2\n%s", title);
  CHECK_INT (read_text (text), -EINVAL);
  snprintf (text, sizeof text, "a=x-weir-channel:0 group=239.1.2.4 port=5004 ttl=2\n%s", title);
  CHECK_INT (read_text (text), -EINVAL);
  snprintf (text, sizeof text, "a=x-weir-channel:1 group=239.1.2.4 port=5004 ttl=2\n%s", title);
  CHECK_INT (read_text (text), 0);
}

static void
filters_of_other_groups_are_left_alone (void)
{
  char text[4096];

  snprintf (text, sizeof text,
      "a=source-filter:excl IN IP4 * 192.0.2.9\na=source-filter: incl IN IP4 * 192.0.2.9\n"
      "a=source-filter: incl IN IP4 239.9.9.9 192.0.2.9\n%s",
      title);
  CHECK_INT (read_text (text), 0);
  CHECK_INT (ntohl (got.channels[0].source.v4.sin_addr.s_addr), 0x0a000001);
}

static void
a_description_that_is_too_long_is_refused (void)
{
  char *text = malloc (WEIR_DESCRIPTION_BYTES_MAX + 1);

  memset (text, '\n', WEIR_DESCRIPTION_BYTES_MAX + 1);
  CHECK_INT (weir_description_read (&got, text, WEIR_DESCRIPTION_BYTES_MAX + 1, why), -EINVAL);
  CHECK_INT (weir_description_read (&got, text, WEIR_DESCRIPTION_BYTES_MAX, why), -ENOENT);
  free (text);
}

int
main (void)
{
  make_example ();
  RUN (what_is_written_is_read);
  RUN (attributes_are_where_sdp_has_them);
  RUN (a_description_without_a_schedule_is_told_apart);
  RUN (a_description_with_other_media_is_not_written);
  RUN (a_live_mount_has_only_a_channel);
  RUN (the_place_of_a_mistake_is_told);
  RUN (numbers_of_lines_are_bounded);
  RUN (a_second_channel_of_a_group_is_refused);
  RUN (filters_of_other_groups_are_left_alone);
  RUN (a_description_that_is_too_long_is_refused);
  return tap_done ();
}
