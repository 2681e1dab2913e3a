// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The window of one stream over HLS: its newest segments and their parts, each muxed once and
// shared by all readers, and the playlists about them (RFC 8216bis). One thread at a time writes;
// call the other functions from any thread.

#include <glib.h>

#include "outlets/hls/hls_common.h"
#include "frames/segment_output.h"
#include "outlets/hls/hls_settings.h"

typedef struct _HlsWindow HlsWindow;

// `of_sound`: of a further track of a variant, which has a window beside this one. It may have gaps
// where nothing came, and playlists only when something has come.
HlsWindow *hls_window_new (const HlsSettings *settings, HlsCommon *common, gboolean of_sound);
HlsWindow *hls_window_ref (HlsWindow *self);
void hls_window_unref (HlsWindow *self);

// Returns what a cutter writes into. Its longest segment is EXT-X-TARGETDURATION, as EXTINF is
// rounded; the first segments of all variants set it. (transfer none)
SegmentOutput *hls_window_get_output (HlsWindow *self);

// Nothing will be written: other variants need not wait.
void hls_window_give_up (HlsWindow *self);

void hls_format_clear (SegmentFormat *self);

// ---- for readers ----

typedef enum {
  HLS_READY,
  HLS_LATER, // it will come soon: ask again when the waiter is woken
  HLS_GONE,  // there is no such thing, or no longer
  HLS_WRONG, // the request is against the rules
} HlsState;

typedef enum { HLS_LIVE, HLS_PLAIN, HLS_N_KINDS } HlsKind; // with parts; of whole segments

// A request for a playlist: the values of _HLS_msn and _HLS_part, or -1, and of _HLS_skip.
typedef struct {
  HlsKind kind;
  gint64 msn, part;
  gboolean skips;
} HlsAsk;

// Each sets its result (transfer full) with HLS_READY.
HlsState hls_window_get_playlist (HlsWindow *self, const HlsAsk *ask, GBytes **text);
HlsState hls_window_get_init (HlsWindow *self, guint64 number, GBytes **data);
HlsState hls_window_get_part (HlsWindow *self, guint64 number, GBytes **data);
HlsState hls_window_get_segment (HlsWindow *self, guint64 msn, GPtrArray **blocks); // of GBytes

// Reports whether playlists can be had.
gboolean hls_window_has_begun (HlsWindow *self);

// Adds how far the live playlist is, for another playlist (EXT-X-RENDITION-REPORT). It has begun.
void hls_window_add_report (HlsWindow *self, GString *text, const gchar *uri);

// Returns whether there are playlists with media in them, and then sets `format`. (transfer full)
gboolean hls_window_dup_format (HlsWindow *self, SegmentFormat *format);

// Raises numbers above those of this window, so that another one can continue it.
void hls_window_raise (HlsWindow *self, HlsNumbers *numbers);

// Returns how long a request may wait, in ns.
gint64 hls_window_get_patience (HlsWindow *self);

// Wakes `wake` whenever something new is there, until hls_window_leave() returns. `wake` must not
// block, nor call functions of the window.
void hls_window_wait (HlsWindow *self, void (*wake) (gpointer data), gpointer data);
void hls_window_leave (HlsWindow *self, gpointer data);

// Wakes all.
void hls_window_wake (HlsWindow *self);
