// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests readers of different layers of one stream. Each must get every unit of its layers, as in
// the file, in whole pictures for which an SVC decoder has the references, without a gap in its
// sequence numbers.
#include "fanout/fanout.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <unistd.h>

#include "avc.h"
#include "clones.h"
#include "packets.h"
#include "rtp/rtp.h"
#include "tap.h"

#define MS INT64_C (1000000)
#define FRAME_NS (33 * MS)
#define AU_UNITS 64
#define READERS 32

static Avc avc;
static AvcRtp plain, aggregates;
static WeirFanout *fanout;
static WeirFanoutSettings settings;
static int64_t now;

// ---- a reader, and the packets it got ----

typedef struct {
  uint8_t *bytes;
  size_t len;
} Unit;

typedef struct {
  WeirReader *reader;
  uint64_t n_packets, n_bytes, n_pictures, n_sets, n_temporal[3], n_spatial[3];
  bool started;
  uint16_t next_seq;
  // The current picture.
  int64_t au;
  Unit units[AU_UNITS];
  size_t n_units;
  // The decoder's state: the number of the last picture of each temporal layer, and the spatial
  // layer.
  int64_t last[3];
  int spatial;
  bool lossy; // packets were lost upstream
  bool deaf;  // counts packets without checking them
  bool gap;
  bool vp8, quarters; // whether the pictures are VP8; whether each has four packets
  uint16_t next_id;   // picture id
  const char *wrong;
  // For a TCP reader.
  int peer;
  bool asleep;
  WeirConn *conn;
  uint8_t *rest;
  size_t n_rest;
} Reader;

static Reader *readers[READERS];
static size_t n_readers;

static void
set_wrong (Reader *reader, const char *what)
{
  if (reader->wrong)
    return;
  reader->wrong = what;
  printf ("# reader at picture %lld: %s\n", (long long) reader->au, what);
}

static void
clear_units (Reader *reader)
{
  for (size_t i = 0; i < reader->n_units; i++)
    free (reader->units[i].bytes);
  reader->n_units = 0;
}

// Returns the units of an access unit that belong to spatial layers up to `spatial`. In this stream
// parameter sets are in order of the layers.
static bool
is_of_layer (const AvcNal *nals, size_t i, int spatial)
{
  int order = 0;

  for (size_t j = 0; j < i; j++)
    order += nals[j].type == nals[i].type;
  switch (nals[i].type) {
    case 15:
      return order < spatial;
    case 8:
      return order <= spatial;
    case 20:
      return nals[i].spatial <= spatial;
    default:
      return true;
  }
}

static const AvcNal *
units_of (unsigned au, size_t *n)
{
  size_t first = 0;

  while (avc.nals[first].au != au)
    first++;
  for (*n = 0; first + *n < avc.n && avc.nals[first + *n].au == au; ++*n)
    ;
  return &avc.nals[first];
}

// Checks that the picture has all units of its layers and no other.
static bool
is_whole (const Reader *reader, const AvcNal *nals, size_t n, int spatial)
{
  size_t at = 0;

  for (size_t i = 0; i < n; i++) {
    if (!is_of_layer (nals, i, spatial))
      continue;
    if (at == reader->n_units || reader->units[at].len != nals[i].len
        || memcmp (reader->units[at].bytes, nals[i].data, nals[i].len) != 0)
      return false;
    at++;
  }
  return at == reader->n_units;
}

// Checks that a layer is entered at its IDR, and that a picture follows the one it is predicted
// from.
static void
decode (Reader *reader, int spatial, int temporal, bool idr)
{
  int64_t needs[] = { reader->au - 4, reader->au - 2, reader->au - 1 };
  int64_t newest = -1;

  for (int i = 0; i < 3; i++)
    newest = reader->last[i] > newest ? reader->last[i] : newest;
  if (!idr && spatial != reader->spatial)
    set_wrong (reader, "a change of layer without an IDR");
  if (!idr && temporal < 2 && reader->last[0] != needs[temporal])
    set_wrong (reader, "the reference is missing");
  if (!idr && temporal == 2 && newest != needs[2])
    set_wrong (reader, "the reference is missing");
  for (int i = 0; idr && i < 3; i++)
    reader->last[i] = -1;
  reader->last[temporal] = reader->au;
  reader->spatial = spatial;
  reader->n_temporal[temporal]++;
  reader->n_spatial[spatial]++;
  reader->n_pictures++;
}

static void
end_picture (Reader *reader)
{
  unsigned au = (unsigned) (reader->au % avc.n_aus);
  int spatial = 0, temporal = 0;
  bool idr = false;
  size_t n;
  const AvcNal *nals = units_of (au, &n);

  for (size_t i = 0; i < n; i++) {
    temporal = nals[i].temporal > temporal ? nals[i].temporal : temporal;
    idr |= nals[i].type == 5;
  }
  for (size_t i = 0; i < reader->n_units; i++) {
    const Unit *unit = &reader->units[i];
    uint8_t type = unit->bytes[0] & 31;

    reader->n_sets += type == 7 || type == 8 || type == 15;

    if (type == 20 && (unit->bytes[2] >> 4 & 7) > spatial)
      spatial = unit->bytes[2] >> 4 & 7;
  }
  if (!reader->lossy && !is_whole (reader, nals, n, spatial))
    set_wrong (reader, "missing or unexpected units");
  if (!reader->lossy)
    decode (reader, spatial, temporal, idr);
  clear_units (reader);
}

static void
begin_unit (Reader *reader, const uint8_t *data, size_t len)
{
  Unit *unit = &reader->units[reader->n_units];

  if (reader->n_units == AU_UNITS) {
    set_wrong (reader, "too many units");
    return;
  }
  unit->bytes = malloc (200000);
  unit->len = len;
  memcpy (unit->bytes, data, len);
  reader->n_units++;
}

static void
got_payload (Reader *reader, const uint8_t *payload, size_t len)
{
  uint8_t header;

  switch (payload[0] & 31) {
    case 24:
      for (size_t at = 1; at + 2 <= len;) {
        size_t size = (size_t) (payload[at] << 8 | payload[at + 1]);

        begin_unit (reader, payload + at + 2, size);
        at += 2 + size;
      }
      break;
    case 28:
      header = (uint8_t) ((payload[0] & 0xe0) | (payload[1] & 31));
      if (payload[1] & 0x80)
        begin_unit (reader, &header, 1);
      if (reader->n_units == 0) {
        if (!reader->lossy)
          set_wrong (reader, "a fragment without its start");
        break;
      }
      memcpy (reader->units[reader->n_units - 1].bytes + reader->units[reader->n_units - 1].len,
          payload + 2, len - 2);
      reader->units[reader->n_units - 1].len += len - 2;
      break;
    default:
      begin_unit (reader, payload, len);
      break;
  }
}

// Checks pictures of one packet, or of four.
static void
got_vp8 (Reader *reader, const uint8_t *payload, size_t len)
{
  int temporal = payload[4] >> 6;
  uint16_t id = (uint16_t) ((payload[2] & 0x7f) << 8 | payload[3]);

  if (reader->quarters && reader->n_packets % 4 != 1) {
    if (((id + 1) & 0x7fff) != reader->next_id || payload[0] & 0x10)
      set_wrong (reader, "an incomplete picture");
    return;
  }
  if (reader->n_pictures++ > 0 && id != reader->next_id)
    set_wrong (reader, "a gap in the picture ids");
  reader->next_id = (id + 1) & 0x7fff;
  reader->n_temporal[temporal]++;
}

static void
got_packet (Reader *reader, const uint8_t *data, size_t len)
{
  WeirRtp rtp;

  if (reader->deaf) {
    reader->n_packets++;
    reader->n_bytes += len;
    return;
  }
  if (weir_rtp_parse (data, len, &rtp) < 0) {
    set_wrong (reader, "not an RTP packet");
    return;
  }
  if (reader->started && rtp.seq != reader->next_seq) {
    reader->gap = true;
    if (!reader->lossy)
      set_wrong (reader, "a gap in the sequence numbers");
  }
  if (reader->n_units > 0 && (rtp.timestamp - 1000) / 3000 != reader->au) {
    if (!reader->lossy)
      set_wrong (reader, "a picture without a marker");
    clear_units (reader);
  }
  reader->started = true;
  reader->next_seq = (uint16_t) (rtp.seq + 1);
  reader->au = (rtp.timestamp - 1000) / 3000;
  reader->n_packets++;
  reader->n_bytes += len;
  if (reader->vp8) {
    got_vp8 (reader, data + rtp.payload_offset, rtp.payload_length);
    return;
  }
  got_payload (reader, data + rtp.payload_offset, rtp.payload_length);
  if (rtp.marker)
    end_picture (reader);
}

static Reader *served_first; // NULL: the next reader

static int
fake_send_one (const struct msghdr *msg)
{
  const struct iovec *iov = msg->msg_iov;
  struct cmsghdr *cmsg = msg->msg_controllen ? CMSG_FIRSTHDR (msg) : NULL;
  size_t segment = iov->iov_len;
  struct sockaddr_in address;
  Reader *reader;
  uint16_t size;

  memcpy (&address, msg->msg_name, sizeof address);
  if (cmsg) {
    memcpy (&size, CMSG_DATA (cmsg), sizeof size);
    segment = size;
  }
  reader = readers[ntohl (address.sin_addr.s_addr) & 0xff];
  if (!served_first)
    served_first = reader;
  for (size_t at = 0; at < iov->iov_len; at += segment)
    got_packet (reader, (uint8_t *) iov->iov_base + at,
        iov->iov_len - at < segment ? iov->iov_len - at : segment);
  return 0;
}

static unsigned blocked_percent; // percent of the sends

static bool
is_blocked (void)
{
  errno = EAGAIN;
  return random_percent (blocked_percent);
}

static ssize_t
fake_sendmsg (int fd, const struct msghdr *msg, int flags)
{
  if (is_blocked ())
    return -1;
  fake_send_one (msg);
  return (ssize_t) msg->msg_iov->iov_len;
}

static int
fake_sendmmsg (int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
  for (unsigned i = 0; i < n; i++) {
    if (is_blocked ())
      return i > 0 ? (int) i : -1;
    fake_send_one (&msgs[i].msg_hdr);
  }
  return (int) n;
}

static const WeirSendOps fake_ops = { fake_sendmsg, fake_sendmmsg };

// ---- clones ----

static size_t n_clones, n_messages;

static unsigned
fake_device (WeirCloneRoute *route)
{
  return 1;
}

static WeirClones
fake_why_not (WeirCloneRoute *route)
{
  return WEIR_CLONES_SENT;
}

static size_t
fake_clone (const WeirCloneMessage *message, int fd, WeirCloneTarget *targets, size_t n)
{
  static ClonedPacket packet;

  check_clones (message, targets, n);
  for (size_t t = 0; t < n; t++) {
    targets[t].error = 0;
    for (size_t i = 0; i < message->n_packets; i++) {
      clone_packet (message, i, &targets[t], &packet);
      got_packet ((Reader *) targets[t].route, packet.bytes, packet.len);
    }
  }
  n_clones += n;
  n_messages++;
  return n;
}

static void
fake_release (WeirCloneRoute *route)
{
}

static const WeirCloner fake_cloner = { fake_device, fake_why_not, fake_clone, fake_release };

// ---- driving the engine ----

static void
start (void)
{
  n_readers = n_clones = n_messages = 0;
  blocked_percent = 0;
  now = 100000 * MS;
  settings = (WeirFanoutSettings) {
    .join_at_keyframe = true,
    .catch_up_rate = 8,
    .coalesce_ns = 5 * MS,
    .bounds = { 64 << 20, 100000, 30000 * MS, true },
  };
  fanout = weir_fanout_new (NULL, &fake_ops, &settings);
  weir_fanout_set_codec (fanout, WEIR_CODEC_H264, 0);
  weir_fanout_start (fanout);
}

// From now on the window keeps only the packets that a reader still needs, not the newest join
// point.
static void
keep_little (void)
{
  settings.join_at_keyframe = false;
  settings.trim = true;
  weir_fanout_set (fanout, &settings);
}

static Reader *
reader_new (void)
{
  Reader *reader = calloc (1, sizeof *reader);

  reader->peer = -1;
  reader->last[0] = reader->last[1] = reader->last[2] = -1;
  readers[n_readers++] = reader;
  return reader;
}

static void
add (Reader *reader, WeirLayerSet wanted)
{
  weir_reader_set_layers (reader->reader, wanted);
  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, NULL, now), 0);
}

static Reader *
add_udp (WeirLayerSet wanted)
{
  WeirAddress address = { .v4 = { .sin_family = AF_INET,
                              .sin_port = htons (5000),
                              .sin_addr.s_addr = htonl (0x0a000000 + (uint32_t) n_readers) } };
  Reader *reader = reader_new ();

  reader->reader = weir_reader_new_udp ();
  weir_reader_set_route (reader->reader, 3, &address);
  add (reader, wanted);
  return reader;
}

static Reader *
add_cloned (WeirLayerSet wanted)
{
  Reader *reader = add_udp (wanted);

  weir_reader_set_clone_route (reader->reader, &fake_cloner, (WeirCloneRoute *) reader);
  return reader;
}

static Reader *
add_conn (WeirLayerSet wanted)
{
  Reader *reader = reader_new ();
  int ends[2];

  CHECK_INT (socketpair (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  CHECK_INT (setsockopt (ends[0], SOL_SOCKET, SO_SNDBUF, &(int) { 30000 }, sizeof (int)), 0);
  reader->peer = ends[1];
  reader->conn = weir_conn_new (ends[0], NULL);
  close (ends[0]);
  reader->reader = weir_reader_new_conn (reader->conn, WEIR_FRAMING_RFC4571, 0);
  reader->rest = malloc (1 << 20);
  add (reader, wanted);
  return reader;
}

static void
receive (Reader *reader)
{
  ssize_t n;

  if (reader->peer < 0 || reader->asleep)
    return;
  while ((n = read (reader->peer, reader->rest + reader->n_rest, (1 << 20) - reader->n_rest)) > 0) {
    size_t at = 0, len;

    reader->n_rest += (size_t) n;
    while (reader->n_rest - at >= 2) {
      len = (size_t) (reader->rest[at] << 8 | reader->rest[at + 1]);
      if (reader->n_rest - at < 2 + len)
        break;
      got_packet (reader, reader->rest + at + 2, len);
      at += 2 + len;
    }
    memmove (reader->rest, reader->rest + at, reader->n_rest - at);
    reader->n_rest -= at;
  }
}

static WeirReaderCounters
counters (const Reader *reader)
{
  WeirReaderCounters c;

  weir_reader_counters (fanout, reader->reader, now, &c);
  return c;
}

static bool
all_have_everything (void)
{
  for (size_t i = 0; i < n_readers; i++) {
    if (counters (readers[i]).lag_packets > 0)
      return false;
  }
  return true;
}

// A later pass sends the packets for which a connection had no room.
static void
run (void)
{
  for (int i = 0; i == 0 || (i < 40 && !all_have_everything ()); i++) {
    weir_fanout_run (fanout, now);
    for (size_t k = 0; k < n_readers; k++)
      receive (readers[k]);
  }
}

static uint64_t next_au;
static uint16_t next_seq;

static void
write_packet (const AvcPacket *packet, int64_t au, uint16_t seq)
{
  uint8_t *room = weir_fanout_reserve (fanout, packet->len);

  CHECK (room != NULL);
  if (!room)
    return;
  memcpy (room, packet->data, packet->len);
  weir_rtp_set_seq (room, seq);
  weir_rtp_set_timestamp (room, (uint32_t) (1000 + au * 3000));
  weir_fanout_commit (fanout, packet->len, now);
}

// The next picture of the file, which repeats from its start.
static void
push_picture (const AvcRtp *rtp, unsigned lost_percent)
{
  static size_t at;

  if (next_au % avc.n_aus == 0)
    at = 0;
  CHECK (weir_fanout_begin (fanout));
  for (bool marker = false; !marker; at++) {
    marker = rtp->packets[at].data[1] >> 7;
    if (!random_percent (lost_percent))
      write_packet (&rtp->packets[at], (int64_t) next_au, next_seq);
    next_seq++;
  }
  weir_fanout_end (fanout, now);
  next_au++;
}

static void
step (const AvcRtp *rtp, unsigned lost_percent)
{
  push_picture (rtp, lost_percent);
  now += FRAME_NS;
  run ();
}

static void
check_counts (const Reader *reader)
{
  WeirReaderCounters c = counters (reader);
  uint64_t dropped = 0;

  for (int i = 0; i < WEIR_N_DROPS; i++) {
    CHECK (c.dropped[i] <= c.due);
    dropped += c.dropped[i];
  }
  CHECK_INT (c.due, c.packets + dropped);
  CHECK_INT (c.packets, reader->n_packets);
  CHECK_INT (c.bytes, reader->n_bytes);
  CHECK (!reader->wrong);
}

static void
finish (void)
{
  weir_fanout_drain (fanout, 0);
  run ();
  for (size_t i = 0; i < n_readers; i++)
    check_counts (readers[i]);
  weir_fanout_stop (fanout);
  weir_fanout_free (fanout);
  for (size_t i = 0; i < n_readers; i++) {
    Reader *reader = readers[i];

    weir_reader_unref (reader->reader);
    clear_units (reader);
    if (reader->conn) {
      weir_conn_break (reader->conn, 1);
      weir_conn_unref (reader->conn);
    }
    if (reader->peer >= 0)
      close (reader->peer);
    free (reader->rest);
    free (reader);
  }
  next_au = 0;
}

// ---- the tests ----

static void
nine_sets (const AvcRtp *rtp)
{
  start ();
  for (int i = 0; i < 9; i++) {
    WeirLayerSet set = { (int8_t) (i / 3), (int8_t) (i % 3), -1 };

    add_udp (set);
    add_conn (set);
  }
  add_udp (WEIR_LAYER_SET_ALL);
  for (int i = 0; i < 240; i++)
    step (rtp, 0);
  for (size_t i = 0; i < n_readers; i++) {
    const Reader *reader = readers[i];
    int spatial = i < 18 ? (int) i / 6 : 2, temporal = i < 18 ? (int) i / 2 % 3 : 2;

    CHECK_INT (reader->n_pictures, 240 >> (2 - temporal));
    CHECK_INT (reader->n_spatial[spatial], reader->n_pictures);
    // All other packets were dropped for being of other layers.
    CHECK_INT (
        counters (reader).dropped[WEIR_DROP_LAYERS], counters (reader).due - reader->n_packets);
  }
  finish ();
}

static void
readers_of_all_layer_sets_are_served_at_once (void)
{
  nine_sets (&plain);
  nine_sets (&aggregates);
}

// Two readers of each set, and the packets that each set leaves out.
static void
clones_of_all_layer_sets_are_counted (void)
{
  start ();
  for (int i = 0; i < 18; i++)
    add_cloned ((WeirLayerSet) { (int8_t) (i % 9 / 3), (int8_t) (i % 3), -1 });
  for (int i = 0; i < 120; i++)
    step (&plain, 0);
  for (size_t i = 0; i < n_readers; i++) {
    WeirReaderCounters c = counters (readers[i]);

    CHECK_INT (c.clones, WEIR_CLONES_SENT);
    CHECK_INT (readers[i]->n_pictures, 120 >> (2 - i % 3));
    CHECK_INT (c.dropped[WEIR_DROP_LAYERS], c.due - readers[i]->n_packets);
  }
  CHECK (n_clones >= n_readers * 30);
  finish ();
}

static void
change_layers (const Reader *reader, int spatial, int temporal)
{
  weir_reader_set_layers (
      reader->reader, (WeirLayerSet) { (int8_t) spatial, (int8_t) temporal, -1 });
}

static void
check_all_cloned (void)
{
  for (size_t i = 0; i < n_readers; i++)
    CHECK_INT (counters (readers[i]).clones, WEIR_CLONES_SENT);
}

// Readers change layers at random, so hardly two of them have the same numbers. They are served by
// clones as before.
static void
clones_are_shared_after_changes_of_layers (void)
{
  start ();
  for (int i = 0; i < 27; i++)
    add_cloned (WEIR_LAYER_SET_ALL);
  for (int i = 0; i < 600; i++) {
    step (&plain, 0);
    for (size_t k = 0; k < n_readers; k++) {
      if (random_percent (4))
        change_layers (readers[k], (int) random_below (3), (int) random_below (3));
    }
  }
  for (int i = 0; i < 27; i++)
    change_layers (readers[i], i % 9 / 3, i % 3);
  for (int i = 0; i < 120; i++)
    step (&plain, 0);
  for (int i = 0; i < 30; i++) {
    step (&plain, 0);
    check_all_cloned ();
  }
  finish ();
}

// If one shard does not hold all readers, those who change their layers come to those who have
// them.
static void
readers_who_change_layers_are_gathered (void)
{
  start ();
  settings.spread_ns = MS; // small shards
  weir_fanout_set (fanout, &settings);
  for (int i = 0; i < 32; i++)
    add_cloned ((WeirLayerSet) { -1, (int8_t) (i % 4), -1 });
  for (int i = 0; i < 130; i++)
    step (&plain, 0);
  // Of each layer, one reader takes the place of another one.
  for (int i = 0; i < 400; i++) {
    size_t a = random_below (n_readers), b = random_below (n_readers);
    WeirLayerSet of_a = weir_reader_get_layers (readers[a]->reader);

    weir_reader_set_layers (readers[a]->reader, weir_reader_get_layers (readers[b]->reader));
    weir_reader_set_layers (readers[b]->reader, of_a);
    step (&plain, 0);
  }
  for (int i = 0; i < 10; i++)
    step (&plain, 0);
  n_clones = n_messages = 0;
  for (int i = 0; i < 16; i++)
    step (&plain, 0);
  check_all_cloned ();
  CHECK (n_clones >= 7 * n_messages);
  finish ();
}

// A reader that waits for a keyframe with more layers shares messages with those who stay.
static void
clones_are_shared_while_readers_wait_for_a_keyframe (void)
{
  start ();
  for (int i = 0; i < 12; i++)
    add_cloned ((WeirLayerSet) { 0, 2, -1 });
  for (int i = 0; i < 125; i++)
    step (&plain, 0);
  for (int i = 0; i < 12; i += 2)
    change_layers (readers[i], 2, 2);
  for (int i = 0; i < 10; i++) {
    n_clones = n_messages = 0;
    step (&plain, 0);
    check_all_cloned ();
    CHECK_INT (n_clones, 12 * n_messages);
    CHECK_INT (readers[0]->n_spatial[2], 0);
  }
  finish ();
}

// Readers of nine sets join at two times, and at the plan's number.
static void
readers_of_a_set_have_the_same_numbers (void)
{
  WeirPlan plan;

  start ();
  for (int i = 0; i < 18; i++) {
    WeirLayerSet set = { (int8_t) (i % 9 / 3), (int8_t) (i % 3), -1 };

    for (int k = 0; k < 61 && i % 9 == 0; k++)
      step (&plain, 0);
    CHECK (weir_fanout_plan (fanout, set, 0, now, &plan));
    add_udp (set);
    run ();
    CHECK_INT ((uint16_t) (readers[i]->next_seq - readers[i]->n_packets), plan.seq);
  }
  for (int k = 0; k < 30; k++)
    step (&plain, 0);
  for (int i = 9; i < 18; i++) {
    CHECK (readers[i]->n_packets < readers[i - 9]->n_packets);
    CHECK_INT (readers[i]->next_seq, readers[i - 9]->next_seq);
  }
  finish ();
}

// Random switches over UDP and TCP; `lost_percent` of the packets are lost upstream.
static void
switch_at_random (const AvcRtp *rtp, unsigned lost_percent, bool little_kept)
{
  unsigned n_changes = 0;

  start ();
  if (little_kept)
    keep_little ();
  blocked_percent = 20;
  for (int i = 0; i < 4; i++) {
    (i % 2 ? add_conn : add_udp) ((WeirLayerSet) { (int8_t) (i - 1), -1, -1 });
    readers[i]->lossy = lost_percent > 0;
  }
  while (n_changes < 1000) {
    step (rtp, lost_percent);
    for (size_t i = 0; i < n_readers; i++) {
      if (!random_percent (8))
        continue;
      weir_reader_set_layers (readers[i]->reader,
          (WeirLayerSet) { (int8_t) (random_below (5) - 1), (int8_t) (random_below (4) - 1), -1 });
      n_changes += i == 0;
    }
  }
  for (size_t i = 0; i < n_readers && lost_percent == 0; i++) {
    for (int layer = 0; layer < 3; layer++) {
      CHECK (readers[i]->n_spatial[layer] > 0);
      CHECK (readers[i]->n_temporal[layer] > 0);
    }
  }
  finish ();
}

static void
a_thousand_changes_leave_decodable_pictures (void)
{
  for (int little_kept = 0; little_kept < 2; little_kept++) {
    switch_at_random (&plain, 0, little_kept);
    switch_at_random (&aggregates, 0, little_kept);
  }
}

static void
counts_add_up_after_upstream_loss (void)
{
  switch_at_random (&plain, 3, false);
}

// From the full stream down to the base layer, and back.
// The stream of the reader's new set begins between two key pictures, and the last one is no longer
// in the window.
static void
a_reader_that_gives_up_a_temporal_layer_keeps_its_spatial_one (void)
{
  Reader *reader;

  start ();
  keep_little ();
  reader = add_udp ((WeirLayerSet) { 1, 1, -1 });
  for (int i = 0; i < 12; i++)
    step (&plain, 0);
  CHECK_INT (reader->n_spatial[1], 6);
  weir_reader_set_layers (reader->reader, (WeirLayerSet) { 1, 0, -1 });
  for (int i = 0; i < 8; i++)
    step (&plain, 0);
  CHECK_INT (reader->n_spatial[1], 6 + 2);
  CHECK_INT (reader->n_spatial[0], 0);
  finish ();
}

static void
layer_changes_take_effect_where_a_decoder_survives (void)
{
  Reader *reader;
  uint64_t before;

  start ();
  reader = add_udp (WEIR_LAYER_SET_ALL);
  for (int i = 0; i < 10; i++)
    step (&plain, 0);
  CHECK_INT (reader->n_pictures, 10);
  CHECK (!weir_fanout_wants_key (fanout, now));
  weir_reader_set_layers (reader->reader, (WeirLayerSet) { 0, 0, -1 });
  for (int i = 0; i < 50; i++)
    step (&plain, 0);
  // The temporal layer changes at once (pictures 12, 16, ..., 56), the spatial layer at the next
  // IDR.
  CHECK_INT (reader->n_pictures, 10 + 12);
  CHECK_INT (reader->n_spatial[2], 22);
  CHECK_INT (counters (reader).wanted_layers.spatial, 0);
  CHECK_INT (counters (reader).current_layers.spatial, -1);
  CHECK_INT (counters (reader).current_layers.temporal, 0);
  // A key picture is requested at most once a second.
  CHECK (weir_fanout_wants_key (fanout, now));
  CHECK (!weir_fanout_wants_key (fanout, now));
  step (&plain, 0);
  CHECK_INT (reader->n_spatial[0], 1);
  CHECK_INT (counters (reader).current_layers.spatial, 0);
  for (int i = 0; i < 40; i++)
    step (&plain, 0);
  CHECK (!weir_fanout_wants_key (fanout, now));

  weir_reader_set_layers (reader->reader, WEIR_LAYER_SET_ALL);
  before = reader->n_pictures;
  for (int i = 0; i < 19; i++)
    step (&plain, 0);
  CHECK_INT (
      reader->n_pictures - before, 16); // every picture from the next one of temporal layer 0 on
  CHECK_INT (reader->n_spatial[2], 22);
  CHECK (weir_fanout_wants_key (fanout, now));
  CHECK (!weir_fanout_wants_key (fanout, now + 900 * MS));
  step (&plain, 0);
  CHECK_INT (reader->n_spatial[2], 23);
  finish ();
}

// A reader that takes no data for a while gets fewer layers, then more again, and everything that
// it gets can be decoded.
static void
a_lagging_reader_gets_fewer_layers (void)
{
  for (int pause = 14; pause < 70; pause += 9) {
    Reader *reader;
    uint64_t n_upper;

    start ();
    reader = add_conn (WEIR_LAYER_SET_ALL);
    for (int i = 0; i < 20; i++)
      step (&plain, 0);
    reader->asleep = true;
    for (int i = 0; i < pause; i++)
      step (&plain, 0);
    reader->asleep = false;
    n_upper = reader->n_temporal[2];
    step (&plain, 0);
    CHECK (counters (reader).state > WEIR_READER_OK);
    for (int i = 0; i < 1200; i++)
      step (&plain, 0);
    CHECK_INT (counters (reader).state, WEIR_READER_OK);
    CHECK (reader->n_temporal[2] > n_upper + 100);
    CHECK (reader->n_spatial[0] > 0);
    CHECK_INT (reader->spatial, 2);
    finish ();
  }
}

static void
a_new_reader_begins_with_its_layers (void)
{
  Reader *early, *late;

  start ();
  early = add_udp ((WeirLayerSet) { 0, 0, -1 });
  for (int i = 0; i < 100; i++)
    step (&plain, 0);
  late = add_udp ((WeirLayerSet) { 1, 1, -1 });
  for (int i = 0; i < 40; i++)
    step (&plain, 0);
  CHECK_INT (early->n_pictures, 35);
  // It begins with the keyframe at 60.
  CHECK_INT (late->n_pictures, 40);
  CHECK_INT (late->n_spatial[1], 40);
  finish ();
}

// No reader wanted these layers when the packets arrived.
static void
a_delayed_reader_gets_its_layers (void)
{
  const WeirLayerSet middle = { 1, 1, -1 };
  Reader *live, *late;

  start ();
  add_udp ((WeirLayerSet) { 0, 0, -1 });
  for (int i = 0; i < 400; i++)
    step (&plain, 0);
  live = add_udp (middle);
  for (int i = 0; i < 100; i++)
    step (&plain, 0);
  late = reader_new ();
  late->reader = weir_reader_new_udp ();
  weir_reader_set_route (late->reader, 3,
      &(WeirAddress) { .v4 = { .sin_family = AF_INET,
                           .sin_port = htons (5000),
                           .sin_addr.s_addr = htonl (0x0a000000 + (uint32_t) n_readers - 1) } });
  weir_reader_set_delay (late->reader, 12000 * MS);
  add (late, middle);
  for (int i = 0; i < 100; i++)
    step (&plain, 0);
  CHECK (late->n_pictures >= 50);
  CHECK_INT (late->n_spatial[1], late->n_pictures);
  CHECK_INT (live->n_spatial[1], live->n_pictures);

  // Random delays, with random layers each time.
  for (int i = 0; i < 300; i++) {
    WeirLayerSet set = { (int8_t) (random_below (4) - 1), (int8_t) (random_below (4) - 1), -1 };

    for (unsigned n = (unsigned) random_below (10); n > 0; n--)
      step (&plain, 0);
    weir_reader_set_layers (late->reader, set);
    CHECK_INT (weir_fanout_set_delay (
                   fanout, late->reader, (int64_t) random_below (20000) * MS, now, NULL),
        0);
  }
  CHECK (late->n_spatial[0] > 0 && late->n_spatial[2] > 0);
  finish ();
}

// The stream sends its parameter sets once. A reader that enters a layer later gets that layer's
// sets.
static void
insert_parameter_sets (bool cloned)
{
  Avc once = avc;
  AvcRtp rtp;

  once.nals = calloc (avc.n, sizeof *avc.nals);
  once.n = 0;
  for (size_t i = 0; i < avc.n; i++) {
    uint8_t type = avc.nals[i].type;

    if (avc.nals[i].au == 0 || (type != 7 && type != 8 && type != 15))
      once.nals[once.n++] = avc.nals[i];
  }
  rtp = avc_packetize (&once, true, 0);
  start ();
  if (!cloned) {
    blocked_percent = 20;
    settings.gso = WEIR_GSO_OFF; // so that any packet may be the last with room
    weir_fanout_set (fanout, &settings);
  }
  for (int i = 0; i < 65; i++)
    step (&rtp, 0);
  for (int i = 0; i < READERS; i++) {
    WeirLayerSet set = { (int8_t) (i / 2 % 3), 1, -1 };
    Reader *reader = cloned ? add_cloned (set) : i % 2 ? add_conn (set) : add_udp (set);

    reader->lossy = true;
  }
  for (int i = 65; i < 110; i++)
    step (&rtp, 0);
  for (int i = 0; i < READERS; i++) {
    // An SPS for each layer, of the layer's type, and a PPS.
    CHECK_INT (readers[i]->n_sets, 2 * (i / 2 % 3 + 1));
    CHECK (readers[i]->n_packets > 0);
    CHECK (!readers[i]->gap);
  }
  CHECK ((n_clones > 0) == cloned);
  finish ();
  free (rtp.packets);
  free (once.nals);
}

static void
missing_parameter_sets_are_inserted (void)
{
  insert_parameter_sets (false);
}

static void
missing_parameter_sets_are_cloned (void)
{
  insert_parameter_sets (true);
}

static void
layer_rates_are_measured (void)
{
  WeirRates rates;

  start ();
  add_udp (WEIR_LAYER_SET_ALL);
  for (int i = 0; i < 120; i++)
    step (&plain, 0);
  weir_fanout_rates (fanout, &rates);
  CHECK_INT (rates.n, 9);
  // About the rates the file was made with: 150 kb/s for the base layer, 2 Mb/s for all.
  CHECK (weir_rates_of (&rates, (WeirLayerSet) { 0, 2, -1 }, false) > 100e3);
  CHECK (weir_rates_of (&rates, (WeirLayerSet) { 0, 2, -1 }, false) < 250e3);
  CHECK (weir_rates_of (&rates, WEIR_LAYER_SET_ALL, false) > 1500e3);
  CHECK (weir_rates_of (&rates, WEIR_LAYER_SET_ALL, false) < 3000e3);
  // Of the lowest layer, where each frame is needed.
  CHECK (rates.key_bitrate > 1e3);
  CHECK (rates.key_bitrate < weir_rates_of (&rates, (WeirLayerSet) { 0, 0, 0 }, false) * 0.9);
  CHECK (rates.reference_bitrate > weir_rates_of (&rates, (WeirLayerSet) { 0, 0, 0 }, false) * 0.9);
  CHECK (rates.reference_bitrate < weir_rates_of (&rates, (WeirLayerSet) { 0, 0, 0 }, false) * 1.1);
  finish ();
}

static void
a_limit_above_the_highest_layer_means_all_layers (void)
{
  start ();
  add_udp ((WeirLayerSet) { 5, 6, 3 });
  for (int i = 0; i < 120; i++)
    step (&plain, 0);
  CHECK_INT (readers[0]->n_spatial[2], 120);
  CHECK_INT (counters (readers[0]).dropped[WEIR_DROP_LAYERS], 0);
  finish ();
}

static void
serve_from_small_window (size_t packets)
{
  start ();
  settings.bounds.packets = packets;
  weir_fanout_set (fanout, &settings);
  add_udp ((WeirLayerSet) { 1, -1, -1 })->lossy = true;
  add_conn ((WeirLayerSet) { 2, 0, -1 })->lossy = true;
  for (int i = 0; i < 240; i++)
    step (&plain, 0);
  CHECK (readers[0]->n_packets > 0 || packets < 10);
  finish ();
}

static void
a_window_smaller_than_a_picture_still_serves (void)
{
  serve_from_small_window (4);
  serve_from_small_window (14);
}

// Temporal layers 0 2 1 2, and picture ids of 15 bits.
static void
push_vp8_packet (unsigned number, bool first, bool marker)
{
  const unsigned temporal = number % 4 == 0 ? 0 : number % 4 == 2 ? 1 : 2;
  uint8_t packet[200] = { 0 };
  uint8_t *payload = packet + RTP_HEADER, *room;

  put_rtp (packet, next_seq++, 3000 * number, marker);
  put_vp8 (payload, first, false, temporal == 2, 0);
  payload[1] = 0xa0; // a picture id and a temporal layer follow
  payload[2] = (uint8_t) (0x80 | (number + 32000) >> 8);
  payload[3] = (uint8_t) (number + 32000);
  payload[4] = (uint8_t) (temporal << 6);
  payload[5] = number % 100 ? 1 : 0;
  CHECK (weir_fanout_begin (fanout));
  if ((room = weir_fanout_reserve (fanout, sizeof packet))) {
    memcpy (room, packet, sizeof packet);
    weir_fanout_commit (fanout, sizeof packet, now);
  }
  weir_fanout_end (fanout, now);
}

static void
push_vp8 (unsigned number)
{
  push_vp8_packet (number, true, true);
  now += FRAME_NS;
  run ();
}

static void
vp8_picture_ids_have_no_gap (void)
{
  start ();
  weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
  for (int i = 0; i < 8; i++)
    (i % 2 ? add_conn : add_udp) ((WeirLayerSet) { -1, (int8_t) (i / 2 - 1), -1 })->vp8 = true;
  for (unsigned number = 0; number < 2000; number++) {
    push_vp8 (number);
    for (size_t i = 0; i < n_readers && number > 100; i++) {
      if (random_percent (5))
        weir_reader_set_layers (
            readers[i]->reader, (WeirLayerSet) { -1, (int8_t) (random_below (4) - 1), -1 });
    }
  }
  for (size_t i = 0; i < n_readers; i++) {
    CHECK (readers[i]->n_temporal[0] == 500);
    CHECK (readers[i]->n_temporal[2] > 0 && readers[i]->n_temporal[2] < 1000);
  }
  finish ();
}

static void
vp8_picture_ids_of_clones_have_no_gap (void)
{
  start ();
  weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
  for (int i = 0; i < 12; i++)
    add_cloned ((WeirLayerSet) { -1, (int8_t) (i % 3), -1 })->vp8 = true;
  for (unsigned number = 0; number < 2000; number++) {
    push_vp8 (number);
    for (size_t i = 0; i < n_readers && number > 100 && number < 1900; i++) {
      if (random_percent (5))
        change_layers (readers[i], -1, (int) random_below (4) - 1);
    }
    if (number == 1900) {
      for (size_t i = 0; i < n_readers; i++)
        change_layers (readers[i], -1, (int) i % 3);
    }
    if (number > 1950 && number % 4 == 0)
      check_all_cloned ();
  }
  finish ();
}

// Pictures that one reader leaves out do not change the ids of another reader with its own numbers.
static void
vp8_picture_ids_of_readers_are_independent (void)
{
  Reader *other, *reader;
  unsigned number = 0;
  uint64_t skipped;

  start ();
  weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
  other = add_udp ((WeirLayerSet) { -1, 1, -1 });
  reader = add_udp (WEIR_LAYER_SET_ALL);
  other->vp8 = reader->vp8 = true;
  while (number < 150)
    push_vp8 (number++);
  weir_reader_set_layers (other->reader, WEIR_LAYER_SET_ALL);
  while (number < 170)
    push_vp8 (number++);
  CHECK (other->next_id != reader->next_id);
  CHECK_INT (weir_fanout_set_delay (fanout, reader->reader, 1000 * MS, now, NULL), 0);
  reader->n_pictures = 0;
  while (number < 250)
    push_vp8 (number++);
  CHECK_INT (weir_fanout_set_delay (fanout, reader->reader, 0, now, NULL), 0);
  reader->n_pictures = 0;
  skipped = counters (reader).dropped[WEIR_DROP_CATCH_UP];
  while (number < 270)
    push_vp8 (number++);
  skipped = counters (reader).dropped[WEIR_DROP_CATCH_UP] - skipped;
  while (number < 400 && tap_ok) {
    push_vp8 (number++);
    CHECK_INT (reader->next_id, (number + 32000 - skipped) & 0x7fff);
  }
  finish ();
}

// A gap would look like loss to a player (RFC 7741).
static void
thinning_leaves_no_gap_in_picture_ids (void)
{
  Reader *slow;
  unsigned number = 0;

  start ();
  weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
  slow = add_conn (WEIR_LAYER_SET_ALL);
  slow->vp8 = true;
  for (slow->asleep = true; number < 250; number++)
    push_vp8 (number);
  CHECK_INT (counters (slow).state, WEIR_READER_KEYFRAMES);
  for (slow->asleep = false; number < 1500; number++) {
    push_vp8 (number);
    while (counters (slow).lag_packets > 0) {
      poll (NULL, 0, 1); // lets the poller's thread run
      run ();
    }
  }
  CHECK (counters (slow).dropped[WEIR_DROP_THINNED] > 0);
  CHECK_INT (counters (slow).state, WEIR_READER_OK);
  CHECK (!slow->gap);
  finish ();
}

// Frames of several packets each, packet by packet.
static void
catching_up_leaves_no_gap_in_picture_ids (void)
{
  bool caught_up = false;
  Reader *reader;

  start ();
  settings.coalesce_ns = 0;
  weir_fanout_set (fanout, &settings);
  weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
  for (unsigned number = 0; number < 500; number++) {
    for (int i = 0; i < 4; i++) {
      push_vp8_packet (number, i == 0, i == 3);
      if (number >= 100 && n_readers < READERS && random_percent (4)) {
        reader = add_udp (WEIR_LAYER_SET_ALL);
        reader->vp8 = reader->quarters = true;
      }
      now += FRAME_NS / 4;
      run ();
    }
  }
  for (size_t i = 0; i < n_readers; i++)
    caught_up |= counters (readers[i]).dropped[WEIR_DROP_CATCH_UP] > 0;
  CHECK (caught_up);
  finish ();
}

// Readers of one stream are served together, and every reader is the first of all in turn.
static void
readers_of_all_streams_take_turns_at_being_first (void)
{
  unsigned n_begun[READERS] = { 0 }, number = 0;

  start ();
  weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
  for (int i = 0; i < READERS; i++)
    add_udp ((WeirLayerSet) { -1, (int8_t) (i % 3), -1 })->deaf = true;
  while (number < 100)
    push_vp8 (number++);
  for (int i = 0; i < READERS; i++) {
    push_vp8_packet (number, true, true);
    number += 4; // temporal layer 0, which every reader gets
    now += FRAME_NS;
    served_first = NULL;
    weir_fanout_run (fanout, now);
    for (size_t r = 0; r < READERS; r++)
      n_begun[r] += readers[r] == served_first;
  }
  for (size_t r = 0; r < READERS && tap_ok; r++)
    CHECK_INT (n_begun[r], 1);
  finish ();
}

// The stream changes to a codec without layers and back, while some readers are behind.
static void
sequence_numbers_continue_when_a_stream_loses_its_layers (void)
{
  unsigned number = 0;

  start ();
  weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
  for (int i = 0; i < 12; i++)
    (i % 2 ? add_conn : add_udp) ((WeirLayerSet) { -1, (int8_t) (i / 2 % 3), -1 })->lossy = true;
  while (number < 350)
    push_vp8 (number++);
  for (int i = 6; i < 12; i++) {
    CHECK_INT (
        weir_fanout_set_delay (fanout, readers[i]->reader, (300 + 40 * i) * MS, now, NULL), 0);
  }
  for (int i = 0; i < 3; i++) {
    for (unsigned end = number + 200 + (unsigned) random_below (50); number < end; number++)
      push_vp8 (number);
    weir_fanout_set_codec (fanout, i % 2 ? WEIR_CODEC_VP8 : WEIR_CODEC_OPAQUE, 0);
  }
  while (number < 1500)
    push_vp8 (number++);
  for (size_t i = 0; i < n_readers; i++) {
    CHECK (!readers[i]->gap);
    CHECK_INT (counters (readers[i]).lag_packets, 0);
    CHECK (counters (readers[i]).dropped[WEIR_DROP_LAYERS] > 0 || i % 6 >= 4);
  }
  finish ();
}

// The stream is H.264 without layer fields, and the caller gives each packet its layer.
static void
layers_can_be_given_with_the_packets (void)
{
  start ();
  add_udp ((WeirLayerSet) { -1, 1, -1 })->vp8 = true;
  for (unsigned number = 0; number < 400; number++) {
    const unsigned temporal = number % 4 == 0 ? 0 : number % 4 == 2 ? 1 : 2;
    const WeirLayer layer = { .temporal = (uint8_t) temporal, .switch_up = temporal == 0 };
    uint8_t packet[RTP_HEADER + 20] = { 0 }, *room;

    put_rtp (packet, next_seq++, 3000 * number, true);
    put_h264 (packet + RTP_HEADER, number % 100 ? 1 : 5, 1, true);
    // Layers as in the VP8 pictures above.
    packet[RTP_HEADER + 2] = (uint8_t) (number / 2 >> 8);
    packet[RTP_HEADER + 3] = (uint8_t) (number / 2);
    packet[RTP_HEADER + 4] = (uint8_t) (temporal << 6);
    CHECK (weir_fanout_begin (fanout));
    if ((room = weir_fanout_reserve (fanout, sizeof packet))) {
      memcpy (room, packet, sizeof packet);
      weir_fanout_commit_layer (fanout, sizeof packet, &layer, now);
    }
    weir_fanout_end (fanout, now);
    now += FRAME_NS;
    run ();
  }
  CHECK_INT (readers[0]->n_temporal[0], 100);
  CHECK_INT (readers[0]->n_temporal[1], 100);
  CHECK (readers[0]->n_temporal[2] <= 2); // before its first packet shows that the layer exists
  finish ();
}

static void
damage (uint8_t *packet, size_t len)
{
  for (uint64_t n = random_below (4); n > 0; n--)
    packet[random_below (len)] = (uint8_t) random_next ();
}

// Packets that were damaged on the way, or are of another codec than announced: the counts add up,
// and no byte outside them is read.
static void
damaged_packets_are_harmless (void)
{
  static const WeirCodec codecs[] = { WEIR_CODEC_H264, WEIR_CODEC_H265, WEIR_CODEC_VP8,
    WEIR_CODEC_VP9, WEIR_CODEC_AV1, WEIR_CODEC_OPAQUE };

  start ();
  for (int i = 0; i < 12; i++)
    (i % 2 ? add_conn : add_udp) (
        (WeirLayerSet) { (int8_t) (i / 2 % 3), (int8_t) (i % 3 - 1), -1 });
  for (size_t i = 0; i < n_readers; i++)
    readers[i]->deaf = true;
  for (size_t i = 0; i < 60000; i++) {
    const AvcPacket *packet = &(i % 2 ? plain : aggregates).packets[i % plain.n % aggregates.n];
    uint8_t *room;

    if (i % 1000 == 0)
      weir_fanout_set_codec (fanout, codecs[random_below (6)], (uint8_t) random_below (3));
    if (random_percent (1))
      weir_reader_set_layers (readers[random_below (n_readers)]->reader,
          (WeirLayerSet) { (int8_t) (random_below (9) - 1), (int8_t) (random_below (9) - 1),
              (int8_t) (random_below (3) - 1) });
    CHECK (weir_fanout_begin (fanout));
    if ((room = weir_fanout_reserve (fanout, packet->len))) {
      memcpy (room, packet->data, packet->len);
      damage (room, packet->len);
      weir_fanout_commit (fanout, packet->len, now);
    }
    weir_fanout_end (fanout, now);
    if (i % 8 == 0) {
      now += FRAME_NS / 2;
      run ();
    }
  }
  finish ();
}

int
main (void)
{
  random_init ();
  if (!avc_load (&avc, "svc_3s3t.264")) {
    printf ("1..0 # SKIP no stream\n");
    return 0;
  }
  plain = avc_packetize (&avc, false, 0);
  aggregates = avc_packetize (&avc, true, 0);
  next_seq = 65000;

  RUN (readers_of_all_layer_sets_are_served_at_once);
  RUN (clones_of_all_layer_sets_are_counted);
  RUN (clones_are_shared_after_changes_of_layers);
  RUN (readers_who_change_layers_are_gathered);
  RUN (clones_are_shared_while_readers_wait_for_a_keyframe);
  RUN (readers_of_a_set_have_the_same_numbers);
  RUN (a_reader_that_gives_up_a_temporal_layer_keeps_its_spatial_one);
  RUN (layer_changes_take_effect_where_a_decoder_survives);
  RUN (a_lagging_reader_gets_fewer_layers);
  RUN (a_new_reader_begins_with_its_layers);
  RUN (a_delayed_reader_gets_its_layers);
  RUN (a_thousand_changes_leave_decodable_pictures);
  RUN (counts_add_up_after_upstream_loss);
  RUN (missing_parameter_sets_are_inserted);
  RUN (missing_parameter_sets_are_cloned);
  RUN (layer_rates_are_measured);
  RUN (damaged_packets_are_harmless);
  RUN (vp8_picture_ids_have_no_gap);
  RUN (vp8_picture_ids_of_clones_have_no_gap);
  RUN (vp8_picture_ids_of_readers_are_independent);
  RUN (thinning_leaves_no_gap_in_picture_ids);
  RUN (catching_up_leaves_no_gap_in_picture_ids);
  RUN (readers_of_all_streams_take_turns_at_being_first);
  RUN (sequence_numbers_continue_when_a_stream_loses_its_layers);
  RUN (layers_can_be_given_with_the_packets);
  RUN (a_limit_above_the_highest_layer_means_all_layers);
  RUN (a_window_smaller_than_a_picture_still_serves);

  free (plain.packets);
  free (aggregates.packets);
  avc_free (&avc);
  return tap_done ();
}
