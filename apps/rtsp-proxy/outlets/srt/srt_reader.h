// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The stream of a mount for an SRT caller: a position in the mount's transport stream, which writes
// to one end of a pair of sockets. The worker that has the caller reads the other end. The outlet's
// thread calls these functions.

#include <gio/gio.h>

#include "mounts/mounts.h"

typedef struct _SrtReader SrtReader;

// Starts or joins the target of the demand. `ready` and `close` are called from any thread, and not
// after srt_reader_free() has returned: when srt_reader_run() has something to do, and when the
// reader is to be closed. Returns NULL and sets `error` on failure.
SrtReader *srt_reader_new (Mounts *mounts, const Demand *demand, const gchar *peer,
    void (*ready) (gpointer owner), void (*close) (gpointer owner, const gchar *reason),
    gpointer owner, GError **error);

// Does what can be done now. Sets `*fd` when the stream begins, to the socket that it comes from,
// which the caller closes. Returns FALSE and sets `*reason` when the reader is to be closed.
gboolean srt_reader_run (SrtReader *self, gint *fd, const gchar **reason);

// Reports whether the reader is too slow, by the packets that SRT has sent and dropped since the
// connection began. Call it once a second.
gboolean srt_reader_is_slow (SrtReader *self, guint64 dropped, guint64 sent);

void srt_reader_free (SrtReader *self, const gchar *reason);
