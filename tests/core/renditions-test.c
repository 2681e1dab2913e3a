// SPDX-License-Identifier: LGPL-2.1-or-later
// A reader goes from the stream of one engine to that of another, and back.
#include <arpa/inet.h>
#include <errno.h>

#include "fanout/fanout_private.h"
#include "packets.h"
#include "rtp/rtp.h"
#include "tap.h"

#define MS INT64_C (1000000)
#define LEN 200
#define FRAME_TICKS 3600

// A stream: its engine, and what comes next.
typedef struct {
  WeirFanout *fanout;
  uint16_t seq;
  uint32_t time;
  uint8_t mark; // in all its packets
} Stream;

typedef struct {
  uint16_t seq;
  uint32_t time;
  uint8_t mark;
  bool key;
} Got;

static Stream high, low;
static int64_t now;
static WeirReader *reader;
static Got got[4096];
static size_t n_got, room;
static bool used;
static uint16_t last;

// ---- the reader ----

static uint16_t
next_seq (void *data, uint16_t seq)
{
  return used ? (uint16_t) (last + 1) : seq;
}

static size_t
protect (void *data, const uint8_t *in, size_t len, bool rtp, uint8_t *out)
{
  memcpy (out, in, len);
  last = (uint16_t) (in[2] << 8 | in[3]);
  used = true;
  return len;
}

static void
release (void *data)
{
}

static ssize_t
fake_sendmsg (int fd, const struct msghdr *msg, int flags)
{
  const uint8_t *packet = msg->msg_iov->iov_base;

  if (room == 0) {
    errno = EAGAIN;
    return -1;
  }
  room--;
  CHECK_INT (msg->msg_iov->iov_len, LEN);
  CHECK_INT (weir_rtp_get_ssrc (packet), 'h'); // of the stream in which it began
  CHECK_INT (packet[1] & 0x7f, 'h');
  got[n_got++] = (Got) { .seq = (uint16_t) (packet[2] << 8 | packet[3]),
    .time = weir_rtp_get_timestamp (packet),
    .mark = packet[LEN - 1],
    .key = (packet[RTP_HEADER] & 31) == 5 };
  return LEN;
}

static int
fake_sendmmsg (int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
  for (unsigned i = 0; i < n; i++) {
    if (fake_sendmsg (fd, &msgs[i].msg_hdr, flags) < 0)
      return i > 0 ? (int) i : -1;
  }
  return (int) n;
}

static const WeirSendOps fake_ops = { fake_sendmsg, fake_sendmmsg };

static WeirReader *
make_reader (bool is_protected)
{
  WeirAddress address = { .v4 = { .sin_family = AF_INET,
                              .sin_port = htons (5000),
                              .sin_addr.s_addr = htonl (INADDR_LOOPBACK) } };
  const WeirProtect ops = { .next_seq = next_seq, .protect = protect, .release = release };
  WeirReader *made = weir_reader_new_udp ();

  weir_reader_set_route (made, 3, &address);
  if (is_protected)
    weir_reader_set_protect (made, &ops);
  return made;
}

// ---- driving ----

static void
begin_stream (Stream *stream, uint16_t seq, uint32_t time, uint8_t mark)
{
  WeirFanoutSettings settings = {
    .gso = WEIR_GSO_OFF,
    .trim = true,
    .join_at_keyframe = true,
    .catch_up_live = true,
    .catch_up_rate = 4,
    .bounds = { 1 << 20, 10000, 30000 * MS, false },
  };

  *stream = (Stream) { weir_fanout_new (NULL, &fake_ops, &settings), seq, time, mark };
  weir_fanout_set_clock_rate (stream->fanout, 90000);
  weir_fanout_set_codec (stream->fanout, WEIR_CODEC_H264, 0);
  weir_fanout_start (stream->fanout);
}

// The timestamps of `low` are behind those of `high` by 5000 of the same picture. The numbers of
// all wrap soon.
static void
begin (bool is_protected)
{
  now = 100000 * MS;
  room = SIZE_MAX;
  n_got = 0;
  used = false;
  begin_stream (&high, 65530, UINT32_MAX - 20000, 'h');
  begin_stream (&low, 65520, UINT32_MAX - 25000, 'l');
  reader = make_reader (is_protected);
}

static void
finish (void)
{
  weir_fanout_stop (high.fanout);
  weir_fanout_stop (low.fanout);
  weir_reader_unref (reader);
  weir_fanout_free (high.fanout);
  weir_fanout_free (low.fanout);
}

// Adds `n` of the packets of a picture; `ends` says that they are its last ones.
static void
push_part (Stream *stream, bool key, size_t n, bool ends)
{
  weir_fanout_begin (stream->fanout);
  for (size_t i = 0; i < n; i++) {
    uint8_t *packet = weir_fanout_reserve (stream->fanout, LEN);

    memset (packet, stream->mark, LEN);
    put_rtp (packet, stream->seq++, stream->time, ends && i + 1 == n);
    weir_rtp_set_ssrc (packet, stream->mark);
    weir_rtp_set_pt (packet, stream->mark);
    put_h264 (packet + RTP_HEADER, key ? 5 : 1, 2, i == 0);
    weir_fanout_commit (stream->fanout, LEN, now);
  }
  weir_fanout_end (stream->fanout, now);
  if (ends)
    stream->time += FRAME_TICKS;
}

static void
push (Stream *stream, bool key)
{
  push_part (stream, key, 2, true);
}

static void
run (void)
{
  weir_fanout_run (high.fanout, now);
  weir_fanout_run (low.fanout, now);
}

// A picture of both.
static void
tick (bool high_key, bool low_key)
{
  push (&high, high_key);
  push (&low, low_key);
  run ();
  now += 40 * MS;
}

// Moves the reader. `ahead`: the timestamps of `high`, where it began, minus those of `to`.
static int
splice (Stream *from, Stream *to, uint32_t ahead)
{
  WeirReader *fresh = make_reader (true);
  int r = weir_fanout_splice (from->fanout, reader, to->fanout, fresh, ahead, now);

  weir_reader_unref (r == 0 ? reader : fresh);
  reader = r == 0 ? fresh : reader;
  run ();
  return r;
}

// Numbers go on by one, timestamps never back, and each packet is of a picture that can be decoded.
static void
check_got (void)
{
  for (size_t i = 1; i < n_got; i++) {
    CHECK_INT (got[i].seq, (uint16_t) (got[i - 1].seq + 1));
    CHECK ((int32_t) (got[i].time - got[i - 1].time) >= 0);
    if (got[i].mark != got[i - 1].mark) {
      CHECK (got[i].key);
      CHECK (got[i].time != got[i - 1].time);
    }
  }
}

// ---- tests ----

static void
a_reader_changes_streams_without_a_gap (void)
{
  WeirReaderCounters c;

  begin (true);
  weir_fanout_add (high.fanout, reader, 2, NULL, now);
  for (size_t i = 0; i < 290; i++) {
    tick (i % 10 == 0, i % 10 == 0);
    if (i % 40 == 10)
      CHECK_INT (splice (&high, &low, 5000), 0);
    if (i % 40 == 30)
      CHECK_INT (splice (&low, &high, 0), 0);
  }
  check_got ();
  CHECK_INT (n_got, 2 * 290 + 2 * 14); // a key picture of each stream at each change
  weir_reader_counters (high.fanout, reader, now, &c);
  CHECK_INT (c.packets, n_got);
  CHECK_INT (c.due, n_got);
  CHECK_INT (c.priority, 2);
  finish ();
}

static void
timestamps_are_those_of_the_picture (void)
{
  size_t n;

  begin (true);
  weir_fanout_add (high.fanout, reader, 0, NULL, now);
  tick (true, true);
  tick (false, false);
  // The other stream is earlier by a picture: nothing has to wait.
  push (&low, true);
  n = n_got;
  CHECK_INT (splice (&high, &low, 5000), 0);
  CHECK_INT (n_got, n + 2);
  CHECK_INT (got[n].time, (uint32_t) (got[n - 1].time + FRAME_TICKS));
  check_got ();
  finish ();
}

static void
a_later_stream_does_not_go_back (void)
{
  size_t n;

  begin (true);
  weir_fanout_add (high.fanout, reader, 0, NULL, now);
  for (size_t i = 0; i < 5; i++) {
    push (&high, i == 0);
    now += 40 * MS;
  }
  push (&low, true); // the picture 5 pictures ago
  run ();
  n = n_got;
  CHECK_INT (splice (&high, &low, 5000), 0);
  CHECK_INT (got[n].time, (uint32_t) (got[n - 1].time + FRAME_TICKS));
  CHECK_INT (n_got, n + 2);
  push (&low, false);
  run ();
  CHECK_INT (got[n + 2].time, (uint32_t) (got[n].time + FRAME_TICKS - FRAME_TICKS / 16));
  // After 16 times what was missing, the timestamps are those of the pictures.
  for (size_t i = 0; i < 16 * 5; i++)
    tick (i % 10 == 0, i % 10 == 0);
  CHECK_INT (got[n_got - 1].time, (uint32_t) (low.time - FRAME_TICKS + 5000));
  now += 10 * MS;
  push (&high, true); // the picture after 5 that the reader has not got in time
  CHECK_INT (splice (&low, &high, 0), 0);
  CHECK_INT (got[n_got - 1].time, (uint32_t) (high.time - FRAME_TICKS));
  check_got ();
  finish ();
}

static void
an_offset_that_is_wrong_is_not_taken (void)
{
  size_t n;

  begin (true);
  weir_fanout_add (high.fanout, reader, 0, NULL, now);
  tick (true, true);
  n = n_got;
  CHECK_INT (splice (&high, &low, 50 * 90000), 0);
  CHECK_INT (got[n].time, (uint32_t) (got[n - 1].time + FRAME_TICKS));
  check_got ();
  finish ();
}

static void
a_change_waits_for_a_join_point (void)
{
  begin (true);
  weir_fanout_add (high.fanout, reader, 0, NULL, now);
  push (&high, true);
  push (&low, false);
  run ();
  CHECK_INT (splice (&high, &low, 5000), -EAGAIN); // none
  push (&low, true);
  now += 301 * MS;
  CHECK_INT (splice (&high, &low, 5000), -EAGAIN); // one that is too old
  push (&high, false);
  run ();
  CHECK_INT (n_got, 4);
  push (&low, true);
  CHECK_INT (splice (&high, &low, 5000), 0);
  CHECK_INT (n_got, 6);
  check_got ();
  finish ();
}

static void
a_change_waits_for_the_end_of_a_frame (void)
{
  begin (true);
  weir_fanout_add (high.fanout, reader, 0, NULL, now);
  push (&high, true);
  push_part (&high, false, 1, false);
  now += 10 * MS;
  run ();
  CHECK_INT (n_got, 3);
  push (&low, true);
  CHECK_INT (splice (&high, &low, 5000), -EAGAIN);
  push_part (&high, false, 1, true);
  run ();
  CHECK_INT (splice (&high, &low, 5000), 0);
  check_got ();
  // One whose socket is full stands within a frame, too.
  push (&low, false);
  room = 1;
  run ();
  push (&high, true);
  CHECK_INT (splice (&low, &high, 0), -EAGAIN);
  room = SIZE_MAX;
  now += 20 * MS;
  run ();
  CHECK_INT (splice (&low, &high, 0), 0);
  check_got ();
  finish ();
}

static void
restrictions_end_with_the_change (void)
{
  begin (true);
  weir_fanout_add (high.fanout, reader, 0, NULL, now);
  tick (true, true);
  weir_reader_restrict (reader, WEIR_READER_KEYFRAMES);
  tick (false, false);
  CHECK_INT (n_got, 2);
  push (&low, true);
  CHECK_INT (splice (&high, &low, 5000), 0);
  push (&low, false);
  run ();
  CHECK_INT (n_got, 6);
  check_got ();
  finish ();
}

static void
a_reader_begins_again_with_its_timestamps (void)
{
  size_t n;

  begin (true);
  weir_fanout_add (high.fanout, reader, 0, NULL, now);
  tick (true, true);
  CHECK_INT (splice (&high, &low, 5000), 0);
  tick (false, true);
  n = n_got;
  CHECK (weir_fanout_rejoin (low.fanout, reader, now));
  run ();
  CHECK_INT (n_got, n + 2);
  CHECK_INT (got[n].time, got[n - 1].time);
  finish ();
}

static void
what_is_not_possible_is_refused (void)
{
  begin (false);
  weir_fanout_add (high.fanout, reader, 0, NULL, now);
  tick (true, true);
  CHECK_INT (splice (&high, &low, 5000), -ENOTSUP);
  finish ();

  begin (true);
  weir_fanout_set_codec (low.fanout, WEIR_CODEC_VP8, 0);
  weir_fanout_add (high.fanout, reader, 0, NULL, now);
  tick (true, true);
  CHECK_INT (splice (&high, &low, 5000), -ENOTSUP);
  finish ();

  begin (true);
  weir_fanout_add (high.fanout, reader, 0, NULL, now);
  tick (true, true);
  CHECK_INT (splice (&high, &high, 0), -EINVAL);
  weir_fanout_pause (high.fanout, reader, now);
  CHECK_INT (splice (&high, &low, 5000), -EAGAIN);
  weir_fanout_resume (high.fanout, reader, now + 40 * MS, NULL);
  CHECK_INT (splice (&high, &low, 5000), -EINVAL); // it has a delay now
  weir_fanout_stop (low.fanout);
  weir_fanout_set_delay (high.fanout, reader, 0, now, NULL);
  CHECK_INT (splice (&high, &low, 5000), -EAGAIN);
  finish ();
}

int
main (void)
{
  RUN (a_reader_changes_streams_without_a_gap);
  RUN (timestamps_are_those_of_the_picture);
  RUN (a_later_stream_does_not_go_back);
  RUN (an_offset_that_is_wrong_is_not_taken);
  RUN (a_change_waits_for_a_join_point);
  RUN (a_change_waits_for_the_end_of_a_frame);
  RUN (restrictions_end_with_the_change);
  RUN (a_reader_begins_again_with_its_timestamps);
  RUN (what_is_not_possible_is_refused);
  return tap_done ();
}
