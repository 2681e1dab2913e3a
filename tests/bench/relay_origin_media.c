// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay_origin.h"

#include <err.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "relay_wire.h"
#include "run/clock.h"

#define BATCH 256
#define ROOM (1 << 20) // bytes of a batch
#define SPREAD_NS (RELAY_S / 1000)
#define REPORT_SLOTS 50 // a track reports every so many slots

// The sessions that get a frame at the same moment.
typedef struct {
  OriginSession **sessions;
  size_t n, room;
} Slot;

// Sends the frames of one track of all sessions. Tick t sends frame t / n_slots of the sessions in
// slot t % n_slots.
typedef struct {
  const RelayShape *shape;
  RelayFrame frame, key;
  Slot *slots;
  unsigned n_slots;
  int64_t tick;
} Ticker;

static OriginSettings settings;
static Ticker tickers[ORIGIN_TRACKS];

static struct {
  struct mmsghdr messages[BATCH];
  struct iovec iov[BATCH];
  union {
    struct cmsghdr align;
    uint8_t bytes[CMSG_SPACE (sizeof (uint16_t))];
  } control[BATCH];
  uint8_t bytes[ROOM];
  unsigned n;
  size_t used;
} batch;

// Of the slot of time that runs.
static struct {
  int64_t slot, late_ns;
  unsigned packets, failed;
  unsigned waiting; // for an answer, now
  size_t sessions;
} counts;

// ---- sending ----

static void
flush_batch (void)
{
  unsigned at = 0;

  while (at < batch.n) {
    int n = sendmmsg (settings.rtp, batch.messages + at, batch.n - at, 0);

    if (n < 0) {
      counts.failed++;
      n = 1;
    }
    at += (unsigned) n;
  }
  batch.n = 0;
  batch.used = 0;
}

static void
add_message (const struct sockaddr_in *to, uint8_t *data, size_t len, uint16_t segment)
{
  unsigned i = batch.n++;
  struct msghdr *header = &batch.messages[i].msg_hdr;

  batch.iov[i] = (struct iovec) { data, len };
  *header = (struct msghdr) {
    .msg_name = (void *) to, .msg_namelen = sizeof *to, .msg_iov = &batch.iov[i], .msg_iovlen = 1
  };
  if (len > segment) {
    struct cmsghdr *cmsg;

    header->msg_control = batch.control[i].bytes;
    header->msg_controllen = sizeof batch.control[i].bytes;
    cmsg = CMSG_FIRSTHDR (header);
    cmsg->cmsg_level = SOL_UDP;
    cmsg->cmsg_type = UDP_SEGMENT;
    cmsg->cmsg_len = CMSG_LEN (sizeof segment);
    memcpy (CMSG_DATA (cmsg), &segment, sizeof segment);
  }
}

static uint8_t *
put (uint8_t *out, uint64_t value, unsigned n)
{
  while (n-- > 0)
    *out++ = (uint8_t) (value >> 8 * n);
  return out;
}

static void
write_packet (uint8_t *out, const OriginSession *session, OriginTrack *track, unsigned which,
    const RelayFrame *frame, unsigned i, int64_t now_ns)
{
  size_t len = frame->packets[i].len;
  RelayStamp stamp = { .stream = session->stream,
    .session = session->id,
    .track = (uint8_t) which,
    .seq = track->n++,
    .sent_ns = now_ns };
  uint8_t *at = put (out, 0x80, 1);

  at = put (at, (which ? 97 : 96) | (i + 1 == frame->n ? 0x80 : 0), 1);
  at = put (at, track->seq++, 2);
  at = put (at, track->ts, 4);
  at = put (at, track->ssrc, 4);
  memcpy (at, frame->packets[i].payload, len - RELAY_RTP_HEADER - RELAY_STAMP);
  relay_stamp_write (out + len - RELAY_STAMP, &stamp);
  track->octets += (uint32_t) (len - RELAY_RTP_HEADER);
}

static void
send_by_tcp (OriginSession *session, OriginTrack *track, unsigned which, const RelayFrame *frame,
    int64_t now_ns)
{
  uint8_t *out = batch.bytes + batch.used, *at = out;

  for (unsigned i = 0; i < frame->n; i++) {
    size_t len = frame->packets[i].len;

    at = put (at, '$', 1);
    at = put (at, track->channel, 1);
    at = put (at, len, 2);
    write_packet (at, session, track, which, frame, i, now_ns);
    at += len;
  }
  if (!origin_write (session, out, (size_t) (at - out)))
    counts.failed += frame->n;
}

static void
send_by_udp (OriginSession *session, OriginTrack *track, unsigned which, const RelayFrame *frame,
    int64_t now_ns)
{
  uint8_t *out = batch.bytes + batch.used, *at = out;

  for (unsigned i = 0; i < frame->n; i++) {
    size_t len = frame->packets[i].len;

    write_packet (at, session, track, which, frame, i, now_ns);
    if (settings.single)
      add_message (&track->to, at, len, (uint16_t) len);
    at += len;
  }
  if (!settings.single)
    add_message (&track->to, out, (size_t) (at - out), (uint16_t) frame->packets[0].len);
  batch.used += (size_t) (at - out);
}

static void
send_report (OriginSession *session, OriginTrack *track)
{
  uint8_t packet[4 + 28 + 16], *out = packet + 4, *at = out;
  struct timespec now;

  clock_gettime (CLOCK_REALTIME, &now);
  at = put (at, 0x80c80006, 4);
  at = put (at, track->ssrc, 4);
  at = put (at, (uint64_t) now.tv_sec + 2208988800u, 4);
  at = put (at, ((uint64_t) now.tv_nsec << 32) / RELAY_S, 4);
  at = put (at, track->ts, 4);
  at = put (at, track->n, 4);
  at = put (at, track->octets, 4);
  at = put (at, 0x81ca0003, 4); // SDES: the canonical name "relay"
  at = put (at, track->ssrc, 4);
  memcpy (at, "\1\5relay", 8);
  if (track->tcp) {
    put (put (put (packet, '$', 1), track->channel + 1u, 1), sizeof packet - 4, 2);
    origin_write (session, packet, sizeof packet);
  } else {
    sendto (settings.rtcp, out, sizeof packet - 4, MSG_DONTWAIT,
        (struct sockaddr *) &track->to_rtcp, sizeof track->to_rtcp);
  }
}

// ---- time ----

static void
send_reports (void)
{
  for (unsigned which = 0; which < ORIGIN_TRACKS; which++) {
    for (unsigned s = 0; s < tickers[which].n_slots; s++) {
      const Slot *slot = &tickers[which].slots[s];

      for (size_t i = 0; i < slot->n; i++) {
        if ((slot->sessions[i]->stream + counts.slot) % REPORT_SLOTS == 0)
          send_report (slot->sessions[i], &slot->sessions[i]->tracks[which]);
      }
    }
  }
}

// Prints what was sent in the slot of time before `now_ns`, once it is over.
static void
end_slot (int64_t now_ns)
{
  if (now_ns / RELAY_SLOT_NS == counts.slot)
    return;
  printf ("slot=%lld sessions=%zu packets=%u failed=%u late_us=%lld waiting=%u\n",
      (long long) counts.slot, counts.sessions, counts.packets, counts.failed,
      (long long) counts.late_ns / 1000, counts.waiting);
  fflush (stdout);
  counts.slot = now_ns / RELAY_SLOT_NS;
  counts.packets = counts.failed = 0;
  counts.late_ns = 0;
  send_reports ();
}

static void
send_frame (OriginSession *session, const Ticker *ticker, unsigned which, int64_t frame_number)
{
  const RelayShape *shape = ticker->shape;
  OriginTrack *track = &session->tracks[which];
  // Spread streams have their keyframes at different frames.
  int64_t position = frame_number + (settings.spread ? session->stream * 7 : 0);
  const RelayFrame *frame = position % shape->gop == 0 ? &ticker->key : &ticker->frame;
  int64_t now_ns = weir_now_ns ();

  if (batch.n + sizeof frame->packets / sizeof *frame->packets > BATCH || batch.used > ROOM / 2)
    flush_batch ();
  end_slot (now_ns);
  track->ts = track->first_ts
              + (uint32_t) (frame_number * shape->clock * shape->denominator / shape->per_second);
  if (track->tcp)
    send_by_tcp (session, track, which, frame, now_ns);
  else
    send_by_udp (session, track, which, frame, now_ns);
  counts.packets += frame->n;
}

static int64_t
due_of (const Ticker *self)
{
  __int128 ns = (__int128) self->tick * RELAY_S * self->shape->denominator;

  return settings.start_ns + (int64_t) (ns / self->shape->per_second / self->n_slots);
}

static void
run_ticker (Ticker *self, unsigned which, int64_t now_ns)
{
  int64_t due_ns;

  while (self->shape && (due_ns = due_of (self)) <= now_ns) {
    const Slot *slot = &self->slots[self->tick % self->n_slots];

    for (size_t i = 0; i < slot->n; i++)
      send_frame (slot->sessions[i], self, which, self->tick / self->n_slots);
    self->tick++;
    flush_batch ();
    if (slot->n > 0 && weir_now_ns () - due_ns > counts.late_ns)
      counts.late_ns = weir_now_ns () - due_ns;
  }
}

int64_t
origin_media_run (int64_t now_ns, unsigned waiting)
{
  int64_t next_ns;

  counts.waiting = waiting;
  end_slot (now_ns);
  next_ns = (counts.slot + 1) * RELAY_SLOT_NS;
  for (unsigned which = 0; which < ORIGIN_TRACKS; which++) {
    run_ticker (&tickers[which], which, now_ns);
    if (tickers[which].shape && due_of (&tickers[which]) < next_ns)
      next_ns = due_of (&tickers[which]);
  }
  return next_ns;
}

// ---- sessions ----

void
origin_media_add (OriginSession *session)
{
  for (unsigned which = 0; which < ORIGIN_TRACKS; which++) {
    Ticker *ticker = &tickers[which];
    Slot *slot;

    if (!session->tracks[which].set_up)
      continue;
    slot = &ticker->slots[session->stream % ticker->n_slots];
    if (slot->n == slot->room) {
      slot->room = slot->room ? 2 * slot->room : 16;
      slot->sessions = realloc (slot->sessions, slot->room * sizeof *slot->sessions);
      if (!slot->sessions)
        err (1, "memory");
    }
    session->tracks[which].place = slot->n;
    slot->sessions[slot->n++] = session;
  }
  counts.sessions++;
  session->playing = true;
}

void
origin_media_remove (OriginSession *session)
{
  if (!session->playing)
    return;
  for (unsigned which = 0; which < ORIGIN_TRACKS; which++) {
    Ticker *ticker = &tickers[which];
    size_t place = session->tracks[which].place;
    Slot *slot;

    if (!session->tracks[which].set_up)
      continue;
    slot = &ticker->slots[session->stream % ticker->n_slots];
    slot->sessions[place] = slot->sessions[--slot->n];
    slot->sessions[place]->tracks[which].place = place;
  }
  counts.sessions--;
  session->playing = false;
}

static void
start (Ticker *self, const RelayShape *shape)
{
  int64_t frame_ns = RELAY_S * shape->denominator / shape->per_second;

  self->shape = shape;
  self->n_slots = settings.spread ? (unsigned) (frame_ns / SPREAD_NS) : 1;
  self->slots = calloc (self->n_slots, sizeof *self->slots);
  if (!self->slots)
    err (1, "memory");
  relay_frame_make (&self->frame, shape, 0);
  relay_frame_make (&self->key, shape, 1);
}

void
origin_media_init (const OriginSettings *to)
{
  settings = *to;
  counts.slot = settings.start_ns / RELAY_SLOT_NS;
  start (&tickers[0], settings.shape);
  if (settings.sound)
    start (&tickers[1], &relay_sound);
}
