// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What one mount is told to do. Counted, and never changed once it is checked: threads that hold
// one need no lock. What reads it from text is proxy_config.c.

#include "sources/pull.h"
#include "stages/stage.h"
#include "svc/layerset.h"
#include "text/schema.h"

// A stage of a mount's pipeline, as it was written. Where it was (from 1) is for errors.
typedef struct {
  gchar *name, *value;
  guint line, column;
} MountParam;

typedef struct {
  gchar *name;
  GPtrArray *params; // of MountParam
  guint line, column;
} MountStep;

// How the layers of each reader are found: see adaptation.h.
typedef enum {
  MOUNT_ADAPT_OFF,
  MOUNT_ADAPT_FIXED,
  MOUNT_ADAPT_BANDWIDTH,
  MOUNT_ADAPT_AIMD,
} MountAdapt;

extern const gchar *const mount_adapt_names[];

typedef struct {
  gatomicrefcount refs;
  gchar *path;        // "/cam"
  guint line, column; // where it was read; 0: elsewhere than in the file
  GStrv upstreams;    // as they were written, in order of preference
  GPtrArray *pulls;   // of PullConfig: the upstreams with what `pull` says of all of them
  PullConfig pull;
  PullUriFlags uri_flags; // with which `upstreams` are read
  gchar *slate;           // a file, or NULL
  GPtrArray *pipeline;    // of MountStep; none: pull alone
  StageSet *stage_set;    // where `stages` are from; NULL before they are made
  GPtrArray *stages;      // of Stage: what `pipeline` says, with the upstream in pull
  gchar *stage_files;     // what all its chains are made of; see choice_check()
  GHashTable *choices;    // stage -> GStrv: the parameters that a URL may set
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

// The table of its keys, in the order in which they are read and told.
const SchemaKey *mount_config_keys (void);

MountConfig *mount_config_new (const gchar *path);
MountConfig *mount_config_ref (MountConfig *self);
void mount_config_unref (MountConfig *self);

// One to be changed, without `pulls` and `stages`.
MountConfig *mount_config_copy (const MountConfig *self);

gboolean mount_config_equal (const MountConfig *a, const MountConfig *b);

// The names of the keys in which they differ; to be freed with g_ptr_array_unref().
GPtrArray *mount_config_differences (const MountConfig *a, const MountConfig *b);

// Adds to `pulls` what a URI says; NULL, or what is wrong (to be freed): then it is of no use.
gchar *mount_config_add_pull (MountConfig *self, const gchar *uri, PullUriFlags flags);

// Tells each of `pulls` what `pull` says of all.
void mount_config_complete_pulls (MountConfig *self);

// After its keys have been read: checks what they say together, and makes `pulls` and `stages`.
// Errors are about `node` where they have no better place.
gboolean mount_config_finish (
    MountConfig *self, StageSet *set, YamlReader *reader, YamlNode *node, GError **error);

// The folder whose files it serves; NULL for a mount of one stream.
const gchar *mount_config_get_folder (const MountConfig *self);

// Is what is pulled, or how it is connected to, another?
gboolean mount_config_needs_upstream (const MountConfig *from, const MountConfig *to);

// Are its stages, or what a URL may choose of them, others?
gboolean mount_config_needs_pipeline (const MountConfig *from, const MountConfig *to);

// Is how readers are served another?
gboolean mount_config_needs_media (const MountConfig *from, const MountConfig *to);

// Does what is kept for readers lie elsewhere, so that it can't be taken along?
gboolean mount_config_moves_cache (const MountConfig *from, const MountConfig *to);

// Are the layers that readers get others?
gboolean mount_config_needs_layers (const MountConfig *from, const MountConfig *to);

MountStep *mount_step_new (const gchar *name, guint line, guint column);
void mount_step_add (
    MountStep *self, const gchar *name, const gchar *value, guint line, guint column);
void mount_step_free (gpointer step);
