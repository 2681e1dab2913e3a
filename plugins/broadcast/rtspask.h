// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Asks an RTSP server for the schedule of a title, and for packets of it. For one thread at a time,
// but for rtsp_ask_stop().

#include <gst/rtsp/rtsp.h>

#include "core/schedule/follow.h"

G_BEGIN_DECLS

typedef struct _RtspAsk RtspAsk;

typedef enum {
  RTSP_ASK_OK,
  RTSP_ASK_WAIT,    // the server asks to try again later
  RTSP_ASK_GONE,    // the server does not answer, or has closed the connection
  RTSP_ASK_REFUSED, // the server refuses, or its answer makes no sense
  RTSP_ASK_ANEW,    // the packets have come; the server has begun anew since the description
  RTSP_ASK_STOPPED,
} RtspAskResult;

typedef struct {
  gchar *sdp, *id; // the description, and the id of the title as its ETag
  gsize length;
  guint retry_s;
} RtspAskAnswer;

// Takes a packet of an answer; its bytes are valid during the call.
typedef void (*RtspAskPacketFunc) (
    guint32 track, guint32 number, const guint8 *data, gsize len, gpointer data_of_caller);

// `location` is rtsp-schedule://[USER:PASSWORD@]HOST[:PORT]/PATH. User and password may be NULL;
// those of the URI come first. Returns NULL with an error if the URI is not valid.
RtspAsk *rtsp_ask_new (
    const gchar *location, const gchar *user, const gchar *password, GError **error);
void rtsp_ask_free (RtspAsk *self);

// From now on all calls return RTSP_ASK_STOPPED, also one that waits. Call from any thread.
void rtsp_ask_stop (RtspAsk *self);

// Closes the connection. The next request opens another one. So does a request that finds that the
// server has closed the connection, as servers do after some time.
void rtsp_ask_close (RtspAsk *self);

// Asks for the description. After a result other than RTSP_ASK_OK and RTSP_ASK_STOPPED, `*why` says
// what is wrong (transfer full). Free the answer with rtsp_ask_answer_clear().
RtspAskResult rtsp_ask_describe (RtspAsk *self, RtspAskAnswer *answer, gchar **why);
void rtsp_ask_answer_clear (RtspAskAnswer *answer);

// Asks for packets, and calls `func` for each one of the answer. Without ranges (`n` 0), asks for
// those of a live stream since its newest keyframe.
RtspAskResult rtsp_ask_packets (RtspAsk *self, const WeirFollowRange *ranges, gsize n,
    RtspAskPacketFunc func, gpointer data, gchar **why);

G_END_DECLS
