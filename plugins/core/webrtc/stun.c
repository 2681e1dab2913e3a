// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/stun.h"

#include <errno.h>
#include <string.h>

#include "bits/bytes.h"

#define HEADER 20
#define COOKIE 0x2112a442u
#define FINGERPRINT_XOR 0x5354554eu
#define OPTIONAL 0x8000 // attributes from here on may be ignored (RFC 8489, 14)

enum {
  USERNAME = 0x0006,
  INTEGRITY = 0x0008,
  ERROR_CODE = 0x0009,
  UNKNOWN_ATTRIBUTES = 0x000a,
  INTEGRITY_SHA256 = 0x001c,
  XOR_MAPPED_ADDRESS = 0x0020,
  PRIORITY = 0x0024,
  USE_CANDIDATE = 0x0025,
  FINGERPRINT = 0x8028,
  ICE_CONTROLLED = 0x8029,
  ICE_CONTROLLING = 0x802a,
};

// CRC-32 of ITU V.42, as FINGERPRINT uses it.
static uint32_t
crc32 (const uint8_t *data, size_t len)
{
  uint32_t crc = ~0u;

  for (size_t i = 0; i < len; i++) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; bit++)
      crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

// Computes MESSAGE-INTEGRITY: over the bytes before it, as if the message ended with it.
static void
compute_integrity (const uint8_t *message, size_t before, const char *password, size_t password_len,
    WeirStunHmac hmac, uint8_t out[WEIR_STUN_HMAC])
{
  size_t len = before + 4 + WEIR_STUN_HMAC - HEADER;
  uint8_t head[4] = { message[0], message[1], (uint8_t) (len >> 8), (uint8_t) len };

  hmac ((const uint8_t *) password, password_len, head, sizeof head, message + sizeof head,
      before - sizeof head, out);
}

// ---- reading ----

// Where the peer sees the agent is of use only to one that gathers candidates.
static bool
is_address (WeirBytes value)
{
  size_t len = weir_bytes_left (&value);
  uint8_t zero, family;

  weir_bytes_u8 (&value, &zero);
  weir_bytes_u8 (&value, &family);
  return (family == 1 && len == 8) || (family == 2 && len == 20);
}

static void
note_unknown (WeirStun *self, uint16_t type)
{
  if (type < OPTIONAL && type != INTEGRITY_SHA256 && type != ERROR_CODE
      && type != UNKNOWN_ATTRIBUTES && self->n_unknown < WEIR_STUN_UNKNOWN_MAX)
    self->unknown[self->n_unknown++] = type;
}

// Returns false if the value breaks the rules of its type.
static bool
read_value (WeirStun *self, uint16_t type, WeirBytes value)
{
  size_t len = weir_bytes_left (&value);

  switch (type) {
    case USERNAME:
      self->username = value.at;
      self->username_len = len;
      return len <= WEIR_STUN_USERNAME_MAX;
    case INTEGRITY:
      self->integrity = value.at;
      return len == WEIR_STUN_HMAC;
    case PRIORITY:
      return len == 4;
    case USE_CANDIDATE:
      self->use_candidate = true;
      return len == 0;
    case ICE_CONTROLLED:
      self->is_controlled = true;
      return len == 8; // bits that break ties; a lite agent never looks at them
    case ICE_CONTROLLING:
      return len == 8;
    case XOR_MAPPED_ADDRESS:
      return is_address (value);
    default:
      note_unknown (self, type);
      return true;
  }
}

// Reads FINGERPRINT, which must be the last attribute.
static bool
check_fingerprint (const WeirStun *self, const uint8_t *value, size_t len, const WeirBytes *rest)
{
  WeirBytes b = weir_bytes (value, len);
  uint32_t crc;

  return len == 4 && weir_bytes_left (rest) == 0 && weir_bytes_u32 (&b, &crc)
         && crc == (crc32 (self->message, (size_t) (value - 4 - self->message)) ^ FINGERPRINT_XOR);
}

static bool
read_attribute (WeirStun *self, WeirBytes *b)
{
  uint16_t type, len;
  const uint8_t *value;

  if (!weir_bytes_u16 (b, &type) || !weir_bytes_u16 (b, &len) || !weir_bytes_take (b, len, &value)
      || !weir_bytes_skip (b, -(size_t) len & 3))
    return false;
  if (type == FINGERPRINT)
    return check_fingerprint (self, value, len, b);
  return self->integrity || read_value (self, type, weir_bytes (value, len));
}

static bool
is_binding (uint16_t type)
{
  return type == WEIR_STUN_REQUEST || type == WEIR_STUN_INDICATION || type == WEIR_STUN_SUCCESS
         || type == WEIR_STUN_ERROR;
}

int
weir_stun_read (const uint8_t *data, size_t len, WeirStun *out)
{
  WeirBytes b = weir_bytes (data, len);
  WeirStun self = { .message = data };
  uint16_t type, body;
  uint32_t cookie;

  if (!weir_bytes_u16 (&b, &type) || !weir_bytes_u16 (&b, &body) || !weir_bytes_u32 (&b, &cookie)
      || !weir_bytes_take (&b, WEIR_STUN_ID, &self.id))
    return -EBADMSG;
  if (!is_binding (type) || cookie != COOKIE || body % 4 != 0 || body != weir_bytes_left (&b))
    return -EBADMSG;
  self.type = (WeirStunType) type;
  while (weir_bytes_left (&b) > 0) {
    if (!read_attribute (&self, &b))
      return -EBADMSG;
  }
  *out = self;
  return 0;
}

bool
weir_stun_is_authentic (
    const WeirStun *self, const char *password, size_t password_len, WeirStunHmac hmac)
{
  uint8_t wanted[WEIR_STUN_HMAC], differences = 0;

  if (!self->integrity)
    return false;
  compute_integrity (self->message, (size_t) (self->integrity - 4 - self->message), password,
      password_len, hmac, wanted);
  for (size_t i = 0; i < WEIR_STUN_HMAC; i++)
    differences |= wanted[i] ^ self->integrity[i]; // in the same time for each forgery
  return differences == 0;
}

// ---- writing ----

static uint8_t *
put (uint8_t *at, uint32_t value, int size)
{
  for (int i = size - 1; i >= 0; i--)
    *at++ = (uint8_t) (value >> (8 * i));
  return at;
}

static uint8_t *
put_attribute (uint8_t *at, uint16_t type, size_t len)
{
  return put (put (at, type, 2), (uint32_t) len, 2);
}

static uint8_t *
put_header (uint8_t *at, WeirStunType type, const uint8_t *id)
{
  at = put (put (put (at, type, 2), 0, 2), COOKIE, 4);
  memcpy (at, id, WEIR_STUN_ID);
  return at + WEIR_STUN_ID;
}

// Appends MESSAGE-INTEGRITY and FINGERPRINT. Returns the message's length.
static size_t
finish (uint8_t *message, uint8_t *at, const char *password, size_t password_len, WeirStunHmac hmac)
{
  size_t before = (size_t) (at - message);

  at = put_attribute (at, INTEGRITY, WEIR_STUN_HMAC);
  compute_integrity (message, before, password, password_len, hmac, at);
  at += WEIR_STUN_HMAC;
  // The length counts FINGERPRINT before its value is computed.
  put (message + 2, (uint32_t) (at + 8 - message - HEADER), 2);
  before = (size_t) (at - message);
  at = put_attribute (at, FINGERPRINT, 4);
  at = put (at, crc32 (message, before) ^ FINGERPRINT_XOR, 4);
  return (size_t) (at - message);
}

size_t
weir_stun_write_success (const uint8_t *id, const WeirAddress *from, const char *password,
    size_t password_len, WeirStunHmac hmac, uint8_t out[WEIR_STUN_ANSWER_MAX])
{
  bool is_v6 = from->any.sa_family == AF_INET6;
  const uint8_t *ip = is_v6 ? from->v6.sin6_addr.s6_addr : (const uint8_t *) &from->v4.sin_addr;
  size_t len = is_v6 ? 16 : 4;
  uint8_t *at = put_header (out, WEIR_STUN_SUCCESS, id);

  at = put_attribute (at, XOR_MAPPED_ADDRESS, 4 + len);
  at = put (at, is_v6 ? 2 : 1, 2);
  at = put (at, weir_address_port (from) ^ (COOKIE >> 16), 2);
  for (size_t i = 0; i < len; i++)
    *at++ = ip[i] ^ out[4 + i];
  return finish (out, at, password, password_len, hmac);
}

size_t
weir_stun_write_error (const uint8_t *id, int code, const uint16_t *unknown, size_t n,
    const char *password, size_t password_len, WeirStunHmac hmac, uint8_t out[WEIR_STUN_ANSWER_MAX])
{
  uint8_t *at = put_header (out, WEIR_STUN_ERROR, id);

  at = put_attribute (at, ERROR_CODE, 4);
  at = put (at, (uint32_t) (code / 100 << 8 | code % 100), 4);
  if (n > 0) {
    at = put_attribute (at, UNKNOWN_ATTRIBUTES, 2 * n);
    for (size_t i = 0; i < n; i++)
      at = put (at, unknown[i], 2);
    at = put (at, 0, n % 2 * 2);
  }
  return finish (out, at, password, password_len, hmac);
}

size_t
weir_stun_write_request (const uint8_t id[WEIR_STUN_ID], const WeirStunCheck *check,
    const char *password, size_t password_len, WeirStunHmac hmac,
    uint8_t out[WEIR_STUN_REQUEST_MAX])
{
  size_t padding = -check->username_len & 3;
  uint8_t *at = put_header (out, WEIR_STUN_REQUEST, id);

  at = put_attribute (at, USERNAME, check->username_len);
  memcpy (at, check->username, check->username_len);
  memset (at + check->username_len, 0, padding);
  at += check->username_len + padding;
  at = put (put_attribute (at, PRIORITY, 4), check->priority, 4);
  at = put_attribute (at, ICE_CONTROLLING, 8);
  at = put (put (at, (uint32_t) (check->tie_breaker >> 32), 4), (uint32_t) check->tie_breaker, 4);
  if (check->use_candidate)
    at = put_attribute (at, USE_CANDIDATE, 0);
  return finish (out, at, password, password_len, hmac);
}
