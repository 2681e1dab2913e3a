// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The instance of a relaysrc, for its files.

#include "core/ingest/engine.h"
#include "ingest/packetqueue.h"
#include "ingest/relaysrc.h"

typedef struct {
  gchar *uri, *sdp;
  guint track;
  guint64 tick;
  guint reorder_packets;
  guint64 reorder_time;
  guint max_packets, max_bytes;
} RelaySrcSettings;

struct _WeirRelaySrc {
  GstPushSrc parent;

  RelaySrcSettings settings; // under the object lock
  GstCaps *caps;             // under the object lock; NULL while stopped
  PacketQueue queue;         // has its own lock
  GstClockTime last;         // timestamp of the last buffer; of the streaming thread

  // Under `lock`, which is taken before the locks of the engine and of the queue. The callbacks
  // don't take it.
  GMutex lock;
  WeirIngest *engine;
  WeirIngestTrack *input; // NULL while stopped
  WeirIngestStats stats;  // the last counts of an input that was removed
};

// Sets the defaults.
void relay_src_init_settings (RelaySrcSettings *settings);

void relay_src_install_properties (GObjectClass *klass);
void relay_src_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec);
void relay_src_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec);
