// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Writes STUN messages attribute by attribute, right or wrong, as a test wants them.

#include <glib.h>
#include <string.h>

#include "webrtc/stun.h"

static inline void
stun_hmac (const uint8_t *key, size_t key_len, const uint8_t *head, size_t head_len,
    const uint8_t *body, size_t body_len, uint8_t out[WEIR_STUN_HMAC])
{
  GHmac *hmac = g_hmac_new (G_CHECKSUM_SHA1, key, key_len);
  gsize size = WEIR_STUN_HMAC;

  g_hmac_update (hmac, head, (gssize) head_len);
  g_hmac_update (hmac, body, (gssize) body_len);
  g_hmac_get_digest (hmac, out, &size);
  g_hmac_unref (hmac);
}

typedef struct {
  uint8_t bytes[2048];
  size_t len;
} StunMessage;

static inline void
stun_set_length (StunMessage *self, size_t more)
{
  size_t body = self->len - 20 + more;

  self->bytes[2] = (uint8_t) (body >> 8);
  self->bytes[3] = (uint8_t) body;
}

static inline void
stun_begin (StunMessage *self, uint16_t type)
{
  static const uint8_t head[20] = { 0, 0, 0, 0, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9,
    10, 11, 12 };

  memcpy (self->bytes, head, sizeof head);
  self->bytes[0] = (uint8_t) (type >> 8);
  self->bytes[1] = (uint8_t) type;
  self->len = sizeof head;
}

static inline void
stun_add (StunMessage *self, uint16_t type, const void *value, size_t len)
{
  uint8_t *at = self->bytes + self->len;

  at[0] = (uint8_t) (type >> 8);
  at[1] = (uint8_t) type;
  at[2] = (uint8_t) (len >> 8);
  at[3] = (uint8_t) len;
  memset (at + 4, 0, (len + 3) / 4 * 4);
  if (len > 0)
    memcpy (at + 4, value, len);
  self->len += 4 + (len + 3) / 4 * 4;
  stun_set_length (self, 0);
}

static inline void
stun_add_integrity (StunMessage *self, const char *password)
{
  uint8_t mac[WEIR_STUN_HMAC];

  stun_set_length (self, 24);
  stun_hmac ((const uint8_t *) password, strlen (password), self->bytes, 20, self->bytes + 20,
      self->len - 20, mac);
  stun_add (self, 0x0008, mac, sizeof mac);
}

// `more`: how many bytes will follow, against the rules.
static inline void
stun_add_fingerprint_before (StunMessage *self, size_t more)
{
  uint32_t crc = ~0u;
  uint8_t value[4];

  stun_set_length (self, 8 + more);
  for (size_t i = 0; i < self->len; i++) {
    crc ^= self->bytes[i];
    for (int bit = 0; bit < 8; bit++)
      crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
  }
  crc = ~crc ^ 0x5354554eu;
  for (int i = 0; i < 4; i++)
    value[i] = (uint8_t) (crc >> (24 - 8 * i));
  stun_add (self, 0x8028, value, sizeof value);
}

static inline void
stun_add_fingerprint (StunMessage *self)
{
  stun_add_fingerprint_before (self, 0);
}
