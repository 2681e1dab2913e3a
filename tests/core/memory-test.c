// SPDX-License-Identifier: LGPL-2.1-or-later
// Fails each allocation of core once: the first in one run of a scene, the second in the next, and
// so on, until a run allocates no more. No run may crash, leak or lose count of a packet.

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "fanout/fanout.h"
#include "ingest/engine.h"
#include "net/conn.h"
#include "pace/pacer.h"
#include "packets.h"
#include "run/workers.h"
#include "svc/frame.h"
#include "svc/project.h"
#include "tap.h"
#include "window/cacheindex.h"
#include "window/policy.h"
#include "window/window.h"

#define MS INT64_C (1000000)
#define RUNS_MAX 5000

// ---- allocations ----

static atomic_long countdown; // the allocation that fails; below 1: none
static atomic_long held;      // blocks of memory
static atomic_bool counting;

// Reports whether this allocation fails.
static bool
fails (void)
{
  return atomic_load (&counting) && atomic_fetch_sub (&countdown, 1) == 1;
}

static void *
note (void *block)
{
  if (block && atomic_load (&counting))
    atomic_fetch_add (&held, 1);
  return block;
}

void *__real_malloc (size_t size);
void *__real_calloc (size_t n, size_t size);
void *__real_realloc (void *block, size_t size);
void __real_free (void *block);
int __real_pthread_create (
    pthread_t *thread, const pthread_attr_t *attr, void *(*run) (void *), void *data);

void *__wrap_malloc (size_t size);
void *__wrap_calloc (size_t n, size_t size);
void *__wrap_realloc (void *block, size_t size);
void __wrap_free (void *block);
int __wrap_pthread_create (
    pthread_t *thread, const pthread_attr_t *attr, void *(*run) (void *), void *data);

static void *
no_memory (void)
{
  errno = ENOMEM;
  return NULL;
}

void *
__wrap_malloc (size_t size)
{
  return fails () ? no_memory () : note (__real_malloc (size));
}

void *
__wrap_calloc (size_t n, size_t size)
{
  return fails () ? no_memory () : note (__real_calloc (n, size));
}

void *
__wrap_realloc (void *block, size_t size)
{
  if (fails ())
    return no_memory ();
  return block ? __real_realloc (block, size) : note (__real_malloc (size));
}

void
__wrap_free (void *block)
{
  if (block && atomic_load (&counting))
    atomic_fetch_sub (&held, 1);
  __real_free (block);
}

int
__wrap_pthread_create (
    pthread_t *thread, const pthread_attr_t *attr, void *(*run) (void *), void *data)
{
  return fails () ? EAGAIN : __real_pthread_create (thread, attr, run, data);
}

// Runs a scene until nothing fails in it. `most` bounds the blocks that it keeps for later runs.
static void
sweep (void (*scene) (void), long most)
{
  for (long n = 1; n < RUNS_MAX; n++) {
    long before = atomic_load (&held);

    atomic_store (&countdown, n);
    atomic_store (&counting, true);
    scene ();
    atomic_store (&counting, false);
    if (atomic_load (&held) - before > most) {
      printf (
          "# with allocation %ld failing, %ld blocks are left\n", n, atomic_load (&held) - before);
      tap_ok = false;
    }
    if (atomic_load (&countdown) > 0) {
      printf ("# %ld allocations\n", n - 1);
      CHECK (n > 1);
      return;
    }
  }
  CHECK (!"the scene never runs without a failure");
}

// ---- packets ----

// An H.264 packet: every tenth picture is a keyframe, and has two packets.
static size_t
write_packet (uint8_t *out, unsigned n)
{
  unsigned picture = n / 2;

  memset (out, (int) n, 1000);
  put_rtp (out, (uint16_t) (65500 + n), picture * 3600, n % 2 == 1);
  put_h264 (out + RTP_HEADER, picture % 10 == 0 ? 5 : 1, 3, n % 2 == 0);
  return 1000;
}

// ---- scenes ----

static void
use_window (void)
{
  const WeirWindowBounds bounds = { 4 << 20, 2000, 60000 * MS, false };
  uint64_t lost = 0, refused = 0;
  WeirWindow window;

  if (weir_window_init (&window, bounds, WEIR_CODEC_H264) != 0)
    return;
  for (unsigned n = 0; n < 1500; n++) {
    uint8_t *room = weir_window_reserve (&window, 1000);

    if (!room) {
      refused++;
      weir_window_publish (&window, &lost);
      continue;
    }
    write_packet (room, n);
    weir_window_stage (&window, 1000, NULL, n * MS);
    if (n % 4 == 3)
      weir_window_publish (&window, &lost);
  }
  weir_window_publish (&window, &lost);
  CHECK_INT (window.head + (int64_t) lost + (int64_t) refused, 1500);
  weir_window_trim (&window, window.head);
  weir_window_free (&window);
}

static void
use_cache_index (void)
{
  WeirCacheIndex index;
  int64_t added = 0;

  weir_cache_index_init (&index);
  for (int64_t n = 0; n < 2000; n++) {
    WeirCacheEntry entry = { .time_ns = n * MS, .arrival_ns = n * MS, .bytes = 1, .n_buffers = 1 };
    int pushed = weir_cache_index_push (&index, &entry);

    CHECK (pushed == 0 || pushed == -ENOMEM);
    added += pushed == 0;
  }
  CHECK_INT (index.head, added);
  weir_cache_index_free (&index);
}

static void
use_policy (void)
{
  WeirPolicy policy;
  uint64_t key;

  weir_policy_init (&policy, WEIR_POLICY_LFU, 100);
  for (uint64_t n = 0; n < 300; n++) {
    int asked = weir_policy_ask (&policy, n % 150);

    CHECK (asked >= 0 || asked == -ENOMEM);
    if (asked == 0)
      weir_policy_add (&policy, n % 150, 2);
    while (weir_policy_evict (&policy, &key))
      CHECK (!weir_policy_holds (&policy, key));
    CHECK (policy.bytes <= 100);
  }
  weir_policy_free (&policy);
}

static void
use_pacer (void)
{
  static const WeirPaceSettings settings = { .max_burst = 1, .block_ns = MS };
  uint64_t refused = 0;
  WeirPacer pacer;

  weir_pacer_init (&pacer, &settings);
  for (unsigned n = 0; n < 500; n++) {
    WeirPacePacket packet = { .time_ns = n * MS };

    refused += weir_pacer_push (&pacer, &packet, n * MS) != 0;
  }
  CHECK_INT (weir_pacer_queued (&pacer) + refused, 500);
  weir_pacer_free (&pacer);
}

static void
count_packet (void *data, const WeirIngestPacket *packet)
{
  ++*(uint64_t *) data;
}

// Every third packet comes late.
static void
use_track (void)
{
  const WeirTrackSettings settings = { .reorder = { 64, 1 << 20, 100 * MS }, .cname = "x" };
  const WeirTrackOps ops = { .packet = count_packet };
  uint64_t delivered = 0, sum;
  WeirIngestStats stats;
  WeirTrack track;
  uint8_t packet[1000];

  weir_track_init (&track, &settings, &ops, &delivered);
  for (unsigned n = 0; n < 60; n++) {
    size_t len = write_packet (packet, n % 3 == 0 ? n + 2 : n - 1);

    weir_track_take (&track, NULL, packet, len, n * MS, n * MS);
  }
  weir_track_clear (&track);
  weir_track_stats (&track, &stats);
  sum = stats.delivered + stats.rtcp + stats.held;
  for (int i = 0; i < WEIR_INGEST_N_DROPS; i++)
    sum += stats.dropped[i];
  CHECK_INT (sum, stats.datagrams);
  CHECK_INT (delivered, stats.delivered);
}

static void
use_engine (void)
{
  const WeirTrackSettings settings = { .reorder = { 64, 1 << 20, 100 * MS }, .cname = "x" };
  const WeirIngestOps ops = { .track.packet = count_packet };
  WeirIngest *engine = weir_ingest_new (&(WeirIngestSettings) { .threads = 1 });
  WeirIngestTrack *tracks[20];
  uint64_t delivered = 0;
  uint8_t packet[1000];

  if (!engine)
    return;
  for (unsigned i = 0; i < 20; i++) {
    int added =
        weir_ingest_add (engine, &settings, WEIR_INGEST_NO_SOCKETS, &ops, &delivered, &tracks[i]);

    CHECK (added == 0 || added == -ENOMEM || added == -EAGAIN);
    if (added != 0)
      tracks[i] = NULL;
  }
  for (unsigned i = 0; i < 20; i++) {
    if (!tracks[i])
      continue;
    weir_ingest_push (tracks[i], false, packet, write_packet (packet, i), MS);
    weir_ingest_remove (tracks[i], NULL);
  }
  weir_ingest_free (engine);
}

static void
use_frames (void)
{
  WeirProjection projection;
  static WeirProjected how[64];
  WeirFrame frame;
  WeirSvc svc;
  uint8_t packets[64][1000];

  weir_frame_init (&frame, WEIR_CODEC_H264, true);
  weir_svc_init (&svc);
  weir_projection_init (
      &projection, WEIR_CODEC_H264, (WeirLayerSet) { 0, -1, -1 }, WEIR_OUTPUT_BASE);
  for (unsigned n = 0; n < 64; n++) {
    size_t len = write_packet (packets[n], n);
    WeirAdd added;

    // A parameter set, which is kept.
    if (n % 2 == 0)
      packets[n][RTP_HEADER] = n % 4 == 0 ? 0x67 : 0x68;
    added = weir_frame_add (&frame, packets[n], len, n);
    if (added == WEIR_ADD_COMPLETE || added == WEIR_ADD_NEXT) {
      weir_frame_read (&frame);
      weir_svc_note_frame (&svc, &frame);
      weir_project (&projection, &svc, &frame, how);
      weir_frame_clear (&frame);
    }
  }
  weir_frame_free (&frame);
  weir_svc_free (&svc);
}

static ssize_t
send_one (int fd, const struct msghdr *msg, int flags)
{
  return (ssize_t) msg->msg_iov->iov_len;
}

static int
send_many (int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
  return (int) n;
}

static WeirReader *
add_reader (WeirFanout *fanout, WeirReader *reader, unsigned i)
{
  WeirAddress address = { .v4 = { .sin_family = AF_INET,
                              .sin_port = htons (5000),
                              .sin_addr.s_addr = htonl (0x0a000000 + i) } };

  if (!reader)
    return NULL;
  weir_reader_set_route (reader, 3, &address);
  weir_reader_set_layers (reader, (WeirLayerSet) { -1, -1, i % 3 == 0 ? 0 : -1 });
  if (weir_fanout_add (fanout, reader, i % 8, NULL, 0) == 0)
    return reader;
  weir_reader_unref (reader);
  return NULL;
}

static void
check_reader (WeirFanout *fanout, WeirReader *reader)
{
  WeirReaderCounters counters;
  uint64_t sum;

  weir_reader_counters (fanout, reader, 1000 * MS, &counters);
  sum = counters.packets;
  for (int i = 0; i < WEIR_N_DROPS; i++)
    sum += counters.dropped[i];
  CHECK_INT (sum, counters.due);
}

#define READERS 100

static void
serve (WeirFanout *fanout)
{
  WeirReader *readers[READERS];

  weir_fanout_set_codec (fanout, WEIR_CODEC_H264, 0);
  weir_fanout_start (fanout);
  for (unsigned i = 0; i < READERS; i++)
    readers[i] = add_reader (fanout, weir_reader_new_udp (), i);
  for (unsigned n = 0; n < 400; n++) {
    uint8_t *room = weir_fanout_begin (fanout) ? weir_fanout_reserve (fanout, 1000) : NULL;

    if (room)
      weir_fanout_commit (fanout, write_packet (room, n), n * MS);
    weir_fanout_end (fanout, n * MS);
    weir_fanout_run (fanout, n * MS);
    if (readers[n % READERS])
      weir_fanout_set_priority (fanout, readers[n % READERS], n % 8);
  }
  weir_fanout_stop (fanout);
  for (unsigned i = 0; i < READERS; i++) {
    if (!readers[i])
      continue;
    check_reader (fanout, readers[i]);
    weir_fanout_remove (fanout, readers[i]);
    weir_reader_unref (readers[i]);
  }
  weir_fanout_free (fanout);
}

static const WeirSendOps ops = { send_one, send_many };
static const WeirFanoutSettings settings = {
  .gso = WEIR_GSO_AUTO, .catch_up_rate = 8, .bounds = { 64 << 20, 100000, 30000 * MS, false }
};

static void
use_fanout (void)
{
  WeirFanout *fanout = weir_fanout_new (NULL, &ops, &settings);

  if (fanout)
    serve (fanout);
}

static void
use_fanout_with_workers (void)
{
  WeirWorkers *workers = weir_workers_new (2, weir_fanout_scratch_size ());
  WeirFanout *fanout = workers ? weir_fanout_new (workers, &ops, &settings) : NULL;

  if (fanout)
    serve (fanout);
  if (workers)
    weir_workers_free (workers);
}

static void
nothing (void *data)
{
}

// The peer never reads, so bytes wait.
static void
use_connection (void)
{
  static uint8_t bytes[40000];
  struct iovec packets[3] = { { bytes, 40000 }, { bytes, 40000 }, { bytes, 40000 } };
  WeirReader *reader;
  WeirConn *conn;
  int ends[2], sent = 3;

  CHECK_INT (socketpair (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  CHECK_INT (setsockopt (ends[0], SOL_SOCKET, SO_SNDBUF, &(int) { 30000 }, sizeof (int)), 0);
  conn = weir_conn_new (ends[0], NULL);
  close (ends[0]);
  if (conn) {
    weir_conn_watch (conn, nothing, NULL);
    while (sent == 3)
      sent = weir_conn_send (conn, WEIR_FRAMING_INTERLEAVED, 0, packets, 3);
    weir_conn_send_control (conn, bytes, 1000);
    weir_conn_unwatch (conn, nothing, NULL);
    reader = weir_reader_new_conn (conn, WEIR_FRAMING_INTERLEAVED, 0);
    if (reader)
      weir_reader_unref (reader);
    weir_conn_break (conn, EPIPE);
    weir_conn_unref (conn);
  }
  close (ends[1]);
}

static void
use_block_file (void)
{
  WeirBlockFile *file = weir_block_file_new ("/tmp");
  WeirWindowBlock *blocks[20];

  if (!file)
    return;
  for (unsigned i = 0; i < 20; i++)
    blocks[i] = weir_window_block_new_in (file);
  for (unsigned i = 0; i < 20; i++)
    weir_window_block_unref (blocks[i]);
  weir_block_file_unref (file);
}

// ---- the sweeps ----

static void
a_window_survives_each_failed_allocation (void)
{
  sweep (use_window, 0);
}

static void
indexes_survive_each_failed_allocation (void)
{
  sweep (use_cache_index, 0);
  sweep (use_policy, 0);
  sweep (use_pacer, 0);
}

static void
received_packets_survive_each_failed_allocation (void)
{
  sweep (use_track, 0);
  sweep (use_engine, 0);
}

static void
frames_survive_each_failed_allocation (void)
{
  sweep (use_frames, 0);
}

static void
readers_survive_each_failed_allocation (void)
{
  sweep (use_fanout, 0);
  sweep (use_fanout_with_workers, 0);
}

static void
connections_survive_each_failed_allocation (void)
{
  // The thread that watches connections frees them later.
  sweep (use_connection, 4);
}

static void
files_survive_each_failed_allocation (void)
{
  sweep (use_block_file, 0);
}

int
main (void)
{
  RUN (a_window_survives_each_failed_allocation);
  RUN (indexes_survive_each_failed_allocation);
  RUN (received_packets_survive_each_failed_allocation);
  RUN (frames_survive_each_failed_allocation);
  RUN (readers_survive_each_failed_allocation);
  RUN (connections_survive_each_failed_allocation);
  RUN (files_survive_each_failed_allocation);
  return tap_done ();
}
