// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Selects the NAL units of a scalable H.264 picture that belong to a layer set, and converts them
// where needed: parameter sets, and the slices of a layer that comes out as plain H.264. Only a
// layer that is predicted from no other layer can be plain H.264.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/sps.h"
#include "svc/frame.h"
#include "svc/layerset.h"

typedef enum {
  WEIR_OUTPUT_SVC,  // all layers up to the highest, as SVC
  WEIR_OUTPUT_AVC,  // the highest layer alone, as plain H.264
  WEIR_OUTPUT_BASE, // the base layer alone, as plain H.264
} WeirOutput;

typedef struct {
  uint8_t *bytes;
  size_t len;
} WeirParameterSet;

// The facts learned from a stream. They belong to the stream; all layer sets share them.
typedef struct {
  uint8_t users[256];  // by PPS id: the spatial layers whose slices refer to it, a bit each
  uint8_t sps_of[256]; // by PPS id: id of its SPS
  bool cabac[256];
  WeirParameterSet sps[32], subset[32], pps[256];
  uint8_t dependent; // spatial layers with a slice that depends on another layer, a bit each
  unsigned changes;  // counts new and changed parameter sets
} WeirSvc;

// Initialise, and free the copied parameter sets.
void weir_svc_init (WeirSvc *self);
void weir_svc_free (WeirSvc *self);

// Learns from a parameter set outside of the stream (codec_data, sprop-parameter-sets). The bytes
// are copied.
void weir_svc_note (WeirSvc *self, const uint8_t *nal, size_t len);

// Learns from a frame that was read. Call it before any decision on the frame.
void weir_svc_note_frame (WeirSvc *self, const WeirFrame *frame);

// Returns the spatial layer whose slices come out as plain H.264, or -1 if layers pass unchanged.
// `now` is the set that weir_switch_picture() chose. Returns the base layer (0) for a layer that
// cannot be decoded alone.
int weir_svc_plain_layer (const WeirSvc *self, WeirOutput output, WeirLayerSet now);

// Reports whether the layer `plain` can be plain H.264; true for -1.
bool weir_svc_can_be (const WeirSvc *self, int plain);

typedef enum { WEIR_UNIT_DROP, WEIR_UNIT_KEEP, WEIR_UNIT_REWRITE } WeirUnitFate;

// Decides on a unit of a picture that is kept. `plain` is from weir_svc_plain_layer().
WeirUnitFate weir_svc_fate (const WeirSvc *self, const WeirUnit *unit, WeirLayerSet now, int plain);

// Writes a unit whose fate is WEIR_UNIT_REWRITE: a converted parameter set, or the start of a
// slice. `out` needs room for `unit->len` bytes. Returns the length, or 0 if the unit cannot be
// converted.
size_t weir_svc_rewrite (const WeirSvc *self, const WeirUnit *unit, uint8_t *out);

// Returns the header byte of a slice that is rewritten.
uint8_t weir_svc_slice_header (const WeirUnit *unit);

// Reports whether the unit makes its access unit worth sending: a slice, or a parameter set in an
// access unit without a picture.
bool weir_svc_is_worth (const WeirUnit *unit, const WeirPicture *picture);

typedef enum {
  WEIR_REST_NOTHING, // neither a picture nor parameter sets remain
  WEIR_REST_PART,
  WEIR_REST_ALL // the access unit is unchanged
} WeirRest;

// Reports how much of a kept access unit remains.
WeirRest weir_svc_rest (const WeirSvc *self, const WeirFrame *frame, WeirLayerSet now, int plain);

#define WEIR_SVC_SETS_MAX 1380 // most bytes of parameter sets inserted at once

// Returns the spatial layers of the output, a bit each.
unsigned weir_svc_kept (WeirLayerSet now, int plain);

// Writes the parameter sets that the kept layers use and the frame lacks, with start codes or
// lengths as in weir_svc_write(). They are missing if the stream sends its sets only once, in
// pictures that were left out. `out` has `room` bytes. Returns the length; 0 if no set is missing
// or none fits.
size_t weir_svc_write_missing (const WeirSvc *self, const WeirFrame *frame, WeirLayerSet now,
    int plain, unsigned length_size, uint8_t *out, size_t room);

// Writes the units of an access unit that are kept, each with a start code if `length_size` is 0,
// else with a length of that many bytes. `renew` inserts the missing parameter sets. `out` needs
// room for (unit->len + 4) bytes per unit, and WEIR_SVC_SETS_MAX more with `renew`. Returns the
// length.
size_t weir_svc_write (const WeirSvc *self, const WeirFrame *frame, WeirLayerSet now, int plain,
    bool renew, unsigned length_size, uint8_t *out);

// Gives the outgoing SPS of the highest kept layer. `bytes` needs room for WEIR_SPS_MAX. Returns
// false if that SPS has not been seen.
bool weir_svc_sps (
    const WeirSvc *self, WeirLayerSet now, int plain, WeirSps *sps, uint8_t *bytes, size_t *len);

// Gives the SPS or subset SPS of a spatial layer; `bytes` needs room for WEIR_SPS_MAX. Returns
// false if it has not been seen.
bool weir_svc_layer_sps (const WeirSvc *self, int spatial, uint8_t *bytes, size_t *len);

// Report whether the kept layers use this PPS, or this subset SPS.
bool weir_svc_has_pps (const WeirSvc *self, int id, WeirLayerSet now, int plain);
bool weir_svc_has_subset (const WeirSvc *self, int id, WeirLayerSet now, int plain);
