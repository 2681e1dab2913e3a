// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swarm/storage.h"

uint32_t
weir_storage_leave (const WeirStorageView *view, uint32_t arriving)
{
  uint32_t leaving = WEIR_NO_PIECE;

  for (uint32_t i = 0; i < view->playing && i < view->n_pieces; i++) {
    if (view->pieces[i] == WEIR_PIECE_HELD && i != arriving
        && (leaving == WEIR_NO_PIECE || view->availability[i] > view->availability[leaving]))
      leaving = i;
  }
  if (leaving != WEIR_NO_PIECE || arriving == WEIR_NO_PIECE)
    return leaving;
  // The piece that is needed last gives way to one that is needed before it.
  for (uint32_t i = view->n_pieces; i-- > arriving + 1 && i > view->playing;) {
    if (view->pieces[i] == WEIR_PIECE_HELD)
      return i;
  }
  return WEIR_NO_PIECE;
}
