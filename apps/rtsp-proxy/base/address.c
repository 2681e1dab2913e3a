// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/address.h"

#include <string.h>

#define V6_BYTES 16
#define NETWORK_BYTES 8 // of an IPv6 address

// Returns the IPv4 address that an IPv6 socket shows as ::ffff:192.0.2.1; other addresses as they
// are. (transfer full)
static GInetAddress *
dup_plain (GInetAddress *address)
{
  static const guint8 mapped[12] = { [10] = 0xff, [11] = 0xff };
  const guint8 *bytes = g_inet_address_to_bytes (address);

  return g_inet_address_get_family (address) == G_SOCKET_FAMILY_IPV6
                 && memcmp (bytes, mapped, sizeof mapped) == 0
             ? g_inet_address_new_from_bytes (bytes + sizeof mapped, G_SOCKET_FAMILY_IPV4)
             : g_object_ref (address);
}

GInetAddress *
address_parse (const gchar *text)
{
  g_autofree gchar *bare = g_strndup (text, strcspn (text, "%"));
  g_autoptr (GInetAddress) address = g_inet_address_new_from_string (bare);

  return address ? dup_plain (address) : NULL;
}

gchar *
address_dup_key (GInetAddress *address)
{
  g_autoptr (GInetAddress) plain = dup_plain (address), network = NULL;
  g_autofree gchar *text = NULL;
  guint8 bytes[V6_BYTES] = { 0 };

  if (g_inet_address_get_family (plain) != G_SOCKET_FAMILY_IPV6)
    return g_inet_address_to_string (plain);
  memcpy (bytes, g_inet_address_to_bytes (plain), NETWORK_BYTES);
  network = g_inet_address_new_from_bytes (bytes, G_SOCKET_FAMILY_IPV6);
  text = g_inet_address_to_string (network);
  return g_strconcat (text, "/64", NULL);
}

gchar *
address_dup_key_of_text (const gchar *text)
{
  g_autoptr (GInetAddress) address = address_parse (text);

  return address ? address_dup_key (address) : g_strdup (text);
}

gboolean
address_is_loopback (GInetAddress *address)
{
  g_autoptr (GInetAddress) plain = dup_plain (address);

  return g_inet_address_get_is_loopback (plain);
}
