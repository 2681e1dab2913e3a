// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/refusals.h"

#include "base/address.h"
#include "base/log.h"

#include <string.h>

#define ADDRESSES_MAX 1024 // that have a limit of their own; further ones share one

const gchar *const refused_names[REFUSED_N_REASONS] = { "connections", "address", "memory", "files",
  "idle", "timeout", "write", "line", "headers", "body", "malformed", "version", "frames",
  "readers", "passphrase" };

static guint64 counts[REFUSED_N_REASONS]; // atomic
static GMutex lock;
static GHashTable *limits; // key of the address -> LogLimit; use with `lock` held

static const LogLimit fresh = { .burst = 10, .interval_ms = 10 * 1000 };

// Forgets addresses that have their whole burst again.
static gboolean
is_settled (gpointer key, gpointer limit, gpointer now_us)
{
  return ((LogLimit *) limit)->due_us < *(gint64 *) now_us;
}

// Returns the limit of an address. Call with the lock held.
static LogLimit *
get_limit (const gchar *key, gint64 now_us)
{
  static LogLimit shared = { .burst = 10, .interval_ms = 1000 };
  LogLimit *limit;

  if (!limits)
    limits = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  limit = g_hash_table_lookup (limits, key);
  if (limit)
    return limit;
  if (g_hash_table_size (limits) >= ADDRESSES_MAX)
    g_hash_table_foreach_remove (limits, is_settled, &now_us);
  if (g_hash_table_size (limits) >= ADDRESSES_MAX)
    return &shared;
  limit = g_memdup2 (&fresh, sizeof fresh);
  g_hash_table_insert (limits, g_strdup (key), limit);
  return limit;
}

// Returns the address of ADDR, ADDR:PORT or [ADDR]:PORT.
static gchar *
dup_address (const gchar *peer)
{
  const gchar *colon = strchr (peer, ':');

  if (peer[0] == '[')
    return g_strndup (peer + 1, strcspn (peer + 1, "]"));
  // An IPv6 address has several colons.
  return !colon || strchr (colon + 1, ':') ? g_strdup (peer)
                                           : g_strndup (peer, (gsize) (colon - peer));
}

static gboolean
may_log (const gchar *peer, guint64 *n_suppressed)
{
  g_autofree gchar *address = dup_address (peer), *key = address_dup_key_of_text (address);
  gint64 now_us = g_get_monotonic_time ();
  gboolean may;

  g_mutex_lock (&lock);
  may = log_limit_pass (get_limit (key, now_us), now_us, n_suppressed);
  g_mutex_unlock (&lock);
  return may;
}

void
refusals_count (RefusedReason reason)
{
  __atomic_add_fetch (&counts[reason], 1, __ATOMIC_RELAXED);
}

void
refusals_note (RefusedReason reason, const gchar *peer, const gchar *format, ...)
{
  guint64 n_suppressed = 0;
  va_list args;
  g_autofree gchar *text = NULL;

  refusals_count (reason);
  if (!may_log (peer, &n_suppressed))
    return;
  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  if (n_suppressed)
    log_event ("client %s refused: %s (and %" G_GUINT64_FORMAT
               " refusals of this address since the last line)",
        peer, text, n_suppressed);
  else
    log_event ("client %s refused: %s", peer, text);
}

guint64
refusals_get (RefusedReason reason)
{
  return __atomic_load_n (&counts[reason], __ATOMIC_RELAXED);
}
