// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Looks, every other second, for what would else only be counted, and tells the log: readers who
// get less than everything, and why; packets that readers never got; packets of an upstream that
// were of no use. A mount's packets are told of once a minute at most. Main thread only.

#include "outlets/rtsp/server.h"

typedef struct _Notices Notices;

Notices *notices_new (Server *server); // which must outlive it
void notices_free (Notices *self);
