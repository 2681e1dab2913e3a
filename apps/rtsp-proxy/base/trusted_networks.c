// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/trusted_networks.h"

#include "base/address.h"

static const gchar *const private_networks[] = { "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12",
  "192.168.0.0/16", "169.254.0.0/16", "::1", "fc00::/7", "fe80::/10", NULL };

static GMutex lock;
static GPtrArray *current; // of GInetAddressMask; use with `lock` held; NULL: not set yet

gchar *
trusted_networks_check (const gchar *text)
{
  g_autoptr (GInetAddressMask) mask = g_inet_address_mask_new_from_string (text, NULL);
  gboolean good = mask != NULL;

  return good ? NULL
              : g_strdup_printf ("\"%s\" is not a network; write it like 192.0.2.0/24", text);
}

static GPtrArray *
read_all (const gchar *const *networks)
{
  GPtrArray *masks = g_ptr_array_new_with_free_func (g_object_unref);

  for (const gchar *const *each = networks; *each; each++)
    g_ptr_array_add (masks, g_inet_address_mask_new_from_string (*each, NULL));
  return masks;
}

void
trusted_networks_set (gchar *const *networks)
{
  GPtrArray *masks = read_all (networks ? (const gchar *const *) networks : private_networks);

  g_mutex_lock (&lock);
  g_clear_pointer (&current, g_ptr_array_unref);
  current = masks;
  g_mutex_unlock (&lock);
}

gboolean
trusted_networks_have (const gchar *text)
{
  g_autoptr (GInetAddress) address = address_parse (text);
  gboolean have = FALSE;

  g_mutex_lock (&lock);
  for (guint i = 0; address && current && i < current->len; i++)
    have |= g_inet_address_mask_matches (g_ptr_array_index (current, i), address);
  g_mutex_unlock (&lock);
  return have;
}
