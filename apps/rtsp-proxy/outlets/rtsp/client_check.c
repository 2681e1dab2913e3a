// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/client_check.h"

#include "access/refusals.h"
#include "config/limits.h"
#include "outlets/rtsp/allowance.h"
#include "outlets/rtsp/client.h"
#include "weir-rtsp.h"

#define PLAYING_MS (10 * 1000) // longest time between two checks of a client that plays

// Qdata of a client. Times are in µs, monotonic.
typedef struct {
  gint64 at;            // the next check
  gint64 waiting_since; // 0 if no response waits
} Check;

static Check *
get_check (GstRTSPClient *client)
{
  GQuark quark = g_quark_from_static_string ("rtsp-proxy-check");
  Check *self = g_object_get_qdata (G_OBJECT (client), quark);

  if (!self) {
    self = g_new0 (Check, 1);
    g_object_set_qdata_full (G_OBJECT (client), quark, self, g_free);
  }
  return self;
}

static void
check_unread (Check *self, GstRTSPClient *client, gint64 now)
{
  static const gchar reason[] = "the client does not read its responses (limits.write-timeout)";
  Limits limits;

  if (weir_client_get_waiting (client) == 0) {
    self->waiting_since = 0;
  } else if (self->waiting_since == 0) {
    self->waiting_since = now;
  } else {
    limits_get (&limits);
    if (now - self->waiting_since < (gint64) limits.write_ms * 1000)
      return;
    self->waiting_since = now;
    refusals_note (REFUSED_WRITE, client_get_peer (client), "%s", reason);
    client_close (client, NULL, reason);
  }
}

void
client_check (GstRTSPClient *client)
{
  Check *self = get_check (client);
  gint64 now = g_get_monotonic_time ();
  gint left_ms;

  if (now < self->at)
    return;
  left_ms = client_cleanup_sessions (client, now);
  if (!allowance_is_playing (client)) {
    check_unread (self, client, now);
    return;
  }
  // The sinks close a client that plays and reads nothing.
  self->waiting_since = 0;
  self->at = now + MIN (left_ms, PLAYING_MS) * G_TIME_SPAN_MILLISECOND;
}
