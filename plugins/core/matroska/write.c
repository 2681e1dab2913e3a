// SPDX-License-Identifier: LGPL-2.1-or-later
#include "matroska/write.h"

#include "mp4/box.h"

// RFC 8794 and RFC 9559, section 5.
enum {
  ID_EBML = 0x1a45dfa3,
  ID_DOC_TYPE = 0x4282,
  ID_DOC_TYPE_VERSION = 0x4287,
  ID_DOC_TYPE_READ_VERSION = 0x4285,
  ID_SEGMENT = 0x18538067,
  ID_INFO = 0x1549a966,
  ID_TIMESTAMP_SCALE = 0x2ad7b1,
  ID_MUXING_APP = 0x4d80,
  ID_WRITING_APP = 0x5741,
  ID_TRACKS = 0x1654ae6b,
  ID_TRACK_ENTRY = 0xae,
  ID_TRACK_NUMBER = 0xd7,
  ID_TRACK_UID = 0x73c5,
  ID_TRACK_TYPE = 0x83,
  ID_FLAG_LACING = 0x9c,
  ID_CODEC_ID = 0x86,
  ID_CODEC_PRIVATE = 0x63a2,
  ID_AUDIO = 0xe1,
  ID_SAMPLING_FREQUENCY = 0xb5,
  ID_CHANNELS = 0x9f,
  ID_CLUSTER = 0x1f43b675,
  ID_TIMESTAMP = 0xe7,
  ID_SIMPLE_BLOCK = 0xa3,
};

#define TICK_NS 1000
#define SIZE_BYTES 7 // of each size of an element with others in it; its first bits are 0000001
#define SIZE_MARK ((uint64_t) 1 << 49)
#define SIZE_UNKNOWN ((uint64_t) 0x01ffffffffffffff) // of 8 bytes
#define NUMBER_BYTES 8

static void
put_id (WeirBoxes *w, uint32_t id)
{
  weir_boxes_number (w, id > 0xffffff ? 4 : id > 0xffff ? 3 : id > 0xff ? 2 : 1, id);
}

// Begins an element. Returns its place for end().
static size_t
begin_element (WeirBoxes *w, uint32_t id)
{
  put_id (w, id);
  weir_boxes_zeros (w, SIZE_BYTES);
  return w->at;
}

static void
end (WeirBoxes *w, size_t at)
{
  WeirBoxes again = { w->data, w->size, at - SIZE_BYTES };

  weir_boxes_number (&again, SIZE_BYTES, SIZE_MARK | (w->at - at));
}

static void
put_number (WeirBoxes *w, uint32_t id, uint64_t value)
{
  put_id (w, id);
  weir_boxes_u8 (w, 0x80 | NUMBER_BYTES);
  weir_boxes_u64 (w, value);
}

static void
put_bytes (WeirBoxes *w, uint32_t id, const void *bytes, size_t len)
{
  size_t at = begin_element (w, id);

  weir_boxes_put (w, bytes, len);
  end (w, at);
}

static void
put_text (WeirBoxes *w, uint32_t id, const char *text)
{
  put_bytes (w, id, text, strlen (text));
}

static void
put_float (WeirBoxes *w, uint32_t id, double value)
{
  uint64_t bits;

  memcpy (&bits, &value, sizeof bits);
  put_number (w, id, bits);
}

static void
put_ebml (WeirBoxes *w)
{
  size_t at = begin_element (w, ID_EBML);

  put_text (w, ID_DOC_TYPE, "matroska");
  put_number (w, ID_DOC_TYPE_VERSION, 4);
  put_number (w, ID_DOC_TYPE_READ_VERSION, 2);
  end (w, at);
}

static void
put_info (WeirBoxes *w)
{
  size_t at = begin_element (w, ID_INFO);

  put_number (w, ID_TIMESTAMP_SCALE, TICK_NS);
  put_text (w, ID_MUXING_APP, "Weir");
  put_text (w, ID_WRITING_APP, "Weir");
  end (w, at);
}

static void
put_audio (WeirBoxes *w, const WeirMp4Track *track)
{
  size_t at = begin_element (w, ID_AUDIO);

  put_float (w, ID_SAMPLING_FREQUENCY, track->timescale);
  put_number (w, ID_CHANNELS, track->channels);
  end (w, at);
}

static void
put_track (WeirBoxes *w, const WeirMp4Track *track, size_t number)
{
  static const char *const names[WEIR_MP4_N_CODECS] = {
    [WEIR_MP4_H264] = "V_MPEG4/ISO/AVC",
    [WEIR_MP4_H265] = "V_MPEGH/ISO/HEVC",
    [WEIR_MP4_AAC] = "A_AAC",
  };
  size_t at = begin_element (w, ID_TRACK_ENTRY);

  put_number (w, ID_TRACK_NUMBER, number);
  put_number (w, ID_TRACK_UID, number);
  put_number (w, ID_TRACK_TYPE, weir_mp4_is_video (track->codec) ? 1 : 2);
  put_number (w, ID_FLAG_LACING, 0);
  put_text (w, ID_CODEC_ID, names[track->codec]);
  put_bytes (w, ID_CODEC_PRIVATE, track->config, track->config_len);
  if (!weir_mp4_is_video (track->codec))
    put_audio (w, track);
  end (w, at);
}

size_t
weir_matroska_write_head (uint8_t *out, size_t size, const WeirMp4Track *tracks, size_t n_tracks)
{
  WeirBoxes w = { out, size, 0 };
  size_t at;

  put_ebml (&w);
  put_id (&w, ID_SEGMENT);
  weir_boxes_u64 (&w, SIZE_UNKNOWN);
  put_info (&w);
  at = begin_element (&w, ID_TRACKS);
  for (size_t i = 0; i < n_tracks; i++)
    put_track (&w, &tracks[i], i + 1);
  end (&w, at);
  return w.at;
}

size_t
weir_matroska_write_frame_head (
    uint8_t out[WEIR_MATROSKA_FRAME_HEAD], size_t track, uint64_t time_us, bool key, size_t len)
{
  WeirBoxes w = { out, WEIR_MATROSKA_FRAME_HEAD, 0 };
  size_t cluster = begin_element (&w, ID_CLUSTER), block;

  put_number (&w, ID_TIMESTAMP, time_us);
  block = begin_element (&w, ID_SIMPLE_BLOCK);
  weir_boxes_u8 (&w, (uint8_t) (0x80 | (track + 1)));
  weir_boxes_u16 (&w, 0); // after the cluster's time
  weir_boxes_u8 (&w, key ? 0x80 : 0);
  w.at += len;
  end (&w, block);
  end (&w, cluster);
  return w.at - len;
}
