// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads and writes the STUN messages of ICE (RFC 8489, RFC 8445): Binding requests and their
// answers. All are authentic by MESSAGE-INTEGRITY (HMAC-SHA1), and what is written ends with
// FINGERPRINT.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/address.h"

#define WEIR_STUN_ID 12          // bytes of a transaction's id
#define WEIR_STUN_HMAC 20        // bytes of an HMAC-SHA1
#define WEIR_STUN_UNKNOWN_MAX 4  // attributes that an answer names
#define WEIR_STUN_ANSWER_MAX 128 // bytes
#define WEIR_STUN_USERNAME_MAX 513
#define WEIR_STUN_REQUEST_MAX 600 // bytes

// Computes the HMAC-SHA1 of `head` and `body` together. Core has no cryptography, so callers of the
// functions below bring it. Must not fail.
typedef void (*WeirStunHmac) (const uint8_t *key, size_t key_len, const uint8_t *head,
    size_t head_len, const uint8_t *body, size_t body_len, uint8_t out[WEIR_STUN_HMAC]);

typedef enum {
  WEIR_STUN_REQUEST = 0x0001, // all of the method Binding
  WEIR_STUN_INDICATION = 0x0011,
  WEIR_STUN_SUCCESS = 0x0101,
  WEIR_STUN_ERROR = 0x0111,
} WeirStunType;

// A message. All pointers point into the bytes that were read.
typedef struct {
  WeirStunType type;
  const uint8_t *id;
  const uint8_t *username; // NULL: it has none
  size_t username_len;
  bool use_candidate, is_controlled;
  // Attributes that one must know and this file does not: the first of them.
  uint16_t unknown[WEIR_STUN_UNKNOWN_MAX];
  size_t n_unknown;
  // Private.
  const uint8_t *message;
  const uint8_t *integrity; // NULL: it has none
} WeirStun;

// Reads a message of exactly `len` bytes. What follows MESSAGE-INTEGRITY is ignored, but for
// FINGERPRINT, which must be right if it is there. Returns 0; -EBADMSG if that is no message of the
// method Binding, or if it breaks the rules of RFC 8489.
int weir_stun_read (const uint8_t *data, size_t len, WeirStun *out);

// Reports whether a message, whose bytes are still there, has the MESSAGE-INTEGRITY of this
// password.
bool weir_stun_is_authentic (
    const WeirStun *self, const char *password, size_t password_len, WeirStunHmac hmac);

// Write the answer to the request `id`: success, with the address from which the request came, or
// an error (RFC 8489, 14.8) with a code from 300 to 699 and the attributes that are not known,
// which error 420 names (`n` is at most WEIR_STUN_UNKNOWN_MAX). Return its length.
size_t weir_stun_write_success (const uint8_t *id, const WeirAddress *from, const char *password,
    size_t password_len, WeirStunHmac hmac, uint8_t out[WEIR_STUN_ANSWER_MAX]);
size_t weir_stun_write_error (const uint8_t *id, int code, const uint16_t *unknown, size_t n,
    const char *password, size_t password_len, WeirStunHmac hmac,
    uint8_t out[WEIR_STUN_ANSWER_MAX]);

// What the request of a controlling agent says (RFC 8445, 7.1).
typedef struct {
  const char *username; // of both sides: that of the peer, a colon, and the agent's own
  size_t username_len;  // at most WEIR_STUN_USERNAME_MAX
  uint32_t priority;
  uint64_t tie_breaker;
  bool use_candidate;
} WeirStunCheck;

// Writes a request. The password is the peer's. Returns its length.
size_t weir_stun_write_request (const uint8_t id[WEIR_STUN_ID], const WeirStunCheck *check,
    const char *password, size_t password_len, WeirStunHmac hmac,
    uint8_t out[WEIR_STUN_REQUEST_MAX]);
