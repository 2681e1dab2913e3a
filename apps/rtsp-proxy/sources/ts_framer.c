// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/ts_framer.h"

#include <string.h>

#include "rtp/rtp.h"

#define SYNC 0x47
#define RUN 3 // packets that show where they are among other bytes

static const gsize strides[] = { TS_FRAMER_PACKET, 192, 204, TS_FRAMER_STRIDE_MAX };

static gboolean
is_ts (const guint8 *data, gsize len)
{
  if (len == 0 || len % TS_FRAMER_PACKET)
    return FALSE;
  for (gsize at = 0; at < len; at += TS_FRAMER_PACKET) {
    if (data[at] != SYNC)
      return FALSE;
  }
  return TRUE;
}

gboolean
ts_framer_is_whole (const TsFramer *self, const guint8 *data, gsize len)
{
  return self->n_rest == 0 && self->skip == 0
         && (self->stride == 0 || self->stride == TS_FRAMER_PACKET) && is_ts (data, len);
}

// Reports whether a packet may be at a place. One without payload and adaptation field is none.
static gboolean
is_head (const guint8 *data, gsize len, gsize at)
{
  return data[at] == SYNC && (len - at < 4 || data[at + 3] & 0x30);
}

// Finds the first place with enough packets one stride apart. Returns FALSE if there is none.
static gboolean
find_packets (TsFramer *self, const guint8 *data, gsize len)
{
  for (gsize at = 0; at < MIN (len, TS_FRAMER_STRIDE_MAX); at++) {
    for (guint i = 0; i < G_N_ELEMENTS (strides); i++) {
      gsize n = 0;

      for (gsize place = at; n < RUN && place < len && is_head (data, len, place);
          place += strides[i])
        n++;
      if (n < RUN)
        continue;
      *self = (TsFramer) { .stride = strides[i], .skip = at };
      return TRUE;
    }
  }
  return FALSE;
}

// Takes a datagram of few packets if they are all that is in it. The time of a packet of 192 bytes
// is before it.
static gboolean
find_few (TsFramer *self, const guint8 *data, gsize len)
{
  for (guint i = 0; i < G_N_ELEMENTS (strides); i++) {
    gsize first = strides[i] == 192 ? 192 - TS_FRAMER_PACKET : 0, at = first;

    if (len == 0 || len % strides[i])
      continue;
    while (at < len && is_head (data, len, at))
      at += strides[i];
    if (at != len + first)
      continue;
    *self = (TsFramer) { .stride = strides[i], .skip = first };
    return TRUE;
  }
  return FALSE;
}

// Appends the packets of the data, of which `skip` bytes are behind the packet before, and keeps
// the beginning of the last one. Returns FALSE if anything else is between them.
static gboolean
take_packets (TsFramer *self, const guint8 *data, gsize len, GByteArray *out)
{
  gsize at = self->skip;

  self->n_rest = 0;
  for (; at < len; at += self->stride) {
    if (!is_head (data, len, at))
      return FALSE;
    if (len - at < TS_FRAMER_PACKET) {
      self->n_rest = len - at;
      memcpy (self->rest, data + at, self->n_rest);
      at = len;
      break;
    }
    g_byte_array_append (out, data + at, TS_FRAMER_PACKET);
  }
  self->skip = at - len;
  return TRUE;
}

// Takes what follows the datagrams before. Packets that lie over several datagrams come first:
// their bytes may look like an RTP header.
static gboolean
go_on (TsFramer *self, const guint8 *data, gsize len, GByteArray *out)
{
  GByteArray *all;
  gboolean ok;

  if (self->stride == 0)
    return FALSE;
  all = g_byte_array_sized_new ((guint) (self->n_rest + len));
  g_byte_array_append (all, self->rest, (guint) self->n_rest);
  g_byte_array_append (all, data, (guint) len);
  ok = take_packets (self, all->data, all->len, out);
  g_byte_array_unref (all);
  return ok;
}

gboolean
ts_framer_push (TsFramer *self, const guint8 *data, gsize len, GByteArray *out)
{
  const guint before = out->len;
  WeirRtp rtp;

  if (go_on (self, data, len, out))
    return TRUE;
  // The first datagram, or one is missing before this one, or the sender has begun anew.
  g_byte_array_set_size (out, before);
  if (weir_rtp_parse (data, len, &rtp) == 0
      && is_ts (data + rtp.payload_offset, rtp.payload_length)) {
    *self = (TsFramer) { 0 };
    g_byte_array_append (out, data + rtp.payload_offset, (guint) rtp.payload_length);
    return TRUE;
  }
  if ((find_packets (self, data, len) || find_few (self, data, len))
      && take_packets (self, data, len, out))
    return TRUE;
  g_byte_array_set_size (out, before);
  *self = (TsFramer) { 0 };
  return FALSE;
}
