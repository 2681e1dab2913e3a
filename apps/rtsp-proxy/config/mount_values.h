// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The values of a mount's keys, which are plain data; mount_config.h has the functions.

#include "config/mount_step.h"
#include "svc/layerset.h"
#include "text/schema.h"

typedef struct _Stage Stage;
typedef struct _StageSet StageSet;
typedef struct _S3Keys S3Keys;
typedef struct _MountPattern MountPattern;

// How each reader's layers are chosen; see readers/adaptation.h.
typedef enum {
  MOUNT_ADAPT_OFF,
  MOUNT_ADAPT_FIXED,
  MOUNT_ADAPT_BANDWIDTH,
  MOUNT_ADAPT_AIMD,
  MOUNT_ADAPT_GCC,
} MountAdapt;

// Whether the next of several upstreams is connected before it is needed.
typedef enum {
  MOUNT_STANDBY_COLD,
  MOUNT_STANDBY_WARM,
} MountStandby;

// What serves the RTSP readers of a live mount, between the relay and fanoutsink.
typedef enum {
  MOUNT_FAN_OUT_ENGINE,   // Weir's relay media, which has no thread
  MOUNT_FAN_OUT_ELEMENTS, // gst-rtsp-server's own media, with its rtpbin and udpsrc
} MountFanOut;

// The effect of a changed key on a running mount, weakest first. If several keys change, the
// strongest effect applies.
typedef enum {
  MOUNT_EFFECT_NONE = 1, // readers notice nothing; the next use of the key sees the new value
  MOUNT_EFFECT_LAYERS,   // readers get other layers, at packets where their decoders can switch
  MOUNT_EFFECT_SERVING,  // the value applies to new readers
  MOUNT_EFFECT_PIPELINE, // a new pipeline starts beside the old one and takes over at a join point
  MOUNT_EFFECT_UPSTREAM, // the same, with a new connection to the upstream
  MOUNT_EFFECT_CLOSES,   // readers are closed, as their window cannot be moved
} MountEffect;

typedef struct {
  gatomicrefcount refs;
  gchar *path;           // "/cam"
  guint line, column;    // in the configuration file, from 1; 0 if it is not from the file
  gboolean from_api;     // some keys and upstreams are refused from the API
  MountPattern *pattern; // the one that this is, or that has made the mount; or NULL
  GStrv hosts;           // of a pattern: to which a variable may lead
  guint max_instances;   // of a pattern
  gchar *lack;           // what the mount needs and this machine does not have now, or NULL
  GStrv upstreams;       // URIs as written, in order of preference
  gboolean are_limited;  // the upstreams: an API client has named them (base/file_roots.h)
  GStrv inputs;          // paths of mounts, in place of upstreams
  GPtrArray *pulls; // of PullConfig: the upstreams, or the first input, with the settings of `pull`
  struct {
    gchar *user, *password;
    guint transport, client; // PullTransport, PullClient
    guint connect_timeout_ms, read_timeout_ms;
    gboolean tls_verify;
    SchemaPath tls_ca;
    gchar *tls_fingerprint; // as tls_fingerprint_to_text()
  } pull;                   // settings for all upstreams
  S3Keys *keys;             // for upstreams that are buckets, or NULL
  guint standby;            // MountStandby
  SchemaPath slate;         // a file, or NULL
  struct {
    gchar *folder; // of the clips; NULL: nothing can be inserted
    gchar *on_cue; // the clip that a cue begins, or NULL
  } insert;
  GPtrArray *pipeline;     // of MountStep; empty: pull alone
  StageSet *stage_set;     // the set of `stages`; NULL before these are made
  GPtrArray *stages;       // of Stage: the stages of `pipeline`, with the upstream in pull
  GPtrArray *source_steps; // of MountStep: the stages between each upstream and the relay
  GPtrArray *source_chain; // of Stage: those, with decoders; NULL before they are made
  gchar *stage_files;      // names and checksums of all stage files in use; see choice_check()
  gchar *source_files;     // the same of `source_chain`
  GHashTable *choices;     // stage -> GStrv: parameters that a URL may set
  GStrv renditions;        // queries of the URLs of further renditions in HLS
  guint max_presentations;
  guint interval_ms; // 0: readers share no session of a stored title
  guint max_titles;
  guint max_readers; // 0: no limit
  gboolean takeover;
  guint switch_timeout_ms;
  gboolean on_demand;
  guint linger_ms;
  guint start_timeout_ms;
  struct {
    guint time_ms; // 0: no window; the other values are for titles on HTTP servers and block stores
    SchemaSize size;  // for each track, or for the blocks of all titles
    SchemaPath spill; // the folder of its file; NULL: in memory
  } cache;
  struct {
    gchar *origin, *upload, *storage, *folder, *peers, *networks, *listen; // as written, or NULL
    const gchar *picker, *leave, *choking;
    guint window_ms, titles;
    gboolean trackers, exchange, dht, local_discovery;
  } swarm;
  struct {
    gchar *groups; // ADDRESS or ADDRESS/BITS; NULL: no broadcast
    guint scheme;  // WeirSchemeKind
    guint first_ms, threshold_ms;
    guint port, ttl;
    gchar *iface;
    guint64 rate;
    SchemaSize cache;
  } broadcast;
  // Values of fanoutsink's properties of the same names.
  const gchar *join;
  const gchar *catch_up;
  const gchar *drop_policy;
  guint spread_ms;         // 0: no spread
  guint64 max_pacing_rate; // bits a second; 0: no limit
  SchemaSize buffer_size;  // 0: 1 MiB, or the system's default if larger
  GStrv push;              // URIs; see config/mount_push.h
  struct {
    gchar *folder; // NULL: no recording
    guint segment_ms, part_ms;
    guint64 keep_s;   // 0: no limit
    SchemaSize limit; // 0: none
    gchar *hook;      // a command, a URL, or NULL
  } record;
  guint priority;
  guint fan_out;       // MountFanOut
  guint adapt;         // MountAdapt
  WeirLayerSet layers; // the highest layers that any reader gets
} MountConfig;
