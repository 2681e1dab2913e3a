// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mp4/length.h"

#include <stdlib.h>
#include <string.h>

#include "bits/bytes.h"
#include "mp4/places.h"

#define FRAGMENT_BOXES_MAX 2000 // looked at behind the moov
#define HEAD_MAX 16             // bytes of a box's head
#define TRACKS_MAX 16           // looked at
#define MOOV_MAX (256 * 1024)
#define MOOF_MAX (256 * 1024)
#define MOOFS_MAX (4 * 1024 * 1024) // bytes read of all of them

#define BOX WEIR_MP4_TYPE
#define MOOF BOX ('m', 'o', 'o', 'f')

// Flags of a tfhd and of a trun (8.8.7, 8.8.8)
#define TFHD_BASE 0x1
#define TFHD_DESCRIPTION 0x2
#define TFHD_DURATION 0x8
#define TRUN_DATA 0x1
#define TRUN_FIRST 0x4
#define TRUN_DURATION 0x100
#define TRUN_FIELDS 0xf00 // of each frame: duration, size, flags, offset

typedef struct {
  uint32_t id, timescale;
  uint32_t frame;      // default duration of a frame (trex)
  uint64_t start, end; // in the track's timescale
  uint64_t first;      // what of it is the beginning of the movie, by the edit list
  uint64_t empty;      // what stands before that, in the movie's timescale
  bool begun;
} Track;

typedef struct {
  const WeirMp4File *file;
  WeirMp4Length *length;
  Track tracks[TRACKS_MAX];
  unsigned n_tracks;
  uint64_t fragments; // where the boxes behind the moov begin
  uint64_t left;      // bytes that may still be read of fragments
  bool untimed;       // a fragment does not tell its time: it follows the one before
} Movie;

// ---- boxes ----

// Takes a box from those in memory.
static bool
take_box (WeirBytes *b, uint32_t *type, WeirBytes *inside)
{
  const uint8_t *content;
  uint64_t size;
  uint32_t small;

  weir_bytes_u32 (b, &small);
  if (!weir_bytes_u32 (b, type))
    return false;
  size = small < 8 ? UINT64_MAX : small - 8;
  if (small == 1 && weir_bytes_u64 (b, &size))
    size = size < HEAD_MAX ? UINT64_MAX : size - HEAD_MAX;
  else if (small == 0)
    size = weir_bytes_left (b);
  if (size > weir_bytes_left (b) || !weir_bytes_take (b, (size_t) size, &content))
    return false;
  *inside = weir_bytes (content, (size_t) size);
  return true;
}

// ---- the header ----

// Reads a number of 4 bytes, or of 8 in version 1.
static uint64_t
read_number (WeirBytes *b, uint8_t version)
{
  uint64_t number;

  weir_bytes_number (b, version == 1 ? 8 : 4, &number);
  return number;
}

// Reads the content of a mvhd or mdhd up to its duration, where `b` is afterwards.
static uint8_t
read_head (WeirBytes *b, uint32_t *timescale)
{
  uint8_t version;

  weir_bytes_u8 (b, &version);
  weir_bytes_skip (b, version == 1 ? 3 + 16 : 3 + 8);
  weir_bytes_u32 (b, timescale);
  return version;
}

// `content` is at its duration, in a box that was read from `from` on.
static uint64_t
read_duration (
    WeirBytes *content, uint8_t version, const uint8_t *from, uint64_t at, WeirMp4Field *field)
{
  *field = (WeirMp4Field) { at + (uint64_t) (content->at - from), version == 1 ? 8 : 4 };
  return read_number (content, version);
}

static void
read_mdia (WeirBytes mdia, Track *track, bool *has_frames)
{
  WeirBytes inside, stbl;
  uint32_t type, n;

  while (take_box (&mdia, &type, &inside)) {
    if (type == BOX ('m', 'd', 'h', 'd')) {
      read_head (&inside, &track->timescale);
    } else if (type == BOX ('m', 'i', 'n', 'f')) {
      for (WeirBytes minf = inside; take_box (&minf, &type, &stbl);) {
        while (type == BOX ('s', 't', 'b', 'l') && take_box (&stbl, &type, &inside)) {
          weir_bytes_skip (&inside, 4);
          weir_bytes_u32 (&inside, &n);
          *has_frames |= type == BOX ('s', 't', 't', 's') && n > 0;
          type = BOX ('s', 't', 'b', 'l');
        }
      }
    }
  }
}

// Reads the first edit of a track, and those before it that are empty.
static void
read_elst (WeirBytes elst, Track *track)
{
  uint64_t duration, first = 0;
  uint32_t n, size;
  uint8_t version;

  weir_bytes_u8 (&elst, &version);
  weir_bytes_skip (&elst, 3);
  weir_bytes_u32 (&elst, &n);
  size = version == 1 ? 8 : 4;
  for (uint32_t i = 0; i < n && weir_bytes_left (&elst) >= 2 * size + 4; i++) {
    duration = read_number (&elst, version);
    first = read_number (&elst, version);
    weir_bytes_skip (&elst, 4);
    if (first != UINT64_MAX >> (64 - 8 * size)) {
      track->first = first;
      return;
    }
    track->empty += duration < UINT32_MAX ? duration : 0;
  }
}

static void
read_trak (WeirBytes trak, Movie *movie)
{
  Track *track = &movie->tracks[movie->n_tracks];
  WeirBytes inside, elst;
  uint32_t type;
  uint8_t version;

  if (movie->n_tracks == TRACKS_MAX)
    return;
  while (take_box (&trak, &type, &inside)) {
    if (type == BOX ('m', 'd', 'i', 'a')) {
      read_mdia (inside, track, &movie->length->has_head);
    } else if (type == BOX ('t', 'k', 'h', 'd')) {
      weir_bytes_u8 (&inside, &version);
      weir_bytes_skip (&inside, version == 1 ? 3 + 16 : 3 + 8);
      weir_bytes_u32 (&inside, &track->id);
    } else if (type == BOX ('e', 'd', 't', 's') && take_box (&inside, &type, &elst)
               && type == BOX ('e', 'l', 's', 't')) {
      read_elst (elst, track);
    }
  }
  movie->n_tracks += track->timescale > 0;
}

static Track *
find_track (Movie *movie, uint32_t id)
{
  for (unsigned i = 0; i < movie->n_tracks; i++) {
    if (movie->tracks[i].id == id)
      return &movie->tracks[i];
  }
  return NULL;
}

static void
read_trex (WeirBytes trex, Movie *movie)
{
  uint32_t id;
  Track *track;

  weir_bytes_skip (&trex, 4);
  weir_bytes_u32 (&trex, &id);
  track = find_track (movie, id);
  weir_bytes_skip (&trex, 4);
  if (track)
    weir_bytes_u32 (&trex, &track->frame);
}

// Reads a moov that was read from `at` of the file on.
static void
read_moov (WeirBytes moov, uint64_t at, Movie *movie)
{
  const uint8_t *const from = moov.at;
  WeirBytes all = moov, inside, box;
  uint32_t type;
  uint8_t version;

  while (take_box (&moov, &type, &inside)) {
    if (type == BOX ('m', 'v', 'h', 'd')) {
      version = read_head (&inside, &movie->length->timescale);
      movie->length->end = read_duration (&inside, version, from, at, &movie->length->durations[0]);
    } else if (type == BOX ('t', 'r', 'a', 'k')) {
      read_trak (inside, movie);
    }
  }
  while (take_box (&all, &type, &inside)) {
    if (type != BOX ('m', 'v', 'e', 'x'))
      continue;
    while (take_box (&inside, &type, &box)) {
      if (type == BOX ('m', 'e', 'h', 'd')) {
        weir_bytes_u8 (&box, &version);
        weir_bytes_skip (&box, 3);
        movie->length->end = read_duration (&box, version, from, at, &movie->length->durations[1]);
      } else if (type == BOX ('t', 'r', 'e', 'x')) {
        read_trex (box, movie);
      }
    }
  }
}

// ---- fragments ----

// Returns the duration of the frames of a trun.
static uint64_t
read_trun (WeirBytes trun, uint32_t frame)
{
  uint32_t form, n, duration;
  uint64_t sum = 0;
  size_t others;

  weir_bytes_u32 (&trun, &form);
  weir_bytes_u32 (&trun, &n);
  weir_bytes_skip (&trun, (form & TRUN_DATA ? 4 : 0) + (form & TRUN_FIRST ? 4 : 0));
  if (!(form & TRUN_DURATION))
    return trun.failed ? 0 : (uint64_t) n * frame;
  others = 4 * (size_t) __builtin_popcount (form & TRUN_FIELDS & ~(uint32_t) TRUN_DURATION);
  for (uint32_t i = 0; i < n && weir_bytes_u32 (&trun, &duration); i++) {
    sum += duration;
    weir_bytes_skip (&trun, others);
  }
  return sum;
}

static void
read_traf (WeirBytes traf, Movie *movie)
{
  Track *track = NULL;
  WeirBytes inside;
  uint32_t type, form, id, frame = 0;
  uint64_t start = 0, duration = 0;
  bool timed = false;

  while (take_box (&traf, &type, &inside)) {
    weir_bytes_u32 (&inside, &form);
    if (type == BOX ('t', 'f', 'h', 'd')) {
      weir_bytes_u32 (&inside, &id);
      track = find_track (movie, id);
      frame = track ? track->frame : 0;
      weir_bytes_skip (&inside, (form & TFHD_BASE ? 8 : 0) + (form & TFHD_DESCRIPTION ? 4 : 0));
      if (form & TFHD_DURATION)
        weir_bytes_u32 (&inside, &frame);
    } else if (type == BOX ('t', 'f', 'd', 't')) {
      start = read_number (&inside, (uint8_t) (form >> 24));
      timed = !inside.failed;
    } else if (type == BOX ('t', 'r', 'u', 'n')) {
      inside = weir_bytes (inside.at - 4, weir_bytes_left (&inside) + 4);
      duration += read_trun (inside, frame);
    }
  }
  if (!track)
    return;
  movie->untimed |= !timed;
  if (!timed)
    start = track->end;
  if (start > INT64_MAX / 2 || duration > INT64_MAX / 2)
    return;
  track->start = track->begun && track->start < start ? track->start : start;
  track->end = track->end > start + duration ? track->end : start + duration;
  track->begun = true;
}

// Looks at the fragments from `at` on. Returns whether these were all, and not too many. One that
// is cut off ends the file.
static bool
walk (Movie *movie, uint64_t at)
{
  const WeirMp4File *file = movie->file;
  WeirBytes moof, inside;
  uint32_t type;
  uint8_t *bytes;
  WeirMp4Place box;

  for (unsigned i = 0; i < FRAGMENT_BOXES_MAX; i++) {
    if (!weir_mp4_look_at (file, at, file->size, &box))
      return true;
    if (box.type == MOOF && box.end - box.at > movie->left)
      return false;
    movie->left -= box.type == MOOF ? box.end - box.at : 0;
    bytes = box.type == MOOF ? weir_mp4_read_place (file, &box, MOOF_MAX) : NULL;
    moof = weir_bytes (bytes, (size_t) (box.end - box.at));
    while (bytes && take_box (&moof, &type, &inside)) {
      if (type == BOX ('t', 'r', 'a', 'f'))
        read_traf (inside, movie);
    }
    free (bytes);
    at = box.end;
  }
  return false;
}

// ---- all ----

static uint64_t
scale (uint64_t value, uint32_t from, uint32_t to)
{
  const unsigned __int128 scaled = (unsigned __int128) value * to / from;

  return scaled < INT64_MAX ? (uint64_t) scaled : INT64_MAX;
}

// Reads the first fragment, and the last ones.
static bool
read_fragments (Movie *movie)
{
  const WeirMp4File *file = movie->file;
  const Movie before = *movie;
  const uint64_t at = weir_mp4_find_last (file, movie->fragments);
  WeirMp4Place moof;
  uint64_t left;

  if (at == 0 || !weir_mp4_find_place (file, MOOF, movie->fragments, file->size, &moof))
    return walk (movie, movie->fragments);
  if (moof.at < at) {
    WeirMp4File first = *file;

    first.size = moof.end;
    movie->file = &first;
    walk (movie, movie->fragments);
    movie->file = file;
  }
  if (!movie->untimed && walk (movie, at) && !movie->untimed)
    return true;
  left = movie->left;
  *movie = before;
  movie->left = left;
  return walk (movie, movie->fragments);
}

// Returns a time of a track as one of the movie.
static uint64_t
to_movie (const Movie *movie, const Track *track, uint64_t time)
{
  return track->empty
         + scale (time > track->first ? time - track->first : 0, track->timescale,
             movie->length->timescale);
}

static bool
take_ends (const Movie *movie)
{
  WeirMp4Length *length = movie->length;
  uint64_t start = UINT64_MAX, end = 0;

  for (unsigned i = 0; i < movie->n_tracks; i++) {
    const Track *track = &movie->tracks[i];
    uint64_t begins, ends;

    if (!track->begun)
      continue;
    begins = to_movie (movie, track, track->start);
    ends = to_movie (movie, track, track->end);
    start = begins < start ? begins : start;
    end = ends > end ? ends : end;
  }
  if (end == 0 || end > INT64_MAX / 2)
    return false;
  length->start = length->has_head ? 0 : start;
  length->end = end;
  return true;
}

// Reads the moov as a whole, and the fragments behind it. Returns false if they do not tell.
static bool
read_movie (Movie *movie, const WeirMp4Place *moov)
{
  uint8_t *bytes = weir_mp4_read_place (movie->file, moov, MOOV_MAX);

  if (!bytes)
    return false;
  read_moov (weir_bytes (bytes, (size_t) (moov->end - moov->at)), moov->at, movie);
  free (bytes);
  movie->fragments = moov->end;
  return read_fragments (movie) && take_ends (movie);
}

bool
weir_mp4_find_length (const WeirMp4File *file, WeirMp4Length *length)
{
  Movie movie = { .file = file, .length = length, .left = MOOFS_MAX };
  WeirMp4Place moov, box;
  uint8_t bytes[32];
  WeirBytes head;
  size_t got;

  *length = (WeirMp4Length) { 0 };
  if (!weir_mp4_find_place (file, BOX ('m', 'o', 'o', 'v'), 0, file->size, &moov)
      || !weir_mp4_find_place (file, BOX ('m', 'v', 'h', 'd'), moov.at, moov.end, &box))
    return false;
  got = file->read (file->file, box.at, bytes, sizeof bytes);
  head = weir_bytes (bytes, got < sizeof bytes ? got : sizeof bytes);
  length->end = read_number (&head, read_head (&head, &length->timescale));
  if (head.failed || length->timescale == 0)
    return false;
  if (weir_mp4_find_place (file, BOX ('m', 'v', 'e', 'x'), moov.at, moov.end, &box)
      && !read_movie (&movie, &moov))
    memset (length->durations, 0, sizeof length->durations);
  return length->timescale > 0 && length->end > length->start;
}
