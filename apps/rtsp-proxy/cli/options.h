// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/proxy_config.h"

typedef struct {
  gchar **mounts;
  gchar *listen;
  gchar *file;
  gboolean check_config;
  gchar *stage_folder;
  gboolean list_stages;
  gchar *explain;
  gboolean version;
  gboolean config_docs;
} Options;

// What --help says, as a table and around it; `arg_data` is the offset in Options. Manual pages
// and completion are made from these.
extern const GOptionEntry options_entries[];
extern const gchar options_summary[];
extern const gchar options_examples[];
extern const gchar options_epilogue[];

// FALSE: there is nothing to run; exit with `status`.
gboolean options_parse (Options *self, int *argc, char ***argv, int *status);
void options_clear (Options *self);

// For --list-stages and --explain (`config` is NULL or the configuration): prints, and gives the
// exit status.
int options_show (const Options *self, const ProxyConfig *config);

// The whole configuration, checked; NULL and the exit status where it is not good. What is wrong
// has been printed.
ProxyConfig *options_build_config (const Options *self, int *status);

// The same, quietly, once more.
ProxyConfig *options_load_config (const Options *self, GError **error);
