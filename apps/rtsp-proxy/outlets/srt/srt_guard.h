// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Checks the control packets of SRT before libsrt reads them. The kernel drops a datagram whose
// control packet no SRT caller sends:
//
// - a control packet of an unknown type, or shorter than its type asks for;
// - a loss report that ends within a range;
// - a later exchange of keys that is empty or too long;
// - a handshake of another version than 4 or 5, or with numbers that no socket has;
// - a handshake with an extension that is cut, empty, too long, of an unknown kind or of one that
//   only a listener sends, that has an empty packet filter or keys whose sizes contradict each
//   other, or with more than 8 extensions.
//
// libsrt 1.5.1 ends the process at an empty packet filter, and writes past its array at keys that
// are too long. Data pass after two instructions.

#include <glib.h>

#define SRT_GUARD_UDP 8 // bytes before SRT's header that the filter of a UDP socket sees

// Attaches the filter to a socket whose filters see `offset` bytes before the datagram. Returns
// FALSE with errno set if the system refuses.
gboolean srt_guard_attach (gint socket, guint32 offset);
