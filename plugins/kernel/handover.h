// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Hands the packets of a stream from a relay's thread to the relay program (relaylayout.h) and
// back, so that none is lost, sent twice or overtaken. Belongs to the thread.

#include <glib.h>

#include "relaylayout.h"

G_BEGIN_DECLS

// All 0 at first.
typedef struct {
  struct relay *shared; // the program's memory; NULL: there is no program
  gboolean ready;       // the program may relay

  // Private, but for reading `active`.
  gboolean active;   // the program relays
  gboolean complete; // all packets up to the one with `mark` were handled
  guint32 mark;      // of the last packet
  guint32 n_of_mark, expected;
} WeirHandover;

// Makes the program pass all packets, and waits until it uses the readers no more. Returns whether
// it relayed.
gboolean weir_handover_leave (WeirHandover *self);

// Lets the program relay if it may, and if the thread has handled all that the program has passed.
// Returns whether it begins to.
gboolean weir_handover_enter (WeirHandover *self);

// From now on, the program may relay only after the thread has handled another packet.
void weir_handover_expect_packet (WeirHandover *self);

// Says that the thread has handled a packet with this mark, not 0.
void weir_handover_note_mark (WeirHandover *self, guint32 mark);

G_END_DECLS
