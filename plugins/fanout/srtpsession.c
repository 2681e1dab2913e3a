// SPDX-License-Identifier: LGPL-2.1-or-later
#include "srtpsession.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/rtp/rtp.h"
#include "srtpciphers.h"

#define RTCP_INDEXES (UINT32_C (1) << 31)
#define SSRCS 8        // of a stream that keeps the SSRCs of its packets
#define UNUSED 0x10000 // of SrtpStream.newest

G_STATIC_ASSERT (WEIR_LOOK_ROOM + WEIR_SRTP_RTP_ROOM <= WEIR_PROTECT_ROOM);
G_STATIC_ASSERT (WEIR_SRTP_RTCP_ROOM <= WEIR_PROTECT_ROOM);

struct _SrtpSession {
  gatomicrefcount refs;
  gboolean plain; // without keys
  WeirSrtpKeys sent, received;
  _Atomic (SrtpLine *) line; // of all streams with transport-wide numbers; NULL: there are none

  // Not GMutexes: ThreadSanitizer does not see GLib's locks in threads that GLib did not create.
  pthread_mutex_t rtcp_lock; // guards the RTCP sent
  WeirSrtpContext rtcp;
  guint32 rtcp_index;

  pthread_mutex_t receive_lock; // guards what is received
  WeirSrtpReceiver reports;     // RTCP
  WeirSrtpReceiver *packets;    // RTP; NULL until the first
};

typedef struct {
  guint32 ssrc;
  WeirSrtpCount count;
} SsrcCount;

struct _SrtpStream {
  gatomicrefcount refs;
  SrtpSession *session;
  WeirLook look;
  gboolean looks;         // `look` is set; else packets keep their headers
  SrtpLine *line;         // of the session; NULL: packets have no transport-wide numbers
  _Atomic guint32 newest; // sequence number of the newest packet sent, or UNUSED

  // For the thread that sends, which holds `busy`. There is one as a rule: a stream is for one
  // reader of one sink.
  atomic_flag busy;
  WeirSrtpContext rtp; // set up at the first packet
  SsrcCount counts[SSRCS];
  guint n_ssrcs;   // ever
  guint16 rtx_seq; // of the next retransmission
};

// ---- sessions ----

static gboolean
derive (WeirSrtpKeys *keys, WeirSrtpProfile profile, GBytes *master)
{
  gsize len;
  const guint8 *data = master ? g_bytes_get_data (master, &len) : NULL;

  return data && weir_srtp_derive (keys, &weir_srtp_ciphers, profile, data, len) == 0;
}

static SrtpSession *
make_session (void)
{
  SrtpSession *self = g_new0 (SrtpSession, 1);

  g_atomic_ref_count_init (&self->refs);
  pthread_mutex_init (&self->rtcp_lock, NULL);
  pthread_mutex_init (&self->receive_lock, NULL);
  return self;
}

SrtpSession *
srtp_session_new_plain (void)
{
  SrtpSession *self = make_session ();

  self->plain = TRUE;
  return self;
}

SrtpSession *
srtp_session_new (WeirSrtpProfile profile, GBytes *send_key, GBytes *receive_key)
{
  SrtpSession *self = make_session ();

  if (derive (&self->sent, profile, send_key) && derive (&self->received, profile, receive_key)
      && weir_srtp_context_init (&self->rtcp, &self->sent, false) == 0
      && weir_srtp_receiver_init (&self->reports, &self->received, false) == 0)
    return self;
  srtp_session_unref (self);
  return NULL;
}

void
srtp_session_unref (SrtpSession *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  weir_srtp_context_clear (&self->rtcp);
  weir_srtp_receiver_clear (&self->reports);
  if (self->packets)
    weir_srtp_receiver_clear (self->packets);
  g_free (self->packets);
  srtp_line_free (srtp_session_get_line (self));
  pthread_mutex_destroy (&self->rtcp_lock);
  pthread_mutex_destroy (&self->receive_lock);
  explicit_bzero (self, sizeof *self);
  g_free (self);
}

SrtpLine *
srtp_session_get_line (const SrtpSession *self)
{
  return atomic_load_explicit (&self->line, memory_order_acquire);
}

// Protects RTCP in place, with WEIR_SRTP_RTCP_ROOM bytes behind it. Returns 0 if it cannot be. All
// SSRCs share one row of indexes, so that none comes twice.
static gsize
protect_rtcp (SrtpSession *self, guint8 *data, gsize len)
{
  gsize sealed = 0;

  if (self->plain)
    return len;
  pthread_mutex_lock (&self->rtcp_lock);
  if (self->rtcp_index < RTCP_INDEXES)
    sealed = weir_srtp_seal_rtcp (&self->rtcp, self->rtcp_index++, data, len);
  pthread_mutex_unlock (&self->rtcp_lock);
  return sealed;
}

gint
srtp_session_protect_rtcp (SrtpSession *self, guint8 *data, guint size, guint room)
{
  gsize len = 0;

  if (size <= G_MAXUINT16 && room >= size + WEIR_SRTP_RTCP_ROOM)
    len = protect_rtcp (self, data, size);
  return len > 0 ? (gint) len : -1;
}

gint
srtp_session_unprotect_rtcp (SrtpSession *self, guint8 *data, guint size)
{
  gint len;

  if (self->plain)
    return (gint) MIN (size, G_MAXUINT16);
  pthread_mutex_lock (&self->receive_lock);
  len = weir_srtp_open_rtcp (&self->reports, data, size);
  pthread_mutex_unlock (&self->receive_lock);
  return MAX (len, -1);
}

gint
srtp_session_unprotect_rtp (SrtpSession *self, guint8 *data, guint size)
{
  gint len = -1;

  if (self->plain)
    return (gint) MIN (size, G_MAXUINT16);
  pthread_mutex_lock (&self->receive_lock);
  if (!self->packets) {
    self->packets = g_new0 (WeirSrtpReceiver, 1);
    if (weir_srtp_receiver_init (self->packets, &self->received, true) < 0)
      g_clear_pointer (&self->packets, g_free);
  }
  if (self->packets)
    len = weir_srtp_open_rtp (self->packets, data, size);
  pthread_mutex_unlock (&self->receive_lock);
  return MAX (len, -1);
}

// ---- streams ----

static SrtpLine *
ensure_line (SrtpSession *session)
{
  if (!srtp_session_get_line (session))
    atomic_store_explicit (&session->line, srtp_line_new (), memory_order_release);
  return srtp_session_get_line (session);
}

SrtpStream *
srtp_stream_new (SrtpSession *session, const WeirLook *look)
{
  SrtpLine *line = look && look->transport_at > 0 ? ensure_line (session) : NULL;
  SrtpStream *self;

  if (look && look->transport_at > 0 && !line)
    return NULL;
  self = g_new0 (SrtpStream, 1);
  self->line = line;
  g_atomic_ref_count_init (&self->refs);
  g_atomic_ref_count_inc (&session->refs);
  self->session = session;
  self->looks = look != NULL;
  if (look)
    self->look = *look;
  atomic_init (&self->newest, UNUSED);
  atomic_flag_clear (&self->busy);
  return self;
}

void
srtp_stream_unref (gpointer stream)
{
  SrtpStream *self = stream;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  weir_srtp_context_clear (&self->rtp);
  srtp_session_unref (self->session);
  g_free (self);
}

gboolean
srtp_stream_has_ssrc (const SrtpStream *self, guint32 ssrc)
{
  return ssrc != 0 && (self->look.ssrc == ssrc || self->look.rtx_ssrc == ssrc);
}

// Returns the count of the packets with an SSRC. A new one takes the place of the oldest.
static WeirSrtpCount *
find_count (SrtpStream *self, guint32 ssrc)
{
  SsrcCount *found;

  for (guint i = 0; i < MIN (self->n_ssrcs, SSRCS); i++) {
    if (self->counts[i].ssrc == ssrc)
      return &self->counts[i].count;
  }
  found = &self->counts[self->n_ssrcs++ % SSRCS];
  *found = (SsrcCount) { .ssrc = ssrc };
  return &found->count;
}

// Encrypts a packet of which the header is written, or without keys completes it.
static gsize
close_packet (
    SrtpStream *self, guint64 index, guint8 *packet, gsize header, const guint8 *payload, gsize len)
{
  if (!self->session->plain)
    return weir_srtp_seal_rtp (&self->rtp, index, packet, header, payload, len);
  memcpy (packet + header, payload, len);
  return header + len;
}

// Protects a packet whose header is written. Notes its number if `note` is set.
static gsize
seal (
    SrtpStream *self, guint8 *packet, gsize header, const guint8 *payload, gsize len, gboolean note)
{
  WeirSrtpCount *count = find_count (self, weir_rtp_get_ssrc (packet));
  guint16 seq = weir_rtp_get_seq (packet);
  guint64 index;

  if (!weir_srtp_count (count, seq, &index))
    return 0;
  if (note && count->newest == (gint64) index)
    atomic_store_explicit (&self->newest, seq, memory_order_relaxed);
  return close_packet (self, index, packet, header, payload, len);
}

// Sets up the cipher at the first packet.
static gboolean
is_ready (SrtpStream *self)
{
  return self->session->plain || self->rtp.cipher
         || weir_srtp_context_init (&self->rtp, &self->session->sent, true) == 0;
}

// Returns the transport-wide number of the next packet.
static guint16
take_number (SrtpStream *self)
{
  return self->line ? srtp_line_take_number (self->line) : 0;
}

static gsize
protect_rtp (SrtpStream *self, const guint8 *in, gsize len, guint8 *out)
{
  gsize header = 0, payload;
  WeirRtp rtp;

  if (!is_ready (self))
    return 0;
  if (self->looks) {
    header = weir_look_write (&self->look, take_number (self), in, len, out, &payload);
  } else if (weir_rtp_parse (in, len, &rtp) == 0) {
    header = payload = rtp.payload_offset;
    memcpy (out, in, header);
  }
  return header > 0 ? seal (self, out, header, in + payload, len - payload, TRUE) : 0;
}

static size_t
protect (void *data, const uint8_t *in, size_t len, bool rtp, uint8_t *out)
{
  SrtpStream *self = data;
  gsize sealed;

  if (!rtp) {
    memcpy (out, in, len);
    return protect_rtcp (self->session, out, len);
  }
  if (atomic_flag_test_and_set_explicit (&self->busy, memory_order_acquire))
    return 0;
  sealed = protect_rtp (self, in, len, out);
  atomic_flag_clear_explicit (&self->busy, memory_order_release);
  return sealed;
}

static gsize
protect_rtx (SrtpStream *self, const guint8 *in, gsize len, guint8 *out)
{
  gsize header, plain;

  if (!self->rtp.cipher // it has sent nothing yet
      || (self->line && srtp_line_is_congested (self->line)))
    return 0;
  plain = weir_look_write_again (
      &self->look, take_number (self), in, len, self->rtx_seq++, out, &header);
  return plain > 0 ? seal (self, out, header, out + header, plain - header, FALSE) : 0;
}

// Without retransmissions of its own, the stream sends the same packet, bit for bit: another one
// with the same number would have the same key stream. So its packets have no transport-wide
// numbers.
static size_t
protect_again (void *data, const uint8_t *in, size_t len, uint8_t *out)
{
  SrtpStream *self = data;
  gsize sealed;

  if (atomic_flag_test_and_set_explicit (&self->busy, memory_order_acquire))
    return 0;
  sealed =
      self->look.rtx_ssrc ? protect_rtx (self, in, len, out) : protect_rtp (self, in, len, out);
  atomic_flag_clear_explicit (&self->busy, memory_order_release);
  return sealed;
}

static gboolean
sends_again (const WeirLook *look)
{
  return look->rtx_ssrc != 0 || (look->ssrc != 0 && look->transport_at == 0);
}

static void
note_sent (void *data, const uint8_t *packet, size_t len, int64_t now_ns)
{
  const SrtpStream *self = data;
  uint16_t number;

  if (weir_look_read_transport (&self->look, packet, len, &number))
    srtp_line_sent (self->line, number, len, now_ns);
}

static uint64_t
get_pace (void *data)
{
  return srtp_line_get_pace (((const SrtpStream *) data)->line);
}

// A number never comes twice, because the key stream of a packet depends on it. The first half of
// the numbers leaves time until the roll-over counter changes (RFC 3711, 3.3.1).
static uint16_t
next_seq (void *data, uint16_t seq)
{
  const SrtpStream *self = data;
  guint32 newest = atomic_load_explicit (&self->newest, memory_order_relaxed);

  return newest == UNUSED ? seq & 0x7fff : (guint16) (newest + 1);
}

WeirProtect
srtp_stream_get_protect (SrtpStream *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return (WeirProtect) {
    .data = self,
    .next_seq = next_seq,
    .protect = protect,
    .protect_again = sends_again (&self->look) ? protect_again : NULL,
    .again_is_new = self->look.rtx_ssrc != 0,
    .sent = self->line ? note_sent : NULL,
    .pace = self->line ? get_pace : NULL,
    .release = srtp_stream_unref,
  };
}
