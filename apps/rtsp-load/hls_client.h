// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One player of a Low-Latency HLS stream: it reloads the playlist by requests that wait, and asks
// for each part before it is there, as the playlist hints. It keeps no media. The event loop in
// hls.c drives it; nothing here blocks.

#include "http_reply.h"
#include "hls_text.h"
#include "run/histogram.h"
#include "target.h"

// A player has a connection for playlists and one for media.
typedef enum { HLS_PLAYLISTS, HLS_MEDIA, HLS_CONNECTIONS } HlsConnectionKind;

typedef struct {
  int fd;              // -1: closed
  gboolean connecting; // not connected yet
  gchar *uri;          // asked for; NULL: nothing
  gint64 asked_ns;
  GString *out;
  HttpReply reply;
} HlsConnection;

// A part that has come, and is not in a playlist yet.
typedef struct {
  guint uri_hash;
  gint64 at_ns, at_us; // monotonic; since the epoch
} HlsArrival;

// What all players of a run count together.
typedef struct {
  guint64 parts, playlists, bytes, stalls, skipped;
  WeirHistogram latency, start_up;
} HlsCounts;

typedef struct {
  guint index;
  const Target *target;
  HlsCounts *counts;
  int epoll;
  gint64 timeout_ns;
  gchar *why; // it failed, or NULL
  gint64 began_ns;

  HlsConnection connections[HLS_CONNECTIONS];
  gchar *cookie;
  gchar *playlist; // URI of the media playlist; NULL: not known
  guint redirects;

  GQueue wanted; // URIs of media
  gchar *last;   // the newest part that was wanted
  GArray *arrivals;
  gboolean plays;
  gint64 due_ns; // when the next part is needed
} HlsClient;

void hls_client_init (
    HlsClient *self, guint index, const Target *target, HlsCounts *counts, int epoll);
void hls_client_clear (HlsClient *self);

void hls_client_start (HlsClient *self, gint64 now, gint64 timeout_ns);
void hls_client_on_event (HlsClient *self, HlsConnectionKind kind, guint32 events, gint64 now);

// Fails if a request has waited too long. Call every now and then.
void hls_client_check_time (HlsClient *self, gint64 now);
