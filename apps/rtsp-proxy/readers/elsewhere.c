// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers/elsewhere.h"

#include <string.h>

static GMutex lock;  // protects what follows
static gchar *host;  // NULL: nowhere
static gboolean all; // new readers go there
static guint16 ports[ELSEWHERE_N];
static guint64 counts[2]; // by whether there was no room

void
elsewhere_set (const gchar *address, const guint16 new_ports[ELSEWHERE_N], gboolean sends_all)
{
  g_mutex_lock (&lock);
  g_free (host);
  host = !address                ? NULL
         : strchr (address, ':') ? g_strdup_printf ("[%s]", address)
                                 : g_strdup (address);
  memcpy (ports, new_ports, sizeof ports);
  all = sends_all;
  g_mutex_unlock (&lock);
}

gchar *
elsewhere_dup_url (ElsewhereProtocol protocol, const gchar *rest, gboolean is_full)
{
  static const gchar *const schemes[] = { "rtsp", "rtsps", "http", "https" }; // by the protocol
  gchar *url = NULL;

  g_mutex_lock (&lock);
  if (host && ports[protocol] && (all || is_full)) {
    const gchar *mark = all ? "" : strchr (rest, '?') ? "&" ELSEWHERE_MARK : "?" ELSEWHERE_MARK;

    url = g_strdup_printf ("%s://%s:%u%s%s", schemes[protocol], host, ports[protocol], rest, mark);
    counts[!all]++;
  }
  g_mutex_unlock (&lock);
  return url;
}

guint64
elsewhere_count (gboolean is_full)
{
  guint64 count;

  g_mutex_lock (&lock);
  count = counts[is_full];
  g_mutex_unlock (&lock);
  return count;
}
