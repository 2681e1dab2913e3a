// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "text/schema.h"

typedef struct {
  gchar *address; // an IP address
  guint16 port;   // 0: any free port
} ListenAddress;

// Sets `self` to "ADDR:PORT", "[ADDR6]:PORT" or ":PORT" (all IPv4 addresses). Returns NULL, or an
// error message that the caller owns.
gchar *listen_address_parse (ListenAddress *self, const gchar *text);

gboolean listen_address_equal (const ListenAddress *a, const ListenAddress *b);

// Like listen_address_equal(), for addresses that may be NULL.
gboolean listen_address_maybe_equal (const ListenAddress *a, const ListenAddress *b);

// Reads the value of a key into the ListenAddress at its offset.
extern const SchemaValue listen_address_value;

// Returns "SCHEME://ADDR:PORT". The caller owns the result.
gchar *listen_address_dup_url (const ListenAddress *self, const gchar *scheme);
