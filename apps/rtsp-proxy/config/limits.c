// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "config/limits.h"

#include "stores/block_admission.h"

#define MEMORY_MIN (G_GUINT64_CONSTANT (16) << 20)
#define MEMORY_MAX (G_GUINT64_CONSTANT (1) << 40)

#define AT(field) G_STRUCT_OFFSET (Limits, field)
#define LIMIT .effect = PROXY_EFFECT_RELOAD

static const SchemaKey keys[] = {
  { "connections", SCHEMA_NUMBER, AT (connections), "1024", .min = 1, .max = 1000000, LIMIT,
      .help = "RTSP connections at the same time, and as many HTTP connections; more are answered "
              "with 503 and closed" },
  { "connections-per-address", SCHEMA_NUMBER, AT (address_connections), "32", .max = 1000000, LIMIT,
      .help = "of them from one IPv4 address or one IPv6 /64 network; loopback addresses have no "
              "such limit; 0: no limit" },
  { "sessions", SCHEMA_NUMBER, AT (sessions), "1", .min = 1, .max = 64, LIMIT,
      .help = "sessions of one connection, such as of several mounts; a further SETUP is answered "
              "with 503" },
  { "requests-per-second", SCHEMA_NUMBER, AT (requests_rate), "50", .min = 1, .max = 100000, LIMIT,
      .help = "requests of one connection, after a burst of twice as many; further requests wait" },
  { "stray-frames", SCHEMA_NUMBER, AT (stray_frames), "100", .max = 1000000, LIMIT,
      .help = "interleaved frames of one connection for channels that are not set up, or longer "
              "than 8 KiB; they are dropped, and one more closes the connection" },
  { "line", SCHEMA_NUMBER, AT (request.line), "2048", .min = 256, .max = 4000, LIMIT,
      .help = "bytes of the request line, else 414, and of each header line, else 400" },
  { "headers", SCHEMA_NUMBER, AT (request.headers), "64", .min = 8, .max = 1000, LIMIT,
      .help = "header lines of a request; more are answered with 400" },
  { "head", SCHEMA_NUMBER, AT (request.head), "16384", .min = 1024, .max = 262144, LIMIT,
      .help = "bytes of the request line and all header lines; more are answered with 400" },
  { "body", SCHEMA_NUMBER, AT (request.body), "65536", .max = 65536, LIMIT,
      .help = "bytes of the body of a request; more are answered with 413" },
  { "idle-timeout", SCHEMA_DURATION, AT (idle_ms), "10s", .min = 100, LIMIT,
      .help = "time until the first request of a connection begins, and over HTTP each further "
              "one; then "
              "the connection is closed" },
  { "no-session-timeout", SCHEMA_DURATION, AT (no_session_ms), "60s", .min = 100, .max = 60000,
      LIMIT,
      .help =
          "time without a request after which an RTSP connection that has no session is closed; "
          "one with a session lives as long as the session, which ends 60 to 70 s after the "
          "last request or report" },
  { "request-timeout", SCHEMA_DURATION, AT (request_ms), "10s", .min = 100, LIMIT,
      .help =
          "time from the first to the last byte of a request or an interleaved frame; a request "
          "that takes longer is answered with 408" },
  { "write-timeout", SCHEMA_DURATION, AT (write_ms), "10s", .min = 100, LIMIT,
      .help = "time until a client that does not play has read its responses; then its connection "
              "is closed" },
  { "line-rate", SCHEMA_NUMBER, AT (line_rate), "0", .max = 1000000, LIMIT,
      .help =
          "Mb/s of all streams of block stores together, by the rates of their titles; a further "
          "one gets 453 over RTSP and 503 over HTTP; 0: no limit" },
  { "memory", SCHEMA_SIZE, AT (memory), .min = MEMORY_MIN, .max = MEMORY_MAX, LIMIT,
      .help = "memory of the process; at 90% new connections and readers are refused with 503, and "
              "at 95% the readers that lag most are closed. The default is the limit of the "
              "control group, if it has one" },
  { NULL },
};

#undef AT
#undef LIMIT

const SchemaObject limits_object = { .keys = keys,
  .expected = "expected {KEY: VALUE}, such as {connections: 1000}" };

// ---- the limits in effect ----

static GMutex lock;
static Limits current; // use with `lock` held
static gboolean is_set;

void
limits_get (Limits *limits)
{
  g_mutex_lock (&lock);
  if (!is_set)
    schema_init (keys, &current);
  is_set = TRUE;
  *limits = current;
  g_mutex_unlock (&lock);
}

void
limits_set (const Limits *limits)
{
  g_mutex_lock (&lock);
  current = *limits;
  is_set = TRUE;
  g_mutex_unlock (&lock);
  if (WITH_STORE)
    block_admission_set_line ((guint64) limits->line_rate * 1000000);
}
