// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/unread.h"

#include "access/refusals.h"
#include "config/limits.h"
#include "outlets/rtsp/allowance.h"
#include "outlets/rtsp/client.h"
#include "weir-rtsp.h"

static GQuark
since_quark (void)
{
  return g_quark_from_static_string ("rtsp-proxy-waiting-since");
}

void
unread_check (GstRTSPClient *client)
{
  static const gchar reason[] = "the client does not read its responses (limits.write-timeout)";
  gint64 *since = g_object_get_qdata (G_OBJECT (client), since_quark ());
  gint64 now = g_get_monotonic_time ();
  Limits limits;

  // The sinks close a client that plays and reads nothing.
  if (weir_client_get_waiting (client) == 0 || allowance_is_playing (client)) {
    g_object_set_qdata (G_OBJECT (client), since_quark (), NULL);
  } else if (!since) {
    g_object_set_qdata_full (
        G_OBJECT (client), since_quark (), g_memdup2 (&now, sizeof now), g_free);
  } else {
    limits_get (&limits);
    if (now - *since < (gint64) limits.write_ms * 1000)
      return;
    *since = now;
    refusals_note (REFUSED_WRITE, client_get_peer (client), "%s", reason);
    client_close (client, NULL, reason);
  }
}
