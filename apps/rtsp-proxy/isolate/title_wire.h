// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The messages between the proxy and the worker process of a stored title. Each title has a socket
// for control, and one for each track. Each message is one packet of a SOCK_SEQPACKET socket. What
// comes from a worker is read as if it came from the file: a worker may be in its hands.

#include "isolate/wire.h"

typedef enum {
  // From a worker, on the socket of a track, in order.
  TITLE_WIRE_STATE = 1, // before the first packets or gap, and again after each seek
  TITLE_WIRE_CAPS,
  TITLE_WIRE_SEGMENT,
  TITLE_WIRE_PACKETS,
  TITLE_WIRE_GAP,
  TITLE_WIRE_EOS,
  TITLE_WIRE_FLUSHED, // what follows is of the position after the seek
  // From a worker, on the socket for control.
  TITLE_WIRE_ALIVE,
  TITLE_WIRE_TRACK,    // a track was found
  TITLE_WIRE_COMPLETE, // no more tracks follow
  TITLE_WIRE_FLUSHING, // a seek has begun to flush the tracks
  TITLE_WIRE_SEEKED,
  TITLE_WIRE_ERROR,
  // To a worker, on the socket for control. The worker closes the title when the proxy shuts the
  // socket down.
  TITLE_WIRE_SEEK,
  TITLE_WIRE_MUTE,
  TITLE_WIRE_FILL, // title_file_fill_gaps()
  TITLE_WIRE_MTU,  // sets the MTU of the payloader
  // To a worker, on the socket of a track.
  TITLE_WIRE_TAKEN, // how many messages the proxy has taken
  // From a worker, on the socket for control. (It is the last, as the fuzzer's corpus has numbers.)
  TITLE_WIRE_LEFT_OUT, // which tracks are left out; before TITLE_WIRE_COMPLETE
} TitleWireType;

// ---- tracks ----

void title_wire_put_state (
    WireMessage *self, GstClockTime lead, gint64 duration, gboolean seekable);
void title_wire_put_segment (WireMessage *self, const GstSegment *segment);

// Puts a packet of `len` bytes, with the times and flags of `buffer`, into a message that
// wire_begin() has begun. Returns where the caller has to write it; or NULL, with the message
// unchanged, if it does not fit.
guint8 *title_wire_put_packet (WireMessage *self, GstBuffer *buffer, gsize len);

typedef struct {
  // `lead` as title_file_get_lead(); `duration` in ns, -1 if unknown.
  void (*state) (gpointer owner, GstClockTime lead, gint64 duration, gboolean seekable);
  void (*caps) (gpointer owner, GstCaps *caps);
  void (*segment) (gpointer owner, const GstSegment *segment);
  // Transfer full; valid RTP.
  void (*packets) (gpointer owner, GstBufferList *buffers);
  void (*gap) (gpointer owner, GstClockTime at, GstClockTime duration);
  void (*eos) (gpointer owner);
  void (*flushed) (gpointer owner, guint32 serial);
} TitleTrackHandler;

#define TITLE_WIRE_TOGETHER 32 // packets of one frame, at most, in a buffer

// Reads a message from the socket of a track, and passes what it says to `handler`, with up to
// `together` packets in a buffer (weir_buffer_set_packets()). Returns FALSE if the message is
// malformed.
gboolean title_wire_read_track (const guint8 *data, gsize len, const TitleTrackHandler *handler,
    guint together, gpointer owner);

// The number of messages of a track that the proxy has taken, modulo 2^32.
void title_wire_put_taken (WireMessage *self, guint32 n);
gboolean title_wire_read_taken (const guint8 *data, gsize len, guint32 *n);

// ---- control, from a worker ----

typedef struct {
  void (*track) (gpointer owner, guint track, guint payload_type, guint mtu);
  void (*left_out) (gpointer owner, const gchar *text);
  void (*complete) (gpointer owner, gboolean raw);
  void (*flushing) (gpointer owner, guint32 serial);
  void (*seeked) (gpointer owner, guint32 serial, gboolean ok);
  void (*failed) (gpointer owner, const GError *error, const gchar *debug);
} TitleControlHandler;

void title_wire_put_left_out (WireMessage *self, const gchar *text);
void title_wire_put_error (WireMessage *self, const GError *error, const gchar *debug);

gboolean title_wire_read_control (
    const guint8 *data, gsize len, const TitleControlHandler *handler, gpointer owner);

// ---- control, to a worker ----

typedef struct {
  TitleWireType type;
  guint8 track;  // not of TITLE_WIRE_FILL
  guint32 value; // muted, MTU, or the serial number of the seek
  // Of TITLE_WIRE_SEEK, as gst_event_new_seek(), in ns.
  gdouble rate;
  guint32 flags;
  guint8 start_type, stop_type;
  gint64 start, stop;
} TitleCommand;

void title_wire_put_command (WireMessage *self, const TitleCommand *command);
gboolean title_wire_read_command (const guint8 *data, gsize len, TitleCommand *command);
