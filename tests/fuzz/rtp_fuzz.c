// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of RTP headers and what follows them: counting, splicing and restamping. The
// input is a byte that chooses the clock rate, then packets. Each is a byte of flags (bit 0: a new
// run of the upstream begins), the ms since the packet before it, its length, and its bytes.

#include <errno.h>
#include <string.h>

#include "bits/bytes.h"
#include "fuzz.h"
#include "rtp/restamp.h"
#include "rtp/rtp_stats.h"
#include "rtp/splice.h"

#define MS INT64_C (1000000)

typedef struct {
  WeirRtpStats stats;
  WeirSplice splice;
  WeirRestamp restamp;
  uint64_t packets;
  int64_t now_ns;
  int64_t seq, timestamp; // unwrapped
} Stream;

// Both parsers must agree, and describe no byte beyond the packet.
static bool
parse (const uint8_t *data, size_t len, WeirRtp *rtp)
{
  size_t head = len < WEIR_RTP_HEADER_MAX ? len : WEIR_RTP_HEADER_MAX;
  WeirRtp other;
  int read = weir_rtp_parse (data, len, rtp);

  require (read == 0 || read == -EBADMSG);
  require (weir_rtp_parse_head (data, head, len, len ? data[len - 1] : 0, &other) == read);
  weir_rtp_is_rtcp (data, len);
  if (read != 0)
    return false;
  require (other.payload_offset == rtp->payload_offset && other.padding == rtp->padding);
  require (rtp->payload_offset + rtp->payload_length + rtp->padding == len);
  require (rtp->extension_offset + rtp->extension_length <= rtp->payload_offset);
  require ((rtp->padding > 0) == weir_rtp_is_padded (data, len));
  return true;
}

static void
patch (uint8_t *data, size_t len, const WeirRtp *rtp)
{
  uint16_t seq = (uint16_t) (rtp->seq + 0x5555);
  WeirRtp patched;

  weir_rtp_set_seq (data, seq);
  weir_rtp_set_timestamp (data, ~rtp->timestamp);
  weir_rtp_set_ssrc (data, ~rtp->ssrc);
  weir_rtp_set_pt (data, 127 - rtp->pt);
  require (weir_rtp_parse (data, len, &patched) == 0);
  require (patched.seq == seq && patched.timestamp == ~rtp->timestamp && patched.ssrc == ~rtp->ssrc
           && patched.pt == 127 - rtp->pt && patched.marker == rtp->marker
           && patched.payload_offset == rtp->payload_offset);
}

static void
take (Stream *self, const WeirRtp *rtp, bool begins)
{
  WeirRtcpBlock block;
  uint16_t seq;
  uint32_t timestamp;
  int mapped;

  require ((uint16_t) weir_unwrap16 (&self->seq, rtp->seq) == rtp->seq);
  require ((uint32_t) weir_unwrap32 (&self->timestamp, rtp->timestamp) == rtp->timestamp);
  weir_rtp_stats_add (&self->stats, rtp, self->now_ns);
  require (self->stats.packets == ++self->packets);
  require (weir_rtp_stats_jitter_ns (&self->stats) >= 0);
  weir_rtp_stats_report (&self->stats, &block);
  weir_restamp_map (&self->restamp, rtp, self->now_ns);
  if (begins)
    weir_splice_begin (&self->splice, rtp->timestamp, self->now_ns);
  mapped = weir_splice_map (&self->splice, rtp->seq, rtp->timestamp, &seq, &timestamp);
  require (mapped == 0 || mapped == -ESTALE);
  require (mapped != 0
           || (seq == (uint16_t) (rtp->seq + self->splice.seq_offset)
               && timestamp == rtp->timestamp + self->splice.ts_offset));
  weir_splice_time (&self->splice, rtp->timestamp);
  weir_splice_end (&self->splice);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static const uint32_t rates[] = { 0, 1, 8000, 90000, 192000, UINT32_MAX };
  WeirBytes bytes = weir_bytes (data, size);
  Stream stream = { .seq = WEIR_UNWRAP_START, .timestamp = WEIR_UNWRAP_START };
  uint8_t first, flags, ms, len;
  const uint8_t *packet;
  uint32_t rate;

  if (!weir_bytes_u8 (&bytes, &first))
    return 0;
  rate = rates[first % (sizeof rates / sizeof *rates)];
  weir_rtp_stats_init (&stream.stats, rate);
  weir_splice_init (&stream.splice, rate);
  weir_restamp_init (&stream.restamp, rate, 100 * MS, first & 0x80);
  while (weir_bytes_u8 (&bytes, &flags) && weir_bytes_u8 (&bytes, &ms)
         && weir_bytes_u8 (&bytes, &len) && weir_bytes_take (&bytes, len, &packet)) {
    uint8_t *copy = malloc (len ? len : 1);
    WeirRtp rtp;

    require (copy != NULL);
    memcpy (copy, packet, len);
    stream.now_ns += (flags & 2 ? 1000 : 1) * ms * MS;
    if (parse (copy, len, &rtp)) {
      take (&stream, &rtp, stream.packets == 0 || flags & 1);
      patch (copy, len, &rtp);
    }
    free (copy);
  }
  return 0;
}
