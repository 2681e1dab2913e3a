// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The messages about a still picture between the proxy and the worker process that makes it. The
// proxy sends one message with two descriptors: an unnamed file with the packets of a keyframe
// (frames/key_frame.h), and a stream socket for the answer. That is a byte and the rest of the
// stream: PICTURE_WIRE_JPEG and a picture, or PICTURE_WIRE_PROBLEM and why there is none. Both are
// read as hostile, as in wire.h.

#include "isolate/wire.h"

#define PICTURE_WIRE_FDS 2
#define PICTURE_WIRE_JPEG 1
#define PICTURE_WIRE_PROBLEM 2
#define PICTURE_WIRE_ANSWER_MAX (16 * 1024 * 1024)

// Puts a job. `width` is that of the picture at most, in pixels; 0: its own. `caps` are of the
// packets.
void picture_wire_put_job (WireMessage *message, guint width, const GstCaps *caps);

// Reads a job. Returns FALSE if the message is malformed. The caller owns `caps`.
gboolean picture_wire_read_job (const guint8 *data, gsize len, guint *width, GstCaps **caps);

// Puts an answer without a picture.
void picture_wire_put_problem (WireMessage *message, const gchar *problem);

// Reads an answer, which is whole. Returns the picture, or NULL and sets `problem` to what the
// worker says, or to what is wrong with the answer. (transfer full)
GBytes *picture_wire_read_answer (const guint8 *data, gsize len, gchar **problem);
