// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers/elsewhere.h"

#include <string.h>

static GMutex lock;      // protects what follows
static gchar *host;      // NULL: nowhere
static guint16 ports[2]; // of RTSP and RTSPS

void
elsewhere_set (const gchar *address, guint16 rtsp, guint16 rtsps)
{
  g_mutex_lock (&lock);
  g_free (host);
  host = !address                ? NULL
         : strchr (address, ':') ? g_strdup_printf ("[%s]", address)
                                 : g_strdup (address);
  ports[0] = rtsp;
  ports[1] = rtsps;
  g_mutex_unlock (&lock);
}

gchar *
elsewhere_dup_url (gboolean tls, const gchar *rest)
{
  gchar *url = NULL;

  g_mutex_lock (&lock);
  if (host && ports[tls])
    url = g_strdup_printf ("%s://%s:%u%s", tls ? "rtsps" : "rtsp", host, ports[tls], rest);
  g_mutex_unlock (&lock);
  return url;
}
