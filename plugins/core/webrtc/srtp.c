// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/srtp.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "rtp/rtp.h"

#define CM_TAG 10     // bytes
#define RTCP_HEADER 8 // bytes, with the SSRC of the sender
#define RTCP_INDEX 4  // bytes of the word with the index
#define ENCRYPTED (UINT32_C (1) << 31)
#define GCM_SALT WEIR_SRTP_NONCE

static void
put_u32 (uint8_t *at, uint32_t value)
{
  for (int i = 0; i < 4; i++)
    at[i] = (uint8_t) (value >> (24 - 8 * i));
}

static uint32_t
get_u32 (const uint8_t *at)
{
  return (uint32_t) at[0] << 24 | (uint32_t) at[1] << 16 | (uint32_t) at[2] << 8 | at[3];
}

static bool
is_gcm (const WeirSrtpContext *context)
{
  return context->keys->profile == WEIR_SRTP_GCM_128;
}

// ---- keys ----

size_t
weir_srtp_master_bytes (WeirSrtpProfile profile)
{
  return WEIR_SRTP_KEY + (profile == WEIR_SRTP_GCM_128 ? GCM_SALT : WEIR_SRTP_SALT);
}

// Writes the first `len` bytes of the pseudo-random function for a label (RFC 3711, 4.3.3). A
// shorter salt is followed by zeros (RFC 7714, 11).
static bool
derive (const WeirSrtpCiphers *ciphers, void *cipher, const uint8_t *salt, size_t salt_len,
    uint8_t label, uint8_t *out, size_t len)
{
  uint8_t block[WEIR_SRTP_BLOCK] = { 0 };

  memcpy (block, salt, salt_len);
  block[7] ^= label;
  memset (out, 0, len);
  return ciphers->ctr (cipher, block, out, len, out);
}

static bool
derive_session (const WeirSrtpCiphers *ciphers, void *cipher, const uint8_t *salt, size_t salt_len,
    uint8_t first_label, WeirSrtpSessionKey *out)
{
  return derive (ciphers, cipher, salt, salt_len, first_label, out->key, sizeof out->key)
         && derive (ciphers, cipher, salt, salt_len, first_label + 1, out->auth, sizeof out->auth)
         && derive (ciphers, cipher, salt, salt_len, first_label + 2, out->salt, salt_len);
}

int
weir_srtp_derive (WeirSrtpKeys *keys, const WeirSrtpCiphers *ciphers, WeirSrtpProfile profile,
    const uint8_t *master, size_t len)
{
  const uint8_t *salt = master + WEIR_SRTP_KEY;
  size_t salt_len = len - WEIR_SRTP_KEY;
  void *cipher;
  bool ok;

  if (len != weir_srtp_master_bytes (profile))
    return -EINVAL;
  cipher = ciphers->cipher_new (master, false);
  if (!cipher)
    return -ENOMEM;
  *keys = (WeirSrtpKeys) { .ciphers = ciphers, .profile = profile };
  ok = derive_session (ciphers, cipher, salt, salt_len, 0, &keys->rtp)
       && derive_session (ciphers, cipher, salt, salt_len, 3, &keys->rtcp);
  ciphers->cipher_free (cipher);
  return ok ? 0 : -ENOMEM;
}

int
weir_srtp_context_init (WeirSrtpContext *context, const WeirSrtpKeys *keys, bool rtp)
{
  const WeirSrtpSessionKey *session = rtp ? &keys->rtp : &keys->rtcp;
  bool gcm = keys->profile == WEIR_SRTP_GCM_128;

  *context = (WeirSrtpContext) { keys, session, NULL, NULL };
  context->cipher = keys->ciphers->cipher_new (session->key, gcm);
  if (!gcm)
    context->mac = keys->ciphers->mac_new (session->auth);
  if (context->cipher && (gcm || context->mac))
    return 0;
  weir_srtp_context_clear (context);
  return -ENOMEM;
}

void
weir_srtp_context_clear (WeirSrtpContext *context)
{
  if (context->cipher)
    context->keys->ciphers->cipher_free (context->cipher);
  if (context->mac)
    context->keys->ciphers->mac_free (context->mac);
  context->cipher = context->mac = NULL;
}

// Writes what the cipher begins a packet with: the first counter block (RFC 3711, 4.1.1), or with
// GCM the nonce (RFC 7714, 8.1 and 9.1), WEIR_SRTP_NONCE bytes, behind which there are zeros.
static void
make_iv (const WeirSrtpContext *context, const uint8_t *ssrc, uint64_t index,
    uint8_t iv[WEIR_SRTP_BLOCK])
{
  uint8_t *at = iv + (is_gcm (context) ? 2 : 4);

  memset (iv, 0, WEIR_SRTP_BLOCK);
  memcpy (iv, context->session->salt, WEIR_SRTP_SALT);
  for (int i = 0; i < 4; i++)
    at[i] ^= ssrc[i];
  for (int i = 0; i < 6; i++)
    at[4 + i] ^= (uint8_t) (index >> (40 - 8 * i));
}

// ---- sending ----

bool
weir_srtp_count (WeirSrtpCount *count, uint16_t seq, uint64_t *index)
{
  int64_t found = count->used ? count->newest : WEIR_UNWRAP_START;

  weir_unwrap16 (&found, seq);
  if (found < 0 || (count->used && found <= count->newest - WEIR_SRTP_OLDEST))
    return false;
  if (!count->used || found > count->newest)
    *count = (WeirSrtpCount) { true, found };
  *index = (uint64_t) found;
  return true;
}

// Writes the tag of an RTP packet of `len` bytes behind it: over the packet and the roll-over
// counter.
static bool
tag_rtp (const WeirSrtpContext *context, uint64_t index, const uint8_t *packet, size_t len,
    uint8_t *digest)
{
  uint8_t roc[4];

  put_u32 (roc, (uint32_t) (index >> 16));
  return context->keys->ciphers->mac (context->mac, packet, len, roc, sizeof roc, digest);
}

size_t
weir_srtp_seal_rtp (const WeirSrtpContext *context, uint64_t index, uint8_t *packet, size_t header,
    const uint8_t *payload, size_t len)
{
  const WeirSrtpCiphers *ciphers = context->keys->ciphers;
  uint8_t iv[WEIR_SRTP_BLOCK], digest[WEIR_SRTP_AUTH];

  make_iv (context, packet + 8, index, iv);
  if (is_gcm (context))
    return ciphers->seal (context->cipher, iv, packet, header, payload, len, packet + header)
               ? header + len + WEIR_SRTP_GCM_TAG
               : 0;
  if (!ciphers->ctr (context->cipher, iv, payload, len, packet + header)
      || !tag_rtp (context, index, packet, header + len, digest))
    return 0;
  memcpy (packet + header + len, digest, CM_TAG);
  return header + len + CM_TAG;
}

size_t
weir_srtp_seal_rtcp (const WeirSrtpContext *context, uint32_t index, uint8_t *packet, size_t len)
{
  const WeirSrtpCiphers *ciphers = context->keys->ciphers;
  uint8_t iv[WEIR_SRTP_BLOCK], digest[WEIR_SRTP_AUTH], aad[RTCP_HEADER + RTCP_INDEX];
  uint8_t *text = packet + RTCP_HEADER, *end = packet + len;

  if (len < RTCP_HEADER || !weir_rtp_is_rtcp (packet, len))
    return 0;
  make_iv (context, packet + 4, index, iv);
  if (is_gcm (context)) {
    memcpy (aad, packet, RTCP_HEADER);
    put_u32 (aad + RTCP_HEADER, index | ENCRYPTED);
    if (!ciphers->seal (context->cipher, iv, aad, sizeof aad, text, len - RTCP_HEADER, text))
      return 0;
    put_u32 (end + WEIR_SRTP_GCM_TAG, index | ENCRYPTED);
    return len + WEIR_SRTP_GCM_TAG + RTCP_INDEX;
  }
  put_u32 (end, index | ENCRYPTED);
  if (!ciphers->ctr (context->cipher, iv, text, len - RTCP_HEADER, text)
      || !ciphers->mac (context->mac, packet, len + RTCP_INDEX, NULL, 0, digest))
    return 0;
  memcpy (end + RTCP_INDEX, digest, CM_TAG);
  return len + RTCP_INDEX + CM_TAG;
}

// ---- replays ----

int
weir_srtp_receiver_init (WeirSrtpReceiver *receiver, const WeirSrtpKeys *keys, bool rtp)
{
  memset (receiver, 0, sizeof *receiver);
  return weir_srtp_context_init (&receiver->context, keys, rtp);
}

void
weir_srtp_receiver_clear (WeirSrtpReceiver *receiver)
{
  weir_srtp_context_clear (&receiver->context);
}

// Returns the source with this SSRC, or else `fresh`, initialised for it.
static WeirSrtpSource *
find_source (WeirSrtpReceiver *receiver, uint32_t ssrc, WeirSrtpSource *fresh)
{
  for (size_t i = 0; i < WEIR_SRTP_SOURCES; i++) {
    if (receiver->sources[i].heard && receiver->sources[i].ssrc == ssrc)
      return &receiver->sources[i];
  }
  *fresh = (WeirSrtpSource) { .ssrc = ssrc, .newest = -1 };
  return fresh;
}

static bool
was_seen (const WeirSrtpSource *source, int64_t index)
{
  size_t bit = (uint64_t) index % WEIR_SRTP_WINDOW;

  if (index > source->newest)
    return false;
  return index <= source->newest - WEIR_SRTP_WINDOW || source->seen[bit / 64] >> bit % 64 & 1;
}

static void
note_seen (WeirSrtpSource *source, int64_t index)
{
  size_t bit = (uint64_t) index % WEIR_SRTP_WINDOW;

  if (index - source->newest >= WEIR_SRTP_WINDOW) {
    memset (source->seen, 0, sizeof source->seen);
    source->newest = index;
  }
  while (source->newest < index) {
    size_t next = (uint64_t) ++source->newest % WEIR_SRTP_WINDOW;

    source->seen[next / 64] &= ~(UINT64_C (1) << next % 64);
  }
  source->seen[bit / 64] |= UINT64_C (1) << bit % 64;
}

// Notes an authentic packet of a source, which takes the place of the one that was silent longest
// if it is new.
static void
note_heard (WeirSrtpReceiver *receiver, WeirSrtpSource *source, int64_t index)
{
  WeirSrtpSource *place = source;

  if (source->heard == 0) {
    place = &receiver->sources[0];
    for (size_t i = 1; i < WEIR_SRTP_SOURCES; i++) {
      if (receiver->sources[i].heard < place->heard)
        place = &receiver->sources[i];
    }
    *place = *source;
  }
  note_seen (place, index);
  place->heard = ++receiver->n_heard;
}

// ---- receiving ----

// Compares in constant time.
static bool
is_tag (const uint8_t *tag, const uint8_t *digest)
{
  uint8_t differs = 0;

  for (size_t i = 0; i < CM_TAG; i++)
    differs |= tag[i] ^ digest[i];
  return differs == 0;
}

static bool
decrypt_rtp (
    const WeirSrtpContext *context, uint64_t index, uint8_t *packet, size_t header, size_t len)
{
  const WeirSrtpCiphers *ciphers = context->keys->ciphers;
  uint8_t iv[WEIR_SRTP_BLOCK], digest[WEIR_SRTP_AUTH], *text = packet + header;

  make_iv (context, packet + 8, index, iv);
  if (is_gcm (context))
    return ciphers->open (context->cipher, iv, packet, header, text, len - header, text);
  return tag_rtp (context, index, packet, len, digest) && is_tag (packet + len, digest)
         && ciphers->ctr (context->cipher, iv, text, len - header, text);
}

int
weir_srtp_open_rtp (WeirSrtpReceiver *receiver, uint8_t *packet, size_t len)
{
  const WeirSrtpContext *context = &receiver->context;
  size_t tag = is_gcm (context) ? WEIR_SRTP_GCM_TAG : CM_TAG;
  WeirSrtpSource fresh, *source;
  int64_t index;
  WeirRtp rtp;

  // A padding of one byte is always there: the count is encrypted.
  if (len > INT_MAX || len < tag + WEIR_RTP_HEADER
      || weir_rtp_parse_head (packet, len - tag, len - tag, 1, &rtp) < 0)
    return -EBADMSG;
  len -= tag;
  source = find_source (receiver, rtp.ssrc, &fresh);
  index = source->newest < 0 ? WEIR_UNWRAP_START : source->newest;
  if (weir_unwrap16 (&index, rtp.seq) < 0)
    return -EBADMSG;
  if (was_seen (source, index))
    return -EALREADY;
  if (!decrypt_rtp (context, (uint64_t) index, packet, rtp.payload_offset, len))
    return -EBADMSG;
  note_heard (receiver, source, index);
  return (int) len;
}

// `trailer` is the word with the index.
static bool
decrypt_rtcp (const WeirSrtpContext *context, uint32_t index, uint8_t *packet, size_t len,
    const uint8_t *trailer)
{
  const WeirSrtpCiphers *ciphers = context->keys->ciphers;
  uint8_t iv[WEIR_SRTP_BLOCK], digest[WEIR_SRTP_AUTH], aad[RTCP_HEADER + RTCP_INDEX];
  uint8_t *text = packet + RTCP_HEADER;

  make_iv (context, packet + 4, index, iv);
  if (is_gcm (context)) {
    memcpy (aad, packet, RTCP_HEADER);
    memcpy (aad + RTCP_HEADER, trailer, RTCP_INDEX);
    return ciphers->open (context->cipher, iv, aad, sizeof aad, text, len - RTCP_HEADER, text);
  }
  return ciphers->mac (context->mac, packet, len + RTCP_INDEX, NULL, 0, digest)
         && is_tag (trailer + RTCP_INDEX, digest)
         && ciphers->ctr (context->cipher, iv, text, len - RTCP_HEADER, text);
}

int
weir_srtp_open_rtcp (WeirSrtpReceiver *receiver, uint8_t *packet, size_t len)
{
  const WeirSrtpContext *context = &receiver->context;
  size_t tag = is_gcm (context) ? WEIR_SRTP_GCM_TAG : CM_TAG;
  WeirSrtpSource fresh, *source;
  const uint8_t *trailer;
  uint32_t word, index;

  if (len > INT_MAX || len < RTCP_HEADER + RTCP_INDEX + tag || !weir_rtp_is_rtcp (packet, len))
    return -EBADMSG;
  len -= RTCP_INDEX + tag;
  // With GCM the tag comes first.
  trailer = packet + len + (is_gcm (context) ? tag : 0);
  word = get_u32 (trailer);
  if (!(word & ENCRYPTED))
    return -EBADMSG;
  index = word & ~ENCRYPTED;
  source = find_source (receiver, get_u32 (packet + 4), &fresh);
  if (was_seen (source, index))
    return -EALREADY;
  if (!decrypt_rtcp (context, index, packet, len, trailer))
    return -EBADMSG;
  note_heard (receiver, source, index);
  return (int) len;
}
