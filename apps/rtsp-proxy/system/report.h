// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the checks found.

#include <glib.h>

// The order of the report.
typedef enum {
  FINDING_BINDS,   // the configuration reaches the limit
  FINDING_HINT,    // a setting that costs time, or a loss that has happened
  FINDING_UNKNOWN, // it cannot be read here
  FINDING_GOOD,
} FindingKind;

typedef struct {
  FindingKind kind;
  gchar *name;    // what is limited
  gchar *state;   // what it is, and what it should be
  gchar *why;     // one sentence; NULL if nothing is wrong
  gchar *now;     // the command that sets it; NULL: there is none
  gchar *lasting; // the command, or the line of a file, that sets it at each boot; or NULL
} Finding;

typedef struct {
  GPtrArray *findings; // of Finding
} Report;

Report *report_new (void);
void report_free (Report *self);

// Adds a finding and takes its strings.
void report_add (Report *self, const Finding *finding);

// Adds that `name` is fine. `format` is what it is.
void report_good (Report *self, const gchar *name, const gchar *format, ...) G_GNUC_PRINTF (3, 4);

// Adds that `name` cannot be read, for the reason `error`, which is freed.
void report_unknown (Report *self, const gchar *name, GError *error);

// Reports whether a limit binds.
gboolean report_binds (const Report *self);

// Returns the findings as text, those that bind first. The caller owns it.
gchar *report_dup_text (const Report *self);
