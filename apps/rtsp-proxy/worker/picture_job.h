// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes still pictures in a worker process (isolate/picture_wire.h).

#include <glib.h>

// Makes the picture that a WIRE_PICTURE message describes, in a thread of its own. Takes ownership
// of the PICTURE_WIRE_FDS descriptors.
void picture_job_start (const guint8 *message, gsize len, const gint *fds);
