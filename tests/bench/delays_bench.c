// SPDX-License-Identifier: LGPL-2.1-or-later
// Measures the engine alone, with a minute of a 1 Mb/s stream in its window. Either all readers are
// at the live edge, or each has a different delay.
//
//     delays_bench live|delays ADDRESS PORT READERS SECONDS
//
// The readers are the ports from PORT on. The minute is filled at once, with arrival times in the
// past. Prints one line "name value" for each figure.

#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fanout/fanout.h"

#define MS INT64_C (1000000)
#define S (1000 * MS)
#define FRAME_NS (40 * MS)
#define FRAME_BYTES 5000
#define PACKET 1400
#define GOP 50
#define WINDOW_NS (64 * S)
#define WINDOW_BYTES (16 << 20)
#define LONGEST_DELAY (60 * S)
#define SETTLE_S 3

static WeirFanout *fanout;
static unsigned n_frames;
static uint16_t next_seq;

static double
cpu_s (void)
{
  struct timespec t;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static double
resident_bytes (void)
{
  FILE *statm = fopen ("/proc/self/statm", "r");
  long size = 0, resident = 0;

  if (!statm || fscanf (statm, "%ld %ld", &size, &resident) != 2)
    err (1, "/proc/self/statm");
  fclose (statm);
  return (double) resident * (double) sysconf (_SC_PAGESIZE);
}

// Pushes a VP8 packet whose content is never decoded.
static void
push_packet (size_t len, bool first, bool marker, bool key, int64_t now_ns)
{
  uint32_t time = n_frames * 3600;
  const uint8_t head[] = { 0x80, (uint8_t) (96 | (marker ? 0x80 : 0)), (uint8_t) (next_seq >> 8),
    (uint8_t) next_seq, (uint8_t) (time >> 24), (uint8_t) (time >> 16), (uint8_t) (time >> 8),
    (uint8_t) time, 1, 2, 3, 4, first ? 0x10 : 0, key ? 0 : 1 };
  uint8_t *room = weir_fanout_reserve (fanout, len);

  if (!room)
    errx (1, "no memory");
  memset (room, (int) next_seq++, len);
  memcpy (room, head, sizeof head);
  weir_fanout_commit (fanout, len, now_ns);
}

static void
push_frame (int64_t now_ns)
{
  bool key = n_frames % GOP == 0;

  if (!weir_fanout_begin (fanout))
    errx (1, "the engine has no reader for packets");
  for (size_t at = 0; at < FRAME_BYTES; at += PACKET) {
    bool last = at + PACKET >= FRAME_BYTES;

    push_packet (last ? FRAME_BYTES - at : PACKET, at == 0, last, key, now_ns);
  }
  n_frames++;
  weir_fanout_end (fanout, now_ns);
}

static void
play (int64_t from_ns, int64_t seconds)
{
  for (int64_t at = from_ns; at < from_ns + seconds * S; at += FRAME_NS) {
    struct timespec t = { .tv_sec = at / S, .tv_nsec = at % S };

    clock_nanosleep (CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    push_frame (weir_now_ns ());
  }
}

static WeirReader *
add (int fd, const char *host, int port, int64_t delay_ns)
{
  WeirAddress address = { .v4 = { .sin_family = AF_INET, .sin_port = htons ((uint16_t) port) } };
  WeirReader *reader = weir_reader_new_udp ();

  if (inet_pton (AF_INET, host, &address.v4.sin_addr) != 1)
    errx (1, "%s is not an address", host);
  weir_reader_set_route (reader, fd, &address);
  weir_reader_set_delay (reader, delay_ns);
  if (weir_fanout_add (fanout, reader, 0, NULL, weir_now_ns ()) < 0)
    errx (1, "no memory");
  return reader;
}

int
main (int argc, char **argv)
{
  const WeirFanoutSettings settings = {
    .join_at_keyframe = true,
    .catch_up_live = true,
    .catch_up_rate = 8,
    .inline_readers = 32,
    .coalesce_ns = 2 * MS,
    .bounds = { WINDOW_BYTES, 65536, WINDOW_NS, false },
  };
  WeirWorkers *workers;
  WeirFanoutCounters before, after;
  WeirReader **readers;
  double memory, cpu, packets;
  int64_t now_ns, late_ns = 0;
  int fd, n, seconds;
  bool delays;

  if (argc != 6)
    errx (2, "usage: delays_bench live|delays ADDRESS PORT READERS SECONDS");
  delays = strcmp (argv[1], "delays") == 0;
  n = atoi (argv[4]);
  seconds = atoi (argv[5]);
  readers = calloc ((size_t) n, sizeof *readers);
  fd = socket (AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  if (fd < 0 || !readers)
    err (1, "cannot open a socket");
  workers = weir_workers_new (0, weir_fanout_scratch_size ());
  fanout = weir_fanout_new (workers, NULL, &settings);
  weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
  weir_fanout_set_clock_rate (fanout, 90000);
  weir_fanout_start (fanout);

  memory = resident_bytes ();
  now_ns = weir_now_ns ();
  for (int64_t at = now_ns - WINDOW_NS; at < now_ns; at += FRAME_NS)
    push_frame (at);
  for (int i = 0; i < n; i++)
    readers[i] = add (fd, argv[2], atoi (argv[3]) + i, delays ? LONGEST_DELAY * (i + 1) / n : 0);

  play (now_ns, SETTLE_S);
  weir_fanout_counters (fanout, &before);
  cpu = cpu_s ();
  play (now_ns + SETTLE_S * S, seconds);
  cpu = cpu_s () - cpu;
  weir_fanout_counters (fanout, &after);
  memory = resident_bytes () - memory;
  for (int i = 0; i < n; i++) {
    WeirReaderCounters counters;

    weir_reader_counters (fanout, readers[i], weir_now_ns (), &counters);
    late_ns = counters.lag_ns > late_ns ? counters.lag_ns : late_ns;
  }

  packets = (double) (after.packets - before.packets);
  printf ("ns %.1f\n", 1e9 * cpu / packets);
  printf ("cpu %.1f\n", 100 * cpu / seconds);
  printf ("sent %.0f\n", packets);
  printf ("segments %.1f\n", packets / (double) (after.sends.sends - before.sends.sends));
  printf ("late %.1f\n", (double) late_ns / 1e6);
  printf ("memory %.1f\n", memory / (1 << 20));

  weir_fanout_stop (fanout);
  for (int i = 0; i < n; i++)
    weir_fanout_remove (fanout, readers[i]);
  for (int i = 0; i < n; i++)
    weir_reader_unref (readers[i]);
  weir_fanout_free (fanout);
  weir_workers_free (workers);
  free (readers);
  close (fd);
  return 0;
}
