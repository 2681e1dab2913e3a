// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What HTTP clients reach: HLS, MPEG-TS, titles, and the pages (key `http`).

#include "proxy/outlet.h"

extern const Outlet web_outlet;
