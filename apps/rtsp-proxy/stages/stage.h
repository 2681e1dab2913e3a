// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A stage: a stage file with a value for each of its parameters.

#include <glib.h>

#include "stages/stage_set.h"

typedef struct _Stage Stage;

// Makes a stage with the default of each parameter. Returns NULL and sets `error`, which lists the
// known stages, if there is no stage of this name. The caller owns the reference. Change a stage
// only before it has other owners; after that, any thread may read it.
Stage *stage_new (StageSet *set, const gchar *name, GError **error);

// Returns a copy that may be changed.
Stage *stage_copy (const Stage *self);
Stage *stage_ref (Stage *self);
void stage_unref (Stage *self);

// Sets a parameter. Returns NULL, or an error message that the caller owns.
gchar *stage_assign (Stage *self, const gchar *param, const gchar *value);

const StageFile *stage_get_file (const Stage *self);

// Returns the value of a parameter, or NULL if there is no such parameter.
const gchar *stage_get_value (const Stage *self, const gchar *param);

// Returns "transcode(encoder=openh264,keys=2000,rate=600000,size=640x360)", which is equal for
// equal values, however they were written. The caller owns the result.
gchar *stage_dup_key (const Stage *self);

// Returns the stage's launch text: the elements between its input and its output. `codec` is the
// encoding name of the RTP that the stage takes; NULL if it takes no RTP. Returns NULL and sets
// `error` if the stage does not take this codec, is native or lacks a file. The caller owns the
// result.
gchar *stage_dup_launch (const Stage *self, const gchar *codec, GError **error);

// Returns what changes in the stage's elements at its time, for fades_begin(); NULL: nothing does.
// The caller owns the result.
gchar *stage_dup_fades (const Stage *self);

// Checks that all elements exist and that GStreamer accepts the launch text. Without a codec, one
// of the codecs that the stage takes has to work. Returns FALSE and sets `error`, which names the
// Debian package of a missing element.
gboolean stage_check_elements (const Stage *self, const gchar *codec, GError **error);

// Calls `each` for each file that a parameter names.
void stage_foreach_file (
    const Stage *self, void (*each) (const gchar *path, gpointer data), gpointer data);

// Reports whether the stage has elements that are neither Weir's own nor GStreamer's core elements:
// they parse or decode media.
gboolean stage_has_foreign_elements (const Stage *self);
