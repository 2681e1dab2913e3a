// SPDX-License-Identifier: LGPL-2.1-or-later
// Measures the cost of receiving many RTP streams of 1 Mb/s on one thread.
//
//     ingest_bench WAY even|frames STREAMS SECONDS
//
// WAY is "recvmsg" (a thread that waits in epoll, and receives one packet for each socket that is
// ready) or the engine's tick in us. A child process sends from one socket to the streams' sockets
// on loopback: 83 packets of 1500 bytes a second each, "even", or in "frames" of 3 or 4 packets, 25
// a second, each as one segmented send. The streams start at different times. The kernel charges
// its work on loopback up to the receive buffer to the sender.
//
// Prints a line "name value" for each figure: ns of this process's CPU time per packet, CPU time in
// % of a core, and the time from the kernel's stamp to the callback in us, at the 50th and the 99th
// percentile. Fails if a packet is missing.

#include <arpa/inet.h>
#include <err.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ingest/engine.h"
#include "ingest/udp.h"
#include "run/histogram.h"

#define S INT64_C (1000000000)
#define PER_SECOND 83
#define FRAMES_PER_SECOND 25
#define LEN 1500
#define SPIN_NS 100000 // the sender sleeps for longer gaps only
#define BUFFER (1 << 20)
#define SAMPLE 16 // every so many packets the delay is measured
#define PATIENCE_NS (5 * S)

static struct sockaddr_in *addresses;
static int *fds;
static unsigned n_streams;
static atomic_ullong n_received;
static WeirHistogram delays; // of the receiving thread

static double
cpu_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e9 * (double) t.tv_sec + (double) t.tv_nsec;
}

// ---- the sender ----

static void
wait_until (int64_t due_ns)
{
  int64_t now_ns;

  while ((now_ns = weir_now_ns ()) < due_ns) {
    struct timespec t = { .tv_nsec = due_ns - now_ns - SPIN_NS / 2 };

    if (due_ns - now_ns > SPIN_NS)
      nanosleep (&t, NULL);
  }
}

static void
write_packet (uint8_t *out, uint64_t seq, unsigned stream, bool marker)
{
  const uint8_t head[] = { 0x80, (uint8_t) (marker ? 0xe0 : 0x60), (uint8_t) (seq >> 8),
    (uint8_t) seq, 0, 0, 0, 0, 1, 2, (uint8_t) (stream >> 8), (uint8_t) stream };

  memcpy (out, head, sizeof head);
}

static void
send_burst (int fd, unsigned stream, uint64_t seq, unsigned n)
{
  static uint8_t packets[4 * LEN];
  const uint16_t segment = LEN;
  union {
    struct cmsghdr align;
    uint8_t bytes[CMSG_SPACE (sizeof segment)];
  } control = { 0 };
  struct iovec iov = { packets, n * LEN };
  struct msghdr msg = { .msg_name = &addresses[stream],
    .msg_namelen = sizeof addresses[stream],
    .msg_iov = &iov,
    .msg_iovlen = 1 };
  struct cmsghdr *cmsg;

  for (unsigned i = 0; i < n; i++)
    write_packet (packets + i * LEN, seq + i, stream, i == n - 1);
  if (n > 1) {
    msg.msg_control = control.bytes;
    msg.msg_controllen = sizeof control.bytes;
    cmsg = CMSG_FIRSTHDR (&msg);
    cmsg->cmsg_level = SOL_UDP;
    cmsg->cmsg_type = UDP_SEGMENT;
    cmsg->cmsg_len = CMSG_LEN (sizeof segment);
    memcpy (CMSG_DATA (cmsg), &segment, sizeof segment);
  }
  if (sendmsg (fd, &msg, 0) != (ssize_t) iov.iov_len)
    err (1, "send");
}

// Sends all streams in turn, `rate` times a second. Burst b ends with packet
// (b + 1) * PER_SECOND / rate.
static void
send_all (unsigned rate, unsigned seconds)
{
  int fd = socket (AF_INET, SOCK_DGRAM, 0);
  int64_t start_ns = weir_now_ns () + S / 10, turn_ns = S / rate;

  prctl (PR_SET_TIMERSLACK, 1);
  for (uint64_t burst = 0; burst < (uint64_t) rate * seconds; burst++) {
    uint64_t first = burst * PER_SECOND / rate, end = (burst + 1) * PER_SECOND / rate;

    for (unsigned i = 0; i < n_streams; i++) {
      wait_until (start_ns + (int64_t) burst * turn_ns + turn_ns * i / n_streams);
      send_burst (fd, i, first, (unsigned) (end - first));
    }
  }
}

// ---- one recvmsg a packet ----

static void
note_delay (int64_t arrival_ns)
{
  if (atomic_fetch_add_explicit (&n_received, 1, memory_order_relaxed) % SAMPLE == 0)
    weir_histogram_add (&delays, weir_now_ns () - arrival_ns);
}

static void
receive_one (int fd, int64_t unix_offset_ns)
{
  static uint8_t data[65536];
  union {
    struct cmsghdr align;
    uint8_t bytes[128];
  } control;
  struct sockaddr_in from;
  struct iovec iov = { data, sizeof data };
  struct msghdr msg = { .msg_name = &from,
    .msg_namelen = sizeof from,
    .msg_iov = &iov,
    .msg_iovlen = 1,
    .msg_control = control.bytes,
    .msg_controllen = sizeof control.bytes };
  ssize_t n = recvmsg (fd, &msg, MSG_DONTWAIT);
  struct timespec t = { 0 };
  WeirRtp rtp;

  if (n < 0 || weir_rtp_parse (data, (size_t) n, &rtp) < 0)
    return;
  for (struct cmsghdr *c = CMSG_FIRSTHDR (&msg); c; c = CMSG_NXTHDR (&msg, c)) {
    if (c->cmsg_type == SCM_TIMESTAMPNS)
      memcpy (&t, CMSG_DATA (c), sizeof t);
  }
  note_delay ((int64_t) t.tv_sec * S + t.tv_nsec - unix_offset_ns);
}

static void *
receive_at_once (void *unused)
{
  struct epoll_event events[256];
  int epoll_fd = epoll_create1 (0);
  struct timespec t;
  int64_t unix_offset_ns;

  clock_gettime (CLOCK_REALTIME, &t);
  unix_offset_ns = (int64_t) t.tv_sec * S + t.tv_nsec - weir_now_ns ();
  for (unsigned i = 0; i < n_streams; i++) {
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fds[i] };

    if (epoll_ctl (epoll_fd, EPOLL_CTL_ADD, fds[i], &event) < 0)
      err (1, "epoll_ctl");
  }
  for (;;) {
    int n = epoll_wait (epoll_fd, events, 256, -1);

    for (int i = 0; i < n; i++)
      receive_one (events[i].data.fd, unix_offset_ns);
  }
  return NULL;
}

// ---- the engine ----

static void
on_packet (void *data, const WeirIngestPacket *packet)
{
  note_delay (packet->arrival_ns);
}

static const WeirIngestOps ops = { .track = { .packet = on_packet } };

static void
start_engine (int64_t tick_ns)
{
  const WeirIngestSettings settings = { .threads = 1, .tick_ns = tick_ns };
  const WeirTrackSettings track = { .payload_types = { 0, UINT64_C (1) << 32 },
    .reorder = { 64, 1 << 18, 20000000 },
    .rtcp_mux = true,
    .report_interval_ns = 5 * S,
    .cname = "bench" };
  WeirIngest *engine = weir_ingest_new (&settings);

  for (unsigned i = 0; i < n_streams; i++) {
    WeirIngestTrack *unused;

    if (weir_ingest_add (engine, &track, (WeirIngestSockets) { fds[i], -1 }, &ops, NULL, &unused)
        < 0)
      errx (1, "cannot add a track");
  }
}

// ---- the run ----

static void
open_streams (bool gro)
{
  struct rlimit files;

  getrlimit (RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit (RLIMIT_NOFILE, &files);
  addresses = calloc (n_streams, sizeof *addresses);
  fds = calloc (n_streams, sizeof *fds);
  for (unsigned i = 0; i < n_streams; i++) {
    WeirAddress any = { .v4 = {
                            .sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK) } };
    socklen_t len = sizeof addresses[i];

    fds[i] = weir_udp_open (&any, 0, BUFFER, gro);
    if (fds[i] < 0 || getsockname (fds[i], (struct sockaddr *) &addresses[i], &len) < 0)
      errx (1, "cannot open %u sockets", n_streams);
  }
}

static void
wait_for_all (uint64_t sent)
{
  int64_t until_ns = weir_now_ns () + PATIENCE_NS;

  while (atomic_load (&n_received) < sent && weir_now_ns () < until_ns)
    usleep (10000);
  if (atomic_load (&n_received) != sent)
    errx (1, "%llu packets received, %llu sent", (unsigned long long) atomic_load (&n_received),
        (unsigned long long) sent);
}

int
main (int argc, char **argv)
{
  bool plain = argc == 5 && strcmp (argv[1], "recvmsg") == 0;
  bool frames = argc == 5 && strcmp (argv[2], "frames") == 0;
  unsigned seconds = argc == 5 ? (unsigned) atoi (argv[4]) : 0;
  pthread_t thread;
  double start, used;
  int64_t start_ns;
  pid_t child;

  n_streams = argc == 5 ? (unsigned) atoi (argv[3]) : 0;
  if (n_streams == 0 || seconds == 0)
    errx (1, "usage: ingest_bench recvmsg|TICK even|frames STREAMS SECONDS");
  open_streams (!plain);
  if (plain && pthread_create (&thread, NULL, receive_at_once, NULL) != 0)
    errx (1, "cannot start a thread");
  if (!plain)
    start_engine (atoll (argv[1]) * 1000);
  start = cpu_ns ();
  start_ns = weir_now_ns ();
  if ((child = fork ()) == 0) {
    send_all (frames ? FRAMES_PER_SECOND : PER_SECOND, seconds);
    _exit (0);
  }
  waitpid (child, NULL, 0);
  wait_for_all ((uint64_t) n_streams * PER_SECOND * seconds);
  used = cpu_ns () - start;
  printf ("ns %.0f\n", used / (double) atomic_load (&n_received));
  printf ("cpu %.2f\n", 100 * used / (double) (weir_now_ns () - start_ns));
  printf ("p50 %.1f\n", (double) weir_histogram_percentile (&delays, 50) / 1000);
  printf ("p99 %.1f\n", (double) weir_histogram_percentile (&delays, 99) / 1000);
  return 0;
}
