// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The commands of weir-store, with their options and texts. --help, manual page and completion are
// made from them.

#include <glib.h>
#include <json-glib/json-glib.h>

#include "store/blockstore.h"

#define EXIT_USAGE 2

// The words and options of a command. Which are set depends on the command.
typedef struct {
  gchar **words;
  gchar *disks, *policy, *slice, *name, *rate, *access, *line, *output, *origin, *piece;
  gchar **trackers;
  gboolean json, is_private, forget;
} Args;

typedef struct {
  const gchar *name, *words, *summary;
  const gchar *text; // examples and more
  guint least_words, most_words;
  const GOptionEntry *entries;   // `arg_data` is an offset in Args
  int (*run) (const Args *args); // returns the exit status
} Command;

extern const Command commands[]; // ends with a command without a name
extern const gchar commands_summary[];
extern const gchar commands_description[];

// Print an error, "weir-store: ...", and return an exit status. commands_fail() takes ownership of
// `error`.
int commands_fail (GError *error);
int commands_usage (const gchar *format, ...) G_GNUC_PRINTF (1, 2);

// Opens the store of the first word, or prints an error.
WeirBlockStore *commands_open (const Args *args);

// For commands that do one thing to several names. commands_begin_done() returns NULL without
// --json. commands_print_done() prints the text, or adds an object with this member to the array,
// which commands_end_done() prints. (transfer full)
JsonBuilder *commands_begin_done (const Args *args);
void commands_print_done (
    JsonBuilder *builder, const gchar *member, const gchar *value, const gchar *text);
void commands_end_done (JsonBuilder *builder);

// Prints the JSON value and frees `builder`.
void commands_print_json (JsonBuilder *builder);

int init_run (const Args *args);
int add_run (const Args *args);
int list_run (const Args *args);
int show_run (const Args *args);
int verify_run (const Args *args);
int repair_run (const Args *args);
int balance_run (const Args *args);
int remove_run (const Args *args);
int add_disk_run (const Args *args);
int remove_disk_run (const Args *args);
int replace_disk_run (const Args *args);
int model_run (const Args *args);
int torrent_run (const Args *args);
