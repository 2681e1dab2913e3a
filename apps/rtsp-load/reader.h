// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One client of an RTSP server: connects, asks for the media, takes it in, and leaves. Driven by
// the loop in load.c; nothing here blocks.

#include "auth.h"
#include "target.h"
#include "track.h"

typedef struct Load Load;

#define NEVER G_MAXINT64

typedef enum {
  READER_WAITING, // not its turn yet
  READER_CONNECTING,
  READER_DESCRIBING,
  READER_SETTING_UP,
  READER_STARTING,
  READER_PLAYING,
  READER_LEAVING,
  READER_DONE,
} ReaderState;

struct Reader {
  Load *load;
  guint index;
  const Target *target;
  gboolean udp;
  gboolean measured;
  gboolean ignores_media;
  gboolean slow;     // reads nothing any more once it plays
  gboolean origin;   // the one that --against compares with
  gint64 gap_ns;     // from its arrival to the next
  gint64 session_ns; // how long it stays, NEVER: to the end

  ReaderState state;
  gboolean connected; // got as far as playing
  Source control;
  gboolean wants_write;
  GString *out;
  guint8 *in; // the beginning of a message of which the rest is to come
  gsize in_len, in_room;

  guint cseq;          // of the last request
  gboolean challenged; // it was sent with the answer to a challenge
  Auth auth;
  gchar *session, *base, *aggregate;
  gint64 keepalive_every_ns;
  GArray *sdp; // what the tracks lie in
  Track *tracks;
  guint n_tracks, setting_up;
  guint32 ssrc;

  // Monotonic time. Due: NEVER if not.
  gint64 deadline_ns, keepalive_ns, report_ns, end_ns;
  gint64 asked_ns;
  gint64 play_ns;         // PLAY was sent
  gint64 playing_ns;      // it was answered
  gint64 heard_ns;        // when the kernel had what was read last from the connection
  gint64 answered_ns;     // when it had the answer to PLAY; 0: not yet
  gint64 first_packet_ns; // 0: not yet
  gint64 first_frame_ns;
};

void reader_init (Reader *self, Load *load, guint index);
void reader_clear (Reader *self);

void reader_start (Reader *self, gint64 now);
// Asks it to leave, now or as soon as it plays.
void reader_stop (Reader *self, gint64 now);
// Closes its sockets, whatever it does.
void reader_close (Reader *self);

void reader_on_control (Reader *self, guint32 events, gint64 now);
void reader_on_time (Reader *self, gint64 now);
gint64 reader_due (const Reader *self);

// For reader_io.c.
void reader_on_connect (Reader *self, int error, gint64 now);
void reader_on_answer (Reader *self, GstRTSPMessage *answer, gint64 now);
void reader_fail (Reader *self, const gchar *kind, const gchar *format, ...) G_GNUC_PRINTF (3, 4);
