// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One client that follows the schedule of a broadcast title or of a live mount: it receives the
// groups and asks for the rest, and measures when packets come. It keeps no media. The event loop
// in scheme.c drives it; nothing here blocks.

#include "auth.h"
#include "receiver.h"
#include "schedule/live.h"
#include "target.h"

#define VIEWER_TRACKS WEIR_DESCRIPTION_TRACKS_MAX
#define VIEWER_CONTROL 0xffff // instead of a socket of a group

typedef enum {
  VIEWER_WAITING, // not started yet
  VIEWER_CONNECTING,
  VIEWER_DESCRIBING,
  VIEWER_RETRYING, // the server said when to ask again
  VIEWER_FOLLOWING,
  VIEWER_DONE,
  VIEWER_FAILED,
} ViewerState;

typedef struct {
  guint index;
  const Target *target;
  Receiver *receiver;
  int epoll;
  ViewerState state;
  gchar *why; // of VIEWER_FAILED

  int fd;
  guint cseq;
  GString *out;
  GByteArray *in;
  RtspAuth auth;
  gboolean challenged;
  gboolean asking;    // for packets
  guint n_unanswered; // requests for packets in a row whose connection ended
  gint64 ask_ns;      // when it may ask for packets again

  WeirDescription *description; // NULL: not known
  WeirFollow follow;            // valid while there is a description of a title
  WeirLive live;                // and of a live mount
  int (*fds)[VIEWER_TRACKS];    // for each receive; -1: closed
  gint64 due_ns;                // when viewer_on_time() is to be called
  gint64 began_ns;              // when it came
  gint64 wait_ns;               // from then to the schedule's start
} Viewer;

void viewer_init (Viewer *self, guint index, const Target *target, Receiver *receiver, int epoll);
void viewer_clear (Viewer *self);
// Returns the counts of a client that has a description.
const WeirFollowStats *viewer_get_counts (const Viewer *self);

void viewer_start (Viewer *self, gint64 now);

// `source` is VIEWER_CONTROL, or the number of a receive times VIEWER_TRACKS, plus the track.
void viewer_on_event (Viewer *self, guint source, guint32 events, gint64 now);
void viewer_on_time (Viewer *self, gint64 now);
