// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// An H.264 file in memory, with its NAL units and access units, and the RTP packets that carry it.
// It shares no code with the tested program: it finds units by the standard's text, and builds the
// packets that core takes apart.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const uint8_t *data;
  size_t len;
  uint8_t type, spatial, temporal;
  unsigned au; // number of its access unit
} AvcNal;

typedef struct {
  uint8_t *file;
  size_t size;
  AvcNal *nals;
  size_t n;
  unsigned n_aus;
} Avc;

// An access unit begins with the first delimiter, parameter set, message or prefix after a slice.
static inline void
avc_number_aus (Avc *avc)
{
  bool in_slices = true;
  unsigned au = 0;

  for (size_t i = 0; i < avc->n; i++) {
    uint8_t type = avc->nals[i].type;
    bool slice = type == 1 || type == 5 || type == 20;
    bool prefixed = i > 0 && avc->nals[i - 1].type == 14;
    bool first = (type == 1 || type == 5) && avc->nals[i].data[1] >> 7;
    bool prefix_of_first = type == 14 && i + 1 < avc->n && avc->nals[i + 1].data[1] >> 7;

    if (in_slices && (prefix_of_first || (first && !prefixed) || (type >= 6 && type <= 9))) {
      au++;
      in_slices = false;
    }
    in_slices |= slice;
    avc->nals[i].au = au - 1;
  }
  avc->n_aus = au;
}

static inline void
avc_read_layers (Avc *avc)
{
  for (size_t i = 0; i < avc->n; i++) {
    AvcNal *nal = &avc->nals[i];

    if (nal->type == 14 || nal->type == 20) {
      nal->spatial = nal->data[2] >> 4 & 7;
      nal->temporal = nal->data[3] >> 5;
    } else if (i > 0 && avc->nals[i - 1].type == 14) {
      nal->temporal = avc->nals[i - 1].temporal;
    }
  }
}

static inline bool
avc_load (Avc *avc, const char *name)
{
  char path[4096];
  FILE *f;
  const char *dir = getenv ("WEIR_DATA");

  snprintf (path, sizeof path, "%s/svc/%s", dir ? dir : "tests/data", name);
  memset (avc, 0, sizeof *avc);
  f = fopen (path, "rb");
  if (!f)
    return false;
  avc->file = malloc (4 << 20);
  avc->size = fread (avc->file, 1, 4 << 20, f);
  fclose (f);
  avc->nals = calloc (10000, sizeof *avc->nals);
  for (size_t i = 0; i + 3 < avc->size && avc->n < 10000; i++) {
    const uint8_t *p = avc->file + i;

    if (p[0] || p[1] || p[2] != 1)
      continue;
    if (avc->n > 0)
      avc->nals[avc->n - 1].len = (size_t) (p - avc->nals[avc->n - 1].data);
    avc->nals[avc->n++] = (AvcNal) { .data = p + 3, .type = p[3] & 31 };
  }
  if (avc->n > 0)
    avc->nals[avc->n - 1].len = (size_t) (avc->file + avc->size - avc->nals[avc->n - 1].data);
  for (size_t i = 0; i < avc->n; i++) {
    while (avc->nals[i].len > 0 && avc->nals[i].data[avc->nals[i].len - 1] == 0)
      avc->nals[i].len--;
  }
  avc_read_layers (avc);
  avc_number_aus (avc);
  return true;
}

static inline void
avc_free (Avc *avc)
{
  free (avc->file);
  free (avc->nals);
}

/* RTP */

#define AVC_MTU 1200

typedef struct {
  uint8_t data[AVC_MTU + 100];
  size_t len;
} AvcPacket;

typedef struct {
  AvcPacket *packets;
  size_t n, room;
  uint16_t seq;
} AvcRtp;

static inline AvcPacket *
avc_packet (AvcRtp *rtp, unsigned au, bool marker)
{
  uint32_t ts = 1000 + au * 3000;
  AvcPacket *packet;

  if (rtp->n == rtp->room) {
    rtp->room = rtp->room ? rtp->room * 2 : 1024;
    rtp->packets = realloc (rtp->packets, rtp->room * sizeof *rtp->packets);
  }
  packet = &rtp->packets[rtp->n++];
  memcpy (packet->data,
      (uint8_t[]) { 0x80, (uint8_t) ((marker ? 0x80 : 0) | 96), (uint8_t) (rtp->seq >> 8),
          (uint8_t) rtp->seq, (uint8_t) (ts >> 24), (uint8_t) (ts >> 16), (uint8_t) (ts >> 8),
          (uint8_t) ts, 1, 2, 3, 4 },
      12);
  rtp->seq++;
  packet->len = 12;
  return packet;
}

static inline void
avc_append (AvcPacket *packet, const void *data, size_t len)
{
  memcpy (packet->data + packet->len, data, len);
  packet->len += len;
}

static inline void
avc_fragment (AvcRtp *rtp, const AvcNal *nal, bool marker)
{
  const size_t most = AVC_MTU - 2;

  for (size_t at = 1; at < nal->len; at += most) {
    size_t n = nal->len - at < most ? nal->len - at : most;
    bool last = at + n == nal->len;
    AvcPacket *packet = avc_packet (rtp, nal->au, marker && last);
    uint8_t header[2] = { (uint8_t) ((nal->data[0] & 0xe0) | 28),
      (uint8_t) ((at == 1 ? 0x80 : 0) | (last ? 0x40 : 0) | nal->type) };

    avc_append (packet, header, 2);
    avc_append (packet, nal->data + at, n);
  }
}

// Makes a STAP-A of as many of the `n` units as fit. Returns their number.
static inline size_t
avc_aggregate (AvcRtp *rtp, const AvcNal *nals, size_t n, bool last_of_au)
{
  size_t total = 1, count = 0;
  uint8_t header = 24;
  AvcPacket *packet;

  while (count < n && total + 2 + nals[count].len <= AVC_MTU)
    total += 2 + nals[count++].len;
  if (count < 2)
    return 0;
  packet = avc_packet (rtp, nals[0].au, last_of_au && count == n);
  for (size_t i = 0; i < count; i++) {
    if ((nals[i].data[0] & 0x60) > (header & 0x60))
      header = (uint8_t) ((nals[i].data[0] & 0x60) | 24);
  }
  avc_append (packet, &header, 1);
  for (size_t i = 0; i < count; i++) {
    uint8_t size[2] = { (uint8_t) (nals[i].len >> 8), (uint8_t) nals[i].len };

    avc_append (packet, size, 2);
    avc_append (packet, nals[i].data, nals[i].len);
  }
  return count;
}

// Returns all packets of the stream: single units and FU-A, and with `aggregate` also STAP-A.
static inline AvcRtp
avc_packetize (const Avc *avc, bool aggregate, uint16_t first_seq)
{
  AvcRtp rtp = { .seq = first_seq };

  for (size_t i = 0; i < avc->n;) {
    const AvcNal *nal = &avc->nals[i];
    size_t of_au = 1, taken = 0;
    bool last;

    while (i + of_au < avc->n && avc->nals[i + of_au].au == nal->au)
      of_au++;
    last = of_au == 1;
    if (aggregate)
      taken = avc_aggregate (&rtp, nal, of_au, true);
    if (taken == 0 && nal->len <= AVC_MTU)
      avc_append (avc_packet (&rtp, nal->au, last), nal->data, nal->len);
    else if (taken == 0)
      avc_fragment (&rtp, nal, last);
    i += taken ? taken : 1;
  }
  return rtp;
}
