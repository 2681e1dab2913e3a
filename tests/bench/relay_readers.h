// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The two halves of relay_readers.c: RTSP sessions, and the packets that they get.

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define READER_TRACKS 2

typedef enum {
  READER_WAITS, // until `due_ns`
  READER_CONNECTS,
  READER_DESCRIBES,
  READER_SETS_UP,
  READER_STARTS,
  READER_PLAYS,
} ReaderState;

typedef struct {
  char control[512];
  int rtp, rtcp; // sockets on `port` and the next one
  unsigned port;
  struct sockaddr_in rtcp_to;
  uint32_t ssrc, highest_seq;  // of the server, for reports
  uint32_t session;            // of the origin
  uint64_t next, seen;         // the next number, and which of the 64 before it have come
  int64_t packet_ns, frame_ns; // when the last packet came, and the last one of a frame
  int64_t base_ns, late_ns;    // when a frame with timestamp 0 would have come; the most after it
  uint32_t first_ts;
} ReaderTrack;

typedef struct {
  unsigned number;
  ReaderState state;
  int fd;
  int64_t due_ns;
  char url[512], base[512], session[128];
  char *in;
  size_t in_len;
  unsigned n_tracks, at; // `at`: the track that is set up
  ReaderTrack tracks[READER_TRACKS];
  int64_t heard_ns, since_ns; // the last packet, and the first one after the last silence
  uint64_t in_window;         // packets
} Reader;

typedef enum { WATCH_CONTROL, WATCH_RTP, WATCH_RTCP } Watch;

// ---- relay_readers.c ----

// Has relay_readers.c read a socket of a reader when it has data.
void readers_watch (int fd, Watch what, const Reader *reader, unsigned track);

// ---- relay_readers_rtsp.c ----

// Opens a reader's UDP sockets, the first on `port`.
void reader_open (Reader *self, unsigned n_tracks, unsigned port);
void reader_connect (Reader *self, const struct sockaddr_in *server, int64_t now_ns);
void reader_on_control (Reader *self, int64_t now_ns);
// Ends a session that fails; it begins anew after a second.
void reader_retry (Reader *self, int64_t now_ns);
void reader_tear_down (Reader *self);
unsigned readers_failures (void);
