// SPDX-License-Identifier: LGPL-2.1-or-later
// Measures the cost of sending a burst of packets to many readers, by the system calls used. Prints
// one line "burst method ns" for each run, in ns of this process's CPU time per packet.
//
//     send_bench [--only BURST] [ADDRESS PORT]
//
// A burst is a number of packets of one size, or one of two more: "17-in-3" is a frame of a
// zero-latency encoder: an access unit delimiter and two slices, whose last packets are short, so
// three segmented sends. "200" is larger than one segmented send may be.
//
// With an address, the readers are its ports from PORT on, and the other side drops the packets. By
// default the readers are loopback sockets that nothing reads: once their buffers are full the
// kernel drops packets at the receiver, so every method pays the same for delivery.

#include "fanout/fanout_private.h"
#include "rtp/rtp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define READERS 500
#define PACKET_SIZE 1200
#define MAX_BURST 200
#define RUNS 5
#define PACKETS_PER_RUN 64000
#define SEND_BYTES 65507 // the most that one send may carry

typedef struct {
  const char *name;
  int n;
  int slices; // 0: all packets have one size
} Burst;

static const Burst bursts[] = { { "1", 1, 0 }, { "4", 4, 0 }, { "8", 8, 0 }, { "16", 16, 0 },
  { "32", 32, 0 }, { "17-in-3", 17, 2 }, { "200", 200, 0 } };

static struct sockaddr_in addresses[READERS];
static uint8_t packets[MAX_BURST * PACKET_SIZE];

// The current burst: packet p is the bytes from offset[p] to offset[p + 1].
static int burst, offset[MAX_BURST + 1];

// Engines whose readers share one numbering, have their own, or get unsegmented sends.
typedef struct {
  WeirFanout *fanout;
  WeirReader *readers[READERS];
  uint16_t seq;
  int64_t now_ns;
} Engine;

static Engine alike, own, plain;

static int
length (int p)
{
  return offset[p + 1] - offset[p];
}

static void
lay_out (const Burst *of)
{
  int slice = of->slices ? (of->n - 1) / of->slices : 0;

  burst = of->n;
  for (int p = 0; p < burst; p++) {
    int size = PACKET_SIZE;

    if (slice)
      size = p == 0 ? 14 : p % slice == 0 ? PACKET_SIZE / 2 : PACKET_SIZE;
    offset[p + 1] = offset[p] + size;
  }
}

static void
die (const char *what)
{
  perror (what);
  exit (1);
}

static void
open_reader (struct sockaddr_in *address)
{
  int fd = socket (AF_INET, SOCK_DGRAM, 0);
  int smallest = 1;
  socklen_t len = sizeof *address;

  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl (INADDR_LOOPBACK);
  if (fd < 0 || setsockopt (fd, SOL_SOCKET, SO_RCVBUF, &smallest, sizeof smallest) != 0
      || bind (fd, (struct sockaddr *) address, len) != 0
      || getsockname (fd, (struct sockaddr *) address, &len) != 0)
    die ("reader");
}

static void
name_reader (struct sockaddr_in *address, const char *host, int port)
{
  address->sin_family = AF_INET;
  address->sin_port = htons ((uint16_t) port);
  if (inet_pton (AF_INET, host, &address->sin_addr) != 1)
    die (host);
}

static void
make_engine (Engine *engine, int fd, WeirGso gso, uint16_t seq_delta)
{
  const WeirFanoutSettings settings = {
    .gso = gso,
    .catch_up_rate = 8,
    .bounds = { .bytes = 8 << 20, .packets = 1 << 16, .time_ns = 1000000000 },
  };

  if (!(engine->fanout = weir_fanout_new (NULL, NULL, &settings)))
    die ("weir_fanout_new");
  for (int r = 0; r < READERS; r++) {
    WeirAddress address = { .v4 = addresses[r] };
    WeirReader *reader = weir_reader_new_udp ();

    weir_reader_set_route (reader, fd, &address);
    if (weir_fanout_add (engine->fanout, reader, 4, NULL, 0) < 0)
      die ("weir_fanout_add");
    reader->seq_delta = seq_delta;
    engine->readers[r] = reader;
  }
  weir_fanout_start (engine->fanout);
}

static void
pass_sendto (int fd)
{
  for (int r = 0; r < READERS; r++)
    for (int p = 0; p < burst; p++)
      if (sendto (fd, packets + offset[p], (size_t) length (p), 0,
              (struct sockaddr *) &addresses[r], sizeof addresses[r])
          != length (p))
        die ("sendto");
}

static void
pass_sendmmsg (int fd)
{
  static struct mmsghdr messages[READERS * MAX_BURST];
  struct iovec iov[MAX_BURST];
  int n = 0;

  for (int p = 0; p < burst; p++)
    iov[p] = (struct iovec) { packets + offset[p], (size_t) length (p) };
  for (int r = 0; r < READERS; r++)
    for (int p = 0; p < burst; p++, n++)
      messages[n].msg_hdr = (struct msghdr) {
        .msg_name = &addresses[r],
        .msg_namelen = sizeof addresses[r],
        .msg_iov = &iov[p],
        .msg_iovlen = 1,
      };
  for (int sent = 0; sent < n;) {
    int more = sendmmsg (fd, messages + sent, (unsigned) (n - sent), 0);
    if (more <= 0)
      die ("sendmmsg");
    sent += more;
  }
}

// The cheapest use of UDP_SEGMENT: one message for each run of packets of one size (the last may be
// shorter), out of one contiguous buffer.
static void
pass_segment (int fd)
{
  uint16_t size = 0;
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE (sizeof size)];
  } control = { 0 };
  struct iovec iov;
  struct msghdr message = {
    .msg_namelen = sizeof addresses[0],
    .msg_iov = &iov,
    .msg_iovlen = 1,
    .msg_control = control.bytes,
    .msg_controllen = sizeof control.bytes,
  };
  struct cmsghdr *cmsg = CMSG_FIRSTHDR (&message);

  cmsg->cmsg_level = SOL_UDP;
  cmsg->cmsg_type = UDP_SEGMENT;
  cmsg->cmsg_len = CMSG_LEN (sizeof size);
  for (int r = 0; r < READERS; r++) {
    message.msg_name = &addresses[r];
    for (int p = 0, end; p < burst; p = end) {
      size = (uint16_t) length (p);
      for (end = p + 1; end < burst && length (end - 1) == size && length (end) <= size
                        && offset[end + 1] - offset[p] <= SEND_BYTES;)
        end++;
      memcpy (CMSG_DATA (cmsg), &size, sizeof size);
      iov = (struct iovec) { packets + offset[p], (size_t) (offset[end] - offset[p]) };
      if (sendmsg (fd, &message, 0) != (ssize_t) iov.iov_len)
        die ("sendmsg with UDP_SEGMENT");
    }
  }
}

// Pushes a frame into the window and sends it to all readers.
static void
pass_engine (Engine *engine)
{
  WeirFanoutCounters before, after;

  weir_fanout_counters (engine->fanout, &before);
  engine->now_ns += 40000000;
  weir_fanout_begin (engine->fanout);
  for (int p = 0; p < burst; p++) {
    size_t len = (size_t) length (p);
    uint8_t *packet = weir_fanout_reserve (engine->fanout, len);

    if (!packet)
      die ("weir_fanout_reserve");
    memcpy (packet, packets, len);
    packet[1] = (uint8_t) (96 | (p == burst - 1 ? 0x80 : 0));
    weir_rtp_set_seq (packet, engine->seq++);
    weir_rtp_set_timestamp (packet, (uint32_t) (engine->now_ns / 11111));
    weir_fanout_commit (engine->fanout, len, engine->now_ns);
  }
  weir_fanout_end (engine->fanout, engine->now_ns);
  weir_fanout_run (engine->fanout, engine->now_ns);
  weir_fanout_counters (engine->fanout, &after);
  if (after.packets - before.packets != (uint64_t) burst * READERS)
    die ("the engine");
}

static void
pass_alike (int fd)
{
  pass_engine (&alike);
}

static void
pass_own (int fd)
{
  pass_engine (&own);
}

static void
pass_plain (int fd)
{
  pass_engine (&plain);
}

static const struct {
  const char *name;
  void (*pass) (int fd);
} ways[] = {
  { "sendto", pass_sendto },
  { "sendmmsg", pass_sendmmsg },
  { "udp-segment", pass_segment },
  { "core", pass_alike },
  { "core-own-numbers", pass_own },
  { "core-gso-off", pass_plain },
};

#define WAYS (sizeof ways / sizeof ways[0])

static double
cpu_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e9 * (double) t.tv_sec + (double) t.tv_nsec;
}

static double
ns_per_packet (size_t way, int fd)
{
  int passes = burst < PACKETS_PER_RUN / READERS ? PACKETS_PER_RUN / (READERS * burst) : 1;
  double start = cpu_ns ();

  for (int i = 0; i < passes; i++)
    ways[way].pass (fd);
  return (cpu_ns () - start) / ((double) passes * READERS * burst);
}

static void
run (const Burst *of, int fd)
{
  lay_out (of);
  for (size_t w = 0; w < WAYS; w++)
    ns_per_packet (w, fd);
  // The methods take turns, so that a change in the machine's speed affects all of them.
  for (int i = 0; i < RUNS; i++)
    for (size_t w = 0; w < WAYS; w++)
      printf ("%s %s %.1f\n", of->name, ways[w].name, ns_per_packet (w, fd));
}

int
main (int argc, char **argv)
{
  int fd = socket (AF_INET, SOCK_DGRAM, 0);
  const char *only = NULL;

  if (argc > 2 && strcmp (argv[1], "--only") == 0) {
    only = argv[2];
    argc -= 2;
    argv += 2;
  }
  if (fd < 0)
    die ("socket");
  for (int r = 0; r < READERS; r++) {
    if (argc == 3)
      name_reader (&addresses[r], argv[1], atoi (argv[2]) + r);
    else
      open_reader (&addresses[r]);
  }
  packets[0] = 0x80;
  make_engine (&alike, fd, WEIR_GSO_AUTO, 0);
  make_engine (&own, fd, WEIR_GSO_AUTO, 1);
  make_engine (&plain, fd, WEIR_GSO_OFF, 0);
  for (size_t b = 0; b < sizeof bursts / sizeof bursts[0]; b++) {
    if (!only || strcmp (only, bursts[b].name) == 0)
      run (&bursts[b], fd);
  }
  close (fd);
  return 0;
}
