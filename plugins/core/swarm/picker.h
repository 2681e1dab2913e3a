// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which pieces of a title a viewer asks of its peers (Choe 2007, section 5.1.2). No picker takes a
// piece that cannot arrive before the origin is to be asked for it (swarm/watcher.h).
//
//   rarest    the piece that the fewest peers have, as BitTorrent does
//   in-order  the piece that is needed first
//   beta      drawn from Beta(1,2) over what lies ahead: earlier pieces are likelier
//   hybrid    in order within a window, then beta
//   adaptive  hybrid whose window shrinks to nothing while peers bring less than the title's rate,
//             and that leaves the pieces needed soonest to the origin then: they would come late;
//             while nobody wants what the viewer has, it is beta, to have what others lack
//
// The functions keep nothing and allocate nothing.

#include "swarm/playhead.h"

#define WEIR_WANTED_MAX 64 // pieces

typedef enum {
  WEIR_PICKER_RAREST,
  WEIR_PICKER_IN_ORDER,
  WEIR_PICKER_BETA,
  WEIR_PICKER_HYBRID,
  WEIR_PICKER_ADAPTIVE,
} WeirPicker;

typedef struct {
  WeirSwarmTitle title;
  WeirPlayhead playhead;
  uint8_t *pieces;              // a WeirPieceState for each piece
  const uint16_t *availability; // peers that have the piece and could send it now
  const uint32_t *arrived;      // bytes of each piece that are there; NULL: not known, 0
  double peer_rate;             // bits a second from one peer; 0: not known, the title's rate
  double swarm_rate;            // bits a second from all peers, for `adaptive`
  int64_t lead_ns;              // a piece must arrive so long before it is due; at least 0
  int64_t
      window_ns;  // of `hybrid`, and the longest of `adaptive`; 9 to 15 min are best (figure 5.4)
  uint32_t ahead; // only so many pieces from the playhead on, what the storage holds; 0: all
  bool keeps_window; // `adaptive` does not shrink its window: real sessions save more so
  bool idle; // no peer wants what is there: `adaptive` takes nothing in order, as others have that
} WeirPickerView;

// Returns a WeirPicker, or -1 if there is no picker of that name.
int weir_picker_find (const char *name);
const char *weir_picker_name (WeirPicker picker);

// Returns the first piece that peers can bring in time if they are asked at `now_ns`, or the number
// of pieces.
uint32_t weir_picker_first (const WeirPickerView *view, int64_t now_ns);

// Tells how a peer is to be asked at `now_ns`: for no piece before `*from`, which is later than
// weir_picker_first() while peers bring too little for `adaptive`, and for pieces before `*ordered`
// in order.
void weir_picker_order (WeirPicker picker, const WeirPickerView *view, int64_t now_ns,
    uint32_t *from, uint32_t *ordered);

// Returns a missing piece to be asked of peers at `now_ns`, or WEIR_NO_PIECE. `draw` is a random
// number, 0 to less than 1.
uint32_t weir_picker_pick (
    WeirPicker picker, const WeirPickerView *view, int64_t now_ns, double draw);

// Refills the wanted set of `n` pieces up to `most`, at most WEIR_WANTED_MAX. Pieces that are no
// longer WEIR_PIECE_WANTED leave it, and those whose rest cannot arrive in time anymore, which
// become missing. New ones become WEIR_PIECE_WANTED. `draws` has `most` random numbers. Returns the
// new number of pieces.
unsigned weir_picker_refill (WeirPicker picker, const WeirPickerView *view, int64_t now_ns,
    const double *draws, uint32_t *wanted, unsigned n, unsigned most);
