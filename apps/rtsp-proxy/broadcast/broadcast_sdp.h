// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The description of a broadcast title for one client: an ordinary session description for unicast,
// with the attributes of schedule/description.h. Call from any thread.

#include "broadcast/channel.h"
#include "schedule/description.h"
#include "schedule/scheme.h"

// Returns a session description of the tracks of `file`, to be served by unicast. `name` has no
// control characters. The caller owns the result.
gchar *broadcast_sdp_base (const PacketFile *file, const gchar *name);

typedef struct {
  const PacketFile *file;
  const gchar *base; // of broadcast_sdp_base()
  const WeirTransmission *transmission;
  const WeirReception *reception;
  const gchar *scheme;   // its name
  const gchar *source;   // address of the sender, or NULL
  gint64 now_ns, real_s; // the time of the schedule, and in seconds since 1970
  guint valid_s;
  void (*address) (gpointer owner, guint group, MulticastAddress *address);
  gpointer owner;
} BroadcastSdp;

// Returns the description. The caller frees it with free(). Returns NULL and sets `error` if the
// schedule has more channels than a description can have.
gchar *broadcast_sdp_make (const BroadcastSdp *from, GError **error);
