// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which units of a scalable H.264 picture make up the stream of a layer set, and what they turn
// into: its parameter sets, and where a layer that is predicted from no other is to be plain H.264,
// its slices.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/sps.h"
#include "svc/frame.h"
#include "svc/layerset.h"

typedef enum {
  WEIR_OUTPUT_SVC,  // all layers up to the highest
  WEIR_OUTPUT_AVC,  // the highest alone, as plain H.264
  WEIR_OUTPUT_BASE, // the base layer alone, as plain H.264
} WeirOutput;

typedef struct {
  uint8_t *bytes;
  size_t len;
} WeirParameterSet;

// What the stream has told so far. Belongs to the stream, not to the sets made of it.
typedef struct {
  uint8_t users[256]; // of a PPS: the spatial layers whose slices name it, a bit each
  uint8_t sps_of[256];
  bool cabac[256];
  WeirParameterSet sps[32], subset[32], pps[256];
  uint8_t dependent; // spatial layers that had a slice which can't stand alone, a bit each
  unsigned changes;  // counts parameter sets that were new or changed
} WeirSvc;

void weir_svc_init (WeirSvc *self);
void weir_svc_free (WeirSvc *self);

// Learns from a parameter set outside of the stream (codec_data, sprop-parameter-sets).
void weir_svc_note (WeirSvc *self, const uint8_t *nal, size_t len);

// Learns from a frame that was read. To be called before any decision on it.
void weir_svc_note_frame (WeirSvc *self, const WeirFrame *frame);

// The spatial layer whose slices come out as plain H.264, or -1 where layers stay as they are.
// `now` as weir_switch_picture() chose it. A layer that can't stand alone gives the base.
int weir_svc_plain_layer (const WeirSvc *self, WeirOutput output, WeirLayerSet now);

// False for a layer that can't be plain H.264.
bool weir_svc_can_be (const WeirSvc *self, int plain);

typedef enum { WEIR_UNIT_DROP, WEIR_UNIT_KEEP, WEIR_UNIT_REWRITE } WeirUnitFate;

// For a unit of a picture that is kept. `plain` is weir_svc_plain_layer().
WeirUnitFate weir_svc_fate (const WeirSvc *self, const WeirUnit *unit, WeirLayerSet now, int plain);

// What a parameter set that is rewritten becomes, or the slice that begins with these bytes: at
// most `unit->len` bytes. Returns the length, or 0 if that can't be done.
size_t weir_svc_rewrite (const WeirSvc *self, const WeirUnit *unit, uint8_t *out);

// The header byte of a slice that is rewritten.
uint8_t weir_svc_slice_header (const WeirUnit *unit);

// Whether an access unit is worth sending for this unit: it is a slice, or a parameter set where
// there is no picture.
bool weir_svc_is_worth (const WeirUnit *unit, const WeirPicture *picture);

typedef enum {
  WEIR_REST_NOTHING, // no picture, and no parameter set, remains
  WEIR_REST_PART,
  WEIR_REST_ALL // the access unit stays as it is
} WeirRest;

// What remains of an access unit that is kept.
WeirRest weir_svc_rest (const WeirSvc *self, const WeirFrame *frame, WeirLayerSet now, int plain);

#define WEIR_SVC_SETS_MAX 1380 // bytes of parameter sets that are put in at once

// The spatial layers that come out, a bit each.
unsigned weir_svc_kept (WeirLayerSet now, int plain);

// Writes the parameter sets that the kept layers use and the frame does not bring, with start codes
// or lengths as weir_svc_write() does. A stream may give them once, at its start, and then they
// went with the layers that were left out. Returns the length, 0 if there are none or no room.
size_t weir_svc_write_missing (const WeirSvc *self, const WeirFrame *frame, WeirLayerSet now,
    int plain, unsigned length_size, uint8_t *out, size_t room);

// Writes the units of an access unit that are kept, each with a start code where `length_size` is
// 0, else with its length. At most (unit->len + 4) bytes each are written, and with `renew` set,
// which puts in the missing parameter sets, WEIR_SVC_SETS_MAX. Returns the length.
size_t weir_svc_write (const WeirSvc *self, const WeirFrame *frame, WeirLayerSet now, int plain,
    bool renew, unsigned length_size, uint8_t *out);

// The SPS that the kept layers' highest one uses, as it comes out; false if it was not seen yet.
// `bytes` has room for WEIR_SPS_MAX.
bool weir_svc_sps (
    const WeirSvc *self, WeirLayerSet now, int plain, WeirSps *sps, uint8_t *bytes, size_t *len);

// The SPS, or subset SPS, that the slices of a spatial layer use; false if it was not seen yet.
bool weir_svc_layer_sps (const WeirSvc *self, int spatial, uint8_t *bytes, size_t *len);

// Whether this PPS, or subset SPS, is one of the kept layers'.
bool weir_svc_has_pps (const WeirSvc *self, int id, WeirLayerSet now, int plain);
bool weir_svc_has_subset (const WeirSvc *self, int id, WeirLayerSet now, int plain);
