// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// When a presentation has RTSP media: from the first RTSP reader until `linger` after the last one.
// It has media without RTSP readers too where the media keeps something for the next one: a cache,
// the beginning of a title's session, or a keyframe of a mount that runs without readers. All
// readers share the media. Reference counted; call from any thread, unless the function says
// otherwise.

#include "mounts/presentation.h"

typedef struct _LiveMedia LiveMedia;

// The functions that handle media.
typedef struct {
  // Prepares media in another thread, which then calls live_media_opened(). Called on the main
  // thread, not after live_media_stop().
  void (*open) (gpointer owner);
  // Applies the presentation's configuration to the media.
  void (*configure) (gpointer media, Presentation *presentation);
  void (*release) (gpointer media); // ends what live_media_keep() has kept
} LiveMediaOps;

// `owner` is passed to open(); it must be valid until live_media_stop().
LiveMedia *live_media_new (Presentation *presentation, const LiveMediaOps *ops, gpointer owner);
LiveMedia *live_media_ref (LiveMedia *self);
void live_media_unref (LiveMedia *self);

Presentation *live_media_get_presentation (LiveMedia *self); // (transfer none)

// Releases the media, and refuses readers from now on. Main thread only.
void live_media_stop (LiveMedia *self);

// Opens media if it is wanted and missing, and lets it linger if it is not wanted. Call when the
// presentation has got its tracks, lost its users or changed. Main thread only.
void live_media_update (LiveMedia *self);

// Applies another configuration. Returns FALSE if the media cannot follow it, so that its readers
// must be closed. Main thread only.
gboolean live_media_configure (LiveMedia *self);

// Releases the media of readers that are being closed. Readers that come later get new media. Main
// thread only.
void live_media_retire (LiveMedia *self);

// Count an RTSP reader in and out.
void live_media_use (LiveMedia *self);
void live_media_unuse (LiveMedia *self);

// Returns READY if readers can have media, DOWN if the presentation is down or its media could not
// be prepared lately, or else STARTING. Sets `error`, which may be NULL, if it is DOWN.
PresentationState live_media_ask (LiveMedia *self, GError **error);

// Calls `done` once: at once if the state is not STARTING, else when it is no longer STARTING or
// after `start-timeout`. Call with no lock held.
void live_media_wait (LiveMedia *self, PresentationDoneFunc done, gpointer data);

// Returns a key for the media that new readers share (transfer full). The key changes each time
// media is released. With `only_ready`, returns NULL unless there is media.
gchar *live_media_dup_key (LiveMedia *self, gboolean only_ready);

// Keeps prepared media as long as it is wanted, so that it is not freed while a reader is joining;
// then calls release(). Returns FALSE and keeps nothing if it is not wanted, if there is media
// already, or if readers were closed while this media was being prepared.
gboolean live_media_keep (LiveMedia *self, gpointer media);

// Call when the work that open() started is over. `problem` says why the media could not be
// prepared; NULL on success.
void live_media_opened (LiveMedia *self, const gchar *problem);
