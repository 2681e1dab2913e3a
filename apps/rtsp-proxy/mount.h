// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A path that the proxy serves: its upstream, its relay, and the one media of the RTSP library that
// all of its readers share. Any thread may call what does not say otherwise.

#include <gst/rtsp-server/rtsp-server.h>

#include "mount_config.h"
#include "relay.h"

typedef struct _Mount Mount;

// Called on the main thread when the mount's readers can't go on.
typedef void (*MountCloseReadersFunc) (Mount *mount, const gchar *reason, gpointer data);

// Takes over a reference of `config`. Main thread.
Mount *mount_new (MountConfig *config, MountCloseReadersFunc close_readers, gpointer data);

// Counted. Any thread.
Mount *mount_ref (Mount *self);
void mount_unref (Mount *self);

// Another configuration for the same path, of which it takes over a reference. Readers stay. Main
// thread.
void mount_configure (Mount *self, MountConfig *config);

const gchar *mount_get_path (Mount *self);
const MountConfig *mount_get_config (Mount *self); // valid as long as the mount
Relay *mount_get_relay (Mount *self);

// For a mount that is not on-demand: starts the upstream now. Main thread.
void mount_start (Mount *self);

// Ends the upstream and takes no more users. Main thread.
void mount_stop (Mount *self);

// A reader came (starts the upstream where needed), a reader went (starts the linger).
void mount_use (Mount *self);
void mount_unuse (Mount *self);

typedef enum { MOUNT_KNOWN, MOUNT_DOWN, MOUNT_STARTING } MountState;

// Is it known what the upstream gives? Down: the last attempt failed, and the next is yet to come.
MountState mount_ask (Mount *self);

// Calls `told`, once, when the mount is not starting any more, or after start-timeout; maybe at
// once. From any thread, with no lock held.
typedef void (*MountToldFunc) (gpointer data);
void mount_wait (Mount *self, MountToldFunc told, gpointer data);

// Names the media that new readers share; another one after each mount_retire_media().
gchar *mount_dup_media_key (Mount *self);

// The media was prepared: keeps it prepared until the mount has no more use for it, so that it
// never goes away under a reader that is just coming.
void mount_keep_media (Mount *self, GstRTSPMedia *media);
