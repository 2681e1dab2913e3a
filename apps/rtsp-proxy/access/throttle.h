// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Slows down addresses that send wrong credentials. After a few failures, the credentials of an
// address are checked one after the other, with a growing pause between them. Addresses with one
// key (base/address.h) are one address. The table is bounded. Call from any thread; `now_us` is
// monotonic.

#include <gio/gio.h>

#include "base/log_limit.h"

#define THROTTLE_FREE 5       // failures before the first pause
#define THROTTLE_PAUSE_MS 500 // the first pause; each failure doubles it
#define THROTTLE_PAUSE_MAX_MS 4000
#define THROTTLE_WAITING_MAX 8  // requests of an address that may wait
#define THROTTLE_CHECKED_MAX 32 // requests of an address that are checked at the same time
#define THROTTLE_FORGET_S 300   // after the last failure
#define THROTTLE_ADDRESSES_MAX 4096

typedef struct _Throttle Throttle;

Throttle *throttle_new (void);
void throttle_free (Throttle *self);

// Returns the time, in us, after which the credentials of a request may be checked. Returns -1 if
// too many requests of the address wait. Otherwise end the request with throttle_leave().
gint64 throttle_enter (Throttle *self, GInetAddress *address, gint64 now_us);
void throttle_leave (Throttle *self, GInetAddress *address, gboolean failed, gint64 now_us);

// Limits the lines that the log has about an address, like log_limit_pass().
gboolean throttle_may_log (
    Throttle *self, GInetAddress *address, gint64 now_us, guint64 *n_suppressed);

// Returns the number of addresses in the table.
guint throttle_count (Throttle *self);
