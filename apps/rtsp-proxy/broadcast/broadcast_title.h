// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A title of a broadcast: how far it is packetized, and its schedule. Its owner serialises all
// calls, with the lock that also protects the pool of groups, unless said otherwise.

#include "broadcast/packet_file.h"
#include "schedule/scheme.h"

typedef enum { TITLE_WAITS, TITLE_PACKETIZES, TITLE_READY, TITLE_FAILED } BroadcastTitleState;

typedef struct {
  gchar *name;
  BroadcastTitleState state;
  GError *error;   // TITLE_FAILED
  gint64 since_ns; // the state
  gchar *stamp;    // of the title on the disk, or NULL: nobody has looked yet
  gint64 looked_ns;
  gdouble done; // TITLE_PACKETIZES: from 0 to 1
  // TITLE_READY:
  PacketFile *file;
  gchar *sdp;       // of broadcast_sdp_base()
  gboolean is_sent; // the scheme is in use
  WeirScheme scheme;
  gboolean has_pulse;
  WeirPulse pulse;    // of the last segment
  gint64 promised_ns; // until then a client receives from groups
  gint64 needed_ns;   // until then a client plays
  gint64 next_ns;     // time of the next frame, or earlier
} BroadcastTitle;

BroadcastTitle *broadcast_title_new (const gchar *name, gint64 now_ns);

// Without the lock: it may wait for a disk. The schedule must have been stopped.
void broadcast_title_free (BroadcastTitle *self);

// The title is packetized (takes ownership of the file), or that has failed (of the error).
void broadcast_title_set_file (BroadcastTitle *self, PacketFile *file, gint64 now_ns);
void broadcast_title_set_error (BroadcastTitle *self, GError *error, gint64 now_ns);

// The title has changed on the disk: clients do not find this one any more, under the new name.
// What they were promised of it is still sent. The title is TITLE_READY, and in no table.
void broadcast_title_retire (BroadcastTitle *self, gint64 now_ns);

// Estimates after how many seconds the title is packetized, from 1 to 60.
guint broadcast_title_estimate (const BroadcastTitle *self, gint64 now_ns);

// Starts the schedule unless it runs: `config` is for this title, and its last segment is sent when
// those of `others` are not, as far as possible. Returns 0 or an error of weir_scheme_init().
gint broadcast_title_start (BroadcastTitle *self, const WeirSchemeConfig *config,
    const WeirPulse *others, guint n_others, WeirGroupPool *pool, gint64 now_ns,
    gchar why[WEIR_SCHEME_WHY]);
void broadcast_title_stop (BroadcastTitle *self, gint64 now_ns);

// Admits a client, see weir_scheme_admit().
gint broadcast_title_admit (
    BroadcastTitle *self, gint64 now_ns, WeirReception *reception, gchar why[WEIR_SCHEME_WHY]);

// Stops a schedule that nobody needs. Returns TRUE if the title itself is not needed any more.
gboolean broadcast_title_tidy (BroadcastTitle *self, gint64 now_ns);
