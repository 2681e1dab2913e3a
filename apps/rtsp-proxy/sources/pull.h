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
  PULL_URI_FROM_API = 1 << 0, // not from who runs the proxy: a launch line could do anything
} PullUriFlags;

typedef struct _PullConfig PullConfig;
typedef struct _PullContext PullContext;

// Makes a life. Returns a pipeline in NULL; or NULL and an error for what cannot work. To start it
// set it to PAUSED, and to PLAYING at once where that gives NO_PREROLL; a pipeline that prerolls
// goes on by itself when it has. It needs a signal watch on its bus. Callbacks may come once its
// state is changed, and none once it is back in NULL. `context` must live until then.
typedef GstElement *(*PullMakeFunc) (const PullContext *context, GError **error);

// Where datagrams come to: an address of this host, or a multicast group.
typedef struct {
  gchar *address;
  guint16 port;
  gchar *iface; // NULL: as the kernel routes
} PullEndpoint;

// Filled by kinds_check(), freed by pull_config_clear().
struct _PullConfig {
  gchar *uri; // without credentials
  PullMakeFunc make;
  gboolean is_folder; // of files: a title of it is opened by who reads it, and nothing is pulled
  gchar *user;
  gchar *password;
  PullTransport transport;
  PullEndpoint endpoint; // udp:, rtp:; of sdp: the interface alone
  GstCaps *rtp;          // rtp: application/x-rtp
  gchar *path;           // file:, sdp:
  gchar *launch;         // launch: the line
  guint connect_timeout_ms;
  guint read_timeout_ms;
};

void pull_config_clear (PullConfig *config);

typedef struct {
  // The tracks are known: relay_source_begin() has been called and gave `tracks`.
  void (*begun) (gpointer owner, RelayTracks tracks);
  // A packet went into the relay at `now` (ns, monotonic).
  void (*packet) (gpointer owner, gint64 now);
  // Nothing more will come.
  void (*ended) (gpointer owner, const gchar *reason);
} PullCallbacks;

struct _PullContext {
  RelaySource *source;
  const PullConfig *config;
  gpointer data; // of who makes it
  const PullCallbacks *callbacks;
  gpointer owner;
  gint cancelled; // atomic: nothing more is wanted of this life
};

// What is before the context's source is asked through `pipeline`, for as long as that is there:
// `ask` gets it, and the track. Any thread.
typedef void (*PullAskFunc) (GstElement *pipeline, guint track);
void pull_set_asker (const PullContext *context, GstElement *pipeline, PullAskFunc ask);

// ---- the kinds ----

// Each has a function that makes a life, and one that fills the URI's part of a configuration,
// which had none, and returns NULL, or what is wrong (to be freed).
#define PULL_CHECK(kind)                                                                           \
  gchar *kind##_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)

// rtsp://HOST[:PORT]/PATH, rtsps://. Credentials are taken out of the URI.
PULL_CHECK (rtsp);
GstElement *rtsp_pull_new (const PullContext *context, GError **error);

// udp://ADDR:PORT[?iface=NAME]: MPEG-TS; over RTP where `rtp` is there.
PULL_CHECK (ts);
GstElement *ts_pull_new (const PullContext *context, GError **error);

// rtp://ADDR:PORT?encoding-name=H264&payload=96[&clock-rate=90000][&iface=NAME][&fmtp ...]
PULL_CHECK (rtp);
// sdp:///DIR/FILE[?iface=NAME]: several tracks, as rtp://
PULL_CHECK (sdp);
GstElement *rtp_pull_new (const PullContext *context, GError **error);

// file:///DIR/FILE: looped; file:///DIR/: the files in it, each from its beginning.
PULL_CHECK (file);
GstElement *file_pull_new (const PullContext *context, GError **error);

// launch:LINE, with payloaders named pay0, pay1 ...
PULL_CHECK (launch);
GstElement *launch_pull_new (const PullContext *context, GError **error);
