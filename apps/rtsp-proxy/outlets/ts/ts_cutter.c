// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/ts_cutter.h"

#include <string.h>

#define SYNC 0x47
#define PAT_PID 0
#define NULL_PID 0x1fff
#define PAYLOAD_START 0x40

void
ts_cutter_init (TsCutter *self, TsCutterOut out, gpointer data)
{
  memset (self, 0, sizeof *self);
  self->pmt_pid = -1;
  self->out = out;
  self->data = data;
}

static gint
get_pid (const guint8 *packet)
{
  return (packet[1] & 0x1f) << 8 | packet[2];
}

// ---- datagrams ----

static guint8 *
add_room (TsCutter *self, guint64 time)
{
  if (self->used == 0)
    self->time = time;
  self->used += TS_PACKET;
  return self->datagram + self->used - TS_PACKET;
}

static void
send_if_full (TsCutter *self)
{
  if (self->used < TS_DATAGRAM)
    return;
  self->out (self->data, self->datagram, self->join, self->time);
  self->used = 0;
  self->join = FALSE;
}

static void
add (TsCutter *self, const guint8 *packet, guint64 time)
{
  memcpy (add_room (self, time), packet, TS_PACKET);
  send_if_full (self);
}

static void
fill (TsCutter *self)
{
  static const guint8 head[] = { SYNC, NULL_PID >> 8, NULL_PID & 0xff, 0x10 };

  while (self->used > 0) {
    guint8 *packet = add_room (self, self->time);

    memset (packet, 0xff, TS_PACKET);
    memcpy (packet, head, sizeof head);
    send_if_full (self);
  }
}

// ---- tables ----

static void
add_table (TsCutter *self, guint8 *packet, guint8 *counter, guint64 time)
{
  packet[3] = (guint8) ((packet[3] & 0xf0) | (*counter & 0x0f));
  ++*counter;
  add (self, packet, time);
}

static void
add_tables (TsCutter *self, guint64 time)
{
  if (self->has_pat)
    add_table (self, self->pat, &self->pat_counter, time);
  for (guint i = 0; i < self->n_pmt; i++)
    add_table (self, self->pmt[i], &self->pmt_counter, time);
}

// Reads the PID of the first program's PMT from a PAT, whose section begins the packet's payload.
static gint
read_pmt_pid (const guint8 *pat)
{
  gsize at = 4; // of the payload

  if (pat[3] & 0x20)
    at += 1 + (gsize) pat[4];
  if (at >= TS_PACKET)
    return -1;
  at += 1 + (gsize) pat[at] + 8; // the pointer field, and the head of the section
  if (at + 4 > TS_PACKET)
    return -1;
  return (pat[at + 2] & 0x1f) << 8 | pat[at + 3];
}

static gboolean
is_table (const TsCutter *self, const guint8 *packet)
{
  gint pid = get_pid (packet);

  return pid == PAT_PID || pid == self->pmt_pid;
}

static void
keep_table (TsCutter *self, const guint8 *packet)
{
  if (get_pid (packet) == PAT_PID) {
    memcpy (self->pat, packet, TS_PACKET);
    self->has_pat = TRUE;
    self->pmt_pid = read_pmt_pid (packet);
    return;
  }
  if (packet[1] & PAYLOAD_START)
    self->n_pmt = 0;
  if (self->n_pmt < TS_PMT_MAX)
    memcpy (self->pmt[self->n_pmt++], packet, TS_PACKET);
}

// ---- frames ----

void
ts_cutter_take (TsCutter *self, const guint8 *packets, gsize length, gboolean join, guint64 time)
{
  gboolean tables = join;

  for (gsize at = 0; at + TS_PACKET <= length; at += TS_PACKET) {
    const guint8 *packet = packets + at;

    if (packet[0] == SYNC && is_table (self, packet)) {
      keep_table (self, packet);
      tables = TRUE;
    }
  }
  self->begun |= join && self->has_pat && self->n_pmt > 0;
  if (!self->begun)
    return;
  if (join) {
    fill (self);
    self->join = TRUE;
  }
  if (tables)
    add_tables (self, time);
  for (gsize at = 0; at + TS_PACKET <= length; at += TS_PACKET) {
    const guint8 *packet = packets + at;

    if (packet[0] == SYNC && !is_table (self, packet))
      add (self, packet, time);
  }
}
