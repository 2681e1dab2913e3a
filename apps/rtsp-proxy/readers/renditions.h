// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The renditions of a mount (config/mount_renditions.h) that one reader may get by its line: those
// that encode the video as the codec that the reader has, by a stage with a parameter `rate`. A
// rendition runs while a reader has it or is to have it. Call from the main thread only.

#include "mounts/mount.h"
#include "net/steps.h"
#include "readers/readers.h"

typedef struct _Renditions Renditions;

// `own` is the presentation that the reader has asked for, of `mount`.
Renditions *renditions_new (Mount *mount, Presentation *own);
void renditions_free (Renditions *self); // any thread

// Lists those that may be had now. One that has failed is left out for 30 s. Returns how many.
gsize renditions_list (Renditions *self, gint64 now, WeirRendition list[WEIR_RENDITIONS_MAX]);

// Lets the reader have a rendition, or with `id` 0 its own stream. Starts it if that is needed.
// Call again until the reader has it, and then so that it keeps it. Returns whether it has it.
gboolean renditions_go (Renditions *self, Reader *reader, guint id, gint64 now);

// Returns the rendition that the reader has: its id, or 0; its query as in the configuration, or
// NULL.
guint renditions_get_id (const Renditions *self);
const gchar *renditions_get_query (const Renditions *self);
