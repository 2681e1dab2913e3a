// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay_wire.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bits/bytes.h"

static const uint8_t magic[] = { 0xd3, 0xa9, 0xc5, 0x96 };

// ---- stamps: seven bits a byte ----

static uint8_t *
put (uint8_t *out, uint64_t value, unsigned n)
{
  while (n-- > 0)
    *out++ = (uint8_t) (0x80 | (value >> 7 * n & 0x7f));
  return out;
}

static uint64_t
take (WeirBytes *from, unsigned n)
{
  uint64_t value = 0;
  uint8_t byte;

  while (n-- > 0) {
    weir_bytes_u8 (from, &byte);
    value = value << 7 | (byte & 0x7f);
  }
  return value;
}

void
relay_stamp_write (uint8_t out[RELAY_STAMP], const RelayStamp *stamp)
{
  memcpy (out, magic, sizeof magic);
  out = put (out + sizeof magic, stamp->stream, 3);
  out = put (out, stamp->session, 3);
  out = put (out, stamp->track, 1);
  out = put (out, stamp->seq, 5);
  put (out, (uint64_t) stamp->sent_ns, 8);
}

bool
relay_stamp_read (const uint8_t *payload, size_t len, RelayStamp *out)
{
  WeirBytes from = weir_bytes (payload, len);
  const uint8_t *begin;

  if (len < RELAY_STAMP || !weir_bytes_skip (&from, len - RELAY_STAMP)
      || !weir_bytes_take (&from, sizeof magic, &begin) || memcmp (begin, magic, sizeof magic) != 0)
    return false;
  out->stream = (uint32_t) take (&from, 3);
  out->session = (uint32_t) take (&from, 3);
  out->track = (uint8_t) take (&from, 1);
  out->seq = take (&from, 5);
  out->sent_ns = (int64_t) take (&from, 8);
  return !from.failed;
}

// ---- RTSP ----

bool
relay_header (const char *message, size_t len, const char *name, char *out, size_t size)
{
  const char *end = message + len, *line = message;
  size_t name_len = strlen (name);

  *out = '\0';
  while ((line = memchr (line, '\n', (size_t) (end - line))) && ++line < end && *line != '\r') {
    const char *value = line + name_len + 1, *stop;
    size_t n;

    if (value > end || strncasecmp (line, name, name_len) != 0 || line[name_len] != ':')
      continue;
    while (value < end && *value == ' ')
      value++;
    stop = memchr (value, '\r', (size_t) (end - value));
    n = (size_t) ((stop ? stop : end) - value);
    n = n < size ? n : size - 1;
    memcpy (out, value, n);
    out[n] = '\0';
    return true;
  }
  return false;
}

ssize_t
relay_message_len (const char *data, size_t len)
{
  const char *end;
  char text[16];
  size_t total;

  if (len >= 4 && data[0] == '$')
    total = 4 + ((size_t) (uint8_t) data[2] << 8 | (uint8_t) data[3]);
  else if (len > 0 && data[0] == '$')
    return 0;
  else if ((end = memmem (data, len, "\r\n\r\n", 4))) {
    total = (size_t) (end - data) + 4;
    if (relay_header (data, total, "Content-Length", text, sizeof text))
      total += strtoul (text, NULL, 10);
  } else
    return len < RELAY_MESSAGE_MAX ? 0 : -1;
  if (total > RELAY_MESSAGE_MAX)
    return -1;
  return total <= len ? (ssize_t) total : 0;
}

bool
relay_address (const char *text, struct sockaddr_in *out)
{
  char host[64];
  unsigned port;

  *out = (struct sockaddr_in) { .sin_family = AF_INET };
  if (sscanf (text, "%63[0-9.]:%u", host, &port) != 2 || port > 65535)
    return false;
  out->sin_port = htons ((in_port_t) port);
  return inet_pton (AF_INET, host, &out->sin_addr) == 1;
}
