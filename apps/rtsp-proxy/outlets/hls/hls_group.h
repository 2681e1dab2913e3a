// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The streams of one master playlist: a presentation, and those of its mount's `renditions`. They
// run while the group is in use. Reference-counted. Call from any thread.

#include <gio/gio.h>

#include "config/mount_renditions.h"
#include "outlets/hls/hls_stream.h"

#define HLS_STREAMS_MAX (1 + MOUNT_RENDITIONS_MAX)

typedef struct _HlsGroup HlsGroup;

// Starts a stream of each variant, of which there are 1 to HLS_STREAMS_MAX, with the numbers
// `first`. Takes ownership of a reference to each presentation, and of a use.
HlsGroup *hls_group_new (
    const HlsVariant *variants, guint n, const HlsSettings *settings, const HlsNumbers *first);
HlsGroup *hls_group_ref (HlsGroup *self);
void hls_group_unref (HlsGroup *self);

// Ends the use of all presentations.
void hls_group_stop (HlsGroup *self);

// Raises numbers above those of the streams.
void hls_group_raise (HlsGroup *self, HlsNumbers *numbers);

// Reports whether the first stream has failed.
gboolean hls_group_has_failed (HlsGroup *self);

guint hls_group_n_streams (HlsGroup *self);
HlsStream *hls_group_get_stream (HlsGroup *self, guint i); // (transfer none)

// Returns text about the tracks that are left out of all streams (relay/left_out.h), or NULL.
// (transfer full)
gchar *hls_group_dup_left_out (HlsGroup *self);

// Returns the master playlist, whose URIs are below `folder`, if at least one of the streams is
// ready, else NULL. (transfer full)
GBytes *hls_group_write_master (HlsGroup *self, const gchar *folder, HlsKind kind);

// Returns what the live playlist of a window says about those of the others, or NULL. (transfer
// full)
GBytes *hls_group_write_reports (HlsGroup *self, const HlsWindow *own);
