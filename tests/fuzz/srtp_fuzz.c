// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of SRTP and SRTCP. The input is a byte, whose lowest bit chooses the profile,
// and packets, each behind two bytes: 0 for RTP or 1 for RTCP, and its length. Nothing is encrypted
// here and tags are zeros, so that an input can be authentic.

#include <errno.h>
#include <string.h>

#include "bits/bytes.h"
#include "fuzz.h"
#include "webrtc/srtp.h"

static void *
cipher_new (const uint8_t *key, bool gcm)
{
  return malloc (1);
}

static void *
mac_new (const uint8_t *key)
{
  return malloc (1);
}

// Reads all bytes, so that a sanitizer sees a read past the end.
static uint8_t
touch (const uint8_t *data, size_t len)
{
  static volatile uint8_t sum;

  for (size_t i = 0; i < len; i++)
    sum ^= data[i];
  return sum;
}

static bool
ctr (void *cipher, const uint8_t *block, const uint8_t *in, size_t len, uint8_t *out)
{
  touch (block, WEIR_SRTP_BLOCK);
  memmove (out, in, len);
  return true;
}

static bool
seal (void *cipher, const uint8_t *nonce, const uint8_t *aad, size_t aad_len, const uint8_t *in,
    size_t len, uint8_t *out)
{
  touch (aad, aad_len);
  memmove (out, in, len);
  memset (out + len, 0, WEIR_SRTP_GCM_TAG);
  return true;
}

static bool
open (void *cipher, const uint8_t *nonce, const uint8_t *aad, size_t aad_len, const uint8_t *in,
    size_t len, uint8_t *out)
{
  static const uint8_t zeros[WEIR_SRTP_GCM_TAG];

  touch (nonce, WEIR_SRTP_NONCE);
  touch (aad, aad_len);
  if (memcmp (in + len, zeros, sizeof zeros) != 0)
    return false;
  memmove (out, in, len);
  return true;
}

static bool
mac (void *mac, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len, uint8_t *digest)
{
  touch (a, a_len);
  touch (b, b_len);
  memset (digest, 0, WEIR_SRTP_AUTH);
  return true;
}

static const WeirSrtpCiphers ciphers = { cipher_new, free, ctr, seal, open, mac_new, free, mac };

static void
take (WeirSrtpReceiver *receiver, bool rtp, const uint8_t *data, size_t len)
{
  uint8_t *packet = malloc (len ? len : 1);
  int got;

  require (packet != NULL);
  memcpy (packet, data, len);
  got = rtp ? weir_srtp_open_rtp (receiver, packet, len)
            : weir_srtp_open_rtcp (receiver, packet, len);
  require (got == -EBADMSG || got == -EALREADY || (got > 0 && (size_t) got < len));
  memcpy (packet, data, len);
  if (got > 0) // an authentic packet is known from then on
    require ((rtp ? weir_srtp_open_rtp (receiver, packet, len)
                  : weir_srtp_open_rtcp (receiver, packet, len))
             == -EALREADY);
  free (packet);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static const uint8_t master[30];
  WeirBytes b = weir_bytes (data, size);
  WeirSrtpReceiver receivers[2];
  WeirSrtpProfile profile;
  WeirSrtpKeys keys;
  uint8_t first;

  if (!weir_bytes_u8 (&b, &first))
    return 0;
  profile = first & 1 ? WEIR_SRTP_GCM_128 : WEIR_SRTP_CM_SHA1_80;
  require (
      weir_srtp_derive (&keys, &ciphers, profile, master, weir_srtp_master_bytes (profile)) == 0);
  require (weir_srtp_receiver_init (&receivers[0], &keys, true) == 0);
  require (weir_srtp_receiver_init (&receivers[1], &keys, false) == 0);
  while (weir_bytes_left (&b) > 0) {
    uint8_t kind, len;
    const uint8_t *packet;

    if (!weir_bytes_u8 (&b, &kind) || !weir_bytes_u8 (&b, &len)
        || !weir_bytes_take (&b, len, &packet))
      break;
    take (&receivers[kind & 1], !(kind & 1), packet, len);
  }
  weir_srtp_receiver_clear (&receivers[0]);
  weir_srtp_receiver_clear (&receivers[1]);
  return 0;
}
