// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The stages that there are.

#include <glib.h>

#include "stages/stage_file.h"

typedef struct _StageSet StageSet;

// All *.launch files of these directories; the first directory that has a name wins. A directory
// that does not exist is passed over. One wrong file, and there is no set: the error reads
// "FILE:LINE:COLUMN: ...".
StageSet *stage_set_load (const gchar *const *directories, GError **error);

// The user's own directory (may be NULL; else it has to be there), the source's when the program
// runs from its build, what is installed.
StageSet *stage_set_load_usual (const gchar *own, GError **error);

StageSet *stage_set_ref (StageSet *self);
void stage_set_unref (StageSet *self);
const StageFile *stage_set_find (StageSet *self, const gchar *name); // NULL: there is none
GPtrArray *stage_set_dup_files (StageSet *self); // of StageFile, by name; they are the set's
gchar *stage_set_dup_names (StageSet *self);     // "decode, pull"
// The stage that decodes this kind of media; NULL if there is none.
const gchar *stage_set_find_decoder (StageSet *self, StageMedia media);

// Launch texts that GStreamer took: many mounts have the same. Any thread.
gboolean stage_set_knows_good (StageSet *self, const gchar *launch);
void stage_set_note_good (StageSet *self, const gchar *launch);
