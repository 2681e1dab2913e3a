// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One life of an upstream: a pipeline that pulls from where a URI points, or works on what another
// relay gives, and pushes RTP into a relay. The callbacks are called from streaming threads.

#include <gst/gst.h>

#include "relay/relay.h"

typedef enum {
  PULL_AUTO, // UDP, then TCP
  PULL_UDP,
  PULL_TCP,
} PullTransport;

typedef enum {
  PULL_RTSP,
  PULL_FILE,
  PULL_TS, // MPEG-TS over UDP, or over RTP where `rtp` is there
  PULL_RTP,
  PULL_SDP,
  PULL_LAUNCH,
  PULL_FOLDER, // of files: a title of it is opened by who reads it, and nothing is pulled
} PullKind;

// Where datagrams come to: an address of this host, or a multicast group.
typedef struct {
  gchar *address;
  guint16 port;
  gchar *iface; // NULL: as the kernel routes
} PullEndpoint;

// Filled by pull_uri_check(), freed by pull_config_clear().
typedef struct {
  gchar *uri; // without credentials
  PullKind kind;
  gchar *user;
  gchar *password;
  PullTransport transport;
  PullEndpoint endpoint; // of PULL_TS and PULL_RTP; of PULL_SDP the interface alone
  GstCaps *rtp;          // application/x-rtp
  gchar *path;           // of PULL_FILE, PULL_FOLDER and PULL_SDP
  gchar *launch;         // the line
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

// Returns a pipeline in NULL; or NULL and an error for what cannot work. To start it set it to
// PAUSED, and to PLAYING at once where that gives NO_PREROLL; a pipeline that prerolls goes on by
// itself when it has. It needs a signal watch on its bus. Callbacks may come once its state is
// changed, and none once it is back in NULL. `context` must live until then.
GstElement *pull_new (const PullContext *context, GError **error);

// The same, by kind.
GstElement *rtsp_pull_new (const PullContext *context, GError **error);
GstElement *file_pull_new (const PullContext *context, GError **error);
GstElement *ts_pull_new (const PullContext *context, GError **error);
GstElement *rtp_pull_new (const PullContext *context, GError **error); // and by SDP
GstElement *launch_pull_new (const PullContext *context, GError **error);
