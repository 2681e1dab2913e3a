// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A publisher whose media come as a container: it is demultiplexed like the container of an
// upstream, in a worker process if upstreams are (isolated_pull.h), and its packets go to the mount
// as a publication. Call from any thread, unless the function says otherwise.

#include "sources/publication.h"

typedef struct _PublishedStream PublishedStream;

typedef struct {
  PublicationClaim claim;
  const gchar *transport;   // static
  guint connect_timeout_ms; // until the tracks are known
  guint read_timeout_ms;    // between two packets
} PublishedStreamSettings;

// Says that the publisher must go: another one has displaced it, or its media cannot be read.
// Called from any thread, perhaps more than once, and not after `free`.
typedef void (*PublishedStreamGone) (gpointer owner, const gchar *reason);

// Claims the mount. Fails with G_IO_ERROR_BUSY if another publisher has it. Calls `free` on `owner`
// when `gone` is not called any more. (transfer full)
PublishedStream *published_stream_new (const PublishedStreamSettings *settings,
    PublishedStreamGone gone, gpointer owner, GDestroyNotify free, GError **error);

// Takes a part of the container, which is not empty. Returns FALSE, and takes nothing, while
// earlier parts are not read yet. One thread at a time.
gboolean published_stream_write (PublishedStream *self, const guint8 *bytes, gsize len);

// The next part begins another container, such as one with other tracks, which is read when the
// last one has been. Returns FALSE, and does nothing, while earlier parts are not read yet. If too
// many containers wait, calls `gone`, and returns FALSE.
gboolean published_stream_begin_anew (PublishedStream *self);

// Returns the socket, which can be written when published_stream_write() takes the next part.
// Another process may write the parts to it instead.
gint published_stream_get_fd (PublishedStream *self);

// Counts parts that were dropped because they were not taken.
void published_stream_count_overflow (PublishedStream *self, guint64 n);

// Ends it. The upstream of the mount has then failed with `reason`.
void published_stream_end (PublishedStream *self, const gchar *reason);
