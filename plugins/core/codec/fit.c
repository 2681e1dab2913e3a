// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/fit_private.h"

#include <stdlib.h>
#include <string.h>

// Numbers that go back by less belong to packets that are late; else the source has begun anew.
#define LATE 1000

WeirFit *
weir_fit_new (WeirCodec codec, const WeirFitOut *out, void *data)
{
  WeirFit *self = calloc (1, sizeof *self);

  if (!self)
    return NULL;
  self->codec = codec;
  self->out = out;
  self->data = data;
  return self;
}

void
weir_fit_free (WeirFit *self)
{
  free (self);
}

void
weir_fit_add_set (WeirFit *self, const uint8_t *nal, size_t len)
{
  if (self->codec == WEIR_CODEC_H264)
    weir_fit_sets_note (&self->h264.sets, nal, len);
}

void
weir_fit_write (
    WeirFit *self, bool marker, const uint8_t *head, size_t n_head, const uint8_t *rest, size_t n)
{
  const size_t size = WEIR_RTP_HEADER + n_head + n;
  uint8_t *out = self->out->reserve (self->data, size);

  if (!out) {
    self->failed = true;
    self->seq++; // receivers notice
    return;
  }
  out[0] = 0x80;
  out[1] = (uint8_t) ((marker ? 0x80 : 0) | self->rtp.pt);
  weir_rtp_set_seq (out, self->seq++);
  weir_rtp_set_timestamp (out, self->time);
  weir_rtp_set_ssrc (out, self->rtp.ssrc);
  if (n_head > 0)
    memcpy (out + WEIR_RTP_HEADER, head, n_head);
  if (n > 0)
    memcpy (out + WEIR_RTP_HEADER + n_head, rest, n);
  self->n_written++;
  self->out->commit (self->data, size);
}

// Takes a packet whose codec is not H.264.
static WeirFitResult
take_other (WeirFit *self, const uint8_t *packet, bool lost)
{
  const WeirRtp *rtp = &self->rtp;

  self->time = rtp->timestamp;
  self->seq = (uint16_t) (self->seq + lost);
  if (rtp->payload_length > WEIR_FIT_PAYLOAD && self->codec != WEIR_CODEC_AUDIO)
    return weir_fit_cut (self, packet);
  weir_fit_write (self, rtp->marker, packet + rtp->payload_offset, rtp->payload_length, NULL, 0);
  return WEIR_FIT_SENT;
}

static WeirFitResult
take (WeirFit *self, const uint8_t *packet, size_t len)
{
  WeirFitResult result;
  bool lost, next;
  int16_t step;

  if (weir_rtp_parse (packet, len, &self->rtp) < 0)
    return WEIR_FIT_BROKEN;
  step = (int16_t) (self->rtp.seq - self->in_seq);
  if (self->begun && step <= 0 && step > -LATE)
    return WEIR_FIT_LATE;
  if (!self->begun)
    self->seq = self->rtp.seq;
  self->lost |= self->begun && step != 1;
  self->in_seq = self->rtp.seq;
  if (self->rtp.payload_length == 0) { // browsers send padding to probe a path
    self->begun = true;
    return WEIR_FIT_NEEDLESS;
  }
  lost = self->lost;
  next = !self->has_time || self->rtp.timestamp != self->in_time;
  self->begun = self->has_time = true;
  self->lost = self->failed = false;
  self->in_time = self->rtp.timestamp;
  result = self->codec == WEIR_CODEC_H264
               ? weir_fit_h264_take (
                     self, packet + self->rtp.payload_offset, self->rtp.payload_length, lost, next)
               : take_other (self, packet, lost);
  return self->failed ? WEIR_FIT_NO_MEMORY : result;
}

WeirFitResult
weir_fit_take (WeirFit *self, const uint8_t *packet, size_t len)
{
  const WeirFitResult result = take (self, packet, len);

  self->counts[result]++;
  return result;
}

uint64_t
weir_fit_count (const WeirFit *self, WeirFitResult result)
{
  return self->counts[result];
}

uint64_t
weir_fit_written (const WeirFit *self)
{
  return self->n_written;
}
