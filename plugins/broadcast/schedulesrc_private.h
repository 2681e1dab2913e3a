// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The instance of a schedulesrc, for its files.

#include <gst/base/gstflowcombiner.h>

#include "broadcast/packetkeep.h"
#include "broadcast/rtspask.h"
#include "broadcast/schedulesrc.h"
#include "core/schedule/follow.h"

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
  gint64 playing_ns; // since when
  gint64 output_ns;  // when the last packet was pushed
  WeirFollow follow;
  WeirDescription *description;
  WeirFollowStats last; // counts of the run before
  gint64 asked_ns;      // when the server was asked first
  gint64 start_up_ns;   // until the first packet was pushed
  gint64 wait_ns;       // of it, until the schedule's start
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

// The session: asks for the description, then for packets. A thread function.
gpointer schedule_src_session (gpointer self);

// The receiver: joins groups and receives from them. A thread function.
gpointer schedule_src_receive (gpointer self);

// Keeps a packet whose number is known, and wakes its pad. `packet` NULL: there was no room.
void schedule_src_put (WeirScheduleSrc *self, guint32 track, guint32 number, const WeirRtp *rtp,
    gboolean by_group, KeptPacket *packet);

// Makes the pads for a description. Returns FALSE with an error.
gboolean schedule_src_add_pads (WeirScheduleSrc *self, const gchar *sdp, GError **error);
void schedule_src_start_pads (WeirScheduleSrc *self);
// After all threads but those of the pads have ended.
void schedule_src_remove_pads (WeirScheduleSrc *self);
void schedule_src_wake_pads (WeirScheduleSrc *self);

// Posts an error, unless the element stops.
void schedule_src_fail (WeirScheduleSrc *self, GstResourceError code, const gchar *why);

void schedule_src_init_settings (ScheduleSrcSettings *settings);
void schedule_src_install_properties (GObjectClass *klass);
void schedule_src_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec);
void schedule_src_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec);
