// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The instance of a schedulesrc, for its files.

#include <gst/base/gstflowcombiner.h>

#include "broadcast/packetkeep.h"
#include "broadcast/rtspask.h"
#include "broadcast/schedulesrc.h"
#include "core/schedule/live.h"

typedef struct {
  gchar *location, *user, *password, *iface;
  GstClockTime latency, timeout;
  guint64 buffer_size;
  guint max_groups;
} ScheduleSrcSettings;

typedef struct {
  WeirScheduleSrc *owner;
  guint32 track;
  GstPad *pad;
  GstCaps *caps;
  GCond cond; // a packet may be due earlier than before
  // Of the pad's thread.
  gboolean begun, segment_due;
} SchedulePad;

struct _WeirScheduleSrc {
  GstElement parent;

  ScheduleSrcSettings settings; // under the object lock

  GMutex lock; // guards the fields below; never held while calling out
  GCond cond;  // for the session's thread
  gboolean stopping, playing, following, ending;
  gboolean is_live;  // `live` is followed, and not `follow`
  gint64 playing_ns; // since when
  gint64 output_ns;  // when the last packet was pushed
  WeirFollow follow;
  WeirLive live;
  // Its channels and receptions are read by the receiver's thread, and changed by it with the lock;
  // the rest stays as it is while following.
  WeirDescription *description;
  WeirDescription *next_description; // for the receiver's thread, or NULL
  gint64 next_ns;                    // when it came
  WeirFollowStats last;              // counts of the run before
  gint64 asked_ns;                   // when the server was asked first
  gint64 start_up_ns;                // until the first packet was pushed
  gint64 wait_ns;                    // of it, until the schedule's start
  guint reconnects;
  gint64 title_start; // running time of the title's start; of all pads
  gboolean start_known;

  SchedulePad *pads[WEIR_DESCRIPTION_TRACKS_MAX]; // while following
  guint n_pads;
  GstFlowCombiner *combiner;
  PacketKeep keep;
  RtspAsk *ask;                 // of the session's thread, but for rtsp_ask_stop()
  GThread *session, *receiver;  // NULL while stopped
  gint wake_fd;                 // wakes the receiver's thread
  gsize high_memory, high_file; // of the run before
};

// ---- the session's thread ----

typedef struct {
  WeirScheduleSrc *owner;
  gchar *id; // of the title
  gint64 timeout_ns;
  guint n_valid;   // packets in an answer that belong to the title
  guint n_refused; // requests for packets in a row
} ScheduleSession;

// The session: asks for the description, then for packets. A thread function.
gpointer schedule_src_session (gpointer self);

// Follows a live stream after its first description, until the element stops or cannot go on.
void schedule_src_follow_live (ScheduleSession *session);

// Begins to follow a live stream that was described. With the lock. Returns 0 or a negative errno.
gint schedule_src_begin_live (
    WeirScheduleSrc *self, const WeirFollowSettings *settings, gint64 now);

// Waits until a time of weir_now_ns(). Returns FALSE if the element stops.
gboolean schedule_src_wait (WeirScheduleSrc *self, gint64 until);

// Asks for the description until the server gives it. Returns FALSE, after an error was posted, if
// it does not in time or refuses.
gboolean schedule_src_describe (ScheduleSession *session, RtspAskAnswer *answer);

// Reads a description. Returns FALSE with an error.
gboolean schedule_src_read_description (
    WeirDescription *description, const RtspAskAnswer *answer, GError **error);

// Reports whether packets were due some time ago, and did not come. With the lock.
gboolean schedule_src_is_stuck (const ScheduleSession *session);

// Hands a new description to the receiver's thread, which frees it.
void schedule_src_pass_description (WeirScheduleSrc *self, WeirDescription *description);

// The receiver: joins groups and receives from them. A thread function.
gpointer schedule_src_receive (gpointer self);

// Keeps a packet whose number is known, and wakes its pad. `packet` NULL: there was no room.
void schedule_src_put (WeirScheduleSrc *self, guint32 track, guint32 number, const WeirRtp *rtp,
    gboolean by_group, KeptPacket *packet);

// The same for a packet of a live stream, if it is new.
void schedule_src_put_live (WeirScheduleSrc *self, guint32 track, const WeirRtp *rtp,
    gboolean by_group, const guint8 *data, gsize len);

// Wakes the receiver's thread.
void schedule_src_wake_receiver (WeirScheduleSrc *self);

// Reports whether a description has the tracks and formats of the pads.
gboolean schedule_src_has_pads (WeirScheduleSrc *self, const gchar *sdp);

// Makes the pads for a description. Returns FALSE with an error.
gboolean schedule_src_add_pads (WeirScheduleSrc *self, const gchar *sdp, GError **error);
void schedule_src_start_pads (WeirScheduleSrc *self);
// After all threads but those of the pads have ended.
void schedule_src_remove_pads (WeirScheduleSrc *self);
void schedule_src_wake_pads (WeirScheduleSrc *self);

// Posts an error, unless the element stops.
void schedule_src_fail (WeirScheduleSrc *self, GstResourceError code, const gchar *why);

// Returns the counts of what is followed. With the lock.
const WeirFollowStats *schedule_src_get_counts (const WeirScheduleSrc *self);

void schedule_src_init_settings (ScheduleSrcSettings *settings);
void schedule_src_install_properties (GObjectClass *klass);
void schedule_src_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec);
void schedule_src_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec);
