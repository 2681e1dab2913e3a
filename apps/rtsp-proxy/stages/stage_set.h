// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A set of stage files, loaded from folders.

#include <glib.h>

#include "stages/stage_file.h"

typedef struct _StageSet StageSet;

// Loads all *.launch files of `directories` (NULL-terminated). If two folders have a file of the
// same name, the first folder's counts. Skips missing folders. Returns NULL and sets `error` to
// "FILE:LINE:COLUMN: ..." if any file is wrong. The caller owns the reference.
StageSet *stage_set_load (const gchar *const *directories, GError **error);

// Loads the stages from these folders, in this order: `own` (may be NULL; must exist otherwise);
// the source folder, if the program runs from its build folder; the data folders of user and
// system; the folder of the installed stages.
StageSet *stage_set_load_usual (const gchar *own, GError **error);

StageSet *stage_set_ref (StageSet *self);
void stage_set_unref (StageSet *self);

// Returns the stage file `name`, or NULL. The set owns it.
const StageFile *stage_set_find (StageSet *self, const gchar *name);

// Returns the stage files, sorted by name. The caller owns the array, the set the files.
GPtrArray *stage_set_dup_files (StageSet *self);

// Returns the sorted names: "decode, pull". The caller owns the result.
gchar *stage_set_dup_names (StageSet *self);

// Returns the name of the stage that decodes this kind of media, or NULL. The set owns it.
const gchar *stage_set_find_decoder (StageSet *self, StageMedia media);

// Lets workers of stages read the files that the stages name. Call from any thread.
void stage_set_allow_paths (StageSet *self);

// Many mounts have the same launch text, so the set remembers the texts that GStreamer accepted.
// Call from any thread.
gboolean stage_set_is_accepted (StageSet *self, const gchar *launch);
void stage_set_add_accepted (StageSet *self, const gchar *launch);
