// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The messages between the proxy and the worker process that has libsrt, each one packet of a
// SOCK_SEQPACKET socket. There are two sockets: over one the worker asks about a handshake and
// waits for the verdict; all else goes over the other. A message is read as hostile, as in wire.h.
// An `id` is the worker's number of a caller. Who gets a message about a caller that it does not
// know ignores it, because both sides may end one.

#include <gio/gio.h>
#include <sys/socket.h>

#include "isolate/wire.h"

#define SRT_WIRE_STREAM_ID 512 // bytes at most
#define SRT_WIRE_SECRET 79

// Why libsrt refused a handshake by itself.
typedef enum {
  SRT_PROBLEM_UNKNOWN,
  SRT_PROBLEM_SECRET_WRONG,
  SRT_PROBLEM_SECRET_MISSING,
  SRT_PROBLEM_SECRET_UNEXPECTED, // the listener has none
  SRT_PROBLEMS,
} SrtProblem;

// Why the worker ended a caller.
typedef enum {
  SRT_END_GONE,  // the connection has ended
  SRT_END_SENDS, // a reader
  SRT_END_OVER,  // the reader's socket is closed
  SRT_ENDS,
} SrtEnd;

// To the worker. SRT_COMMAND_PUBLISH and SRT_COMMAND_READ come with a stream socket, for what the
// caller sends, or gets.
typedef enum {
  SRT_COMMAND_PUBLISH = 1,
  SRT_COMMAND_READ,
  SRT_COMMAND_CLOSE,
  SRT_COMMANDS,
} SrtCommand;

// Sums since the caller's handshake.
typedef struct {
  guint32 id;
  guint64 late;     // packets that SRT dropped because they came, or would have come, too late
  guint64 sent;     // packets
  guint64 overflow; // messages of a publisher that its socket did not take
} SrtSample;

// ---- writing ----

// Puts the job of a worker, which gets the two sockets and the UDP port with it. `passphrase` may
// be NULL.
void srt_wire_put_job (WireMessage *message, guint latency_ms, const gchar *passphrase);

void srt_wire_put_handshake (
    WireMessage *message, guint32 id, const struct sockaddr *from, const gchar *stream_id);
void srt_wire_put_opened (WireMessage *message, guint32 id);
void srt_wire_put_refused (WireMessage *message, guint32 id, SrtProblem problem);
void srt_wire_put_ended (WireMessage *message, guint32 id, SrtEnd end);

// Begins samples, of which at least one message comes each second, even without any. Then puts them
// until srt_wire_put_sample() returns FALSE, because the message is full.
void srt_wire_begin_samples (WireMessage *message);
gboolean srt_wire_put_sample (WireMessage *message, const SrtSample *sample);

void srt_wire_put_command (WireMessage *message, SrtCommand command, guint32 id);

// `code` is 0 or SRT's reason of a refusal.
void srt_wire_put_verdict (WireMessage *message, guint32 id, guint16 code);

// ---- reading ----

// A message without a function is malformed.
typedef struct {
  // A handshake of which libsrt knows the stream id, which may be any text.
  void (*handshake) (gpointer owner, guint32 id, GInetSocketAddress *from, const gchar *stream_id);
  void (*opened) (gpointer owner, guint32 id);
  void (*refused) (gpointer owner, guint32 id, SrtProblem problem);
  void (*ended) (gpointer owner, guint32 id, SrtEnd end);
  void (*sampled) (gpointer owner, const SrtSample *sample);
} SrtWireHandler;

// Reads a message of the worker. Returns FALSE if it is malformed; samples before the mistake are
// passed.
gboolean srt_wire_read (
    const guint8 *data, gsize len, const SrtWireHandler *handler, gpointer owner);

// These read what the worker gets. Each returns FALSE if the message is malformed. The passphrase
// may be NULL (transfer full).
gboolean srt_wire_read_job (const guint8 *data, gsize len, guint32 *latency_ms, gchar **passphrase);
gboolean srt_wire_read_command (const guint8 *data, gsize len, SrtCommand *command, guint32 *id);
gboolean srt_wire_read_verdict (const guint8 *data, gsize len, guint32 *id, guint16 *code);
