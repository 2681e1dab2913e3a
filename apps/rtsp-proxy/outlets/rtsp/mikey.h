// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Keys of SRTP in MIKEY messages (RFC 3830), as the descriptions and headers of RTSP carry them
// (RFC 4567). The messages are not encrypted by themselves: they are for connections over TLS only.

#include <glib.h>

#define MIKEY_KEY_BYTES 30 // master key and salt

typedef enum {
  MIKEY_NONE, // there is no key for SRTP
  MIKEY_GOOD,
  MIKEY_MALFORMED,
  MIKEY_UNSUPPORTED // another cipher or key length, or an encrypted key
} MikeyVerdict;

// Returns a message in base64 (transfer full) with `key`, of MIKEY_KEY_BYTES, for AES-CM with 128
// bits and HMAC-SHA1 with 80 bits. The rollover counter of `ssrc` is 0.
gchar *mikey_write (GBytes *key, guint32 ssrc);

// Reads the header KeyMgmt of a SETUP: `prot=mikey;uri="...";data="..."`. With MIKEY_GOOD, sets
// `key` (transfer full), which has MIKEY_KEY_BYTES.
MikeyVerdict mikey_read_header (const gchar *header, GBytes **key);
