// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A way that the datagrams of a transport stream take: elements of which the last is a fanoutsink.

#include "relay/relay.h"

// Reference counted (g_atomic_rc_box).
typedef struct {
  GstElement *bin, *sink;
  GstPad *src;   // pushes into it
  gboolean told; // the first events were pushed
} TsWay;

TsWay *ts_way_new (void);
void ts_way_unref (gpointer way);

// Makes the elements of `launch`, of which the last is a fanoutsink "sink". It asks the relay for
// keyframes. Returns FALSE and sets `error` on failure.
gboolean ts_way_init (
    TsWay *self, Relay *relay, const gchar *label, const gchar *launch, GError **error);

// Opens the sockets. Returns FALSE and sets `error` on failure.
gboolean ts_way_start (TsWay *self, GError **error);

// Pushes datagrams. Takes ownership of `list`. Call from the multiplexer's thread only.
void ts_way_push (TsWay *self, GstBufferList *list, const gchar *label);
