// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/tscues.h"

#include <errno.h>
#include <string.h>

#include "tap.h"

#define SECOND INT64_C (1000000000)

// Messages of ANSI/SCTE 35, section 14, and one that encoders send.
// time_signal(), placement opportunity start, 307 s
static const uint8_t opportunity[] = { 0xfc, 0x30, 0x34, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff,
  0xff, 0xf0, 0x05, 0x06, 0xfe, 0x72, 0xbd, 0x00, 0x50, 0x00, 0x1e, 0x02, 0x1c, 0x43, 0x55, 0x45,
  0x49, 0x48, 0x00, 0x00, 0x8e, 0x7f, 0xcf, 0x00, 0x01, 0xa5, 0x99, 0xb0, 0x08, 0x08, 0x00, 0x00,
  0x00, 0x00, 0x2c, 0xa0, 0xa1, 0x8a, 0x34, 0x02, 0x00, 0x9a, 0xc9, 0xd1, 0x7e };
// splice_insert(), out, 60.293567 s, no length of the command
static const uint8_t out[] = { 0xfc, 0x30, 0x2f, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff,
  0xf0, 0x14, 0x05, 0x48, 0x00, 0x00, 0x8f, 0x7f, 0xef, 0xfe, 0x73, 0x69, 0xc0, 0x2e, 0xfe, 0x00,
  0x52, 0xcc, 0xf5, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x08, 0x43, 0x55, 0x45, 0x49, 0x00,
  0x00, 0x01, 0x35, 0x62, 0xdb, 0xa3, 0x0a };

static void
messages_of_the_standard_are_read (void)
{
  WeirScte35 cue;

  CHECK_INT (weir_scte35_read (out, sizeof out, &cue), 0);
  CHECK (cue.event == 0x4800008f && cue.out && !cue.cancel && cue.timed);
  CHECK (cue.time == UINT64_C (0x07369c02e) && cue.duration == 0x52ccf5);
  CHECK_INT (weir_scte35_read (opportunity, sizeof opportunity, &cue), 0);
  CHECK (cue.event == 0x4800008e && cue.out && cue.timed && cue.time == UINT64_C (0x072bd0050));
  CHECK (cue.duration == 0x0001a599b0);
}

// Appends the checksum.
static size_t
finish (uint8_t *section, size_t len)
{
  uint32_t crc = UINT32_MAX;

  section[1] = (uint8_t) (0x30 | (len + 1) >> 8);
  section[2] = (uint8_t) (len + 1);
  for (size_t i = 0; i < len; i++) {
    crc ^= (uint32_t) section[i] << 24;
    for (int bit = 0; bit < 8; bit++)
      crc = crc << 1 ^ (crc >> 31 ? UINT32_C (0x04c11db7) : 0);
  }
  for (int i = 0; i < 4; i++)
    section[len++] = (uint8_t) (crc >> (24 - 8 * i));
  return len;
}

static void
forms_of_messages_are_read (void)
{
  // After the table's head of 13 bytes; the byte there is the length of the command.
  static const struct {
    const char *bytes;
    size_t n;
    int result;
    bool cancel, out, timed;
    uint64_t time, duration;
  } rows[] = {
    { "\x05\0\0\0\7\xff\0\0", 8, 0, true, false, false, 0, 0 },
    { "\x05\0\0\0\7\x7f\xdf\0\1\0\0\0\0", 13, 0, false, true, false, 0, 0 }, // immediate
    { "\x05\0\0\0\7\x7f\x4f\xfe\0\0\0\x64\0\1\0\0\0\0", 18, 0, false, false, true, 100, 0 },
    { "\x05\0\0\0\7\x7f\xef\xff\0\0\0\1\xff\0\0\0\2\0\1\0\0\0\0", 23, 0, false, true, true,
        (UINT64_C (1) << 32) + 1, (UINT64_C (1) << 32) + 2 },
    { "\x05\0\0\0\7\x7f\x8f\2\1\xfe\0\0\0\5\2\xfe\0\0\0\6\0\1\0\0\0\0", 26, 0, false, true, true, 5,
        0 },                                        // of components
    { "\x06\x7f\0\0", 4, -ENOTSUP, 0, 0, 0, 0, 0 }, // of no event
    { "\x00\0\0", 3, -ENOTSUP, 0, 0, 0, 0, 0 },     // splice_null()
    { "\x05\0\0", 3, -EINVAL, 0, 0, 0, 0, 0 },      // cut
    { "\x05\0\0\0\7\x7f\x4f\xfe\0", 9, -EINVAL, 0, 0, 0, 0, 0 },
    { "\x06\x7f\0\3\2\3C", 7, -ENOTSUP, 0, 0, 0, 0, 0 }, // a descriptor that is cut
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    uint8_t section[128] = { 0xfc, 0x30, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff };
    size_t len;
    WeirScte35 cue;

    memcpy (section + 13, rows[i].bytes, rows[i].n);
    len = finish (section, 13 + rows[i].n);
    CHECK_INT (weir_scte35_read (section, len, &cue), rows[i].result);
    if (rows[i].result == 0)
      CHECK (cue.event == 7 && cue.cancel == rows[i].cancel && cue.out == rows[i].out
             && cue.timed == rows[i].timed && cue.duration == rows[i].duration
             && (!cue.timed || cue.time == rows[i].time));
    section[4] |= 0x80; // encrypted
    len = finish (section, 13 + rows[i].n);
    CHECK (weir_scte35_read (section, len, &cue) < 0);
  }
}

static void
messages_that_are_cut_or_changed_are_refused (void)
{
  uint8_t copy[sizeof out];
  WeirScte35 cue;

  for (size_t n = 0; n < sizeof out; n++) {
    CHECK (weir_scte35_read (out, n, &cue) == -EINVAL);
    memcpy (copy, out, sizeof copy);
    copy[n] ^= 0x10;
    CHECK (weir_scte35_read (copy, sizeof copy, &cue) == -EINVAL);
  }
}

// ---- in a stream ----

typedef struct {
  uint8_t bytes[64 * WEIR_TS_PACKET];
  size_t n;
} Stream;

static void
put_packet (Stream *stream, int pid, bool starts, const uint8_t *payload, size_t len)
{
  uint8_t *packet = stream->bytes + stream->n;

  memset (packet, 0xff, WEIR_TS_PACKET);
  packet[0] = 0x47;
  packet[1] = (uint8_t) ((starts ? 0x40 : 0) | pid >> 8);
  packet[2] = (uint8_t) pid;
  packet[3] = 0x10;
  memcpy (packet + 4, payload, len);
  stream->n += WEIR_TS_PACKET;
}

static void
put_section (Stream *stream, int pid, const uint8_t *section, size_t len)
{
  uint8_t payload[WEIR_TS_PACKET] = { 0 };

  memcpy (payload + 1, section, len);
  put_packet (stream, pid, true, payload, len + 1);
}

static void
put_tables (Stream *stream)
{
  uint8_t programs[64] = { 0x00, 0xb0, 0, 0, 1, 0xc1, 0, 0, 0, 0, 0xe0, 0x10, 0, 1, 0xe1, 0x00 };
  uint8_t map[64] = { 0x02, 0xb0, 0, 0, 1, 0xc1, 0, 0, 0xe1, 0x01, 0xf0, 0, 0x0f, 0xe1, 0x02, 0xf0,
    0, 0x1b, 0xe1, 0x01, 0xf0, 0, 0x86, 0xe1, 0xf0, 0xf0, 0 };
  size_t len = finish (programs, 16);

  put_section (stream, 0, programs, len);
  len = finish (map, 27);
  put_section (stream, 0x100, map, len);
}

static void
put_picture (Stream *stream, uint64_t pts)
{
  uint8_t pes[] = { 0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5, (uint8_t) (0x21 | pts >> 30 << 1),
    (uint8_t) (pts >> 22), (uint8_t) (pts >> 14 | 1), (uint8_t) (pts >> 7),
    (uint8_t) (pts << 1 | 1) };

  put_packet (stream, 0x101, true, pes, sizeof pes);
}

static void
note (void *data, const WeirCue *cue)
{
  *(WeirCue *) data = *cue;
}

static WeirCue
run (const Stream *stream, size_t piece)
{
  static WeirTsCues cues;
  WeirCue cue = { 0 };

  memset (&cues, 0, sizeof cues);
  for (size_t at = 0; at < stream->n; at += piece)
    weir_ts_cues_take (
        &cues, stream->bytes + at, stream->n - at < piece ? stream->n - at : piece, note, &cue);
  return cue;
}

static void
cues_are_found_in_pieces_of_any_length (void)
{
  static const size_t pieces[] = { 1, 7, 187, 188, 189, 1316, 65536 };
  const uint64_t time = UINT64_C (0x07369c02e);
  Stream stream = { .n = 5 }; // it begins within a packet

  put_tables (&stream);
  put_picture (&stream, time - 4 * 90000);
  put_section (&stream, 0x1f0, out, sizeof out);
  for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
    WeirCue cue = run (&stream, pieces[i]);

    CHECK (cue.event == 0x4800008f && cue.out && cue.delay == 4 * SECOND);
    CHECK (cue.duration > 60 * SECOND && cue.duration < 61 * SECOND);
  }
}

static void
a_cue_that_is_late_is_due_at_once (void)
{
  Stream stream = { 0 };

  put_tables (&stream);
  put_picture (&stream, UINT64_C (0x07369c02e) + 90000);
  put_section (&stream, 0x1f0, out, sizeof out);
  CHECK (run (&stream, 188).event == 0x4800008f && run (&stream, 188).delay == 0);
}

static void
what_is_no_cue_is_ignored (void)
{
  Stream stream = { 0 };
  uint8_t payload[184] = { 0, 0xfc, 0x3f, 0xff };

  put_section (&stream, 0x1f0, out, sizeof out); // no table has named it yet
  put_tables (&stream);
  put_packet (&stream, 0x1f0, false, out, sizeof out);        // nothing has begun
  put_packet (&stream, 0x1f0, true, payload, sizeof payload); // longer than a section may be
  for (int i = 0; i < 30; i++)
    put_packet (&stream, 0x1f0, false, payload, sizeof payload);
  payload[0] = 200; // begins behind the packet
  put_packet (&stream, 0x1f0, true, payload, sizeof payload);
  CHECK (run (&stream, 188).event == 0);
  put_section (&stream, 0x1f0, out, sizeof out);
  CHECK (run (&stream, 188).event == 0x4800008f);
}

int
main (void)
{
  RUN (messages_of_the_standard_are_read);
  RUN (forms_of_messages_are_read);
  RUN (messages_that_are_cut_or_changed_are_refused);
  RUN (cues_are_found_in_pieces_of_any_length);
  RUN (a_cue_that_is_late_is_due_at_once);
  RUN (what_is_no_cue_is_ignored);
  return tap_done ();
}
