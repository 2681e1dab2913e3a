// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_refusals.h"

#include <gio/gio.h>
#include <string.h>

#include "base/address.h"
#include "base/log.h"

// Peers of a session that has just closed send some more, which is no event.
#define LINE_AFTER 200 // refusals of an address
#define ADDRESSES 256  // that are told apart
#define FORGET_US (600 * G_USEC_PER_SEC)

static const struct {
  const gchar *name, *text;
} reasons[WEBRTC_REFUSALS] = {
  [WEBRTC_REFUSED_MALFORMED] = { "malformed", "they are neither STUN, DTLS nor media" },
  [WEBRTC_REFUSED_STRANGER] = { "stranger", "no session has checked the address" },
  [WEBRTC_REFUSED_FOREIGN] = { "foreign", "their STUN user names are of no session" },
  [WEBRTC_REFUSED_FORGED] = { "forged", "their STUN password is wrong" },
  [WEBRTC_REFUSED_EXCESS] = { "excess", "DTLS needs fewer" },
  [WEBRTC_REFUSED_EARLY] = { "early", "media come before their keys" },
  [WEBRTC_REFUSED_BUSY] = { "busy", "it has too many TCP connections without a session" },
};

static guint64 counts[WEBRTC_REFUSALS]; // atomic

struct _WebrtcRefusals {
  GMutex lock;           // guards all below
  GHashTable *addresses; // webrtc_refusals_get_key(): refusals
  gint64 since_us;
};

const gchar *
webrtc_refusal_get_name (WebrtcRefusal reason)
{
  return reasons[reason].name;
}

WebrtcRefusals *
webrtc_refusals_new (void)
{
  WebrtcRefusals *self = g_new0 (WebrtcRefusals, 1);

  g_mutex_init (&self->lock);
  self->addresses = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  return self;
}

void
webrtc_refusals_free (WebrtcRefusals *self)
{
  g_hash_table_unref (self->addresses);
  g_mutex_clear (&self->lock);
  g_free (self);
}

guint64
webrtc_refusals_get_key (const WeirAddress *from)
{
  guint64 network;

  if (from->any.sa_family != AF_INET6)
    return g_ntohl (from->v4.sin_addr.s_addr);
  memcpy (&network, from->v6.sin6_addr.s6_addr, sizeof network);
  return GUINT64_FROM_BE (network);
}

static gchar *
dup_text (const WeirAddress *from)
{
  const gboolean is_v6 = from->any.sa_family == AF_INET6;
  GInetAddress *inet = g_inet_address_new_from_bytes (
      is_v6 ? from->v6.sin6_addr.s6_addr : (const guint8 *) &from->v4.sin_addr,
      is_v6 ? G_SOCKET_FAMILY_IPV6 : G_SOCKET_FAMILY_IPV4);
  gchar *text = address_dup_key (inet);

  g_object_unref (inet);
  return text;
}

// Returns whether the address gets its line now. The lock is held.
static gboolean
note (WebrtcRefusals *self, guint64 key)
{
  const gint64 now = g_get_monotonic_time ();
  gpointer value;
  guint n;

  if (now - self->since_us > FORGET_US) {
    g_hash_table_remove_all (self->addresses);
    self->since_us = now;
  }
  value = g_hash_table_lookup (self->addresses, &key);
  if (!value && g_hash_table_size (self->addresses) >= ADDRESSES)
    return FALSE;
  n = GPOINTER_TO_UINT (value) + 1;
  if (n <= LINE_AFTER)
    g_hash_table_insert (self->addresses, g_memdup2 (&key, sizeof key), GUINT_TO_POINTER (n));
  return n == LINE_AFTER;
}

void
webrtc_refusals_count (WebrtcRefusals *self, WebrtcRefusal reason, const WeirAddress *from)
{
  const guint64 key = webrtc_refusals_get_key (from);
  gboolean has_line;
  gchar *text;

  __atomic_add_fetch (&counts[reason], 1, __ATOMIC_RELAXED);
  g_mutex_lock (&self->lock);
  has_line = note (self, key);
  g_mutex_unlock (&self->lock);
  if (!has_line)
    return;
  text = dup_text (from);
  log_event ("WebRTC: what comes from %s is dropped: %s", text, reasons[reason].text);
  g_free (text);
}

guint64
webrtc_refusals_get (WebrtcRefusal reason)
{
  return __atomic_load_n (&counts[reason], __ATOMIC_RELAXED);
}
