// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A stage with a value for each of its parameters.

#include <glib.h>

#include "stages/stage_set.h"

typedef struct _Stage Stage;

// With the default of each parameter. NULL and an error, which names those that there are, if none
// is of this name. It can be changed until others hold it; from then on any thread may read it.
Stage *stage_new (StageSet *set, const gchar *name, GError **error);
Stage *stage_copy (const Stage *self);
Stage *stage_ref (Stage *self);
void stage_unref (Stage *self);

// NULL, or what is wrong with the name or the value.
gchar *stage_assign (Stage *self, const gchar *param, const gchar *value);

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
