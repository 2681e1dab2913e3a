// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// An element that reads a media file and outputs its tracks as RTP. It adds pad src_N for track N
// once it knows the track, and emits no-more-pads after the last one. The payloader of pad src_N is
// called pay_src_N. Tracks are numbered in the order in which they are found. Posts a failure if
// the file cannot be read on.
//
// This is the base of two classes: title_local.h reads the file itself, title_remote.h lets a
// worker process do so.

#include <gst/gst.h>

#include "relay/relay.h"

// The rounds of a title's ratepacer: one send and one wake-up for some packets. The bytes are half
// of what fits into the receive buffer that Linux gives a player's socket; a round with more is
// divided into three.
#define TITLE_ROUND_NS 60000000
#define TITLE_ROUND_BYTES 65536

typedef struct {
  GstBin parent;
  gboolean raw;                 // set before no-more-pads
  gint muted[RELAY_MAX_TRACKS]; // atomic
  gchar *left_out;              // under the object lock
} TitleFile;

// The functions of the classes; only `get_lead` and `fill_gaps` must be there.
typedef struct {
  GstBinClass parent_class;
  GstClockTime (*get_lead) (TitleFile *self, guint track); // ignores `muted`
  void (*fill_gaps) (TitleFile *self);
  void (*mute) (TitleFile *self, guint track, gboolean muted);
  void (*give_up) (TitleFile *self);
  gboolean (*is_cut_off) (TitleFile *self);
} TitleFileClass;

GType title_file_get_type (void);

// Drops the packets of a track (`muted`), or lets them pass. Call from any thread.
void title_file_mute (GstElement *self, guint track, gboolean muted);

// Sends a gap on each track that has no data queued, so that no paused sink waits for its data.
void title_file_fill_gaps (GstElement *self);

// Returns, after a seek, the time in ns of the keyframe on which the first frames depend, if that
// keyframe was dropped because it lies before the seek position. Returns GST_CLOCK_TIME_NONE if all
// video tracks start with a keyframe, as they do after most seeks.
GstClockTime title_file_get_lead (GstElement *self);

// Returns the duration of the longest track in ns, or -1 if it is unknown.
gint64 title_file_get_duration (GstElement *self);

// Reports whether the file is a stream without a container. A raw stream has no index, so it cannot
// seek.
gboolean title_file_is_raw (GstElement *self);

// Sets and gets the text that says which tracks of the file have no pad, and why
// (relay/left_out.h). It is set before no-more-pads. title_file_dup_left_out() returns NULL if all
// tracks have one.
void title_file_set_left_out (TitleFile *self, const gchar *text);
gchar *title_file_dup_left_out (GstElement *self);

// Reports whether the worker process of the file has ended or has been given up, so that no track
// gets more packets. A failure tells the reason, perhaps later.
gboolean title_file_is_cut_off (GstElement *self);

// Posts a failure, and makes a seek in progress fail. The file cannot be played any more. Call from
// any thread.
void title_file_give_up (GstElement *self);

// Posts a failure: a warning of the element. An error would make GstBin give up a change of state
// that is in progress, such as the one after a seek, and the sinks would wait for ever. But what
// was read of a file before the failure is still to be played. `debug` may be NULL. Call from any
// thread.
void title_file_post_failure (TitleFile *self, const GError *error, const gchar *debug);

// Returns TRUE, `error` and `debug` (transfer full; `debug` may be NULL) if the message is a
// failure of the file, or an error of any element.
gboolean title_file_parse_failure (
    GstElement *self, GstMessage *message, GError **error, gchar **debug);
