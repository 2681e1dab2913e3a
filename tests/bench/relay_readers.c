// SPDX-License-Identifier: LGPL-2.1-or-later
// The readers of the bench `relay`: each plays one stream of relay_origin.c, over UDP, by way of
// the measured server. All run on one thread, which reads their sockets every 10 ms: the kernel
// stamps the packets, so that this delays no figure.
//
//     relay_readers ADDRESS:PORT PATH FIRST READERS TRACKS RATE SETTLE WINDOW
//
// Reader n plays rtsp://ADDRESS:PORT/PATH(FIRST + n) and expects the origin's stream n. RATE
// readers start a second. A reader whose session fails or ends tries again after a second. Once
// all have packets, or after 60 s more than the start of all takes, SETTLE seconds pass; then
// "MEASURE" is printed, and after WINDOW more "DONE", and then a JSON object with the figures of
// the packets that the origin sent in between: between the slots of time `from` and `until`. With a
// WINDOW of 0 it runs until SIGTERM. `packet_gaps` and `frame_gaps` count the times from one packet
// or frame of the first track to the next, in bins of 1 ms; `buffer_ms` is how long a reader must
// wait after its first frame so that no later frame comes too late.
//
// Prints "ALL at_ns=T" when all readers have packets, the last one since T of CLOCK_MONOTONIC, and
// "NOT ALL" when one has had none for a second.

#include "relay_readers.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ingest/udp.h"
#include "relay_wire.h"
#include "rtp/rtcp_write.h"
#include "rtp/rtp.h"
#include "run/clock.h"
#include "run/histogram.h"

#define EVENTS 512
#define TICK_NS (RELAY_S / 100)
#define FIRST_PORT 20000
#define SILENCE_NS RELAY_S
#define JOIN_MAX_NS (60 * RELAY_S)
#define GRACE_NS RELAY_S // for packets that are late
#define REPORT_SLOTS 50  // a reader reports every so many slots of time
#define GAPS 1000        // bins of 1 ms
#define VIDEO_CLOCK 90000

static struct {
  struct sockaddr_in server;
  const char *address, *path;
  unsigned first, n_tracks;
  double rate, settle, window;
} options;

static Reader *readers;
static unsigned n_readers, n_started;
static int epoll_fd;
static WeirReceiver receiver;
static int64_t unix_offset_ns, start_ns;

static int64_t from_slot = INT64_MAX, until_slot = INT64_MAX; // the window
static struct {
  uint64_t received, lost, reordered, duplicates;
  uint64_t overflows_before;
  uint64_t foreign, unstamped; // of the whole run
  WeirHistogram delays;
  unsigned packet_gaps[GAPS], frame_gaps[GAPS];
} counts;

// ---- packets ----

// Counts a packet by its number. Returns false for a duplicate.
static bool
count_number (ReaderTrack *track, const RelayStamp *stamp, bool in_window)
{
  uint64_t behind;

  if (stamp->session != track->session) {
    track->session = stamp->session;
    track->next = stamp->seq;
    track->seen = 0;
  }
  if (stamp->seq >= track->next) {
    uint64_t gap = stamp->seq - track->next;

    counts.lost += in_window ? gap : 0;
    track->seen = gap < 63 ? track->seen << (gap + 1) | 1 : 1;
    track->next = stamp->seq + 1;
    return true;
  }
  behind = track->next - 1 - stamp->seq;
  if (behind < 64 && track->seen >> behind & 1) {
    counts.duplicates += in_window;
    return false;
  }
  if (behind < 64)
    track->seen |= UINT64_C (1) << behind;
  counts.reordered += in_window;
  counts.lost -= in_window && counts.lost > 0;
  return true;
}

static void
count_gap (unsigned *gaps, int64_t *last_ns, int64_t arrival_ns)
{
  int64_t ms = (arrival_ns - *last_ns) / (RELAY_S / 1000);

  if (*last_ns)
    gaps[ms < 0 ? 0 : ms < GAPS ? ms : GAPS - 1]++;
  *last_ns = arrival_ns;
}

// Counts the gaps of video, and how much later than the first frame of the window another one is.
static void
count_gaps (ReaderTrack *track, const WeirRtp *rtp, int64_t arrival_ns)
{
  int64_t due_ns;

  count_gap (counts.packet_gaps, &track->packet_ns, arrival_ns);
  if (!rtp->marker)
    return;
  count_gap (counts.frame_gaps, &track->frame_ns, arrival_ns);
  if (track->base_ns == 0) {
    track->base_ns = arrival_ns;
    track->first_ts = rtp->timestamp;
  }
  due_ns = track->base_ns
           + (int64_t) (int32_t) (rtp->timestamp - track->first_ts) * RELAY_S / VIDEO_CLOCK;
  if (arrival_ns - due_ns > track->late_ns)
    track->late_ns = arrival_ns - due_ns;
}

static void
take_packet (Reader *self, unsigned which, const uint8_t *data, size_t len, int64_t arrival_ns)
{
  ReaderTrack *track = &self->tracks[which];
  RelayStamp stamp;
  WeirRtp rtp;
  int64_t slot;
  bool in_window;

  if (weir_rtp_parse (data, len, &rtp) != 0
      || !relay_stamp_read (data + rtp.payload_offset, rtp.payload_length, &stamp)) {
    counts.unstamped++;
    return;
  }
  if (arrival_ns - self->heard_ns > SILENCE_NS)
    self->since_ns = arrival_ns;
  self->heard_ns = arrival_ns;
  if (stamp.stream != self->number || stamp.track != which) {
    counts.foreign++;
    return;
  }
  track->ssrc = rtp.ssrc;
  track->highest_seq = rtp.seq;
  slot = stamp.sent_ns / RELAY_SLOT_NS;
  in_window = slot >= from_slot && slot < until_slot;
  if (!count_number (track, &stamp, in_window) || !in_window)
    return;
  if (which == 0)
    count_gaps (track, &rtp, arrival_ns);
  counts.received++;
  self->in_window++;
  weir_histogram_add (&counts.delays, arrival_ns - stamp.sent_ns);
}

static void
read_media (Reader *self, unsigned which, int64_t now_ns)
{
  int n = weir_receiver_fill (&receiver, self->tracks[which].rtp);

  for (int i = 0; i < n; i++) {
    const WeirMessage *message = &receiver.messages[i];
    int64_t arrival_ns = message->unix_ns ? message->unix_ns - unix_offset_ns : now_ns;

    for (size_t at = 0; at < message->len; at += message->segment) {
      size_t left = message->len - at;

      take_packet (self, which, message->data + at,
          left < message->segment ? left : message->segment, arrival_ns);
    }
  }
}

// ---- sockets ----

static uint64_t
name_of (Watch what, const Reader *reader, unsigned track)
{
  return (uint64_t) reader->number << 8 | track << 4 | what;
}

void
readers_watch (int fd, Watch what, const Reader *reader, unsigned track)
{
  // A connection is ready for its first request when it can be written to.
  struct epoll_event event = { .events =
                                   what == WATCH_CONTROL ? EPOLLIN | EPOLLOUT | EPOLLET : EPOLLIN,
    .data.u64 = name_of (what, reader, track) };

  if (epoll_ctl (epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
    err (1, "epoll_ctl");
}

static void
discard (int fd)
{
  static uint8_t unused[2048];

  while (recv (fd, unused, sizeof unused, MSG_DONTWAIT) >= 0)
    ;
}

static void
handle (const struct epoll_event *event, int64_t now_ns)
{
  Reader *reader = &readers[event->data.u64 >> 8];
  unsigned track = event->data.u64 >> 4 & 15;

  switch ((Watch) (event->data.u64 & 15)) {
    case WATCH_CONTROL:
      if (reader->fd >= 0)
        reader_on_control (reader, now_ns);
      break;
    case WATCH_RTP:
      read_media (reader, track, now_ns);
      break;
    case WATCH_RTCP:
      discard (reader->tracks[track].rtcp);
      break;
  }
}

static void
read_all (int64_t now_ns)
{
  struct epoll_event events[EVENTS];
  unsigned seen = 0;
  int n;

  do {
    n = epoll_wait (epoll_fd, events, EVENTS, 0);
    for (int i = 0; i < n; i++)
      handle (&events[i], now_ns);
    seen += n > 0 ? (unsigned) n : 0;
  } while (n == EVENTS && seen < 4 * n_readers);
}

// ---- time ----

static void
send_reports (int64_t slot)
{
  uint8_t rtcp[128];

  for (unsigned i = 0; i < n_readers; i++) {
    const Reader *reader = &readers[i];

    if (reader->state != READER_PLAYS || (i + slot) % REPORT_SLOTS != 0)
      continue;
    for (unsigned t = 0; t < reader->n_tracks; t++) {
      const ReaderTrack *track = &reader->tracks[t];
      WeirRtcpBlock block = { .ssrc = track->ssrc, .highest_seq = track->highest_seq };
      size_t len = weir_rtcp_write_rr (rtcp, sizeof rtcp, 1 + i, &block, 1, "reader");

      if (track->ssrc)
        weir_udp_send (track->rtcp, (const WeirAddress *) &track->rtcp_to, rtcp, len);
    }
  }
}

static void
run_timers (int64_t now_ns)
{
  while (
      n_started < n_readers && now_ns - start_ns >= (int64_t) (n_started / options.rate * RELAY_S))
    readers[n_started++].due_ns = now_ns;
  for (unsigned i = 0; i < n_started; i++) {
    Reader *reader = &readers[i];

    if (reader->due_ns > now_ns)
      continue;
    if (reader->state == READER_WAITS)
      reader_connect (reader, &options.server, now_ns);
    else
      reader_retry (reader, now_ns);
  }
}

// Returns whether all readers have packets, and prints a change.
static bool
note_all (int64_t now_ns)
{
  static bool all;
  bool before = all;
  int64_t since_ns = 0;

  all = true;
  for (unsigned i = 0; i < n_readers; i++) {
    all &= readers[i].heard_ns != 0 && now_ns - readers[i].heard_ns < SILENCE_NS;
    since_ns = readers[i].since_ns > since_ns ? readers[i].since_ns : since_ns;
  }
  if (all && !before)
    printf ("ALL at_ns=%lld\n", (long long) since_ns);
  else if (before && !all)
    printf ("NOT ALL\n");
  return all;
}

// Returns how many packets the kernel has dropped because a reader's buffer was full.
static uint64_t
count_overflows (void)
{
  uint64_t n = 0;

  for (unsigned i = 0; i < n_readers; i++) {
    for (unsigned t = 0; t < readers[i].n_tracks; t++)
      n += weir_udp_drops (readers[i].tracks[t].rtp);
  }
  return n;
}

static void
print_gaps (const char *name, const unsigned *gaps)
{
  const char *comma = "";

  printf ("\"%s\": {", name);
  for (unsigned ms = 0; ms < GAPS; ms++) {
    if (gaps[ms] == 0)
      continue;
    printf ("%s\"%u\": %u", comma, ms, gaps[ms]);
    comma = ", ";
  }
  printf ("},\n ");
}

static void
print_result (void)
{
  unsigned connected = 0, silent = 0;
  int64_t late_ns = 0;

  for (unsigned i = 0; i < n_readers; i++) {
    connected += readers[i].state == READER_PLAYS;
    silent += readers[i].in_window == 0;
    late_ns = readers[i].tracks[0].late_ns > late_ns ? readers[i].tracks[0].late_ns : late_ns;
  }
  printf ("{");
  print_gaps ("packet_gaps", counts.packet_gaps);
  print_gaps ("frame_gaps", counts.frame_gaps);
  printf ("\"buffer_ms\": %.3f,\n ", (double) late_ns / 1e6);
  printf ("\"connected\": %u, \"silent\": %u, \"failures\": %u, \"from\": %lld, \"until\": %lld,\n"
          " \"received\": %llu, \"lost\": %llu, \"reordered\": %llu, \"duplicates\": %llu,\n"
          " \"foreign\": %llu, \"unstamped\": %llu, \"unread\": %llu,\n"
          " \"delay_p50\": %.3f, \"delay_p99\": %.3f, \"delay_max\": %.3f}\n",
      connected, silent, readers_failures (), (long long) from_slot, (long long) until_slot,
      (unsigned long long) counts.received, (unsigned long long) counts.lost,
      (unsigned long long) counts.reordered, (unsigned long long) counts.duplicates,
      (unsigned long long) counts.foreign, (unsigned long long) counts.unstamped,
      (unsigned long long) (count_overflows () - counts.overflows_before),
      (double) weir_histogram_percentile (&counts.delays, 50) / 1e6,
      (double) weir_histogram_percentile (&counts.delays, 99) / 1e6,
      (double) counts.delays.max / 1e6);
}

// Begins and ends the window. Returns false when the run is over.
static bool
run_window (int64_t now_ns, bool all)
{
  static int64_t measure_ns;
  static bool done;
  int64_t slot = now_ns / RELAY_SLOT_NS;

  if (options.window <= 0)
    return true;
  if (measure_ns == 0
      && (all || now_ns - start_ns > n_readers / options.rate * RELAY_S + JOIN_MAX_NS))
    measure_ns = now_ns + (int64_t) (options.settle * RELAY_S);
  if (measure_ns == 0 || now_ns < measure_ns)
    return true;
  if (from_slot == INT64_MAX) {
    from_slot = slot + 1;
    until_slot = from_slot + (int64_t) (options.window * RELAY_S / RELAY_SLOT_NS);
    counts.overflows_before = count_overflows ();
    printf ("MEASURE\n");
  } else if (slot >= until_slot && !done) { // a busy machine may miss the slot itself
    printf ("DONE\n");
    done = true;
  }
  return now_ns < until_slot * RELAY_SLOT_NS + GRACE_NS;
}

static void
sync_clocks (void)
{
  struct timespec t;

  clock_gettime (CLOCK_REALTIME, &t);
  unix_offset_ns = (int64_t) t.tv_sec * RELAY_S + t.tv_nsec - weir_now_ns ();
}

static void
run (void)
{
  int64_t slot = 0;
  bool going = true;

  sync_clocks ();
  start_ns = weir_now_ns ();
  while (going) {
    int64_t now_ns = weir_now_ns ();
    struct timespec t = { .tv_sec = (now_ns / TICK_NS + 1) * TICK_NS / RELAY_S,
      .tv_nsec = (now_ns / TICK_NS + 1) * TICK_NS % RELAY_S };

    read_all (now_ns);
    run_timers (now_ns);
    if (now_ns / RELAY_SLOT_NS != slot) {
      slot = now_ns / RELAY_SLOT_NS;
      sync_clocks ();
      send_reports (slot);
      going = run_window (now_ns, note_all (now_ns));
      fflush (stdout);
    }
    clock_nanosleep (CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
  }
}

// ---- start ----

static void
make_readers (void)
{
  readers = calloc (n_readers, sizeof *readers);
  if (!readers)
    err (1, "memory");
  for (unsigned i = 0; i < n_readers; i++) {
    Reader *reader = &readers[i];

    reader->number = i;
    reader->due_ns = INT64_MAX;
    snprintf (reader->url, sizeof reader->url, "rtsp://%s/%s%u", options.address, options.path,
        options.first + i);
    reader_open (reader, options.n_tracks, FIRST_PORT + 2 * options.n_tracks * i);
  }
}

int
main (int argc, char **argv)
{
  if (argc != 9 || !relay_address (argv[1], &options.server))
    errx (2, "usage: relay_readers ADDRESS:PORT PATH FIRST READERS TRACKS RATE SETTLE WINDOW");
  options.address = argv[1];
  options.path = argv[2];
  options.first = (unsigned) atoi (argv[3]);
  n_readers = (unsigned) atoi (argv[4]);
  options.n_tracks = (unsigned) atoi (argv[5]);
  options.rate = atof (argv[6]);
  options.settle = atof (argv[7]);
  options.window = atof (argv[8]);
  if (options.n_tracks < 1 || options.n_tracks > READER_TRACKS || n_readers < 1
      || FIRST_PORT + 2 * options.n_tracks * n_readers > 60000 || options.rate <= 0)
    errx (2, "READERS, TRACKS or RATE is out of range");
  epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
  if (weir_receiver_init (&receiver, NULL) < 0)
    err (1, "memory");
  make_readers ();
  run ();
  print_result ();
  for (unsigned i = 0; i < n_readers; i++)
    reader_tear_down (&readers[i]);
  return 0;
}
