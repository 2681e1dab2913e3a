// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What runs when a segment is complete: a command without a shell, or a POST to a URL. One at a
// time for each recording, in order, for at most a minute each. Reference-counted. Call from the
// main thread, unless the function says otherwise.

#include "outlets/recording/recording_file.h"

typedef struct _RecordingHook RecordingHook;

typedef struct {
  guint64 run, failed, dropped; // dropped, because too many waited
} RecordingHookCounts;

// `text` is a command or an http or https URL, and has been checked; NULL: nothing runs.
RecordingHook *recording_hook_new (const gchar *mount, const gchar *text);
RecordingHook *recording_hook_ref (RecordingHook *self); // call from any thread
void recording_hook_unref (gpointer self);               // call from any thread

// Runs the hook for a complete segment. Call from any thread.
void recording_hook_add (RecordingHook *self, const gchar *path, const RecordingFacts *facts);

// Ends what runs, and drops what waits.
void recording_hook_end (RecordingHook *self);

// Reports whether a hook runs or waits.
gboolean recording_hook_is_busy (RecordingHook *self);

void recording_hook_get_counts (RecordingHook *self, RecordingHookCounts *counts);
