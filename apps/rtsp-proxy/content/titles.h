// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What is in a store, as a mount serves it: a title is a file of it, opened for one reader, who has
// a place of its own in it. Counted; any thread. Opening is done in threads that nobody waits
// for.

#include <gst/rtsp-server/rtsp-server.h>

#include "stores/store.h"

typedef struct _Titles Titles;
typedef struct _Title Title;

// For the mount of this path; `points` are the library's, and outlive it.
Titles *titles_new (const gchar *mount_path, GstRTSPMountPoints *points);
Titles *titles_ref (Titles *self);
void titles_unref (Titles *self);

// From which store, which is taken, and how many may be open at once. NULL: none any more.
void titles_configure (Titles *self, Store *store, guint max, guint start_timeout_ms);

// Begins to open the file of this name, which is as in a URL behind the mount's path and a slash.
// NULL and an error, G_IO_ERROR_BUSY or another, if it can be none.
Title *titles_open (Titles *self, const gchar *name, GstRTSPThreadPool *threads, GError **error);
Title *title_ref (Title *self);
void title_unref (Title *self);

// The same, and nobody waits for what is being done for it.
void title_leave (Title *self);

// Is it of this name, or is that what the library makes of it in its answers?
gboolean title_is (Title *self, Titles *titles, const gchar *name);

typedef enum { TITLE_OPENING, TITLE_READY, TITLE_FAILED } TitleState;

// The error, which may be NULL, is that of opening it; G_IO_ERROR_NOT_SUPPORTED: it is no media.
TitleState title_ask (Title *self, GError **error);

// Begins to go where a PLAY wants to: title_media_play(). `range`, which may be NULL, is taken.
// FALSE: something is being done for it already, and has been for too long.
gboolean title_play (Title *self, GstRTSPSessionMedia *session, GstRTSPTimeRange *range,
    GstSeekFlags flags, gdouble rate);

// What came of it.
GstRTSPStatusCode title_get_play_status (Title *self);

// Is anything being done for it?
gboolean title_works (Title *self);

// Calls `told`, once, when what is being done for it has ended, or is given up; maybe at once. One
// may wait.
typedef void (*TitleToldFunc) (gpointer data);
void title_wait (Title *self, TitleToldFunc told, gpointer data);

// The library has it prepared by itself from now on.
void title_hand_over (Title *self);

const gchar *title_get_path (Title *self);       // under which the library knows it
const gchar *title_get_mount_path (Title *self); //
const gchar *title_get_label (Title *self);      // as logs call it: "/films/a/b.mp4"
