// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The command line of rtsp-load.

#include <glib.h>

#define EXIT_USAGE 2

typedef enum { TRANSPORT_UDP, TRANSPORT_TCP, TRANSPORT_MIXED } Transport;
typedef enum { ARRIVALS_ALL, ARRIVALS_UNIFORM, ARRIVALS_POISSON } Arrivals;

typedef struct {
  gchar **urls;
  gchar *against; // URL of the origin, or NULL
  gchar *user, *password;
  gchar *plot; // file name, or NULL
  gint readers, probes, slow;
  Transport transport;
  Arrivals arrivals;
  gdouble rate; // readers per second
  gint64 seed;
  gdouble session;           // s; 0: to the end
  gboolean session_exp;      // `session` is the mean of a random time
  gdouble duration, timeout; // s
  gdouble zipf;              // exponent; 0: readers take the URLs in turn
  gdouble loss;              // % claimed in receiver reports; below 0: the true loss
  gboolean video_only, mute, no_rr, json, verbose, version, scheme, hls, whep, twcc;
  gint port_lo, port_hi; // 0: the kernel chooses
} Options;

// A heading of --help with its options. In `entries`, which end with an entry without a name,
// `arg_data` is an offset.
typedef struct {
  const gchar *title;
  const gchar *example; // a command line
  const GOptionEntry *entries;
} OptionGroup;

// The texts of --help. Manual pages, completion and docs/rtsp-load.md are made from them.
extern const OptionGroup options_groups[]; // ends with a group without a title
extern const gchar options_summary[];
extern const gchar options_description[];

// Returns FALSE if there is nothing to run; then `status` is the exit status.
gboolean options_parse (Options *self, int *argc, char ***argv, int *status);
void options_clear (Options *self);
