// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One client of an RTSP server: connects, sets up and plays the media, measures it, and leaves. The
// event loop in load.c drives it; nothing here blocks.

#include "auth.h"
#include "target.h"
#include "track.h"

typedef struct Load Load;

#define NEVER G_MAXINT64

typedef enum {
  READER_WAITING, // not started yet
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
  gboolean slow;     // stops reading once it plays
  gboolean origin;   // reads the URL of --against
  gint64 gap_ns;     // from the start of this reader to that of the next
  gint64 session_ns; // length of its session; NEVER: to the end of the run

  ReaderState state;
  gboolean connected; // PLAY was answered with 200
  Source control;
  gboolean wants_write;
  GString *out;
  guint8 *in; // the part of an incomplete message that has arrived
  gsize in_len, in_room;

  guint cseq;          // of the last request
  gboolean challenged; // the last request had an Authorization header because of a 401
  RtspAuth auth;
  gchar *session, *base, *aggregate;
  gint64 keepalive_every_ns;
  GArray *sdp; // owns `tracks`
  Track *tracks;
  guint n_tracks, setting_up;
  guint32 ssrc;

  // Monotonic times, in ns. The first four are deadlines; NEVER: none.
  gint64 deadline_ns, keepalive_ns, report_ns, end_ns;
  gint64 asked_ns;        // the last request was sent
  gint64 play_ns;         // PLAY was sent
  gint64 playing_ns;      // the answer to PLAY was read
  gint64 heard_ns;        // kernel's arrival time of the bytes last read from the connection
  gint64 answered_ns;     // kernel's arrival time of the answer to PLAY; 0: not yet
  gint64 first_packet_ns; // 0: not yet
  gint64 first_frame_ns;
};

void reader_init (Reader *self, Load *load, guint index);
void reader_clear (Reader *self);

void reader_start (Reader *self, gint64 now);
// Makes the reader leave: now if it plays, otherwise as soon as it plays.
void reader_stop (Reader *self, gint64 now);
// Closes the sockets without TEARDOWN.
void reader_close (Reader *self);

void reader_on_control (Reader *self, guint32 events, gint64 now);
void reader_on_time (Reader *self, gint64 now);
gint64 reader_due (const Reader *self);

// Called by reader_io.c. `kind` is the name under which the error is counted.
void reader_on_connect (Reader *self, int error, gint64 now);
void reader_on_answer (Reader *self, GstRTSPMessage *answer, gint64 now);
void reader_fail (Reader *self, const gchar *kind, const gchar *format, ...) G_GNUC_PRINTF (3, 4);
