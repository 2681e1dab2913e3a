// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/tcp_line.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/tcp.h>

#define SECOND INT64_C (1000000000) // ns
#define LONGEST (1000 * SECOND)     // that bytes are said to wait

struct weir_tcp_line {
  WeirEstimate *estimate;
  bool begun;
  WeirTcpSample last;
  int64_t last_ns;
  // Since bytes have waited at each sample; -1: at the last one none did.
  int64_t waits_since;
  uint64_t acked_then;
};

bool
weir_tcp_sample (int fd, WeirTcpSample *out)
{
  struct tcp_info info = { 0 };
  socklen_t len = sizeof info;

  if (getsockopt (fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0
      || len < offsetof (struct tcp_info, tcpi_delivery_rate) + sizeof info.tcpi_delivery_rate)
    return false;
  // What came behind a lost segment has arrived, too.
  out->acked = info.tcpi_bytes_acked + (uint64_t) info.tcpi_sacked * info.tcpi_snd_mss;
  out->unsent = info.tcpi_notsent_bytes;
  out->rate = info.tcpi_delivery_rate * 8;
  out->round_trip_ns = (int64_t) info.tcpi_rtt * 1000;
  return true;
}

WeirTcpLine *
weir_tcp_line_new (void)
{
  WeirTcpLine *self = calloc (1, sizeof *self);

  if (self)
    self->estimate = weir_estimate_new (1); // no feedback names packets
  if (self && self->estimate) {
    self->waits_since = -1;
    return self;
  }
  free (self);
  return NULL;
}

void
weir_tcp_line_free (WeirTcpLine *self)
{
  if (!self)
    return;
  weir_estimate_free (self->estimate);
  free (self);
}

bool
weir_tcp_line_is_due (const WeirTcpLine *self, int64_t now)
{
  // Those who look so often are not always on time.
  return !self->begun || now - self->last_ns >= WEIR_TCP_LINE_NS * 9 / 10 || now < self->last_ns;
}

static uint64_t
get_rate (uint64_t bytes, int64_t span)
{
  return span > 0 ? bytes * 8 * 1000 / (uint64_t) (span / 1000000 + 1) : 0;
}

// Returns how many bytes wait in the socket since the last sample or longer.
static uint64_t
find_waiting (const WeirTcpLine *self, const WeirTcpSample *sample)
{
  uint64_t written = sample->written - self->last.written;

  return sample->unsent > written ? sample->unsent - written : 0;
}

// Returns how long they wait. The kernel's rate is that of the newest bytes that arrived; it stays
// as it is when none arrive, unlike what arrived since bytes wait.
static int64_t
find_wait (const WeirTcpLine *self, uint64_t waiting, const WeirTcpSample *sample, int64_t now)
{
  uint64_t rate = sample->rate, since;

  if (waiting == 0)
    return 0;
  if (self->waits_since >= 0) {
    since = get_rate (sample->acked - self->acked_then, now - self->waits_since);
    if (since == 0)
      return now - self->waits_since;
    rate = rate == 0 || since < rate ? since : rate;
  }
  if (rate == 0)
    return 0;
  if (waiting > UINT32_MAX || waiting * 8 / rate >= (uint64_t) (LONGEST / SECOND))
    return LONGEST;
  return (int64_t) (waiting * 8 * 1000000 / rate) * 1000;
}

static void
note_wait (WeirTcpLine *self, uint64_t waiting, const WeirTcpSample *sample, int64_t now)
{
  if (waiting == 0) {
    self->waits_since = -1;
  } else if (self->waits_since < 0) {
    self->waits_since = now;
    self->acked_then = sample->acked;
  } else if (now - self->waits_since > SECOND) { // so that the rate is a new one
    self->acked_then += (sample->acked - self->acked_then) / 2;
    self->waits_since += (now - self->waits_since) / 2;
  }
}

// `sample` is after the last one.
static void
take (WeirTcpLine *self, const WeirTcpSample *sample, int64_t now)
{
  int64_t span = now - self->last_ns;
  uint64_t waiting = self->begun ? find_waiting (self, sample) : 0;

  if (self->begun && span > 0 && (sample->acked > self->last.acked || sample->unsent > 0)) {
    WeirEstimateTcp told = { .span_ns = span,
      .bytes = sample->acked - self->last.acked,
      .wait_ns = find_wait (self, waiting, sample, now),
      .round_trip_ns = sample->round_trip_ns };

    weir_estimate_tcp (self->estimate, &told, now);
  }
  note_wait (self, waiting, sample, now);
  self->begun = true;
  self->last = *sample;
  self->last_ns = now;
}

void
weir_tcp_line_take (WeirTcpLine *self, const WeirTcpSample *sample, int64_t now)
{
  WeirTcpSample after = *sample;

  // Segments behind a lost one may have been shorter than they were taken for.
  if (self->begun && after.acked < self->last.acked)
    after.acked = self->last.acked;
  take (self, &after, now);
}

WeirEstimateView
weir_tcp_line_view (WeirTcpLine *self, int64_t now)
{
  WeirEstimateView view = weir_estimate_view (self->estimate, now);

  if (view.state == WEIR_ESTIMATE_CONGESTED && view.bits == 0)
    view.bits = 1;
  return view;
}
