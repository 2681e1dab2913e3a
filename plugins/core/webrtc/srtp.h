// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// SRTP and SRTCP (RFC 3711; with GCM: RFC 7714): keys, packet forms, packet indexes and replays.
//
// The ciphers are operations of the caller, so that this needs no library of them. Not done: master
// key identifiers, key derivation rates, encrypted header extensions, and packets that are only
// authenticated, which are refused.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
  WEIR_SRTP_CM_SHA1_80, // AES-128 in counter mode, HMAC-SHA1 with a tag of 80 bits
  WEIR_SRTP_GCM_128     // AES-128 in Galois/Counter mode, tag of 128 bits
} WeirSrtpProfile;

#define WEIR_SRTP_KEY 16   // bytes of a session key
#define WEIR_SRTP_AUTH 20  // bytes of a key and of a digest of HMAC-SHA1
#define WEIR_SRTP_SALT 14  // bytes of a session salt; those of GCM have 12
#define WEIR_SRTP_BLOCK 16 // bytes of a counter block
#define WEIR_SRTP_NONCE 12 // bytes of a nonce of GCM
#define WEIR_SRTP_GCM_TAG 16

// Bytes by which protected packets are longer, at most.
#define WEIR_SRTP_RTP_ROOM 16
#define WEIR_SRTP_RTCP_ROOM 20

// The ciphers. An object of them is used by one thread at a time. Those that return bool return
// false if the library fails.
typedef struct {
  // Returns a cipher for a key of WEIR_SRTP_KEY bytes, or NULL if there is no memory.
  void *(*cipher_new) (const uint8_t *key, bool gcm);
  void (*cipher_free) (void *cipher);

  // Counter mode: writes `in` combined with the key stream that begins at `block`. `out` may be
  // `in`.
  bool (*ctr) (void *cipher, const uint8_t *block, const uint8_t *in, size_t len, uint8_t *out);

  // GCM. seal() writes `len` encrypted bytes and the tag; open() reads `len` encrypted bytes and
  // the tag, and returns false also if they are not authentic. `out` may be `in`.
  bool (*seal) (void *cipher, const uint8_t *nonce, const uint8_t *aad, size_t aad_len,
      const uint8_t *in, size_t len, uint8_t *out);
  bool (*open) (void *cipher, const uint8_t *nonce, const uint8_t *aad, size_t aad_len,
      const uint8_t *in, size_t len, uint8_t *out);

  // HMAC-SHA1 with a key of WEIR_SRTP_AUTH bytes, over `a` and then `b`. The digest has
  // WEIR_SRTP_AUTH bytes.
  void *(*mac_new) (const uint8_t *key);
  void (*mac_free) (void *mac);
  bool (*mac) (
      void *mac, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len, uint8_t *digest);
} WeirSrtpCiphers;

// The session keys of one direction. They do not change, so all threads may read them.
typedef struct {
  uint8_t key[WEIR_SRTP_KEY], auth[WEIR_SRTP_AUTH], salt[WEIR_SRTP_SALT];
} WeirSrtpSessionKey;

typedef struct {
  const WeirSrtpCiphers *ciphers;
  WeirSrtpProfile profile;
  WeirSrtpSessionKey rtp, rtcp;
} WeirSrtpKeys;

// Returns the bytes of a profile's master key and salt: 30 or 28.
size_t weir_srtp_master_bytes (WeirSrtpProfile profile);

// Derives the session keys from a master key and the salt after it (RFC 3711, 4.3). Returns 0,
// -EINVAL if `len` is not weir_srtp_master_bytes(), or -ENOMEM.
int weir_srtp_derive (WeirSrtpKeys *keys, const WeirSrtpCiphers *ciphers, WeirSrtpProfile profile,
    const uint8_t *master, size_t len);

// Ciphers that have one session key, for one thread at a time. The keys must outlive it.
typedef struct {
  const WeirSrtpKeys *keys;
  const WeirSrtpSessionKey *session;
  void *cipher, *mac;
} WeirSrtpContext;

// Initialises a context for RTP, or else RTCP. Returns 0 or -ENOMEM.
int weir_srtp_context_init (WeirSrtpContext *context, const WeirSrtpKeys *keys, bool rtp);

// Frees what a context holds; all zeros is allowed.
void weir_srtp_context_clear (WeirSrtpContext *context);

// ---- sending ----

// Packets that may follow newer ones. Older ones are not sent: after a jump of the numbers, the
// same index, and so the same key stream, might come twice.
#define WEIR_SRTP_OLDEST 4096

// The indexes of the packets sent with one SSRC. All zeros: none was sent.
typedef struct {
  bool used;
  int64_t newest; // index: roll-over counter * 65536 + sequence number
} WeirSrtpCount;

// Finds the index of a packet with the sequence number `seq`: the one nearest to the newest. The
// first packet's is `seq`. Returns false if the packet is too old to be sent.
bool weir_srtp_count (WeirSrtpCount *count, uint16_t seq, uint64_t *index);

// Writes the protected packet: `packet` has the header of `header` bytes, behind which go the
// encrypted `payload` of `len` bytes and the tag; there is room for them. `payload` may be there
// already. Returns the length of the packet, or 0 if the cipher fails.
size_t weir_srtp_seal_rtp (const WeirSrtpContext *context, uint64_t index, uint8_t *packet,
    size_t header, const uint8_t *payload, size_t len);

// Protects a compound RTCP packet of `len` bytes in place; WEIR_SRTP_RTCP_ROOM bytes follow it.
// `index` has 31 bits, and comes only once with each SSRC. Returns the new length, or 0 if the
// packet is not RTCP or the cipher fails.
size_t weir_srtp_seal_rtcp (
    const WeirSrtpContext *context, uint32_t index, uint8_t *packet, size_t len);

// ---- receiving ----

#define WEIR_SRTP_WINDOW 1024 // packets; older ones are refused
#define WEIR_SRTP_SOURCES 16  // SSRCs that are kept; those heard last

typedef struct {
  uint32_t ssrc;
  uint64_t heard;                       // WeirSrtpReceiver.n_heard of its last packet; 0: unused
  int64_t newest;                       // index
  uint64_t seen[WEIR_SRTP_WINDOW / 64]; // bit i % WEIR_SRTP_WINDOW: index i, up to the newest
} WeirSrtpSource;

// What one direction of a session receives, RTP or RTCP. For one thread at a time.
typedef struct {
  WeirSrtpContext context;
  uint64_t n_heard; // authentic packets
  WeirSrtpSource sources[WEIR_SRTP_SOURCES];
} WeirSrtpReceiver;

// As for a context.
int weir_srtp_receiver_init (WeirSrtpReceiver *receiver, const WeirSrtpKeys *keys, bool rtp);
void weir_srtp_receiver_clear (WeirSrtpReceiver *receiver);

// Check and decrypt a packet of `len` bytes in place. Return its new length; -EBADMSG if it is
// malformed or not authentic, -EALREADY if it came before or is too old to know. Only an authentic
// packet changes the receiver.
int weir_srtp_open_rtp (WeirSrtpReceiver *receiver, uint8_t *packet, size_t len);
int weir_srtp_open_rtcp (WeirSrtpReceiver *receiver, uint8_t *packet, size_t len);
