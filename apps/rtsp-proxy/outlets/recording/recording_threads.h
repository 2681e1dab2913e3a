// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The threads that write recordings: one for each recording to a folder, up to 4. A disk that hangs
// stops the recordings to its folder, and no others. Call from any thread.

#include <glib.h>

typedef struct _RecordingThreads RecordingThreads;

// Returns the threads of a folder, which call `run` with what is pushed, for one more recording.
RecordingThreads *recording_threads_join (const gchar *folder, void (*run) (gpointer data));

// The recording has ended. May be called in one of the threads.
void recording_threads_leave (RecordingThreads *self);

// Has a thread call the function, after what was pushed before.
void recording_threads_push (RecordingThreads *self, gpointer data);
