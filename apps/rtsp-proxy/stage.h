// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The stages that there are, and a stage with a value for each of its parameters.

#include <glib.h>

#include "stage_file.h"

typedef struct _StageSet StageSet;
typedef struct _Stage Stage;

// All *.launch files of these directories; the first directory that has a name wins. A directory
// that does not exist is passed over. One wrong file, and there is no set: the error reads
// "FILE:LINE:COLUMN: ...".
StageSet *stage_set_load (const gchar *const *directories, GError **error);

// The user's own directory (may be NULL; else it has to be there), the source's when the program
// runs from its build, what is installed.
StageSet *stage_set_load_usual (const gchar *own, GError **error);

StageSet *stage_set_ref (StageSet *self);
void stage_set_unref (StageSet *self);
gboolean stage_set_has (StageSet *self, const gchar *name);
GPtrArray *stage_set_dup_files (StageSet *self); // of StageFile, by name; they are the set's
// The stage that decodes this kind of media; NULL if there is none.
const gchar *stage_set_find_decoder (StageSet *self, StageMedia media);

// With the default of each parameter. NULL and an error, which names the nearest, if there is none
// of this name. It can be changed until others hold it; from then on any thread may read it.
Stage *stage_new (StageSet *set, const gchar *name, GError **error);
Stage *stage_copy (const Stage *self);
Stage *stage_ref (Stage *self);
void stage_unref (Stage *self);

// NULL, or what is wrong with the name or the value.
gchar *stage_set_value (Stage *self, const gchar *param, const gchar *value);

const StageFile *stage_get_file (const Stage *self);
const gchar *stage_get_value (const Stage *self, const gchar *param); // NULL: no such parameter

// "transcode(encoder=openh264,keys=2000,rate=600000,size=640x360)": the same for the same values,
// however they were written.
gchar *stage_dup_key (const Stage *self);

// What stands between the element that the stage reads from and the one that it writes to.
// `codec` is the encoding name of the RTP that it takes; NULL where it takes none. An error if it
// does not take this codec, or is native.
gchar *stage_dup_launch (const Stage *self, const gchar *codec, GError **error);

// FALSE and an error, which names the Debian package, if an element is missing, or if GStreamer
// does not take the launch text. Without a codec, one of those that the stage takes has to work.
gboolean stage_check_elements (const Stage *self, const gchar *codec, GError **error);
