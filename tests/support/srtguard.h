// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The rule of the SRT port's filter (outlets/srt/srt_guard.h) as a plain reader, and a socket with
// the filter, to compare them.

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "outlets/srt/srt_guard.h"

#define SRT_DATAGRAM_MAX 1500

static inline uint32_t
srt_word (const uint8_t *p)
{
  return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

static inline bool
srt_keys_fit (const uint8_t *message, size_t size)
{
  size_t keys = (message[3] & 3) == 3 ? 2 : message[3] & 3 ? 1 : 0, words = message[15];

  return size <= 104 && keys > 0 && message[14] == 4 && (words == 4 || words == 6 || words == 8)
         && 16 + 16 + keys * words * 4 + 8 <= size;
}

static inline bool
srt_extension_fits (uint32_t kind, const uint8_t *content, size_t size)
{
  switch (kind) {
    case 1:
      return size >= 12;
    case 3:
      return size >= 56 && srt_keys_fit (content, size);
    case 5:
      return size >= 4 && size <= 512;
    case 6:
      return size >= 4 && size <= 16;
    case 7:
      return size >= 4 && size <= 64 && content[3] != 0;
    case 8:
      return size >= 8;
    default:
      return false;
  }
}

static inline bool
srt_handshake_fits (const uint8_t *p, size_t size)
{
  size_t at = 64;

  if (size < 64 || srt_word (p + 16) < 4 || srt_word (p + 16) > 5)
    return false;
  if (srt_word (p + 24) >= 0x7fffffff || srt_word (p + 28) < 76 || srt_word (p + 28) > 65535)
    return false;
  if (srt_word (p + 32) < 2 || srt_word (p + 32) > 0x7fffffff)
    return false;
  for (int n = 0; at < size; n++) {
    size_t len;

    if (n == 8 || size - at < 4)
      return false;
    len = (size_t) (p[at + 2] << 8 | p[at + 3]) * 4;
    if (len > size - at - 4
        || !srt_extension_fits ((uint32_t) p[at] << 8 | p[at + 1], p + at + 4, len))
      return false;
    at += 4 + len;
  }
  return true;
}

// Returns whether the filter should take the datagram.
static inline bool
srt_datagram_fits (const uint8_t *p, size_t size)
{
  if (size < 4)
    return false;
  if (!(p[0] & 0x80))
    return true;
  if (size < 16)
    return false;
  switch (srt_word (p) >> 16 & 0x7fff) {
    case 0:
      return srt_handshake_fits (p, size);
    case 1:
    case 4:
    case 5:
    case 6:
    case 8:
      return true;
    case 2:
      return size == 20 || size >= 32;
    case 3:
      return size >= 20 && size % 4 == 0 && !(p[size - 4] & 0x80);
    case 7:
      return size >= 24;
    case 0x7fff:
      return (p[3] == 3 || p[3] == 4) && p[2] == 0 && size >= 20 && size <= 120;
    default:
      return false;
  }
}

// A pair of local sockets whose second end has the filter. The kernel runs it there as on a UDP
// socket, but for the eight bytes in front. Returns false with errno set if there is none.
static inline bool
srt_filtered_pair (int pair[2])
{
  return socketpair (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) == 0
         && srt_guard_attach (pair[1], SRT_GUARD_UDP);
}

// Returns whether the kernel passes the datagram.
static inline bool
srt_pair_passes (const int pair[2], const uint8_t *data, size_t size)
{
  uint8_t whole[SRT_GUARD_UDP + SRT_DATAGRAM_MAX + 1] = { 0 };

  memcpy (whole + SRT_GUARD_UDP, data, size);
  if (send (pair[0], whole, SRT_GUARD_UDP + size, 0) < 0)
    return false;
  return recv (pair[1], whole, sizeof whole, MSG_DONTWAIT) == (ssize_t) (SRT_GUARD_UDP + size);
}
