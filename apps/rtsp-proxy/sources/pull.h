// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One run of an upstream: a pipeline, or a client without one, that reads from a URI, or processes
// the tracks of another relay, and pushes RTP into a relay. Streaming threads call the callbacks.

#include <gst/gst.h>

#include "codec/tscues.h"
#include "isolate/pool.h"
#include "relay/relay.h"
#include "sources/pull_titles.h"
#include "sources/tls_trust.h"

typedef enum {
  PULL_AUTO, // UDP, then TCP
  PULL_UDP,
  PULL_TCP,
} PullTransport;

typedef enum {
  PULL_RTSPSRC, // a pipeline with rtspsrc
  PULL_LIGHT,   // no pipeline
} PullClient;

// What GStreamer parses of the media of an upstream.
typedef enum {
  PULL_PASSES,        // nothing: RTP passes through
  PULL_PARSES,        // containers and frames, from a file or from a socket that is open
  PULL_PARSES_ONLINE, // the same, and its elements may open sockets
} PullParser;

typedef enum {
  PULL_URI_FROM_API = 1 << 0, // the URI is from an API client, which must not run launch lines, and
                              // may name some files only (base/file_roots.h)
} PullUriFlags;

typedef struct _PullConfig PullConfig;
typedef struct _PullContext PullContext;

// Makes the pipeline of a run, in state NULL. Returns NULL and sets `error` if the configuration
// cannot work. To start it, set it to PAUSED, and to PLAYING at once if that returns NO_PREROLL; a
// pipeline that prerolls sets itself to PLAYING afterwards. Its bus needs a signal watch. Callbacks
// come between the first change of state and the return to NULL; `context` must live until then.
typedef GstElement *(*PullMakeFunc) (const PullContext *context, GError **error);

// A kind of upstream that needs no pipeline. Its runs share threads. Call from the main thread
// only.
typedef struct {
  // Starts a run. Returns NULL and sets `error` if the configuration cannot work. `context` must
  // live until `closed` is called; its `config` is not used after the return.
  gpointer (*start) (const PullContext *context, GError **error);
  // Ends a run and returns at once; frees `run`. Calls `closed` from any thread when nothing uses
  // the context any more.
  void (*close) (gpointer run, GDestroyNotify closed, gpointer data);
  // Returns the worker process of a run, which stays the run's. NULL: it runs in this process.
  Worker *(*get_worker) (gpointer run);
  // The peer connects, whenever it likes: a run waits for it without limit, and the next run begins
  // at once.
  gboolean awaits;
} PullLight;

// The address at which datagrams arrive: an address of this host, or a multicast group.
typedef struct {
  gchar *address;
  guint16 port;
  gchar *iface; // NULL: the kernel's route decides
  gboolean is_open;
  gint fd; // if `is_open`: the socket; the run takes it
} PullEndpoint;

// Filled by kinds_check(), freed by pull_config_clear().
struct _PullConfig {
  gchar *uri;             // without credentials
  gboolean absent;        // after a failed check: what the URI names is not there at the moment
  PullMakeFunc make;      // NULL: the kind never needs a pipeline
  const PullLight *light; // NULL: the kind always needs a pipeline
  PullParser parser;
  PullClient client;
  PullTitles titles; // NONE for a stream; otherwise `path` is where they are, and nothing runs
  gchar *user;
  gchar *password;
  PullTransport transport;
  PullEndpoint endpoint;  // udp:, rtp:, pipe:; sdp: only the interface; file: only the descriptor
  GstCaps *rtp;           // rtp: application/x-rtp
  gchar *path;            // file:, sdp:, store:, swarm:, https:; publish: of the mount
  gboolean is_limited;    // an API client has named the path; open it by file_roots_open()
  gchar *launch;          // launch: the line
  gchar *lack;            // held: what the mount lacks
  gboolean is_member;     // of the cluster: once it is silent, it is asked at once whether it lives
  TlsTrust trust;         // rtsps:
  gboolean once;          // file: the clip plays once, when it is first asked for a keyframe
  gboolean wants_cues;    // of SCTE 35
  gboolean encodes_sound; // a stage does so with sound of any codec
  guint connect_timeout_ms;
  guint read_timeout_ms;
};

// Reports whether the upstream waits for a peer that connects to this host.
static inline gboolean
pull_config_awaits (const PullConfig *config)
{
  return config->light && config->light->awaits;
}

// Reports whether the next try is made at once, after this number of failures in a row (1 or more).
static inline gboolean
pull_is_eager (const PullConfig *config, guint n_failures)
{
  return pull_config_awaits (config) || (config->is_member && n_failures == 1);
}

// Reports whether `light` runs the upstream, and not a pipeline.
static inline gboolean
pull_config_is_light (const PullConfig *config)
{
  return config->light && (config->client == PULL_LIGHT || !config->make);
}

// Reports whether the upstream is a clip: all of its runs read the same file.
static inline gboolean
pull_config_is_clip (const PullConfig *config)
{
  return config->uri && g_str_has_prefix (config->uri, "file:");
}

// Frees the values of `config`.
void pull_config_clear (PullConfig *config);

typedef struct {
  // The tracks are known: relay_source_begin() was called and returned `tracks`.
  void (*begun) (gpointer owner, RelayTracks tracks);
  // A packet went into the relay at `now` (ns, monotonic).
  void (*packet) (gpointer owner, gint64 now);
  // The run has ended; `reason` says why.
  void (*ended) (gpointer owner, const gchar *reason);
  // Likewise, and each further run would end so until the clip is another.
  void (*unfit) (gpointer owner, const gchar *reason);
  // Of a clip that plays once, before begun(): how long it is, in ns.
  void (*lasts) (gpointer owner, gint64 length);
  // A cue came, which the configuration wants.
  void (*cue) (gpointer owner, const WeirCue *cue);
} PullCallbacks;

struct _PullContext {
  RelaySource *source;
  const PullConfig *config;
  gpointer data; // for the PullMakeFunc
  const PullCallbacks *callbacks;
  gpointer owner;
  gint64 from;    // where an RTSP client asks the server to play from, ns
  guint rank;     // of the publisher's layers that the run takes; see publication.h
  gint cancelled; // atomic: the owner ignores this run from now on
};

// Sets the function that asks the upstream for a keyframe of a track. It gets `pipeline`, and is
// called from any thread, only while `pipeline` exists.
typedef void (*PullAskFunc) (GstElement *pipeline, guint track);
void pull_set_key_handler (const PullContext *context, GstElement *pipeline, PullAskFunc ask);

// ---- the kinds ----

// Each kind has a check, and a PullMakeFunc, a PullLight or both. The check fills the fields of an
// empty configuration from a URI. It returns NULL, or an error message (transfer full).
#define PULL_CHECK(kind)                                                                           \
  gchar *kind##_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)

// rtsp://HOST[:PORT]/PATH, rtsps://. The check moves credentials from the URI into `user` and
// `password`.
PULL_CHECK (rtsp);
GstElement *rtsp_pull_new (const PullContext *context, GError **error);

// rtsp-schedule://HOST[:PORT]/PATH[?iface=NAME]: a title or a stream that a server broadcasts;
// credentials as for rtsp://.
PULL_CHECK (schedule);
GstElement *schedule_pull_new (const PullContext *context, GError **error);

// udp://ADDR:PORT[?iface=NAME]: MPEG-TS; in RTP if the configuration has `rtp`.
PULL_CHECK (ts);
GstElement *ts_pull_new (const PullContext *context, GError **error);

// rtp://ADDR:PORT?encoding-name=H264&payload=96[&clock-rate=90000][&iface=NAME][&fmtp ...]
PULL_CHECK (rtp);
// sdp:///DIR/FILE[?iface=NAME]: one or more tracks like those of rtp://.
PULL_CHECK (sdp);
extern const PullLight rtp_pull_light;

// file:///DIR/FILE: a clip, looped. file:///DIR/: a folder of titles.
PULL_CHECK (file);

// Opens the clip. Returns a descriptor for the endpoint; or -1, and sets `error`.
gint file_pull_open (const PullConfig *config, GError **error);
GstElement *file_pull_new (const PullContext *context, GError **error);

// store:///DIR/: a block store of titles. No run is ever made of it.
PULL_CHECK (store);

// swarm:///DIR/: a folder of torrents. No run is ever made of it.
PULL_CHECK (swarm);

// https://HOST[:PORT]/PATH/, http://: titles on an HTTP server. No run is ever made of it.
PULL_CHECK (origin);

// http://HOST[:PORT]/FILE, https://: a stream; a playlist of HLS
PULL_CHECK (http);
// srt://HOST:PORT[?streamid=TEXT][&latency=MS]: MPEG-TS; the passphrase is the password
PULL_CHECK (srt);
// rtmp://HOST[:PORT]/APP/STREAM
PULL_CHECK (rtmp);
GstElement *stream_pull_new (const PullContext *context, GError **error);

// A container that this process writes to a socket, which is the endpoint's; no configuration can
// name it. Sets the fields of an empty `config`, except for the endpoint and the time-outs.
#define PIPE_PULL_URI "pipe:"
void pipe_pull_init (PullConfig *config);
gboolean pipe_pull_is (const gchar *uri);

// No run of it begins: each try fails with `lack`. No configuration can name it. Sets the fields of
// an empty `config`.
#define PULL_LACK_MS 10000 // between two looks whether it still lacks that
void held_pull_init (PullConfig *config, const gchar *uri, const gchar *lack);

// publish: what a client sends to the mount; see publication.h.
PULL_CHECK (publish);
extern const PullLight publish_pull_light;

// launch:LINE, with payloaders named pay0, pay1 ...
PULL_CHECK (launch);
GstElement *launch_pull_new (const PullContext *context, GError **error);
