// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mp4/init.h"

#include "mp4/box.h"

#define MOVIE_TIMESCALE 1000
#define FIXED_ONE 0x00010000u // 16.16

static const uint32_t matrix[9] = { FIXED_ONE, 0, 0, 0, FIXED_ONE, 0, 0, 0, 0x40000000 };

static void
put_matrix (WeirBoxes *w)
{
  for (int i = 0; i < 9; i++)
    weir_boxes_u32 (w, matrix[i]);
}

static void
put_ftyp (WeirBoxes *w)
{
  size_t ftyp = weir_box_begin (w, "ftyp");

  weir_boxes_put (w, "iso6", 4);
  weir_boxes_u32 (w, 0);
  weir_boxes_put (w, "iso6cmfcmp41", 12);
  weir_box_end (w, ftyp);
}

static void
put_mvhd (WeirBoxes *w, size_t n_tracks)
{
  size_t mvhd = weir_box_begin_full (w, "mvhd", 0, 0);

  weir_boxes_zeros (w, 8); // creation, modification
  weir_boxes_u32 (w, MOVIE_TIMESCALE);
  weir_boxes_u32 (w, 0); // duration
  weir_boxes_u32 (w, FIXED_ONE);
  weir_boxes_u16 (w, 0x0100); // volume
  weir_boxes_zeros (w, 10);
  put_matrix (w);
  weir_boxes_zeros (w, 24);
  weir_boxes_u32 (w, (uint32_t) n_tracks + 1); // next track
  weir_box_end (w, mvhd);
}

static void
put_tkhd (WeirBoxes *w, const WeirMp4Track *track, uint32_t id)
{
  size_t tkhd = weir_box_begin_full (w, "tkhd", 0, 3); // enabled, in the movie

  weir_boxes_zeros (w, 8);
  weir_boxes_u32 (w, id);
  weir_boxes_zeros (w, 4 + 4 + 8 + 2 + 2); // duration, layer, group
  weir_boxes_u16 (w, weir_mp4_is_video (track->codec) ? 0 : 0x0100);
  weir_boxes_u16 (w, 0);
  put_matrix (w);
  weir_boxes_u32 (w, (uint32_t) track->width << 16);
  weir_boxes_u32 (w, (uint32_t) track->height << 16);
  weir_box_end (w, tkhd);
}

static void
put_mdhd (WeirBoxes *w, const WeirMp4Track *track)
{
  size_t mdhd = weir_box_begin_full (w, "mdhd", 0, 0);

  weir_boxes_zeros (w, 8);
  weir_boxes_u32 (w, track->timescale);
  weir_boxes_u32 (w, 0);
  weir_boxes_u16 (w, 0x55c4); // the language "und"
  weir_boxes_u16 (w, 0);
  weir_box_end (w, mdhd);
}

static void
put_hdlr (WeirBoxes *w, int video)
{
  size_t hdlr = weir_box_begin_full (w, "hdlr", 0, 0);

  weir_boxes_u32 (w, 0);
  weir_boxes_put (w, video ? "vide" : "soun", 4);
  weir_boxes_zeros (w, 12);
  weir_boxes_put (w, "Weir", 5);
  weir_box_end (w, hdlr);
}

static void
put_media_header (WeirBoxes *w, int video)
{
  size_t header =
      video ? weir_box_begin_full (w, "vmhd", 0, 1) : weir_box_begin_full (w, "smhd", 0, 0);

  weir_boxes_zeros (w, video ? 8 : 4);
  weir_box_end (w, header);
}

// The data are in the same file.
static void
put_dinf (WeirBoxes *w)
{
  size_t dinf = weir_box_begin (w, "dinf"), dref = weir_box_begin_full (w, "dref", 0, 0);

  weir_boxes_u32 (w, 1);
  weir_box_end (w, weir_box_begin_full (w, "url ", 0, 1));
  weir_box_end (w, dref);
  weir_box_end (w, dinf);
}

// ---- sample entries ----

// A descriptor of ISO/IEC 14496-1, 7.2.2, of at most 127 bytes.
static void
begin_descriptor (WeirBoxes *w, uint8_t tag, size_t len)
{
  weir_boxes_u8 (w, tag);
  weir_boxes_u8 (w, (uint8_t) len);
}

// ISO/IEC 14496-14, 5.6.
static void
put_esds (WeirBoxes *w, const WeirMp4Track *track)
{
  size_t specific = track->config_len < 64 ? track->config_len : 64;
  size_t decoder = 13 + 2 + specific;
  size_t esds = weir_box_begin_full (w, "esds", 0, 0);

  begin_descriptor (w, 3, 3 + 2 + decoder + 2 + 1);
  weir_boxes_zeros (w, 3);
  begin_descriptor (w, 4, decoder);
  weir_boxes_u8 (w, 0x40); // MPEG-4 audio
  weir_boxes_u8 (w, 0x15); // an audio stream
  weir_boxes_zeros (w, 3 + 4 + 4);
  begin_descriptor (w, 5, specific);
  weir_boxes_put (w, track->config, specific);
  begin_descriptor (w, 6, 1);
  weir_boxes_u8 (w, 2);
  weir_box_end (w, esds);
}

static void
put_config (WeirBoxes *w, const WeirMp4Track *track, const char type[4])
{
  size_t box = weir_box_begin (w, type);

  weir_boxes_put (w, track->config, track->config_len);
  weir_box_end (w, box);
}

static void
put_video_fields (WeirBoxes *w, const WeirMp4Track *track)
{
  weir_boxes_zeros (w, 16);
  weir_boxes_u16 (w, track->width);
  weir_boxes_u16 (w, track->height);
  weir_boxes_u32 (w, 72 << 16); // dots an inch
  weir_boxes_u32 (w, 72 << 16);
  weir_boxes_u32 (w, 0);
  weir_boxes_u16 (w, 1); // pictures a sample
  weir_boxes_zeros (w, 32);
  weir_boxes_u16 (w, 0x18); // depth
  weir_boxes_u16 (w, 0xffff);
}

static void
put_audio_fields (WeirBoxes *w, const WeirMp4Track *track)
{
  weir_boxes_zeros (w, 8);
  weir_boxes_u16 (w, track->channels);
  weir_boxes_u16 (w, 16); // bits
  weir_boxes_u32 (w, 0);
  // 16.16, which cannot hold more than 65,535 Hz; the decoder takes the rate of its record.
  weir_boxes_u32 (w, track->timescale <= UINT16_MAX ? track->timescale << 16 : 0);
}

static void
put_stsd (WeirBoxes *w, const WeirMp4Track *track)
{
  static const struct {
    const char *entry, *config;
  } boxes[WEIR_MP4_N_CODECS] = {
    [WEIR_MP4_H264] = { "avc1", "avcC" },
    [WEIR_MP4_H265] = { "hvc1", "hvcC" },
    [WEIR_MP4_VP9] = { "vp09", "vpcC" },
    [WEIR_MP4_AV1] = { "av01", "av1C" },
    [WEIR_MP4_AAC] = { "mp4a", NULL },
    [WEIR_MP4_OPUS] = { "Opus", "dOps" },
  };
  size_t stsd = weir_box_begin_full (w, "stsd", 0, 0), entry;

  weir_boxes_u32 (w, 1);
  entry = weir_box_begin (w, boxes[track->codec].entry);
  weir_boxes_zeros (w, 6);
  weir_boxes_u16 (w, 1); // the first data reference
  if (weir_mp4_is_video (track->codec))
    put_video_fields (w, track);
  else
    put_audio_fields (w, track);
  if (boxes[track->codec].config)
    put_config (w, track, boxes[track->codec].config);
  else
    put_esds (w, track);
  weir_box_end (w, entry);
  weir_box_end (w, stsd);
}

// All samples are in fragments.
static void
put_stbl (WeirBoxes *w, const WeirMp4Track *track)
{
  static const struct {
    const char *type;
    size_t zeros;
  } empty[] = { { "stts", 4 }, { "stsc", 4 }, { "stsz", 8 }, { "stco", 4 } };
  size_t stbl = weir_box_begin (w, "stbl");

  put_stsd (w, track);
  for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
    size_t box = weir_box_begin_full (w, empty[i].type, 0, 0);

    weir_boxes_zeros (w, empty[i].zeros);
    weir_box_end (w, box);
  }
  weir_box_end (w, stbl);
}

// ---- the movie ----

static void
put_trak (WeirBoxes *w, const WeirMp4Track *track, uint32_t id)
{
  int video = weir_mp4_is_video (track->codec);
  size_t trak = weir_box_begin (w, "trak"), mdia, minf;

  put_tkhd (w, track, id);
  mdia = weir_box_begin (w, "mdia");
  put_mdhd (w, track);
  put_hdlr (w, video);
  minf = weir_box_begin (w, "minf");
  put_media_header (w, video);
  put_dinf (w);
  put_stbl (w, track);
  weir_box_end (w, minf);
  weir_box_end (w, mdia);
  weir_box_end (w, trak);
}

static void
put_mvex (WeirBoxes *w, size_t n_tracks, bool is_file)
{
  size_t mvex = weir_box_begin (w, "mvex");

  if (is_file) {
    size_t mehd = weir_box_begin_full (w, "mehd", 1, 0);

    weir_boxes_zeros (w, 8);
    weir_box_end (w, mehd);
  }
  for (uint32_t i = 0; i < n_tracks; i++) {
    size_t trex = weir_box_begin_full (w, "trex", 0, 0);

    weir_boxes_u32 (w, i + 1);
    weir_boxes_u32 (w, 1); // the sample entry
    weir_boxes_zeros (w, 12);
    weir_box_end (w, trex);
  }
  weir_box_end (w, mvex);
}

static void
put_udta (WeirBoxes *w, size_t n_tracks)
{
  size_t udta = weir_box_begin (w, "udta"), own = weir_box_begin_full (w, "WEIR", 0, 0);

  weir_boxes_zeros (w, 8 + 8 * n_tracks);
  weir_box_end (w, own);
  weir_box_end (w, udta);
}

static size_t
write_init (uint8_t *out, size_t size, const WeirMp4Track *tracks, size_t n_tracks, bool is_file)
{
  WeirBoxes w = { out, size, 0 };
  size_t moov;

  put_ftyp (&w);
  moov = weir_box_begin (&w, "moov");
  put_mvhd (&w, n_tracks);
  for (size_t i = 0; i < n_tracks; i++)
    put_trak (&w, &tracks[i], (uint32_t) i + 1);
  put_mvex (&w, n_tracks, is_file);
  if (is_file)
    put_udta (&w, n_tracks);
  weir_box_end (&w, moov);
  return w.at;
}

size_t
weir_mp4_write_init (uint8_t *out, size_t size, const WeirMp4Track *tracks, size_t n_tracks)
{
  return write_init (out, size, tracks, n_tracks, false);
}

size_t
weir_mp4_write_file_init (uint8_t *out, size_t size, const WeirMp4Track *tracks, size_t n_tracks)
{
  return write_init (out, size, tracks, n_tracks, true);
}
