// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mp4/fragment.h"
#include "mp4/index.h"
#include "mp4/init.h"
#include "mp4/length.h"
#include "mp4/read.h"
#include "mp4/times.h"

#include <errno.h>
#include <stdlib.h>

#include "bits/bytes.h"
#include "tap.h"

static const uint8_t avcc[] = { 1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, 1, 0x67, 1, 0, 1, 0x68 };
static const uint8_t hvcc[] = { 1, 0x01, 0x60, 0, 0, 0, 0xb0, 0, 0, 0, 0, 0, 93, 0xf0 };
static const uint8_t hvcc_high[] = { 1, 0x62, 0x60, 0, 0, 0, 0x90, 0, 0, 0, 0x08, 0, 120, 0xf0 };
static const uint8_t av1c[] = { 0x81, 0x05, 0x0c, 0x00 };
static const uint8_t asc[] = { 0x12, 0x10 };
static const uint8_t asc_escape[] = { 0xf9, 0x46 };

// ---- names ----

#define RECORD(bytes) bytes, sizeof bytes

static void
codecs_have_their_names (void)
{
  static const struct {
    WeirMp4Codec codec;
    const uint8_t *config;
    size_t len;
    const char *text;
  } rows[] = {
    { WEIR_MP4_H264, RECORD (avcc), "avc1.64001f" },
    { WEIR_MP4_H265, RECORD (hvcc), "hvc1.1.6.L93.b0" },
    { WEIR_MP4_H265, RECORD (hvcc_high), "hvc1.A2.6.H120.90.0.0.0.8" },
    { WEIR_MP4_AV1, RECORD (av1c), "av01.0.05M.08" },
    { WEIR_MP4_AAC, RECORD (asc), "mp4a.40.2" },
    { WEIR_MP4_AAC, RECORD (asc_escape), "mp4a.40.42" },
  };

  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    WeirMp4Track track = { rows[i].codec, .config = rows[i].config, .config_len = rows[i].len };
    char text[WEIR_MP4_CODEC_TEXT] = "";

    CHECK_INT (weir_mp4_codec_text (&track, text), 0);
    if (strcmp (text, rows[i].text) != 0)
      printf ("# row %zu: \"%s\"\n", i, text);
    CHECK (strcmp (text, rows[i].text) == 0);
  }
}

static void
records_that_streams_do_not_carry_are_made (void)
{
  uint8_t vp9[WEIR_MP4_VP9_CONFIG], opus[WEIR_MP4_OPUS_CONFIG];
  WeirMp4Track track = { WEIR_MP4_VP9, .config = vp9, .config_len = sizeof vp9 };
  char text[WEIR_MP4_CODEC_TEXT];

  weir_mp4_vp9_config (vp9, 0, 8, 1, 1280, 720);
  CHECK (weir_mp4_codec_text (&track, text) == 0 && strcmp (text, "vp09.00.40.08") == 0);
  weir_mp4_vp9_config (vp9, 2, 10, 1, 65535, 65535);
  CHECK (weir_mp4_codec_text (&track, text) == 0 && strcmp (text, "vp09.02.62.10") == 0);
  weir_mp4_opus_config (opus, 2);
  track = (WeirMp4Track) { WEIR_MP4_OPUS, .config = opus, .config_len = sizeof opus };
  CHECK (weir_mp4_codec_text (&track, text) == 0 && strcmp (text, "opus") == 0);
  CHECK_INT (opus[1], 2);
}

static void
short_records_are_refused (void)
{
  static const size_t needed[WEIR_MP4_N_CODECS] = { 4, 13, 7, 4, 2, 11 };
  uint8_t record[16] = { 0 };
  char text[WEIR_MP4_CODEC_TEXT];

  for (int codec = 0; codec < WEIR_MP4_N_CODECS; codec++) {
    for (size_t len = 0; len <= needed[codec]; len++) {
      WeirMp4Track track = { (WeirMp4Codec) codec, .config = record, .config_len = len };

      CHECK_INT (weir_mp4_codec_text (&track, text), len < needed[codec] ? -EINVAL : 0);
    }
  }
}

// ---- boxes ----

// Returns the content of the box at the end of a path such as "moov/trak", and reports whether all
// boxes on the way fill their parents exactly.
static WeirBytes
find_box (const uint8_t *data, size_t len, const char *path)
{
  WeirBytes all = weir_bytes (data, len), found = weir_bytes (NULL, 0);
  const uint8_t *type, *content;
  uint32_t size;

  found.failed = true;
  while (weir_bytes_u32 (&all, &size)) {
    if (size < 8 || !weir_bytes_take (&all, 4, &type)
        || !weir_bytes_take (&all, size - 8, &content))
      return found;
    if (memcmp (type, path, 4) == 0 && found.failed)
      found = path[4] ? find_box (content, size - 8, path + 5) : weir_bytes (content, size - 8);
  }
  return found;
}

static void
an_init_segment_has_all_tracks (void)
{
  const WeirMp4Track tracks[] = {
    { WEIR_MP4_H264, 90000, 640, 360, 0, RECORD (avcc) },
    { WEIR_MP4_AAC, 48000, 0, 0, 2, RECORD (asc) },
  };
  size_t size = weir_mp4_write_init (NULL, 0, tracks, 2);
  uint8_t *data = malloc (size);
  WeirBytes box;
  uint32_t value;

  CHECK_INT (weir_mp4_write_init (data, size, tracks, 2), size);
  box = find_box (data, size, "moov/trak/mdia/mdhd");
  CHECK (weir_bytes_skip (&box, 12) && weir_bytes_u32 (&box, &value) && value == 90000);
  box = find_box (data, size, "moov/trak/tkhd");
  CHECK (weir_bytes_skip (&box, 76) && weir_bytes_u32 (&box, &value) && value == 640 << 16);
  box = find_box (data, size, "moov/mvex/trex");
  CHECK_INT (weir_bytes_left (&box), 24);
  box = find_box (data, size, "moov/trak/mdia/minf/stbl/stsd");
  CHECK (weir_bytes_skip (&box, 8 + 8 + 78 + 8));
  CHECK (weir_bytes_left (&box) == sizeof avcc && memcmp (box.at, avcc, sizeof avcc) == 0);
  free (data);
}

static void
a_fragment_says_where_its_data_are (void)
{
  const WeirMp4Sample video[] = { { 100, 3600, 0, true }, { 50, 3600, -3600, false } };
  const WeirMp4Sample audio[] = { { 7, 1024, 0, true } };
  const WeirMp4Run runs[] = { { UINT64_C (1) << 33, video, 2 }, { 0, NULL, 0 },
    { 48000, audio, 1 } };
  size_t size = weir_mp4_write_fragment (NULL, 0, 5, true, runs, 3);
  uint8_t *data = calloc (1, size + 157);
  uint32_t trun_offset, id, last;
  size_t styp = 28;
  WeirBytes box;

  CHECK_INT (weir_mp4_write_fragment (data, size, 5, true, runs, 3), size);
  CHECK_INT (weir_mp4_write_fragment (data, size, 5, false, runs, 3), size - styp);
  CHECK_INT (weir_mp4_write_fragment (data, size, 5, true, runs, 3), size);
  box = find_box (data, size + 157, "moof/traf/trun");
  CHECK (weir_bytes_skip (&box, 8) && weir_bytes_u32 (&box, &trun_offset));
  CHECK_INT (trun_offset, size - styp);
  CHECK (weir_bytes_skip (&box, 16 + 12) && weir_bytes_u32 (&box, &last));
  CHECK_INT ((int32_t) last, -3600);
  box = find_box (data, size + 157, "mdat");
  CHECK_INT (weir_bytes_left (&box), 157);
  // The second traf, behind the first one of 8 + 16 + 20 + 20 + 2 * 16 bytes.
  box = weir_bytes (data + styp + 8 + 16 + 96, 8 + 16 + 20 + 20 + 16);
  CHECK (weir_bytes_skip (&box, 8 + 12) && weir_bytes_u32 (&box, &id) && id == 3);
  CHECK (weir_bytes_skip (&box, 20 + 16) && weir_bytes_u32 (&box, &trun_offset));
  CHECK_INT (trun_offset, size - styp + 150);
  free (data);
}

// With every size of the buffer, nothing is written beyond its end, and the result is the same.
static void
a_short_buffer_is_never_overrun (void)
{
  const WeirMp4Sample sample = { 10, 1, 0, true };
  const WeirMp4Run run = { 0, &sample, 1 };
  const WeirMp4Track track = { WEIR_MP4_H265, 90000, 16, 16, 0, RECORD (hvcc) };
  size_t init = weir_mp4_write_init (NULL, 0, &track, 1);
  size_t fragment = weir_mp4_write_fragment (NULL, 0, 1, false, &run, 1);

  for (size_t size = 0; size <= init; size++) {
    uint8_t *data = malloc (size + 1);

    memset (data, 0xa5, size + 1);
    CHECK_INT (weir_mp4_write_init (data, size, &track, 1), init);
    CHECK_INT (data[size], 0xa5);
    CHECK_INT (weir_mp4_write_fragment (data, size, 1, false, &run, 1), fragment);
    CHECK_INT (data[size], 0xa5);
    free (data);
  }
}

// ---- reading ----

static void
a_file_is_read_as_it_was_written (void)
{
  const WeirMp4Track tracks[] = {
    { WEIR_MP4_AAC, 48000, 0, 0, 2, RECORD (asc) },
    { WEIR_MP4_H264, 90000, 640, 360, 0, RECORD (avcc) },
  };
  const WeirMp4Sample video[] = { { 100, 3600, 7200, true }, { 50, 3000, 0, false } };
  const WeirMp4Run runs[] = { { 0, NULL, 0 }, { UINT64_C (1) << 33, video, 2 } };
  const int64_t earlier[WEIR_MP4_TRACKS_MAX] = { 5, (INT64_C (1) << 33) - 7 };
  uint8_t data[2048];
  size_t size = weir_mp4_write_init (data, sizeof data, tracks, 2), fragment;
  WeirMp4Init init;
  WeirMp4Moof moof;
  WeirMp4Box box;

  CHECK_INT (weir_mp4_read_init (data, size, &init), 0);
  CHECK (init.size == size && init.n_tracks == 2 && init.lead == 1);
  CHECK (init.timescales[0] == 48000 && init.timescales[1] == 90000);
  for (size_t len = 0; len < size; len++)
    CHECK_INT (weir_mp4_read_init (data, len, &init), -EAGAIN);

  fragment = weir_mp4_write_fragment (data, sizeof data, 5, false, runs, 2) - 8;
  CHECK (weir_mp4_read_box (data, fragment, &box) == 0 && box.size == fragment);
  CHECK_INT (weir_mp4_read_moof (data, fragment, &moof), 0);
  CHECK (!moof.trafs[0].has && moof.trafs[1].has && moof.trafs[1].key);
  CHECK (moof.trafs[1].start == UINT64_C (1) << 33 && moof.trafs[1].duration == 6600);
  CHECK_INT (moof.trafs[1].offset, 7200);
  for (size_t len = 0; len < fragment; len++)
    CHECK_INT (weir_mp4_read_moof (data, len, &moof), -EINVAL);

  CHECK_INT (weir_mp4_read_moof (data, fragment, &moof), 0);
  weir_mp4_move (data, &moof, 77, earlier);
  CHECK (data[moof.sequence_at + 3] == 77);
  CHECK_INT (weir_mp4_read_moof (data, fragment, &moof), 0);
  CHECK_INT (moof.trafs[1].start, 7);
  weir_mp4_move (data, &moof, 78, earlier);
  CHECK_INT (weir_mp4_read_moof (data, fragment, &moof), 0);
  CHECK_INT (moof.trafs[1].start, 0);
}

static void
a_file_has_times_of_its_own (void)
{
  const WeirMp4Track tracks[] = {
    { WEIR_MP4_AAC, 48000, 0, 0, 2, RECORD (asc) },
    { WEIR_MP4_H264, 90000, 640, 360, 0, RECORD (avcc) },
  };
  const WeirMp4Times times = { UINT64_C (1800000000999999), 3600123, { 48000, 90001 } },
                     none = { 0 };
  uint8_t data[2048], plain[2048], before[2048];
  size_t size = weir_mp4_write_file_init (data, sizeof data, tracks, 2);
  WeirMp4Times found;
  WeirMp4Init init;
  WeirBytes box;
  uint32_t value;

  CHECK (weir_mp4_read_init (data, size, &init) == 0 && init.size == size && init.n_tracks == 2);
  memcpy (plain, data, size);
  weir_mp4_set_times (data, size, &times);
  CHECK (
      weir_mp4_get_times (data, size, &found) == 0 && memcmp (&found, &times, sizeof found) == 0);
  box = find_box (data, size, "moov/mvhd");
  CHECK (weir_bytes_skip (&box, 4) && weir_bytes_u32 (&box, &value));
  CHECK_INT (value, 1800000000u + 2082844800u); // from 1904
  CHECK (weir_bytes_skip (&box, 8) && weir_bytes_u32 (&box, &value) && value == 3600123);
  for (size_t len = 0; len < size; len++) {
    memcpy (before, data, size);
    weir_mp4_set_times (data, len, &none);
    CHECK (memcmp (before, data, size) == 0); // a moov that is cut off
  }
  weir_mp4_set_times (data, size, &none);
  CHECK (memcmp (data, plain, size) == 0);

  size = weir_mp4_write_init (data, sizeof data, tracks, 2);
  memcpy (plain, data, size);
  weir_mp4_set_times (data, size, &times);
  CHECK (memcmp (data, plain, size) == 0);
  CHECK (weir_mp4_get_times (data, size, &found) == 0 && memcmp (&found, &none, sizeof found) == 0);
}

static void
times_that_could_overflow_are_refused (void)
{
  const WeirMp4Track track = { WEIR_MP4_H264, 90000, 640, 360, 0, RECORD (avcc) };
  WeirMp4Times times = { 1, 2, { INT64_MAX / 4 } };
  uint8_t data[2048];
  size_t size = weir_mp4_write_file_init (data, sizeof data, &track, 1);

  weir_mp4_set_times (data, size, &times);
  CHECK_INT (weir_mp4_get_times (data, size, &times), 0);
  times.bases[0]++;
  weir_mp4_set_times (data, size, &times);
  CHECK_INT (weir_mp4_get_times (data, size, &times), -EINVAL);
}

static void
an_index_is_read_as_it_was_written (void)
{
  const WeirMp4Entry entries[] = { { 7, 1000 }, { UINT64_C (1) << 40, UINT64_C (1) << 35 } };
  WeirMp4Entry found[2];
  uint8_t data[256];
  size_t size = weir_mp4_write_index (data, sizeof data, 1, entries, 2);

  CHECK_INT (weir_mp4_write_index (NULL, 0, 1, entries, 2), size);
  CHECK_INT (weir_mp4_index_size (data + size - WEIR_MP4_INDEX_END), size);
  CHECK_INT (weir_mp4_read_index (data, size, found, 2), 2);
  CHECK (memcmp (found, entries, sizeof entries) == 0);
  CHECK_INT (weir_mp4_read_index (data, size, NULL, 0), 2);
  for (size_t len = 0; len < size; len++)
    CHECK_INT (weir_mp4_read_index (data, len, found, 2), -EINVAL);
  CHECK_INT (weir_mp4_index_size (data), 0);
}

// ---- durations ----

typedef struct {
  uint8_t bytes[8192];
  size_t size;
} Memory;

static size_t
read_memory (void *memory, uint64_t offset, uint8_t *bytes, size_t len)
{
  const Memory *self = memory;
  size_t left = offset < self->size ? self->size - (size_t) offset : 0;
  size_t n = left < len ? left : len;

  memcpy (bytes, self->bytes + (offset < self->size ? offset : 0), n);
  return n;
}

// Adds fragments of 1 s of video, and of 1.1 s of sound, in the seconds from `from` to `to`.
// Returns where the last one begins.
static size_t
add_fragments (Memory *memory, uint32_t from, uint32_t to)
{
  const WeirMp4Sample video = { 0, 90000, 0, true }, sound = { 0, 52800, 0, true };
  size_t at = 0;

  for (uint32_t i = from; i < to; i++) {
    const WeirMp4Run runs[] = { { UINT64_C (90000) * i, &video, 1 },
      { UINT64_C (48000) * i, &sound, 1 } };

    at = memory->size;
    memory->size +=
        weir_mp4_write_fragment (memory->bytes + at, sizeof memory->bytes - at, i, false, runs, 2);
  }
  return at;
}

// A fragmented file that begins at 5 s and ends at 10.1 s. The header says nothing about that.
static size_t
begin_movie (Memory *memory)
{
  const WeirMp4Track tracks[] = {
    { WEIR_MP4_H264, 90000, 640, 360, 0, RECORD (avcc) },
    { WEIR_MP4_AAC, 48000, 0, 0, 2, RECORD (asc) },
  };

  memory->size = weir_mp4_write_init (memory->bytes, sizeof memory->bytes, tracks, 2);
  return add_fragments (memory, 5, 10);
}

static void
check_length (Memory *memory, double start, double end)
{
  const WeirMp4File file = { read_memory, memory, memory->size };
  WeirMp4Length length;

  CHECK (weir_mp4_find_length (&file, &length));
  CHECK_INT (length.start, start * length.timescale);
  CHECK_INT (length.end, end * length.timescale);
  CHECK (length.durations[0].size == 4 && !length.has_head);
}

static void
fragments_tell_the_duration (void)
{
  Memory *memory = calloc (1, sizeof *memory);
  size_t last = begin_movie (memory), whole = memory->size;
  WeirMp4Entry entry = { 9, last };

  check_length (memory, 5, 10.1);
  for (memory->size = last; memory->size < whole - 8; memory->size++)
    check_length (memory, 5, 9.1); // the last fragment is cut off
  memory->size = whole;
  memory->size += weir_mp4_write_index (memory->bytes + whole, 256, 1, &entry, 1);
  check_length (memory, 5, 10.1);
  for (entry.at = 0; entry.at <= whole + 256; entry.at++) { // an index that is wrong
    weir_mp4_write_index (memory->bytes + whole, 256, 1, &entry, 1);
    check_length (memory, 5, 10.1);
  }
  free (memory);
}

static void
fragments_without_times_follow_each_other (void)
{
  Memory *memory = calloc (1, sizeof *memory);

  begin_movie (memory);
  for (size_t i = 0; i + 4 < memory->size; i++) {
    if (memcmp (memory->bytes + i, "tfdt", 4) == 0)
      memcpy (memory->bytes + i, "free", 4);
  }
  check_length (memory, 0, 5.5);
  free (memory);
}

// A header, and fragments of 256 KiB behind it that hold nothing.
typedef struct {
  Memory *head;
  uint64_t n_read; // bytes
} LongFile;

static size_t
read_long (void *file, uint64_t offset, uint8_t *bytes, size_t len)
{
  static const uint8_t moof[] = { 0, 4, 0, 0, 'm', 'o', 'o', 'f' };
  LongFile *self = file;

  self->n_read += len;
  for (size_t i = 0; i < len; i++, offset++) {
    const uint64_t behind = (offset - self->head->size) % (256 * 1024);

    if (offset < self->head->size)
      bytes[i] = self->head->bytes[offset];
    else
      bytes[i] = behind < sizeof moof ? moof[behind] : 0;
  }
  return len;
}

static void
large_fragments_are_not_all_read (void)
{
  Memory *memory = calloc (1, sizeof *memory);
  LongFile all = { memory };
  WeirMp4Length length;
  WeirMp4File file = { read_long, &all };

  begin_movie (memory);
  memory->size =
      (size_t) ((uint8_t *) memmem (memory->bytes, memory->size, "moof", 4) - memory->bytes) - 4;
  file.size = memory->size + UINT64_C (1990) * 256 * 1024;
  CHECK (!weir_mp4_find_length (&file, &length));
  CHECK (all.n_read < 6 * 1024 * 1024);
  free (memory);
}

// Adds to the size of the first box of this type.
static void
widen (Memory *memory, const char *type, size_t by)
{
  uint8_t *name = memmem (memory->bytes, memory->size, type, 4);

  by += (size_t) name[-2] << 8 | name[-1];
  name[-2] = (uint8_t) (by >> 8);
  name[-1] = (uint8_t) by;
}

static void
the_edit_list_counts (void)
{
  static const uint8_t edits[] = { 0, 0, 0, 48, 'e', 'd', 't', 's', 0, 0, 0, 40, 'e', 'l', 's', 't',
    0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0x07, 0xd0, 0xff, 0xff, 0xff, 0xff, 0, 1, 0, 0, // 2 s of nothing
    0, 0, 0, 0, 0, 0x06, 0xdd, 0xd0, 0, 1, 0, 0 };                                // from 5 s on
  const WeirMp4Track track = { WEIR_MP4_H264, 90000, 640, 360, 0, RECORD (avcc) };
  Memory *memory = calloc (1, sizeof *memory);
  size_t at;

  memory->size = weir_mp4_write_init (memory->bytes, sizeof memory->bytes, &track, 1);
  at = (size_t) ((uint8_t *) memmem (memory->bytes, memory->size, "mdia", 4) - memory->bytes) - 4;
  memmove (memory->bytes + at + sizeof edits, memory->bytes + at, memory->size - at);
  memcpy (memory->bytes + at, edits, sizeof edits);
  memory->size += sizeof edits;
  widen (memory, "moov", sizeof edits);
  widen (memory, "trak", sizeof edits);
  add_fragments (memory, 5, 10);
  check_length (memory, 2, 7);
  free (memory);
}

int
main (void)
{
  RUN (codecs_have_their_names);
  RUN (records_that_streams_do_not_carry_are_made);
  RUN (short_records_are_refused);
  RUN (an_init_segment_has_all_tracks);
  RUN (a_fragment_says_where_its_data_are);
  RUN (a_short_buffer_is_never_overrun);
  RUN (a_file_is_read_as_it_was_written);
  RUN (a_file_has_times_of_its_own);
  RUN (times_that_could_overflow_are_refused);
  RUN (an_index_is_read_as_it_was_written);
  RUN (fragments_tell_the_duration);
  RUN (fragments_without_times_follow_each_other);
  RUN (large_fragments_are_not_all_read);
  RUN (the_edit_list_counts);
  return tap_done ();
}
