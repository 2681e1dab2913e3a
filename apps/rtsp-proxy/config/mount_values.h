// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What one mount is told to do, as its keys give it: see mount_config.h.

#include "config/mount_step.h"
#include "sources/pull.h"
#include "stages/stage.h"
#include "svc/layerset.h"

// How the layers of each reader are found: see adaptation.h.
typedef enum {
  MOUNT_ADAPT_OFF,
  MOUNT_ADAPT_FIXED,
  MOUNT_ADAPT_BANDWIDTH,
  MOUNT_ADAPT_AIMD,
} MountAdapt;

// What a change of a key does to a mount that runs, the least first: of several keys the most
// counts.
typedef enum {
  MOUNT_EFFECT_NONE = 1, // readers notice nothing: the value counts from its next use on
  MOUNT_EFFECT_LAYERS,   // readers get other layers, where their decoders survive it
  MOUNT_EFFECT_SERVING,  // readers who come from then on are served so
  MOUNT_EFFECT_PIPELINE, // other stages are started, and taken at a join point
  MOUNT_EFFECT_UPSTREAM, // so is the upstream
  MOUNT_EFFECT_CLOSES,   // readers are closed: what is kept for them can't be taken along
} MountEffect;

typedef struct {
  gatomicrefcount refs;
  gchar *path;        // "/cam"
  guint line, column; // where it was read; 0: elsewhere than in the file
  gboolean from_api;  // which may not say all that the file may
  GStrv upstreams;    // as they were written, in order of preference
  GPtrArray *pulls;   // of PullConfig: the upstreams, and, once it is whole, what `pull` says
  PullConfig pull;
  gchar *slate;        // a file, or NULL
  GPtrArray *pipeline; // of MountStep; none: pull alone
  StageSet *stage_set; // where `stages` are from; NULL before they are made
  GPtrArray *stages;   // of Stage: what `pipeline` says, with the upstream in pull
  gchar *stage_files;  // what all its chains are made of; see choice_check()
  GHashTable *choices; // stage -> GStrv: the parameters that a URL may set
  guint max_presentations;
  guint interval_ms; // 0: the upstream is live
  guint max_titles;
  guint switch_timeout_ms;
  gboolean on_demand;
  guint linger_ms;
  guint start_timeout_ms;
  struct {
    guint time_ms; // 0: none
    guint64 bytes;
    gchar *spill; // the folder of its file; NULL: it is in memory
  } cache;
  // As fanoutsink's properties of these names.
  const gchar *join;
  const gchar *catch_up;
  guint priority;
  guint adapt;         // MountAdapt
  WeirLayerSet layers; // the most that any reader gets
} MountConfig;
