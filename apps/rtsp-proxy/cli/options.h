// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The command line: options, --help, and the actions that print something and exit.

#include "config/proxy_config.h"

typedef struct {
  gchar **mounts; // "/PATH=URI"
  gchar *listen;
  gchar *file; // the configuration
  gboolean check_config;
  gboolean check_system;
  gchar *expect;
  gchar *stage_folder;
  gboolean list_stages;
  gchar *explain;
  gboolean version;
  gboolean config_docs;
  gchar **gst; // the options of GStreamer, as they were written
} Options;

// The parts of --help, from which manual pages and bash completion are made. `arg_data` of an entry
// is an offset in Options.
extern const GOptionEntry options_entries[];
extern const gchar options_summary[];
extern const gchar options_examples[];
extern const gchar options_epilogue[];

// Parses the arguments. Returns FALSE if there is nothing to run: the program exits with `*status`.
// Exits after --help.
gboolean options_parse (Options *self, int *argc, char ***argv, int *status);

// Copies what options_load_config() reads into `to`, which must be empty.
void options_copy_config (Options *to, const Options *from);

// Frees the values.
void options_clear (Options *self);

// Reports whether the program is to print something with options_show().
gboolean options_shows (const Options *self);

// Prints the text of --list-stages, --check-system or --explain, and returns the exit status. For
// --list-stages, `config` may be NULL.
int options_show (const Options *self, const ProxyConfig *config);

// Returns the configuration from file and arguments, checked; the caller owns it. Prints errors,
// returns NULL and sets `*status` to the exit status if anything is wrong. A mount of the file that
// lacks something of this machine is wrong for --check-config and --explain only; otherwise its
// `lack` says what.
ProxyConfig *options_build_config (const Options *self, int *status);

// Reads the configuration again, for a reload. Returns NULL and sets `error` if anything is wrong;
// prints nothing. The caller owns the result. Call from any thread.
ProxyConfig *options_load_config (const Options *self, GError **error);
