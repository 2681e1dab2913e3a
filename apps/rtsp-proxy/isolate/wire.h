// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The messages between the proxy and a worker process, each one packet of a SOCK_SEQPACKET socket.
// Numbers are big-endian. The reader treats every message as hostile: a worker may be in the hands
// of the stream that it parses.

#include <gst/gst.h>

#include "bits/bytes.h"
#include "codec/tscues.h"
#include "rtp/rtcp.h"

#define WIRE_MAX 65536 // bytes of a message
#define WIRE_TEXT_MAX 1024
#define WIRE_LAUNCH_MAX 60000 // bytes of the launch text of a stage
#define WIRE_FIELDS_MAX 64    // of the caps of a track

typedef enum {
  // From a worker.
  WIRE_ALIVE = 1,
  WIRE_TRACKS,   // the tracks became known, or changed
  WIRE_PACKETS,  // of one track
  WIRE_NTP,      // the mapping of the track's sender report
  WIRE_OVERFLOW, // packets that the system dropped
  WIRE_ENDED,    // the run has ended, with a reason
  WIRE_TRACK,    // a track of a stage became known, before its first packet
  WIRE_FLOWS,    // raw frames of a track flow out of a stage
  WIRE_ASKED,    // a stage asks for a keyframe of a track that it takes
  // To a worker.
  WIRE_JOB,   // an upstream
  WIRE_STAGE, // a stage; its packets follow as WIRE_PACKETS over sockets of their own
  WIRE_ASK,   // asks for a keyframe
  WIRE_CLOSE,
  WIRE_TITLE, // a stored title (isolate/title_wire.h)
  WIRE_SRT,   // the SRT listener (isolate/srt_wire.h)
  WIRE_SWARM, // a reader of a title of a swarm (stores/swarm_wire.h)
  // From a worker.
  WIRE_UNFIT, // as WIRE_ENDED; each further run of the upstream would end so
  WIRE_LASTS, // how long a clip is that plays once, before WIRE_TRACKS
  WIRE_CUE,   // a cue of the upstream
  // To a worker.
  WIRE_PICTURE, // a still picture to be made (isolate/picture_wire.h)
} WireType;

// ---- writing ----

typedef struct {
  gsize len;
  gboolean failed; // something did not fit
  guint8 data[WIRE_MAX];
} WireMessage;

void wire_begin (WireMessage *self, WireType type);
void wire_put (WireMessage *self, guint64 number, guint n_bytes);
// Puts a text of at most G_MAXUINT16 bytes; NULL is put like an empty one.
void wire_put_text (WireMessage *self, const gchar *text);
void wire_put_tracks (WireMessage *self, GPtrArray *caps);

// Puts what outlets may know of a track (relay_caps_publish()).
void wire_put_track (WireMessage *self, const GstCaps *caps);

// Puts the fields that wire_read_caps() takes, and no others.
void wire_put_caps (WireMessage *self, const GstCaps *caps);

void wire_put_cue (WireMessage *self, const WeirCue *cue);

// Puts a packet after others of its track. `base` is as in relay_push(). Returns FALSE, with the
// message unchanged, if the packet does not fit.
gboolean wire_put_packet (WireMessage *self, const GstBuffer *packet, gint64 now, guint64 base);

// ---- reading ----

typedef struct {
  const guint8 *data;
  gsize len;
  gint64 now; // ns, monotonic
  guint64 base;
  gboolean more; // further packets follow in the message
} WirePacket;

// A message without a function is malformed.
typedef struct {
  // `caps` holds a GstCaps of application/x-rtp for each of 1 to RELAY_MAX_TRACKS tracks.
  void (*tracks) (gpointer owner, GPtrArray *caps);
  void (*packet) (gpointer owner, guint track, const WirePacket *packet);
  void (*mapped) (gpointer owner, guint track, const WeirNtpMap *map);
  void (*overflowed) (gpointer owner, guint32 n);
  // `reason` is UTF-8 without control characters.
  void (*ended) (gpointer owner, const gchar *reason);
  // `caps` is a GstCaps of application/x-rtp (transfer none).
  void (*track) (gpointer owner, guint track, GstCaps *caps);
  void (*flows) (gpointer owner, guint track);
  void (*asked) (gpointer owner, guint track);
  // As `ended`.
  void (*unfit) (gpointer owner, const gchar *reason);
  // `length` is in ns, and not negative.
  void (*lasts) (gpointer owner, gint64 length);
  // Its times are not negative, and less than two days.
  void (*cue) (gpointer owner, const WeirCue *cue);
} WireHandler;

// Reads a message from a worker that may name `n_tracks` tracks, and passes what it says to
// `handler`. Returns FALSE if the message is malformed; packets before the mistake are passed.
gboolean wire_read (
    const guint8 *data, gsize len, guint n_tracks, const WireHandler *handler, gpointer owner);

// Returns the caps of a track (transfer full), or NULL if they are malformed or have no clock rate
// or medium.
GstCaps *wire_read_caps (WeirBytes *bytes);

// Returns a copy of the next text, or NULL if it is longer than `max` bytes, or cut. The caller
// owns it.
gchar *wire_dup_text (WeirBytes *bytes, gsize max);

// As wire_dup_text(), for people: UTF-8 without control characters.
gchar *wire_dup_message (WeirBytes *bytes, gsize max);
