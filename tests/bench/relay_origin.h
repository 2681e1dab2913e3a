// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The two halves of relay_origin.c: RTSP sessions, and the media that they get.

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "relay_shape.h"

#define ORIGIN_TRACKS 2

typedef struct {
  bool set_up, tcp;
  uint8_t channel; // of RTP over TCP; RTCP has the next one
  struct sockaddr_in to, to_rtcp;
  uint32_t ssrc, first_ts, ts; // `ts`: of the next frame
  uint16_t seq;                // of the next packet
  uint64_t n;                  // packets so far
  uint32_t octets;
  size_t place; // in its slot
} OriginTrack;

typedef struct _OriginSession OriginSession;

struct _OriginSession {
  int fd;
  uint32_t stream, id;
  bool playing;
  int64_t due_ns; // when its request is answered; 0: none waits
  TAILQ_ENTRY (_OriginSession) waiting;
  OriginTrack tracks[ORIGIN_TRACKS];
  char *in; // an incomplete request
  size_t in_len;
  uint8_t *out; // not sent yet, over TCP
  size_t out_len;
};

typedef struct {
  const RelayShape *shape;
  bool sound, spread, single;
  int rtp, rtcp; // sockets
  int64_t start_ns;
  int64_t late_ns; // from a request to its answer
} OriginSettings;

void origin_media_init (const OriginSettings *settings);

// A session that plays gets media from its next frames on.
void origin_media_add (OriginSession *session);
void origin_media_remove (OriginSession *session);

// Sends all that is due. Returns when the next frame is. `waiting`: how many sessions wait for an
// answer.
int64_t origin_media_run (int64_t now_ns, unsigned waiting);

// Sends bytes over the session's connection, in order, after those that wait. Returns false if too
// many wait; then nothing is sent.
bool origin_write (OriginSession *session, const void *data, size_t len);

// Tries again to send what waits.
void origin_flush (OriginSession *session);
