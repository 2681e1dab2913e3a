// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The values of a mount's keys; mount_config.h has the functions.

#include "broadcast/broadcast.h"
#include "config/mount_step.h"
#include "sources/pull.h"
#include "stages/stage.h"
#include "stores/sigv4.h"
#include "svc/layerset.h"

// How each reader's layers are chosen; see readers/adaptation.h.
typedef enum {
  MOUNT_ADAPT_OFF,
  MOUNT_ADAPT_FIXED,
  MOUNT_ADAPT_BANDWIDTH,
  MOUNT_ADAPT_AIMD,
} MountAdapt;

// Whether the next of several upstreams is connected before it is needed.
typedef enum {
  MOUNT_STANDBY_COLD,
  MOUNT_STANDBY_WARM,
} MountStandby;

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
  gchar *path;          // "/cam"
  guint line, column;   // in the configuration file, from 1; 0 if it is not from the file
  gboolean from_api;    // some keys and upstreams are refused from the API
  gchar *lack;          // what the mount needs and this machine does not have now, or NULL
  GStrv upstreams;      // URIs as written, in order of preference
  gboolean are_limited; // the upstreams: an API client has named them (base/file_roots.h)
  GPtrArray *pulls;     // of PullConfig: the upstreams, with the settings of `pull`
  PullConfig pull;      // settings for all upstreams
  gboolean tls_verify;  // their certificates
  S3Keys *keys;         // for upstreams that are buckets, or NULL
  guint standby;        // MountStandby
  gchar *slate;         // a file, or NULL
  gboolean is_slate_limited;
  GPtrArray *pipeline; // of MountStep; empty: pull alone
  StageSet *stage_set; // the set of `stages`; NULL before these are made
  GPtrArray *stages;   // of Stage: the stages of `pipeline`, with the upstream in pull
  gchar *stage_files;  // names and checksums of all stage files in use; see choice_check()
  GHashTable *choices; // stage -> GStrv: parameters that a URL may set
  GStrv renditions;    // queries of the URLs of further renditions in HLS
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
    guint64 bytes; // for each track, or for the blocks of all titles
    gboolean has_bytes; // they were given
    gchar *spill;       // the folder of its file; NULL: in memory
    gboolean is_spill_limited;
  } cache;
  struct {
    gchar *origin, *upload, *storage, *folder, *peers, *networks, *listen; // as written, or NULL
    const gchar *picker, *leave, *choking;
    guint window_ms, titles;
    gboolean trackers, exchange, dht, local_discovery;
  } swarm;
  BroadcastConfig broadcast; // `groups` NULL: no broadcast
  // Values of fanoutsink's properties of the same names.
  const gchar *join;
  const gchar *catch_up;
  GStrv push; // URIs; see config/mount_push.h
  struct {
    gchar *folder; // NULL: no recording
    guint segment_ms, part_ms;
    guint64 keep_s, limit; // 0: no limit; bytes
    gchar *hook;           // a command, a URL, or NULL
  } record;
  guint priority;
  guint adapt;         // MountAdapt
  WeirLayerSet layers; // the highest layers that any reader gets
} MountConfig;

// Returns where the titles of the mount are, or NONE for a mount of one stream.
static inline PullTitles
mount_config_get_titles (const MountConfig *self)
{
  return self->pulls->len ? ((const PullConfig *) g_ptr_array_index (self->pulls, 0))->titles
                          : PULL_TITLES_NONE;
}
