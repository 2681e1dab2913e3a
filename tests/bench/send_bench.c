// SPDX-License-Identifier: LGPL-2.1-or-later
// What it costs to send a burst of packets to many readers, by the way in which the kernel is
// asked. The readers are loopback sockets that nobody reads: once their buffers are full the kernel
// drops at the receiver, so every way pays the same for delivery.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READERS 100
#define PACKET_SIZE 1200
#define MAX_BURST 16
#define RUNS 5
#define PACKETS_PER_RUN 160000

static struct sockaddr_in addresses[READERS];
static uint8_t packets[MAX_BURST][PACKET_SIZE];

static void
die (const char *what)
{
  perror (what);
  exit (1);
}

static void
open_readers (void)
{
  for (int i = 0; i < READERS; i++) {
    int fd = socket (AF_INET, SOCK_DGRAM, 0);
    int smallest = 1;
    socklen_t len = sizeof addresses[i];

    addresses[i].sin_family = AF_INET;
    addresses[i].sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    if (fd < 0 || setsockopt (fd, SOL_SOCKET, SO_RCVBUF, &smallest, sizeof smallest) != 0
        || bind (fd, (struct sockaddr *) &addresses[i], len) != 0
        || getsockname (fd, (struct sockaddr *) &addresses[i], &len) != 0)
      die ("reader");
  }
}

static void
pass_sendto (int fd, int burst)
{
  for (int r = 0; r < READERS; r++)
    for (int p = 0; p < burst; p++)
      if (sendto (fd, packets[p], PACKET_SIZE, 0, (struct sockaddr *) &addresses[r],
              sizeof addresses[r])
          != PACKET_SIZE)
        die ("sendto");
}

static void
pass_sendmmsg (int fd, int burst)
{
  struct iovec iov[MAX_BURST];
  struct mmsghdr messages[READERS * MAX_BURST];
  int n = 0;

  for (int p = 0; p < burst; p++)
    iov[p] = (struct iovec) { packets[p], PACKET_SIZE };
  memset (messages, 0, sizeof messages[0] * (size_t) (READERS * burst));
  for (int r = 0; r < READERS; r++)
    for (int p = 0; p < burst; p++, n++) {
      messages[n].msg_hdr.msg_name = &addresses[r];
      messages[n].msg_hdr.msg_namelen = sizeof addresses[r];
      messages[n].msg_hdr.msg_iov = &iov[p];
      messages[n].msg_hdr.msg_iovlen = 1;
    }
  for (int sent = 0; sent < n;) {
    int more = sendmmsg (fd, messages + sent, (unsigned) (n - sent), 0);
    if (more <= 0)
      die ("sendmmsg");
    sent += more;
  }
}

static const struct {
  const char *name;
  void (*pass) (int fd, int burst);
} ways[] = {
  { "sendto", pass_sendto },
  { "sendmmsg", pass_sendmmsg },
};

#define WAYS (sizeof ways / sizeof ways[0])

static double
now_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return 1e9 * (double) t.tv_sec + (double) t.tv_nsec;
}

static int
by_value (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static double
ns_per_packet (size_t way, int fd, int burst)
{
  int passes = PACKETS_PER_RUN / (READERS * burst);
  double start = now_ns ();

  for (int i = 0; i < passes; i++)
    ways[way].pass (fd, burst);
  return (now_ns () - start) / ((double) passes * READERS * burst);
}

int
main (void)
{
  static const int bursts[] = { 1, 4, 16 };
  int fd = socket (AF_INET, SOCK_DGRAM, 0);

  if (fd < 0)
    die ("socket");
  open_readers ();
  printf ("%d readers, %d bytes a packet, median of %d\n", READERS, PACKET_SIZE, RUNS);
  printf ("%5s  %-10s %9s  %s\n", "burst", "way", "ns/packet", "speed against sendto");
  for (size_t b = 0; b < sizeof bursts / sizeof bursts[0]; b++) {
    double ns[WAYS][RUNS];

    // The ways take turns, so that a change of the machine's pace meets them all.
    for (size_t w = 0; w < WAYS; w++)
      ns_per_packet (w, fd, bursts[b]);
    for (int run = 0; run < RUNS; run++)
      for (size_t w = 0; w < WAYS; w++)
        ns[w][run] = ns_per_packet (w, fd, bursts[b]);
    for (size_t w = 0; w < WAYS; w++) {
      qsort (ns[w], RUNS, sizeof ns[w][0], by_value);
      printf ("%5d  %-10s %9.0f  %.2f\n", bursts[b], ways[w].name, ns[w][RUNS / 2],
          ns[0][RUNS / 2] / ns[w][RUNS / 2]);
    }
  }
  close (fd);
  return 0;
}
