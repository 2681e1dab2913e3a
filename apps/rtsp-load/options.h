// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

#define EXIT_USAGE 2

typedef enum { TRANSPORT_UDP, TRANSPORT_TCP, TRANSPORT_MIXED } Transport;
typedef enum { ARRIVALS_ALL, ARRIVALS_UNIFORM, ARRIVALS_POISSON } Arrivals;

typedef struct {
  gchar **urls;
  gchar *against; // or NULL
  gchar *user, *password;
  gchar *plot;
  gint readers, probes, slow;
  Transport transport;
  Arrivals arrivals;
  gdouble rate; // readers a second
  gint64 seed;
  gdouble session;      // seconds, 0: to the end
  gboolean session_exp; // `session` is the mean
  gdouble duration, timeout;
  gdouble zipf; // 0: in turn
  gdouble loss; // %, below 0: the true figures
  gboolean video_only, mute, no_rr, json, verbose, version;
  gint port_lo, port_hi; // 0: the kernel chooses
} Options;

// What --help says, as a table and around it; `arg_data` is an offset. Manual pages and completion
// are made from these.
extern const GOptionEntry options_entries[];
extern const gchar options_summary[];
extern const gchar options_description[];

// False if there is nothing to run; then `status` is the exit status.
gboolean options_parse (Options *self, int *argc, char ***argv, int *status);
void options_clear (Options *self);
