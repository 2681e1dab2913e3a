// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>

#include "bits/bytes.h"
#include "rtmp/amf.h"
#include "rtmp/chunks.h"
#include "rtmp/flv.h"
#include "rtmp/session.h"
#include "tap.h"

#define LITERAL(bytes) (const uint8_t *) bytes, sizeof bytes - 1

// ---- AMF 0 ----

static int
read_amf (const uint8_t *data, size_t len, WeirAmf *out)
{
  WeirBytes b = weir_bytes (data, len);

  return weir_amf_read (&b, out);
}

static void
amf_values_are_read (void)
{
  WeirAmf value, field;

  CHECK_INT (read_amf (LITERAL ("\0\x40\x45\0\0\0\0\0\0"), &value), 0);
  CHECK (value.type == WEIR_AMF_NUMBER && value.number == 42);
  CHECK_INT (read_amf (LITERAL ("\2\0\4live"), &value), 0);
  CHECK (weir_amf_is (&value, "live") && !weir_amf_is (&value, "liv"));
  CHECK_INT (read_amf (LITERAL ("\14\0\0\0\4live"), &value), 0);
  CHECK (weir_amf_is (&value, "live"));
  CHECK_INT (read_amf (LITERAL ("\6"), &value), 0);
  CHECK_INT (value.type, WEIR_AMF_NULL);
  // An ECMA array: a strict array, an object with a date, a text.
  CHECK_INT (
      read_amf (LITERAL ("\10\0\0\0\1\0\1a\12\0\0\0\2\1\1\5\0\1b\3\0\1x\13\0\0\0\0\0\0\0\0\0\0"
                         "\0\0\11\0\1c\2\0\2ok\0\0\11"),
          &value),
      0);
  CHECK (weir_amf_find (&value, "c", &field) && weir_amf_is (&field, "ok"));
  CHECK (weir_amf_find (&value, "a", &field) && field.type == WEIR_AMF_OTHER);
  CHECK (!weir_amf_find (&value, "x", &field) && field.type == WEIR_AMF_NULL);
  CHECK (!weir_amf_find (&field, "x", &field));
}

static void
wrong_amf_is_refused (void)
{
  static const uint8_t whole[] = "\3\0\1a\3\0\1b\2\0\2ok\0\0\11\0\0\11";
  WeirAmf value;

  for (size_t len = 0; len < sizeof whole - 1; len++)
    CHECK_INT (read_amf (whole, len, &value), -EBADMSG);
  CHECK_INT (read_amf (whole, sizeof whole - 1, &value), 0);
  CHECK_INT (read_amf (LITERAL ("\12\377\377\377\377\5"), &value), -EBADMSG);
  CHECK_INT (read_amf (LITERAL ("\14\377\377\377\377a"), &value), -EBADMSG);
  CHECK_INT (read_amf (LITERAL ("\21\5"), &value), -EBADMSG); // AMF 3
}

// An object that has an object as its field "a", and so on.
static int
read_nested (size_t depth)
{
  uint8_t bytes[200];
  WeirBoxes w = { bytes, sizeof bytes, 0 };
  WeirAmf value;

  for (size_t i = 0; i < depth; i++) {
    weir_amf_begin_object (&w);
    weir_amf_write_name (&w, "a");
  }
  weir_amf_write_null (&w);
  for (size_t i = 0; i < depth; i++)
    weir_amf_end_object (&w);
  return read_amf (bytes, w.at, &value);
}

static void
objects_are_nested_so_deep_and_no_deeper (void)
{
  CHECK_INT (read_nested (WEIR_AMF_DEPTH), 0);
  CHECK_INT (read_nested (WEIR_AMF_DEPTH + 1), -EBADMSG);
}

static void
what_is_written_is_read (void)
{
  uint8_t bytes[100];
  WeirBoxes w = { bytes, sizeof bytes, 0 };
  WeirBytes b;
  WeirAmf value, field;

  weir_amf_write_text (&w, "_result");
  weir_amf_begin_object (&w);
  weir_amf_write_name (&w, "n");
  weir_amf_write_number (&w, -2.5);
  weir_amf_end_object (&w);
  weir_amf_write_null (&w);
  b = weir_bytes (bytes, w.at);
  CHECK (weir_amf_read (&b, &value) == 0 && weir_amf_is (&value, "_result"));
  CHECK (weir_amf_read (&b, &value) == 0 && weir_amf_find (&value, "n", &field));
  CHECK (field.number == -2.5);
  CHECK (weir_amf_read (&b, &value) == 0 && value.type == WEIR_AMF_NULL);
  CHECK_INT (weir_bytes_left (&b), 0);
}

// ---- chunks ----

// Reads all messages; `each` bytes come at a time. Returns the last result. The text has for each
// message its type, timestamp and bytes.
static int
read_chunks (WeirRtmpChunks *chunks, const uint8_t *data, size_t len, size_t each, char text[200])
{
  WeirRtmpMessage message;
  size_t from = 0;
  int result = 0;

  for (size_t to = each < len ? each : len;;) {
    WeirBytes b = weir_bytes (data + from, to - from);

    while ((result = weir_rtmp_chunks_read (chunks, &b, &message)) == 1) {
      size_t at = strlen (text);

      snprintf (text + at, 200 - at, "%u@%u:%.*s ", message.type, message.timestamp,
          (int) message.len, (const char *) message.data);
    }
    if (result < 0 || to == len)
      return result;
    from = to - weir_bytes_left (&b);
    to = to + each < len ? to + each : len;
  }
}

static void
check_chunks (const uint8_t *data, size_t len, int result, const char *expected)
{
  for (size_t each = 1; each <= len; each++) {
    WeirRtmpChunks *chunks = weir_rtmp_chunks_new ();
    char text[200] = "";

    weir_rtmp_chunks_set_limit (chunks, 1000);
    weir_rtmp_chunks_set_size (chunks, 4);
    CHECK_INT (read_chunks (chunks, data, len, each, text), result);
    if (strcmp (text, expected) != 0)
      printf ("# %zu bytes each: got \"%s\"\n", each, text);
    CHECK (strcmp (text, expected) == 0);
    weir_rtmp_chunks_free (chunks);
  }
}

static void
chunks_of_all_formats_are_joined (void)
{
  // A message of two chunks; the same stream, 10 ms later; 7 ms later; 7 ms later again.
  check_chunks (LITERAL ("\4\0\0\100\0\0\6\11\1\0\0\0abcd\304ef"
                         "\104\0\0\12\0\0\2\10gh"
                         "\204\0\0\7ij"
                         "\304kl"),
      0, "9@64:abcdef 8@74:gh 8@81:ij 8@88:kl ");
  // Numbers of chunk streams of one, two and three bytes.
  check_chunks (LITERAL ("\77\0\0\1\0\0\1\11\1\0\0\0a"
                         "\0\300\0\0\2\0\0\1\11\1\0\0\0b"
                         "\1\300\1\0\0\3\0\0\1\11\1\0\0\0c"
                         "\1\0\0\0\0\4\0\0\1\11\1\0\0\0d"
                         "\300\300e\300\0f"),
      0, "9@1:a 9@2:b 9@3:c 9@4:d 9@4:e 9@8:f ");
  check_chunks (LITERAL ("\4\0\0\0\0\0\0\11\1\0\0\0"), 0, "9@0: ");
}

static void
chunks_of_two_messages_are_told_apart (void)
{
  check_chunks (LITERAL ("\4\0\0\1\0\0\6\11\1\0\0\0abcd"
                         "\5\0\0\2\0\0\5\10\1\0\0\0ABCD"
                         "\304ef\305E"),
      0, "9@1:abcdef 8@2:ABCDE ");
}

static void
extended_timestamps_are_read (void)
{
  // In each chunk, also of the format without a timestamp; then a difference, past the wrap.
  check_chunks (LITERAL ("\4\377\377\377\0\0\5\11\1\0\0\0\377\377\377\376abcd\304\377\377\377\376e"
                         "\204\0\0\5ABCD\304E"
                         "\204\377\377\377\1\0\0\0abcd\304\1\0\0\0e"),
      0, "9@4294967294:abcde 9@3:ABCDE 9@16777219:abcde ");
}

static void
extended_timestamps_that_are_not_repeated_are_recognised (void)
{
  // Chunks of format 3 without it, which continue a message, or begin the next.
  check_chunks (LITERAL ("\4\1\2\3\0\0\11\11\1\0\0\0abcd\304efgh\304i"
                         "\4\377\377\377\0\0\11\11\1\0\0\0\1\2\3\4abcd\304efgh\304i"
                         "\4\377\377\377\0\0\6\11\1\0\0\0\1\2\3\5abcd\304ef"
                         "\4\0\0\7\0\0\1\11\1\0\0\0j"),
      0, "9@66051:abcdefghi 9@16909060:abcdefghi 9@16909061:abcdef 9@7:j ");
  // Media that begin like the timestamp, but are other bytes.
  check_chunks (
      LITERAL ("\4\377\377\377\0\0\10\11\1\0\0\0\1zyxabcd\304\1zyy"), 0, "9@24803704:abcd\1zyy ");
  // Behind a difference, some repeat that, and some the time itself.
  check_chunks (LITERAL ("\4\0\0\1\0\0\1\11\1\0\0\0a"
                         "\104\377\377\377\0\0\5\11\1\0\0\0abcd\304\1\0\0\0e"
                         "\104\377\377\377\0\0\5\11\1\0\0\0abcd\304\2\0\0\1e"),
      0, "9@1:a 9@16777217:abcde 9@33554433:abcde ");
}

static void
a_message_can_be_aborted (void)
{
  WeirRtmpChunks *chunks = weir_rtmp_chunks_new ();
  char text[200] = "";

  weir_rtmp_chunks_set_limit (chunks, 8);
  weir_rtmp_chunks_set_size (chunks, 4);
  // What was aborted does not count.
  for (int i = 0; i < 10; i++) {
    CHECK_INT (read_chunks (chunks, LITERAL ("\4\0\0\1\0\0\6\11\1\0\0\0abcd"), 100, text), 0);
    weir_rtmp_chunks_abort (chunks, 4);
    weir_rtmp_chunks_abort (chunks, 5);
  }
  CHECK_INT (read_chunks (chunks, LITERAL ("\4\0\0\1\0\0\2\11\1\0\0\0ok"), 100, text), 0);
  CHECK (strcmp (text, "9@1:ok ") == 0);
  weir_rtmp_chunks_free (chunks);
}

static void
wrong_chunks_are_refused (void)
{
  char text[200] = "";
  WeirRtmpChunks *chunks;

  check_chunks (LITERAL ("\104\0\0\12\0\0\2\10gh"), -EBADMSG, "");          // nothing came before
  check_chunks (LITERAL ("\4\0\0\1\0\0\6\11\1\0\0\0abcd\4"), -EBADMSG, ""); // inside a message
  check_chunks (LITERAL ("\4\0\0\1\377\377\377\11\1\0\0\0"), -EMSGSIZE, "");

  // Many messages at once, each of which is short enough.
  chunks = weir_rtmp_chunks_new ();
  weir_rtmp_chunks_set_limit (chunks, 10);
  weir_rtmp_chunks_set_size (chunks, 4);
  CHECK_INT (read_chunks (chunks,
                 LITERAL ("\4\0\0\1\0\0\6\11\1\0\0\0abcd\5\0\0\1\0\0\6\11\1\0\0\0abcd"
                          "\6\0\0\1\0\0\6\11\1\0\0\0abcd"),
                 1000, text),
      -EMSGSIZE);
  weir_rtmp_chunks_free (chunks);

  chunks = weir_rtmp_chunks_new ();
  weir_rtmp_chunks_set_limit (chunks, 10);
  for (uint8_t id = 2; id < 2 + WEIR_RTMP_CHUNK_STREAMS; id++) {
    const uint8_t bytes[] = { id, 0, 0, 1, 0, 0, 1, 9, 1, 0, 0, 0, 'a' };

    CHECK_INT (read_chunks (chunks, bytes, sizeof bytes, 100, text), 0);
  }
  CHECK_INT (read_chunks (chunks, LITERAL ("\77\0\0\1\0\0\1\11\1\0\0\0a"), 100, text), -EBADMSG);
  weir_rtmp_chunks_free (chunks);
}

// ---- FLV ----

static WeirFlv flv;
static char codec[WEIR_FLV_CODEC_TEXT];

#define VIDEO(bytes) weir_flv_read_video (LITERAL (bytes), &flv, codec)
#define AUDIO(bytes) weir_flv_read_audio (LITERAL (bytes), &flv, codec)

static bool
is_flv (WeirFlvKind kind, WeirMp4Codec expected, bool key, int offset, const char *data)
{
  return flv.kind == kind && flv.codec == expected && flv.key == key && flv.offset == offset
         && flv.len == strlen (data) && memcmp (flv.data, data, flv.len) == 0;
}

static void
flv_tags_are_read (void)
{
  CHECK_INT (VIDEO ("\27\0\0\0\0record"), 0);
  CHECK (is_flv (WEIR_FLV_CONFIG, WEIR_MP4_H264, true, 0, "record"));
  CHECK_INT (VIDEO ("\27\1\0\0\120frame"), 0);
  CHECK (is_flv (WEIR_FLV_FRAME, WEIR_MP4_H264, true, 80, "frame"));
  CHECK_INT (VIDEO ("\47\1\377\377\330frame"), 0);
  CHECK (is_flv (WEIR_FLV_FRAME, WEIR_MP4_H264, false, -40, "frame"));
  CHECK_INT (VIDEO ("\27\2\0\0\0"), 0);
  CHECK_INT (flv.kind, WEIR_FLV_NOTHING);
  CHECK_INT (VIDEO ("\127\0"), 0); // a command
  CHECK_INT (flv.kind, WEIR_FLV_NOTHING);
  CHECK_INT (VIDEO ("\220hvc1record"), 0);
  CHECK (is_flv (WEIR_FLV_CONFIG, WEIR_MP4_H265, true, 0, "record"));
  CHECK_INT (VIDEO ("\221hvc1\0\0\120frame"), 0);
  CHECK (is_flv (WEIR_FLV_FRAME, WEIR_MP4_H265, true, 80, "frame"));
  CHECK_INT (VIDEO ("\243hvc1frame"), 0);
  CHECK (is_flv (WEIR_FLV_FRAME, WEIR_MP4_H265, false, 0, "frame"));
  CHECK_INT (VIDEO ("\224hvc1colours"), 0);
  CHECK_INT (flv.kind, WEIR_FLV_NOTHING);
  CHECK_INT (AUDIO ("\257\0\22\20"), 0);
  CHECK (is_flv (WEIR_FLV_CONFIG, WEIR_MP4_AAC, true, 0, "\22\20"));
  CHECK_INT (AUDIO ("\257\1frame"), 0);
  CHECK (is_flv (WEIR_FLV_FRAME, WEIR_MP4_AAC, true, 0, "frame"));
  CHECK_INT (AUDIO (""), 0);
  CHECK_INT (flv.kind, WEIR_FLV_NOTHING);
}

static void
other_codecs_are_named (void)
{
  CHECK_INT (VIDEO ("\22\0\0"), -ENOTSUP);
  CHECK (strcmp (codec, "the codec 2") == 0);
  CHECK_INT (VIDEO ("\220av01"), -ENOTSUP);
  CHECK (strcmp (codec, "av01") == 0);
  CHECK_INT (VIDEO ("\220\33[1m"), -ENOTSUP);
  CHECK (strcmp (codec, "?[1m") == 0);
  CHECK_INT (AUDIO ("\57\0"), -ENOTSUP);
  CHECK (strcmp (codec, "MP3") == 0);
  CHECK_INT (VIDEO (""), -EBADMSG);
  CHECK_INT (VIDEO ("\27\1\0"), -EBADMSG);
  CHECK_INT (VIDEO ("\220hvc"), -EBADMSG);
  CHECK_INT (VIDEO ("\221hvc1\0"), -EBADMSG);
  CHECK_INT (AUDIO ("\257"), -EBADMSG);
}

static void
check_units (const char *frame, size_t len, const char *expected, size_t expected_len, size_t empty,
    bool is_cut)
{
  // Lengths of 4 bytes; of 1 byte; of H.265, of 2 bytes.
  static const uint8_t avc[] = { 1, 100, 0, 31, 0xff }, hevc[22] = { [21] = 0xfd };
  const bool two = len >= 2 && frame[0] == 0 && frame[1] != 0;
  uint8_t out[64];
  size_t n_empty;
  bool cut;
  size_t n = weir_flv_copy_units (two ? WEIR_MP4_H265 : WEIR_MP4_H264, two ? hevc : avc,
      two ? sizeof hevc : sizeof avc, (const uint8_t *) frame, len, out, &n_empty, &cut);

  CHECK_INT (n, expected_len);
  CHECK (memcmp (out, expected, expected_len) == 0);
  CHECK_INT (n_empty, empty);
  CHECK (cut == is_cut);
}

#define UNITS(frame, expected, empty, is_cut)                                                      \
  check_units (frame, sizeof frame - 1, expected, sizeof expected - 1, empty, is_cut)

static void
empty_nal_units_are_left_out (void)
{
  UNITS ("\0\0\0\2ab\0\0\0\1c", "\0\0\0\2ab\0\0\0\1c", 0, false);
  UNITS ("\0\0\0\0\0\0\0\2ab", "\0\0\0\2ab", 1, false);
  UNITS ("\0\0\0\0\0\0\0\2ab\0\0\0\0\0\0\0\0", "\0\0\0\2ab", 3, false);
  UNITS ("\0\0\0\0", "", 1, false);
  UNITS ("\0\0\0\2ab\0\0\0\3cd", "\0\0\0\2ab", 0, true);
  UNITS ("\0\0\0\2ab\0\0\0", "\0\0\0\2ab", 0, true);
  UNITS ("\0\0\0\2ab\377\377\377\377", "\0\0\0\2ab", 0, true);
  UNITS ("\0\2ab\0\0\0\1c", "\0\2ab\0\1c", 1, false); // H.265, lengths of 2 bytes
  UNITS ("", "", 0, false);
}

static void
aac_records_are_read (void)
{
  uint32_t rate;
  uint16_t channels;

  CHECK_INT (weir_flv_read_aac_config (LITERAL ("\22\20"), &rate, &channels), 0);
  CHECK (rate == 44100 && channels == 2);
  CHECK_INT (weir_flv_read_aac_config (LITERAL ("\21\270"), &rate, &channels), 0);
  CHECK (rate == 48000 && channels == 8);
  CHECK_INT (weir_flv_read_aac_config (LITERAL ("\27\200\135\300\10"), &rate, &channels), 0); // 15
  CHECK (rate == 48000 && channels == 1);
  CHECK_INT (weir_flv_read_aac_config (LITERAL ("\371\106\100"), &rate, &channels), 0); // xHE-AAC
  CHECK (rate == 48000 && channels == 2);
  CHECK_INT (weir_flv_read_aac_config (LITERAL ("\22"), &rate, &channels), -EBADMSG);
  CHECK_INT (weir_flv_read_aac_config (LITERAL ("\27\10"), &rate, &channels), -EBADMSG);
  CHECK_INT (weir_flv_read_aac_config (LITERAL ("\26\210"), &rate, &channels), -EBADMSG);
}

// ---- a session ----

static uint8_t dialog[8192];
static size_t n_dialog;

static void
say (const uint8_t *bytes, size_t len)
{
  memcpy (dialog + n_dialog, bytes, len);
  n_dialog += len;
}

static void
say_message (uint8_t type, const uint8_t *bytes, size_t len)
{
  const uint8_t head[] = { 3, 0, 0, 9, 0, 0, (uint8_t) len, type, 1, 0, 0, 0 };

  say (head, sizeof head);
  for (size_t at = 0; at < len; at += WEIR_RTMP_CHUNK_DEFAULT) {
    size_t n = len - at < WEIR_RTMP_CHUNK_DEFAULT ? len - at : WEIR_RTMP_CHUNK_DEFAULT;

    if (at > 0)
      say (LITERAL ("\303"));
    say (bytes + at, n);
  }
}

#define ONE "\0\77\360\0\0\0\0\0\0" // the number 1
#define CONNECT "\2\0\7connect" ONE "\3\0\3app\2\0\4live\0\0\11"

static void
say_hello (void)
{
  n_dialog = 0;
  say (LITERAL ("\3"));
  memset (dialog + n_dialog, 'h', 2 * 1536);
  n_dialog += 2 * 1536;
}

static void
print_event (const WeirRtmpEvent *event, char text[300])
{
  size_t at = strlen (text);

  at += (size_t) snprintf (text + at, 300 - at, "%d@%u:", event->type, event->timestamp);
  for (size_t i = 0; i < event->len; i++)
    text[at++] = event->data[i] >= ' ' ? (char) event->data[i] : '.';
  snprintf (
      text + at, 300 - at, "%s,%s ", event->app ? event->app : "", event->name ? event->name : "");
}

// Has a session read the dialog, `each` bytes at a time. It may publish if `admits`. Returns the
// last result, and in `text` the events.
static int
talk (WeirRtmpSession *session, size_t each, bool admits, char text[300], size_t *n_output)
{
  size_t from = 0, to = 0, used, len;
  WeirRtmpEvent event;
  int result = 0;

  *n_output = 0;
  while (result >= 0 && (to < n_dialog || result == 1)) {
    to = to + each < n_dialog ? to + each : n_dialog;
    do {
      result = weir_rtmp_session_read (session, dialog + from, to - from, &used, &event);
      from += used;
      if (result == 1) {
        print_event (&event, text);
        if (event.type == WEIR_RTMP_PUBLISH && admits)
          CHECK (weir_rtmp_session_accept (session));
        else if (event.type == WEIR_RTMP_PUBLISH)
          CHECK (weir_rtmp_session_refuse (session, "NetStream.Publish.BadName", "no"));
      }
      weir_rtmp_session_get_output (session, &len);
      *n_output += len;
      weir_rtmp_session_drop_output (session, len);
    } while (result > 0 || (result == 0 && len > 0));
  }
  return result;
}

static void
check_dialog (bool admits, int result, const char *expected, const char *problem)
{
  static const uint8_t random[WEIR_RTMP_RANDOM];
  const size_t sizes[] = { 1, 7, 1000, sizeof dialog };
  size_t n_output, before = 0;

  for (size_t i = 0; i < 4; i++) {
    WeirRtmpSession *session = weir_rtmp_session_new (random);
    char text[300] = "";

    CHECK_INT (talk (session, sizes[i], admits, text, &n_output), result);
    if (strcmp (text, expected) != 0)
      printf ("# %zu bytes each: got \"%s\"\n", sizes[i], text);
    CHECK (strcmp (text, expected) == 0);
    if (problem)
      CHECK (strcmp (weir_rtmp_session_get_problem (session), problem) == 0);
    // The same answers, however the bytes come.
    CHECK (i == 0 || n_output == before);
    before = n_output;
    weir_rtmp_session_free (session);
  }
}

static void
a_publisher_is_heard (void)
{
  say_hello ();
  say_message (20, LITERAL (CONNECT));
  say_message (20, LITERAL ("\2\0\15releaseStream" ONE "\5\2\0\3cam"));
  say_message (20, LITERAL ("\2\0\11FCPublish" ONE "\5\2\0\3cam"));
  say_message (20, LITERAL ("\2\0\14createStream" ONE "\5"));
  say_message (4, LITERAL ("\0\6\0\0\0\1")); // a ping
  say_message (20, LITERAL ("\2\0\7publish" ONE "\5\2\0\3cam\2\0\4live"));
  say_message (18, LITERAL ("\2\0\15@setDataFrame\2\0\2on"));
  say_message (1, LITERAL ("\0\0\0\1")); // chunks of one byte
  say (LITERAL ("\3\0\0\12\0\0\3\10\1\0\0\0a\303b\303c"));
  say (LITERAL ("\203\0\0\5d\303e\303f"));
  say (LITERAL ("\3\0\0\20\0\0\4\1\0\0\0\0\0\303\0\303\1\303\0"));
  say_message (9, LITERAL ("v"));
  say_message (20, LITERAL ("\2\0\13FCUnpublish" ONE "\5\2\0\3cam"));
  check_dialog (true, -1, "0@0:live,cam 1@0:...on, 2@10:abc, 2@15:def, 3@9:v, 4@0:, ",
      "it has ended the stream");
}

#define TAG(type, time, len) type "\0\0" len "\0\0" time "\0\0\0\0"

static void
say_publish (void)
{
  say_hello ();
  say_message (20, LITERAL (CONNECT));
  say_message (20, LITERAL ("\2\0\7publish" ONE "\5\2\0\3cam\2\0\4live"));
}

static void
aggregate_messages_are_taken_apart (void)
{
  say_publish ();
  // The message has the time 9, and its first tag 5.
  say_message (
      22, LITERAL (TAG ("\11", "\5", "\3") "vid\0\0\0\16" TAG ("\10", "\7", "\1") "a\0\0\0\14" TAG (
              "\24", "\7", "\1") "c\0\0\0\14" TAG ("\22", "\10", "\4") "\2\0\1x"));
  say_message (8, LITERAL ("b"));
  say_message (22, LITERAL (TAG ("\26", "\0", "\1") "x\0\0\0\14")); // one inside another
  say_message (8, LITERAL ("c"));
  check_dialog (true, 0, "0@0:live,cam 3@9:vid, 2@11:a, 1@0:...x, 2@9:b, 2@9:c, ", NULL);
  say_publish ();
  say_message (22, LITERAL (TAG ("\11", "\5", "\3") "vid\0\0\0\16" TAG ("\11", "\6", "\3") "vi"));
  check_dialog (true, -1, "0@0:live,cam 3@9:vid, ", "one of its aggregate messages is malformed");
  say_publish ();
  say_message (22, LITERAL (""));
  check_dialog (true, -1, "0@0:live,cam ", "one of its aggregate messages is malformed");
}

static void
a_publisher_is_refused (void)
{
  say_hello ();
  say_message (20, LITERAL (CONNECT));
  say_message (20, LITERAL ("\2\0\7publish" ONE "\5\2\0\3cam\2\0\4live"));
  check_dialog (false, -1, "0@0:live,cam ", "it was refused");
}

static void
check_wrong (uint8_t type, const uint8_t *bytes, size_t len, bool connects, const char *problem)
{
  say_hello ();
  if (connects)
    say_message (20, LITERAL (CONNECT));
  say_message (type, bytes, len);
  check_dialog (true, -1, "", problem);
}

static void
wrong_sessions_end (void)
{
  n_dialog = 0;
  say (LITERAL ("GET / HTTP/1.1\r\n\r\n"));
  check_dialog (true, -1, "", "its first byte is not that of RTMP");
  check_wrong (20, LITERAL (CONNECT), true, "it connects twice");
  check_wrong (20, LITERAL ("\2\0\7connect" ONE "\5"), false, "its connect names no application");
  check_wrong (20, LITERAL ("\2\0\7connect" ONE "\3\0"), false, "its connect is malformed");
  check_wrong (20, LITERAL ("\2\0\7publish" ONE "\5"), false, "its first command is not connect");
  check_wrong (20, LITERAL ("\2\0\7publish"), true, "one of its commands is malformed");
  check_wrong (20, LITERAL ("\2\0\4play" ONE "\5\2\0\3cam"), true,
      "it asks to play, which is not offered over RTMP");
  check_wrong (20, LITERAL ("\2\0\7publish" ONE "\5\2\0\3c\0m"), true,
      "the name of its stream cannot be read, or has more than 1024 bytes");
  check_wrong (9, LITERAL ("\27\1\0\0\0"), true, "it sends media before it may publish");
  check_wrong (
      22, LITERAL (TAG ("\11", "\0", "\1") "v"), true, "it sends media before it may publish");
  check_wrong (1, LITERAL ("\0\0\0\0"), true, "its chunk size is out of range");
  check_wrong (1, LITERAL ("\0\0\0"), true, "one of its control messages is too short");
  say_hello ();
  say (LITERAL ("\3\0\0\1\1\0\0\24\0\0\0\0"));
  check_dialog (true, -1, "", "one of its messages is too long");
  say_hello ();
  say (LITERAL ("\303"));
  check_dialog (true, -1, "", "its chunk stream is malformed");
}

int
main (void)
{
  RUN (amf_values_are_read);
  RUN (wrong_amf_is_refused);
  RUN (objects_are_nested_so_deep_and_no_deeper);
  RUN (what_is_written_is_read);
  RUN (chunks_of_all_formats_are_joined);
  RUN (chunks_of_two_messages_are_told_apart);
  RUN (extended_timestamps_are_read);
  RUN (extended_timestamps_that_are_not_repeated_are_recognised);
  RUN (a_message_can_be_aborted);
  RUN (wrong_chunks_are_refused);
  RUN (flv_tags_are_read);
  RUN (other_codecs_are_named);
  RUN (empty_nal_units_are_left_out);
  RUN (aac_records_are_read);
  RUN (a_publisher_is_heard);
  RUN (aggregate_messages_are_taken_apart);
  RUN (a_publisher_is_refused);
  RUN (wrong_sessions_end);
  return tap_done ();
}
