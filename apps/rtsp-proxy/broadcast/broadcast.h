// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The broadcast of a mount: sends its stored titles on multicast groups, by the schedules of
// plugins/core/schedule. A title is packetized once, when the first client asks for it; from then
// on each of its RTP packets has one number and one form, on every group and by unicast. A client
// that comes gets a description: what to receive on which group and when. What no group brings it
// in time, it fetches by broadcast_read().
//
// Reference-counted. Call from any thread; nothing here waits for a disk or another process.

#include <netinet/in.h>

#include "schedule/scheme.h"
#include "stores/store.h"

typedef struct _Broadcast Broadcast;

typedef struct {
  WeirSchemeKind scheme;
  guint64 first_ns;     // of the first segment, or the wait of batching; see WeirSchemeConfig
  guint64 threshold_ns; // of patching; 0: the best one for the arrival rate
  gchar groups[INET_ADDRSTRLEN]; // the first multicast address
  guint n_groups;                // number of consecutive addresses
  guint16 port;                  // even; track N of a title is on port + 2 N
  guint ttl;
  gchar *iface;        // interface to send on; NULL: the system's choice
  guint64 rate;        // bits a second of all channels together; 0: no limit
  guint64 cache_bytes; // memory for blocks of packets
} BroadcastConfig;

typedef enum {
  BROADCAST_READY,     // the client has its description
  BROADCAST_PREPARING, // the title is being packetized
  BROADCAST_FAILED,
} BroadcastAnswer;

// The numbers are since broadcast_new(), except where it says now.
typedef struct {
  guint64 titles, preparing, channels, rate; // now; titles are packetized, rate is in bits a second
  guint64 packets_sent, bytes_sent;          // on groups
  guint64 frames_sent, frames_late;          // late: more than 1 ms after their time
  guint64 frames_missed;                     // not sent: their block came too late from the disk
  guint64 cache_asked, cache_hits;           // blocks
  guint64 cache_bytes_read;                  // from packet files, for groups and by unicast
  guint64 admitted;                          // clients that got a description
  guint64 refused_groups;                    // the pool has too few groups
  guint64 refused_rate;                      // the rate limit is too low
  guint64 refused_preparing;                 // the title was not packetized yet
  guint64 refused_other;                     // no such title, or it cannot be packetized
  guint64 unicast_packets, unicast_bytes;    // given by broadcast_read()
} BroadcastStats;

// Copies `config`. `mount_path` is for the log. Opens no title and sends nothing yet.
Broadcast *broadcast_new (const gchar *mount_path, const BroadcastConfig *config, Store *store);
Broadcast *broadcast_ref (Broadcast *self);

// The last call ends all channels and deletes all packet files.
void broadcast_unref (Broadcast *self);

// Returns a text that no other broadcast has, also after a restart: with another one, what clients
// were promised on groups does not come.
const gchar *broadcast_get_run (Broadcast *self);

// Gets an error if clients cannot have the title, else NULL. Must not block.
typedef void (*BroadcastLookFunc) (const GError *error, gpointer data);

// Reports whether broadcast_look() is to be called before the title `name` is described: nobody has
// asked for it, or nobody has looked for a second. Each look is reported once.
gboolean broadcast_needs_look (Broadcast *self, const gchar *name);

// Looks on the disk, in a thread of the broadcast, whether the title is there, and is still the one
// that was packetized. If it has changed, it is packetized anew; what clients were promised of the
// title before is still sent. Calls `done` once, in that thread, unless it is NULL.
void broadcast_look (Broadcast *self, const gchar *name, BroadcastLookFunc done, gpointer data);

// Answers a client that asks for the title `name` now, and counts it as an arrival.
// `source_address` is the server's address towards groups, for a=source-filter; NULL: not told.
//
// READY: `*sdp` is its description, and `*etag` the id of the packetized title, without quotes,
// which is the same for the same packets (both transfer full). `*valid_s` is how long the
// description is valid.
// PREPARING: the client should ask again after `*retry_s` seconds.
// FAILED: `error` is of the domain G_IO_ERROR: NOT_FOUND (no such title), NO_SPACE (too few groups,
// rate limit; or the store can give no more streams), NOT_SUPPORTED (the title cannot be broadcast:
// wrong type, too short for the scheme), or another one. Its message is for the client too.
BroadcastAnswer broadcast_describe (Broadcast *self, const gchar *name, const gchar *source_address,
    gchar **sdp, gchar **etag, guint *valid_s, guint *retry_s, GError **error);

// The body of an answer to a request for packets has at most this many packets and bytes.
#define BROADCAST_PACKETS_MAX 256
#define BROADCAST_BODY_MAX (256u << 10)

// Gets either a body and the id of the packetized title, or NULL and an error. Must not block.
typedef void (*BroadcastPacketsFunc) (
    GBytes *body, const gchar *etag, const GError *error, gpointer data);

// Reads packets of the title `name`. `ranges` has `length` bytes of lines "TRACK FROM-TO" (TO is
// included). The body has for each packet number (uint32), track and length (uint16) in network
// order, then the RTP packet; packets are in the order of the ranges. It ends at a bound above.
//
// Calls `done` once: in a thread of the broadcast, or before broadcast_read() has returned. The
// error is of the domain G_IO_ERROR: INVALID_ARGUMENT (malformed), INVALID_DATA (ranges outside of
// the title), NOT_FOUND (the title is not packetized: ask for its description), BUSY (too many
// requests wait), or another one.
void broadcast_read (Broadcast *self, const gchar *name, const gchar *ranges, gsize length,
    BroadcastPacketsFunc done, gpointer data);

void broadcast_get_stats (Broadcast *self, BroadcastStats *stats);
