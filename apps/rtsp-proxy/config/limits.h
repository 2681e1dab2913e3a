// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The mapping `limits` of the configuration: what one client, and all clients together, may use.

#include "text/request_check.h"
#include "config/proxy_effect.h"
#include "text/schema.h"

typedef struct {
  guint connections;         // at the same time
  guint address_connections; // of them from one address; 0: no limit
  guint sessions;            // of one connection
  guint requests_rate;       // of one connection, per second
  guint stray_frames;        // of one connection
  RequestLimits request;     // in bytes, and a number
  guint idle_ms, request_ms; // until the first request; for a whole request
  guint no_session_ms;       // until a further one, without a session
  guint write_ms;            // until a client reads its responses
  guint line_rate;           // Mb/s of all streams of block stores; 0: no limit
  SchemaSize memory;         // 0: the limit of the control group, or none
} Limits;

extern const SchemaObject limits_object;

// Get and set the limits in effect: the defaults before the first call of limits_set(). Call from
// any thread.
void limits_get (Limits *limits);
void limits_set (const Limits *limits);
