// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/stun_hmac.h"

#include <glib.h>

void
stun_hmac_sha1 (const uint8_t *key, size_t key_len, const uint8_t *head, size_t head_len,
    const uint8_t *body, size_t body_len, uint8_t out[WEIR_STUN_HMAC])
{
  GHmac *hmac = g_hmac_new (G_CHECKSUM_SHA1, key, key_len);
  gsize size = WEIR_STUN_HMAC;

  g_hmac_update (hmac, head, (gssize) head_len);
  g_hmac_update (hmac, body, (gssize) body_len);
  g_hmac_get_digest (hmac, out, &size);
  g_hmac_unref (hmac);
}
