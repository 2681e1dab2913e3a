// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "text/schema.h"

typedef struct {
  gchar *address;            // an IP address
  guint16 port;              // 0: any free port
  gboolean is_off, is_given; // `off` is configured in place of an address; either of them is
} ListenAddress;

// Sets `self` to "ADDR:PORT", "[ADDR6]:PORT" or ":PORT" (all IPv4 addresses). Returns NULL, or an
// error message that the caller owns.
gchar *listen_address_parse (ListenAddress *self, const gchar *text);

// Read the value of a key into the ListenAddress at its offset; the second one also takes `off`,
// and then keeps the address that it had.
extern const SchemaValue listen_address_value, listen_address_or_off_value;

// Returns "SCHEME://ADDR:PORT". The caller owns the result.
gchar *listen_address_dup_url (const ListenAddress *self, const gchar *scheme);
