// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/tscues.h"

#include <string.h>

#include "bits/bytes.h"

#define SYNC 0x47
#define START 0x4000
#define HAS_ADAPTATION 0x20
#define HAS_PAYLOAD 0x10
#define NS_PER_SECOND INT64_C (1000000000)
#define RATE 90000

static int64_t
to_ns (uint64_t ticks)
{
  return (int64_t) (ticks / RATE) * NS_PER_SECOND + (int64_t) (ticks % RATE) * NS_PER_SECOND / RATE;
}

// ---- sections ----

// Puts the payload of a packet into the section. Returns the section if that is whole, else NULL.
// What is behind it in its last packet is ignored: tables and cues have packets of their own.
static const WeirTsSection *
take_payload (WeirTsSection *self, WeirBytes b, bool starts)
{
  const uint8_t *data;
  uint8_t pointer = 0;
  size_t n, wanted;

  if (starts) {
    weir_bytes_u8 (&b, &pointer);
    if (!weir_bytes_skip (&b, pointer))
      return NULL;
    self->n = 0;
    self->is_open = true;
  }
  if (!self->is_open)
    return NULL;
  n = weir_bytes_left (&b);
  n = n < sizeof self->bytes - self->n ? n : sizeof self->bytes - self->n;
  if (weir_bytes_take (&b, n, &data) && n > 0)
    memcpy (self->bytes + self->n, data, n);
  self->n += n;
  if (self->n < 3)
    return NULL;
  wanted = 3 + ((size_t) (self->bytes[1] & 0x0f) << 8 | self->bytes[2]);
  if (wanted > self->n) {
    self->is_open = wanted <= sizeof self->bytes;
    return NULL;
  }
  self->n = wanted;
  self->is_open = false;
  return self;
}

// Returns what is between the head of a table of programs and its checksum.
static WeirBytes
open_table (const WeirTsSection *section, uint8_t id)
{
  const size_t head = 8, checksum = 4;

  if (section->bytes[0] != id || section->n < head + checksum)
    return weir_bytes (NULL, 0);
  return weir_bytes (section->bytes + head, section->n - head - checksum);
}

static void
set_pid (WeirTsSection *self, int pid)
{
  if (self->pid != pid)
    self->is_open = false;
  self->pid = pid;
}

// The table of all programs: finds the first one.
static void
read_programs (WeirTsCues *self, const WeirTsSection *section)
{
  WeirBytes b = open_table (section, 0);
  uint16_t number, pid;

  while (weir_bytes_left (&b) >= 4) {
    weir_bytes_u16 (&b, &number);
    weir_bytes_u16 (&b, &pid);
    if (number == 0)
      continue;
    set_pid (&self->map, pid & 0x1fff);
    return;
  }
}

static bool
is_video (uint8_t type)
{
  return type == 0x01 || type == 0x02 || type == 0x10 || type == 0x1b || type == 0x24;
}

// The table of a program: finds its pictures and its cues.
static void
read_map (WeirTsCues *self, const WeirTsSection *section)
{
  WeirBytes b = open_table (section, 2);
  int pictures = -1, cues = -1;
  uint16_t pid, length;
  uint8_t type;

  weir_bytes_skip (&b, 2);
  weir_bytes_u16 (&b, &length);
  weir_bytes_skip (&b, length & 0xfff);
  while (weir_bytes_left (&b) >= 5) {
    weir_bytes_u8 (&b, &type);
    weir_bytes_u16 (&b, &pid);
    weir_bytes_u16 (&b, &length);
    weir_bytes_skip (&b, length & 0xfff);
    if (is_video (type) && pictures < 0)
      pictures = pid & 0x1fff;
    else if (type == WEIR_SCTE35_STREAM && cues < 0)
      cues = pid & 0x1fff;
  }
  if (pictures != self->pictures)
    self->timed = false;
  self->pictures = pictures;
  set_pid (&self->cues, cues);
}

// ---- pictures ----

// Reads a time of a PES head.
static uint64_t
read_stamp (WeirBytes *b)
{
  uint64_t value;

  weir_bytes_number (b, 5, &value);
  return (value >> 33 & 7) << 30 | (value >> 17 & 0x7fff) << 15 | (value >> 1 & 0x7fff);
}

static void
read_picture (WeirTsCues *self, WeirBytes b)
{
  uint64_t head, time;
  uint8_t flags, unused;

  weir_bytes_number (&b, 3, &head);
  weir_bytes_skip (&b, 4);
  weir_bytes_u8 (&b, &flags);
  weir_bytes_u8 (&b, &unused);
  if (b.failed || head != 1 || !(flags & 0x80))
    return;
  time = read_stamp (&b);
  if (flags & 0x40)
    time = read_stamp (&b);
  if (b.failed)
    return;
  self->time = time;
  self->timed = true;
}

// ---- cues ----

static void
read_cue (WeirTsCues *self, const WeirTsSection *section,
    void (*found) (void *data, const WeirCue *cue), void *data)
{
  WeirScte35 from;
  WeirCue cue;
  uint64_t ahead;

  if (weir_scte35_read (section->bytes, section->n, &from) < 0)
    return;
  cue = (WeirCue) { .event = from.event, .cancel = from.cancel, .out = from.out };
  cue.duration = to_ns (from.duration);
  // A time of the past is more than half of the range ahead.
  ahead = (from.time - self->time) & (WEIR_SCTE35_TIMES - 1);
  if (from.timed && self->timed && ahead < WEIR_SCTE35_TIMES / 2)
    cue.delay = to_ns (ahead);
  found (data, &cue);
}

// ---- packets ----

static void
take_packet (WeirTsCues *self, void (*found) (void *data, const WeirCue *cue), void *data)
{
  WeirBytes b = weir_bytes (self->packet, sizeof self->packet);
  const WeirTsSection *section = NULL;
  uint8_t sync, flags, length;
  uint16_t head;
  bool starts;
  int pid;

  weir_bytes_u8 (&b, &sync);
  weir_bytes_u16 (&b, &head);
  weir_bytes_u8 (&b, &flags);
  pid = head & 0x1fff;
  starts = head & START;
  if (flags & HAS_ADAPTATION) {
    weir_bytes_u8 (&b, &length);
    weir_bytes_skip (&b, length);
  }
  if (b.failed || !(flags & HAS_PAYLOAD) || flags & 0xc0)
    return;
  if (pid == 0) {
    section = take_payload (&self->tables, b, starts);
    if (section)
      read_programs (self, section);
  } else if (pid == self->map.pid) {
    section = take_payload (&self->map, b, starts);
    if (section)
      read_map (self, section);
  } else if (pid == self->cues.pid) {
    section = take_payload (&self->cues, b, starts);
    if (section)
      read_cue (self, section, found, data);
  } else if (pid == self->pictures && starts) {
    read_picture (self, b);
  }
}

void
weir_ts_cues_take (WeirTsCues *self, const uint8_t *bytes, size_t len,
    void (*found) (void *data, const WeirCue *cue), void *data)
{
  if (!self->begun) {
    self->begun = true;
    self->map.pid = self->cues.pid = self->pictures = -1;
  }
  while (len > 0) {
    size_t n = WEIR_TS_PACKET - self->n_packet;

    if (self->n_packet == 0 && *bytes != SYNC) {
      bytes++;
      len--;
      continue;
    }
    n = n < len ? n : len;
    memcpy (self->packet + self->n_packet, bytes, n);
    self->n_packet += n;
    bytes += n;
    len -= n;
    if (self->n_packet == WEIR_TS_PACKET) {
      take_packet (self, found, data);
      self->n_packet = 0;
    }
  }
}
