// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The SHA-256 of a certificate, by which an operator recognises it.

#include <glib.h>

#define TLS_FINGERPRINT_BYTES 32

// Returns "5A:0B:..." (the caller owns it).
gchar *tls_fingerprint_to_text (const guint8 bytes[TLS_FINGERPRINT_BYTES]);

// Reads 64 hexadecimal digits, with or without colons. Returns FALSE for any other text.
gboolean tls_fingerprint_parse (const gchar *text, guint8 bytes[TLS_FINGERPRINT_BYTES]);
