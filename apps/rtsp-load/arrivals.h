// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// When readers arrive.

#include "options.h"

gdouble arrivals_draw_exponential (GRand *random, gdouble mean);

// Returns the time between two readers by --arrivals, in ns.
gint64 arrivals_draw_gap (const Options *options, GRand *random);
