// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One life of an upstream: a pipeline that pulls from where a URI points, or works on what another
// relay gives, and pushes RTP into a relay. The callbacks are called from streaming threads.

#include <gst/gst.h>

#include "relay.h"

typedef enum {
  PULL_AUTO, // UDP, then TCP
  PULL_UDP,
  PULL_TCP,
} PullTransport;

typedef struct {
  gchar *uri; // without credentials
  gchar *user;
  gchar *password;
  PullTransport transport;
  guint connect_timeout_ms;
  guint read_timeout_ms;
} PullConfig;

typedef struct {
  // The tracks are known: relay_source_begin() has been called and gave `tracks`.
  void (*begun) (gpointer owner, RelayTracks tracks);
  // A packet went into the relay at `now` (ns, monotonic).
  void (*packet) (gpointer owner, gint64 now);
  // Nothing more will come.
  void (*ended) (gpointer owner, const gchar *reason);
} PullCallbacks;

typedef struct {
  RelaySource *source;
  const PullConfig *config;
  gpointer data; // of who makes it
  const PullCallbacks *callbacks;
  gpointer owner;
  gint cancelled; // atomic: nothing more is wanted of this life
} PullContext;

// Of the kind that the URI names. Each returns a pipeline in NULL; or NULL and an error for what
// cannot work. To start it set it to PAUSED, and to PLAYING at once where that gives NO_PREROLL;
// the pipeline of a file goes on by itself when it has prerolled. It needs a signal watch on its
// bus. Callbacks may come once its state is changed, and none once it is back in NULL. `context`
// must live until then.
GstElement *pull_new (const PullContext *context, GError **error);
GstElement *rtsp_pull_new (const PullContext *context, GError **error);
GstElement *file_pull_new (const PullContext *context, GError **error);

// Monotonic, ns: the `now` of the callbacks.
gint64 pull_now (void);
