// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The recording of one mount (key `record`): uses its presentation all the time, and writes its
// tracks. When their pipeline fails, it begins again, after a time that grows (backoff.h). Call
// from the main thread only.

#include "mounts/mounts.h"
#include "outlets/recording/recording_hook.h"
#include "outlets/recording/recording_writer.h"

typedef struct _Recording Recording;

// `config` has the key.
Recording *recording_new (Mounts *mounts, MountConfig *config);

// Ends the recording. What is queued is still written, and the hook of the last segment still runs.
void recording_free (gpointer self);

// Starts what can start now. Call several times a second.
void recording_tick (Recording *self);

// Reports whether the key is the same.
gboolean recording_is_of (const Recording *self, const MountConfig *config);

const gchar *recording_get_state_name (Recording *self); // "waiting", "recording" or "failing"
gchar *recording_dup_problem (Recording *self);          // why it is failing, or NULL
const gchar *recording_get_left_out (Recording *self); // tracks that are left out, and why; or NULL
RecordingWriter *recording_get_writer (Recording *self); // (transfer none)
RecordingHook *recording_get_hook (Recording *self);     // (transfer none)
