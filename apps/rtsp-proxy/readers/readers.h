// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A reader: a client that is being served, as the API and the metrics show it. Reference counted.
// Call from any thread. These functions never delay the sending of packets.

#include <gst/gst.h>

#include "mounts/presentation.h"
#include "net/estimate.h"
#include "svc/rates.h"

typedef struct _Reader Reader;

#define READER_STATES 5
extern const gchar *const reader_state_names[READER_STATES + 1]; // best to worst, then NULL
#define READER_PRIORITIES 8
extern const gchar *const reader_transports[]; // as in the API, then NULL

Reader *reader_ref (Reader *self);
void reader_unref (Reader *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Reader, reader_unref)

guint64 reader_get_id (const Reader *self); // unique in the process
const gchar *reader_get_mount (const Reader *self);
const gchar *reader_get_peer (const Reader *self);
const gchar *reader_get_transport (const Reader *self);
gint64 reader_get_since (const Reader *self); // us since the epoch

// Returns which tracks of its stream the reader does not get, and why (relay/left_out.h), or NULL.
// (transfer full)
gchar *reader_dup_left_out (const Reader *self);

// The layers of the reader's video track.
typedef struct {
  gboolean has_layers;      // the track may have layers
  WeirLayerSet wanted, now; // to be sent; being sent
} ReaderLayers;

typedef struct {
  guint state;          // worst state of the tracks, an index in reader_state_names
  guint priority;       // 0 (served first) to 7 (served last)
  gboolean catching_up; // receives the past faster than real time
  gboolean paused;
  guint64 lag_ns;   // age of the next packet to send, beyond `delay_ns`
  guint64 delay_ns; // distance of its position from the live edge
  // Sums of all tracks: packets and bytes sent, packets due (sent or dropped), packets dropped.
  guint64 packets, bytes, due, dropped;
  ReaderLayers layers;
  const gchar *kernel; // "clones", or why a track is served without; NULL without the kernel path
  // From the reader's receiver reports: number of reports, packets lost.
  guint64 reports;
  guint64 lost;
  gdouble fraction_lost; // 0 to 1, of the track that lost most
} ReaderSample;

void reader_sample (Reader *self, ReaderSample *sample);

// Call before a reader that is paused is removed from its sinks. With `keeps_position`,
// `delay_ns` grows during the pause, as the live edge moves away from the reader's position.
void reader_pause (Reader *self, gboolean keeps_position);
void reader_resume (Reader *self);

// Fills only the fields from the reader's receiver reports.
void reader_sample_reports (Reader *self, ReaderSample *sample);

// `priority` is from 0 to 7. Returns FALSE if the reader has left.
gboolean reader_set_priority (Reader *self, guint priority);

// Closes the reader's connection, or ends its session. `reason` is logged.
void reader_close (Reader *self, const gchar *reason);

// ---- the video track; see adaptation.h ----

// Returns FALSE if the reader has left or has no video.
gboolean reader_set_layers (Reader *self, WeirLayerSet layers);

// Restricts the reader's video to a state, an index in reader_state_names, up to "keyframes"; 0
// ends that. Returns FALSE if the reader has left or has no video.
gboolean reader_restrict (Reader *self, guint state);

gboolean reader_is_tcp (const Reader *self);

// Returns a number that rises with each receiver report about the video and is read atomically, or
// NULL if there are no such reports. Release it with g_atomic_rc_box_release().
guint64 *reader_ref_report_count (Reader *self);

typedef struct {
  gboolean catching_up;
  gboolean thinned; // packets for it are dropped because it lags
  guint64 lag_ns, packets, bytes;
  gint lost;
  guint highest; // highest sequence number received
} ReaderVideo;

// Returns FALSE if the reader has left or has no video.
gboolean reader_sample_video (Reader *self, ReaderVideo *sample);

// Returns the element that sends the reader's video, or NULL. It may serve other readers too.
// (transfer full)
GstElement *reader_dup_video_sink (Reader *self);

// Reads the bit rates of the layers in that element's stream.
void reader_read_rates (Reader *self, WeirRates *rates);

// Reads at `now`, clock_now(), what the reader's line carries by its feedback on each packet, or by
// what waits in its socket. Returns FALSE if neither tells.
gboolean reader_read_estimate (Reader *self, gint64 now, WeirEstimateView *view);

// Fills the reader's line for `duration` ms, to learn whether it carries `bits` bit/s: what its
// video has lately had comes again beside it. 0 bit/s for 0 ms end that. Returns FALSE if it is not
// possible.
gboolean reader_probe (Reader *self, guint64 bits, guint duration);

typedef enum {
  READER_SPLICE_DONE,  // the reader has its video from there
  READER_SPLICE_LATER, // it waits for a keyframe there, for which the source has been asked
  READER_SPLICE_NEVER  // it cannot have its video from there
} ReaderSplice;

// Lets the reader have its video from `rendition`, which is READY and in use, and shows the same
// pictures; NULL: from what it has asked for. Numbers and timestamps go on. Call again, about each
// 100 ms, until it is DONE, at `now`, clock_now(). Main thread only.
ReaderSplice reader_splice (Reader *self, Presentation *rendition, gint64 now);

// ---- for outlets ----

// An outlet's implementation of the functions above, for one reader. `served` is the outlet's
// object. Called from any thread. Samples are zero before a call. An outlet without reports,
// priorities or layers leaves the functions from sample_reports to splice NULL, all or some.
typedef struct {
  void (*sample) (gpointer served, ReaderSample *sample);
  void (*sample_reports) (gpointer served, ReaderSample *sample);
  gboolean (*set_priority) (gpointer served, guint priority);
  gboolean (*set_layers) (gpointer served, WeirLayerSet layers);
  gboolean (*restrict_video) (gpointer served, guint state);
  gboolean (*sample_video) (gpointer served, ReaderVideo *sample);
  guint64 *(*ref_report_count) (gpointer served);
  GstElement *(*dup_video_sink) (gpointer served);
  void (*read_rates) (gpointer served, WeirRates *rates);
  gboolean (*read_estimate) (gpointer served, gint64 now, WeirEstimateView *view);
  gboolean (*probe) (gpointer served, guint64 bits, guint duration);
  ReaderSplice (*splice) (gpointer served, Presentation *rendition, gint64 now);
  gchar *(*dup_left_out) (gpointer served); // NULL: it gets all tracks
  void (*close) (gpointer served, const gchar *reason);
  void (*free) (gpointer served);
} ReaderOps;

// Makes a reader that starts to play. Takes ownership of `served`. `transport` is one of
// reader_transports.
Reader *reader_new (const ReaderOps *ops, gpointer served, const gchar *mount, const gchar *peer,
    const gchar *transport);

// ---- all playing readers, of every outlet ----

void readers_add (Reader *reader);
void readers_remove (Reader *reader);

// Returns references to all readers, sorted by id. (transfer full)
GPtrArray *readers_dup_all (void);
