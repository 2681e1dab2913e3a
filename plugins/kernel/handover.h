// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Hands the packets of a stream from a relay's thread to the relay program (relaylayout.h) and
// back, so that none is lost, sent twice or overtaken. If the thread does not keep up with the
// stream, it drops packets until it can hand over. Belongs to the thread.

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
  gboolean has_handled; // the thread has handled a packet since it took over
  gboolean dropping;    // it drops packets
  gboolean dropped;     // it had to when it handed over last
  gint64 since_ns;      // when it was first looked whether it keeps up; 0: not yet
  guint32 behind;       // packets that it had to handle then
} WeirHandover;

// Makes the program pass all packets, and waits until it uses the readers no more. Returns whether
// it relayed.
gboolean weir_handover_leave (WeirHandover *self);

// Lets the program relay if it may, and if the thread has handled all that the program has passed.
// Returns whether it begins to.
gboolean weir_handover_enter (WeirHandover *self);

// From now on, the program may relay only after the thread has handled another packet.
void weir_handover_expect_packet (WeirHandover *self);

// Reports whether the thread drops the packet that it has got. It does if it waits to hand over,
// has had more to handle for a second, and has hardly less to handle than a second ago; or if it
// had to drop packets the last time, and has handled one.
gboolean weir_handover_drops (WeirHandover *self, gint64 now_ns);

// Says that the thread has handled all that it got.
void weir_handover_note_empty (WeirHandover *self);

// Says that the thread has handled a packet with this mark, not 0.
void weir_handover_note_mark (WeirHandover *self, guint32 mark);

G_END_DECLS
