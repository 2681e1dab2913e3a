// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Tracks that the receive engine (ingest/engine.h) gives to a relay. They need no pipeline and no
// thread of their own. The RTSP client, rtp:// and sdp:// have them.

#include "ingest/engine.h"
#include "rtp/split.h"
#include "sources/pull.h"
#include "sources/udp_input.h"

// First size of the receive buffer of a track, as the kernel accounts it, which is twice what is
// set. The engine enlarges it for fast streams.
#define ENGINE_TRACK_BUFFER (1024 * 1024)

// Packets that are longer, in bytes, need IP fragments on usual lines.
#define ENGINE_TRACK_LONG 1460
// Most bytes of the packets into which they are split.
#define ENGINE_TRACK_SPLIT 1400

typedef struct _EngineTrack EngineTrack;

// What the owner of a track knows about it.
typedef struct {
  // Reports whether the relay knows the track, and what concerns it is passed on. If so, leave() is
  // called afterwards, unless it is NULL. Called from any thread.
  gboolean (*enter) (EngineTrack *track);
  void (*leave) (EngineTrack *track);
} EngineTrackGate;

// The first member of its owner's structure.
struct _EngineTrack {
  const EngineTrackGate *gate;
  const PullContext *context;
  GstCaps *caps;
  guint index;           // in the relay, once engine_tracks_begin() was called
  WeirIngestTrack *in;   // NULL: not in the engine
  WeirSplitCodec splits; // WEIR_SPLIT_NONE: packets are not split
  guint16 n_split;       // packets more than came, as some were split
};

// Sets the tick of the engine, in µs; 0: each packet wakes a thread. Call before the first track is
// added.
void engine_tracks_set_tick (guint us);

// Returns the settings of a track with these caps: its clock rate, what its sender takes as a
// request for a keyframe, and receiver reports.
WeirTrackSettings engine_track_settings (const GstCaps *caps);

// Adds a track to the process's engine. Takes the sockets. The engine passes `self` to `ops`.
// Returns 0 or a negative errno. Call from any thread.
gint engine_track_add (EngineTrack *self, const WeirTrackSettings *settings,
    WeirIngestSockets sockets, const WeirIngestOps *ops);

// Has long packets of H.264 and H.265 split for readers over UDP. For a track whose packets come in
// order.
void engine_track_split_long (EngineTrack *self);

// Takes a track out of the engine, if it is in it, and adds what it dropped to `drops`.
void engine_track_remove (EngineTrack *self, UdpStats *drops);

// Passes a packet to the relay, with its base as in relay_push(). Call between enter() and leave()
// of the gate.
void engine_track_push (EngineTrack *self, const WeirIngestPacket *packet, guint64 base);

// Functions of WeirIngestOps, for `data` of EngineTrack: they pass to the relay the end of a batch
// of packets, a sender report, and what happened to packets before.
void engine_track_settled (gpointer data);
void engine_track_reported (gpointer data, const WeirNtpMap *map);
void engine_track_dropped (gpointer data, WeirIngestDrop reason);
void engine_track_repaired (gpointer data, WeirIngestRepair what);
void engine_track_overflowed (gpointer data, guint32 n);

// Numbers the tracks of `tracks` (of EngineTrack) that are in the engine, as the relay will.
// Returns their caps, for engine_tracks_tell(). (transfer full)
GPtrArray *engine_tracks_list (GPtrArray *tracks);

// Tells the relay that the tracks have these caps. Call without a lock: sinks are called.
void engine_tracks_tell (const PullContext *context, GPtrArray *caps);

// Tells the relay the tracks of `tracks` that are in the engine. Returns FALSE if there is none.
gboolean engine_tracks_begin (const PullContext *context, GPtrArray *tracks);

// Asks the sender of the relay's track `index` for a keyframe.
void engine_tracks_ask_key (GPtrArray *tracks, guint index);
