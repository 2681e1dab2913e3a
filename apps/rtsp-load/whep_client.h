// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One WebRTC reader by WHEP: it posts an offer, is the controlling side of ICE, makes keys by DTLS,
// and counts what comes. The event loop in whep.c drives it; nothing here blocks.

#include "http_call.h"
#include "receiver.h"
#include "run/histogram.h"
#include "webrtc/stun.h"
#include "whep_media.h"

// What a reader has a connection and a socket for; the lowest bit of an event's tag.
typedef enum { WHEP_HTTP, WHEP_UDP } WhepSocket;

// What all readers of a run share.
typedef struct {
  int epoll;
  DtlsContext *dtls;
  Receiver *receiver;
  gint64 timeout_ns;
  gboolean twcc;                                           // transport-wide feedback is offered
  WeirHistogram answer, dtls_done, first_packet, keyframe; // from the POST on
} WhepRun;

typedef enum {
  WHEP_IDLE,
  WHEP_ASKING,   // the POST has no answer
  WHEP_CHECKING, // no check of ICE has an answer
  WHEP_SHAKING,  // hands, in DTLS
  WHEP_RECEIVING,
  WHEP_FAILED,
  WHEP_LEAVING, // the DELETE has no answer
  WHEP_GONE,
  WHEP_STATES
} WhepState;

typedef struct {
  guint index;
  WhepRun *run;
  const Target *target;
  WhepState state;
  gchar *why;          // it failed, or NULL
  WhepState failed_in; // in this state

  gint64 began_ns, state_ns; // the POST; the state
  gint64 due_ns;             // of whep_client_tick()
  gint64 report_ns;          // when the next report is due
  HttpCall call;
  gchar *session; // path of its URL; NULL: none
  WhepAnswer answer;

  gchar ufrag[9], password[33];
  guint8 check_id[WEIR_STUN_ID]; // of requests; the last two bytes change
  gint selected;                 // candidate; -1: none yet
  gint64 check_gap_ns, checked_ns, consented_ns;
  int fd; // UDP; -1: none
  guint32 socket_drops;

  Dtls *dtls;
  WhepMedia media;
} WhepClient;

void whep_client_init (WhepClient *self, guint index, const Target *target, WhepRun *run);
void whep_client_clear (WhepClient *self);

void whep_client_start (WhepClient *self, gint64 now);
void whep_client_on_event (WhepClient *self, WhepSocket socket, gint64 now);

// Does what is due at `due_ns`, and fails if an answer does not come.
void whep_client_tick (WhepClient *self, gint64 now);

// Ends the measurement, and asks the server to end the session. The state is WHEP_GONE once it has
// answered, or does not.
void whep_client_leave (WhepClient *self, gint64 now);
