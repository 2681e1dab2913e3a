// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// How the mounts of this proxy share upstreams with other members of a cluster: who needs a stream
// is told whether to run the upstream, or which member to read. Call from the main thread only.

#include "sources/pull.h"

#define SHARING_SLOTS 2 // members that are read for a stream: while one takes over from another

typedef enum {
  SHARING_WAITS,  // it is being asked who has the stream: nothing runs yet
  SHARING_OWN,    // the upstreams of the mount run
  SHARING_MEMBER, // a member is read
} SharingRoute;

typedef struct {
  // Says that a mount needs its stream until `leave`. `publishes`: its upstream is `publish`.
  // `routed` is called whenever the route has changed.
  gpointer (*use) (gpointer data, const gchar *path, gboolean publishes,
      void (*routed) (gpointer user), gpointer user);
  void (*leave) (gpointer use);
  // Returns the route; for SHARING_MEMBER sets the slot, which is another one for another member.
  SharingRoute (*get_route) (gpointer use, guint *slot);
  // Sets the URI of the member, which is valid for a short time, and the time-outs.
  void (*aim) (gpointer use, PullConfig *config);
  // A run of the slot has ended.
  void (*failed) (gpointer use, guint slot, const gchar *reason);
  // The stream comes from the member of this slot now, or from none (-1): the old route feeds
  // it until the new one has media.
  void (*fed) (gpointer use, gint slot);
} Sharing;

// Says that upstreams will be shared, before mounts are made.
void sharing_expect (void);
gboolean sharing_is_expected (void);

// Sets how upstreams are shared, or that they are not (NULL).
void sharing_set (const Sharing *sharing, gpointer data);

// Returns NULL if they are not.
const Sharing *sharing_get (gpointer *data);

// Reports whether several members would connect to this upstream, or a publisher to one of them.
gboolean sharing_is_for (const PullConfig *config);
