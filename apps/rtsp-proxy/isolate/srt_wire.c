// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/srt_wire.h"

#include <netinet/in.h>
#include <string.h>

// From the worker.
enum { HANDSHAKE = 1, OPENED, REFUSED, ENDED, SAMPLES };

#define SAMPLE 28 // bytes

static void
put_head (WireMessage *message, guint8 type, guint32 id)
{
  message->len = 0;
  message->failed = FALSE;
  wire_put (message, type, 1);
  wire_put (message, id, 4);
}

void
srt_wire_put_job (WireMessage *message, guint latency_ms, const gchar *passphrase)
{
  wire_begin (message, WIRE_SRT);
  wire_put (message, latency_ms, 4);
  wire_put_text (message, passphrase);
}

void
srt_wire_put_handshake (
    WireMessage *message, guint32 id, const struct sockaddr *from, const gchar *stream_id)
{
  guint len =
      from->sa_family == AF_INET6 ? sizeof (struct sockaddr_in6) : sizeof (struct sockaddr_in);

  put_head (message, HANDSHAKE, id);
  wire_put (message, len, 1);
  for (guint i = 0; i < len; i++)
    wire_put (message, ((const guint8 *) from)[i], 1);
  wire_put_text (message, stream_id);
}

void
srt_wire_put_opened (WireMessage *message, guint32 id)
{
  put_head (message, OPENED, id);
}

void
srt_wire_put_refused (WireMessage *message, guint32 id, SrtProblem problem)
{
  put_head (message, REFUSED, id);
  wire_put (message, problem, 1);
}

void
srt_wire_put_ended (WireMessage *message, guint32 id, SrtEnd end)
{
  put_head (message, ENDED, id);
  wire_put (message, end, 1);
}

void
srt_wire_begin_samples (WireMessage *message)
{
  message->len = 0;
  message->failed = FALSE;
  wire_put (message, SAMPLES, 1);
}

gboolean
srt_wire_put_sample (WireMessage *message, const SrtSample *sample)
{
  if (message->len + SAMPLE > WIRE_MAX)
    return FALSE;
  wire_put (message, sample->id, 4);
  wire_put (message, sample->late, 8);
  wire_put (message, sample->sent, 8);
  wire_put (message, sample->overflow, 8);
  return TRUE;
}

void
srt_wire_put_command (WireMessage *message, SrtCommand command, guint32 id)
{
  put_head (message, (guint8) command, id);
}

void
srt_wire_put_verdict (WireMessage *message, guint32 id, guint16 code)
{
  put_head (message, 0, id);
  wire_put (message, code, 2);
}

// ---- reading ----

static gboolean
is_whole (const WeirBytes *b)
{
  return !b->failed && weir_bytes_left (b) == 0;
}

static GSocketAddress *
read_address (WeirBytes *b)
{
  union {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
  } native = { 0 };
  const guint8 *bytes;
  guint8 len;

  weir_bytes_u8 (b, &len);
  if (len > sizeof native || !weir_bytes_take (b, len, &bytes))
    return NULL;
  memcpy (&native, bytes, len);
  if (!(native.any.sa_family == AF_INET && len == sizeof native.in)
      && !(native.any.sa_family == AF_INET6 && len == sizeof native.in6))
    return NULL;
  return g_socket_address_new_from_native (&native, len);
}

static gboolean
read_handshake (WeirBytes *b, guint32 id, const SrtWireHandler *handler, gpointer owner)
{
  g_autoptr (GSocketAddress) from = read_address (b);
  g_autofree gchar *stream_id = wire_dup_text (b, SRT_WIRE_STREAM_ID);
  gboolean ok = from && stream_id && is_whole (b) && handler->handshake;

  if (ok)
    handler->handshake (owner, id, G_INET_SOCKET_ADDRESS (from), stream_id);
  return ok;
}

static gboolean
read_samples (WeirBytes *b, const SrtWireHandler *handler, gpointer owner)
{
  SrtSample sample;

  if (!handler->sampled)
    return FALSE;
  while (weir_bytes_left (b) > 0) {
    weir_bytes_u32 (b, &sample.id);
    weir_bytes_u64 (b, &sample.late);
    weir_bytes_u64 (b, &sample.sent);
    weir_bytes_u64 (b, &sample.overflow);
    if (b->failed)
      return FALSE;
    handler->sampled (owner, &sample);
  }
  return TRUE;
}

static gboolean
read_of_caller (WeirBytes *b, guint8 type, const SrtWireHandler *handler, gpointer owner)
{
  guint8 value = 0;
  guint32 id = 0;

  weir_bytes_u32 (b, &id);
  if (type == HANDSHAKE)
    return read_handshake (b, id, handler, owner);
  if (type == REFUSED || type == ENDED)
    weir_bytes_u8 (b, &value);
  if (!is_whole (b))
    return FALSE;
  if (type == OPENED && handler->opened)
    handler->opened (owner, id);
  else if (type == REFUSED && value < SRT_PROBLEMS && handler->refused)
    handler->refused (owner, id, value);
  else if (type == ENDED && value < SRT_ENDS && handler->ended)
    handler->ended (owner, id, value);
  else
    return FALSE;
  return TRUE;
}

gboolean
srt_wire_read (const guint8 *data, gsize len, const SrtWireHandler *handler, gpointer owner)
{
  WeirBytes b = weir_bytes (data, len);
  guint8 type = 0;

  weir_bytes_u8 (&b, &type);
  return type == SAMPLES ? read_samples (&b, handler, owner)
                         : read_of_caller (&b, type, handler, owner);
}

gboolean
srt_wire_read_job (const guint8 *data, gsize len, guint32 *latency_ms, gchar **passphrase)
{
  WeirBytes b = weir_bytes (data, len);
  guint8 type = 0;

  *latency_ms = 0;
  weir_bytes_u8 (&b, &type);
  weir_bytes_u32 (&b, latency_ms);
  *passphrase = wire_dup_text (&b, SRT_WIRE_SECRET);
  if (*passphrase && !**passphrase)
    g_clear_pointer (passphrase, g_free);
  if (type == WIRE_SRT && is_whole (&b) && *latency_ms <= G_MAXINT32)
    return TRUE;
  g_clear_pointer (passphrase, g_free);
  return FALSE;
}

gboolean
srt_wire_read_command (const guint8 *data, gsize len, SrtCommand *command, guint32 *id)
{
  WeirBytes b = weir_bytes (data, len);
  guint8 type = 0;

  *id = 0;
  weir_bytes_u8 (&b, &type);
  weir_bytes_u32 (&b, id);
  *command = type;
  return is_whole (&b) && type > 0 && type < SRT_COMMANDS;
}

gboolean
srt_wire_read_verdict (const guint8 *data, gsize len, guint32 *id, guint16 *code)
{
  WeirBytes b = weir_bytes (data, len);
  guint8 type = 0;

  *id = 0;
  *code = 0;
  weir_bytes_u8 (&b, &type);
  weir_bytes_u32 (&b, id);
  weir_bytes_u16 (&b, code);
  return is_whole (&b) && type == 0;
}
