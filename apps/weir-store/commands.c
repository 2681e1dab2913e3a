// SPDX-License-Identifier: LGPL-2.1-or-later
#include "commands.h"

#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define AT(field) ((gpointer) G_STRUCT_OFFSET (Args, field))
#define JSON { "json", 0, 0, G_OPTION_ARG_NONE, AT (json), "Print the result as JSON", NULL }

const gchar commands_summary[] = "Keeps titles in blocks on many disks, for video on demand.";

const gchar commands_description[] =
    "Exit status: 0 on success, 1 if something failed or was found wrong, 2 for wrong arguments,\n"
    "130 after SIGINT or SIGTERM, of which a second one ends the program at once.\n";

static const GOptionEntry init_entries[] = {
  { "disks", 0, 0, G_OPTION_ARG_STRING, AT (disks),
      "Folders on the disks, which must exist, separated by commas", "A,B,..." },
  { "policy", 0, 0, G_OPTION_ARG_STRING, AT (policy),
      "On which disks blocks go: naive, raid0, raid1, random or rda (default rda)", "NAME" },
  { "slice", 0, 0, G_OPTION_ARG_STRING, AT (slice),
      "Playing time of a block, 100ms to 60s (default 5s)", "TIME" },
  JSON,
  { NULL },
};

static const GOptionEntry add_entries[] = {
  { "name", 0, 0, G_OPTION_ARG_STRING, AT (name),
      "Name of the title (default: the file's name, or its path in the folder)", "NAME" },
  { "rate", 0, 0, G_OPTION_ARG_STRING, AT (rate),
      "Bits a second, such as 6M, of files whose duration cannot be found", "RATE" },
  JSON,
  { NULL },
};

static const GOptionEntry json_entries[] = { JSON, { NULL } };

static const GOptionEntry paced_entries[] = {
  { "rate", 0, 0, G_OPTION_ARG_STRING, AT (rate),
      "Write at most so many bits a second, such as 200M (default: no limit)", "RATE" },
  JSON,
  { NULL },
};

static const GOptionEntry repair_entries[] = {
  { "rate", 0, 0, G_OPTION_ARG_STRING, AT (rate),
      "Write at most so many bits a second, such as 200M (default: no limit)", "RATE" },
  { "forget", 0, 0, G_OPTION_ARG_NONE, AT (forget),
      "Remove the blocks of titles whose index is lost on all disks, too", NULL },
  JSON,
  { NULL },
};

static const GOptionEntry model_entries[] = {
  { "access", 0, 0, G_OPTION_ARG_STRING, AT (access),
      "Access time of a disk (default: 17ms, or measured)", "TIME" },
  { "rate", 0, 0, G_OPTION_ARG_STRING, AT (rate),
      "Bits a second that a disk reads in a row (default: 525M, or measured)", "RATE" },
  { "disks", 0, 0, G_OPTION_ARG_STRING, AT (disks),
      "Number of disks, 1 to 1024 (default: 8, or the store's)", "N" },
  { "slice", 0, 0, G_OPTION_ARG_STRING, AT (slice),
      "Playing time of a block (default: 5s, or the store's)", "TIME" },
  { "line", 0, 0, G_OPTION_ARG_STRING, AT (line),
      "Bits a second that the network carries (default: no limit)", "RATE" },
  JSON,
  { NULL },
};

static const GOptionEntry torrent_entries[] = {
  { "output", 'o', 0, G_OPTION_ARG_FILENAME, AT (output),
      "Where to write it (default: the title's file name and .torrent, in this folder)", "FILE" },
  { "origin", 0, 0, G_OPTION_ARG_STRING, AT (origin),
      "Where players get the title by HTTP ranges; with a slash at the end, the title lies below",
      "URL" },
  { "tracker", 0, 0, G_OPTION_ARG_STRING_ARRAY, AT (trackers),
      "Where players meet; may be given several times, the first one to ask first", "URL" },
  { "private", 0, 0, G_OPTION_ARG_NONE, AT (is_private),
      "Let players meet by the trackers only (BEP 27)", NULL },
  { "piece", 0, 0, G_OPTION_ARG_STRING, AT (piece),
      "Bytes of a piece, a power of two, 16K to 16M (default: by the size, 1024 to 2047 pieces)",
      "SIZE" },
  { "name", 0, 0, G_OPTION_ARG_STRING, AT (name),
      "File name of the title for players (default: that of the title)", "NAME" },
  JSON,
  { NULL },
};

#undef AT
#undef JSON

const Command commands[] = {
  { "init", "DIR", "Make a store",
      "DIR gets the indexes of the titles, the disks get their blocks. Policies:\n"
      "  naive   a title on one disk\n"
      "  raid0   blocks on all disks in turn\n"
      "  raid1   a title on a pair of disks, twice\n"
      "  random  each block on a disk at random\n"
      "  rda     each block on two disks at random\n"
      "raid1 and rda survive the loss of a disk. rda serves the most readers when few titles are\n"
      "popular or a disk is slow.\n\n"
      "Examples:\n"
      "  weir-store init /srv/store --disks /disk1,/disk2,/disk3,/disk4\n"
      "  weir-store init /srv/store --disks /disk1,/disk2 --policy raid0 --slice 2s\n",
      1, 1, init_entries, init_run },
  { "add", "DIR FILE...", "Add files, or all files of folders, as titles",
      "A title can be seen when it is whole. An MPEG-TS file and a stream of H.264 or H.265 is "
      "cut\n"
      "into blocks at keyframes near the ends of slices, any other file by size.\n\n"
      "Examples:\n"
      "  weir-store add /srv/store film.mp4\n"
      "  weir-store add /srv/store --name films/film.mp4 /tmp/upload\n"
      "  weir-store add /srv/store /srv/films\n",
      2, G_MAXUINT, add_entries, add_run },
  { "list", "DIR", "List the titles", "Example:\n  weir-store list /srv/store\n", 1, 1,
      json_entries, list_run },
  { "show", "DIR [NAME]", "Show the store and its disks, or a title",
      "Examples:\n  weir-store show /srv/store\n  weir-store show /srv/store films/film.mp4\n", 1,
      2, json_entries, show_run },
  { "verify", "DIR [NAME...]", "Read all copies of all blocks and check their hashes",
      "Changes nothing. Prints what is wrong, and fails if anything is.\n\n"
      "Examples:\n  weir-store verify /srv/store\n  weir-store verify --json /srv/store film.mp4\n",
      1, G_MAXUINT, json_entries, verify_run },
  { "repair", "DIR [NAME...]", "Write lost and wrong copies anew from the other copy",
      "Copies of a disk that is missing are written to other disks: mount the disk first if it is\n"
      "well. Without NAME, also makes indexes anew that are lost, from their copies on the disks, "
      "and\n"
      "removes files that their title does not need.\n\n"
      "Example:\n  weir-store repair /srv/store --rate 200M\n",
      1, G_MAXUINT, repair_entries, repair_run },
  { "remove", "DIR NAME...", "Remove titles",
      "Example:\n  weir-store remove /srv/store films/film.mp4\n", 2, G_MAXUINT, json_entries,
      remove_run },
  { "balance", "DIR", "Move blocks until all disks are used alike",
      "Use it after add-disk and remove-disk. It can be ended and started again at any time, and\n"
      "takes over from rtsp-proxy, which balances a store that it serves, but slowly.\n\n"
      "Example:\n  weir-store balance /srv/store --rate 200M\n",
      1, 1, paced_entries, balance_run },
  { "add-disk", "DIR PATH...", "Add disks",
      "New titles use the disk at once; balance moves blocks of old ones.\n\n"
      "Example:\n  weir-store add-disk /srv/store /disk5 && weir-store balance /srv/store\n",
      2, G_MAXUINT, json_entries, add_disk_run },
  { "remove-disk", "DIR PATH", "Take a disk out of use",
      "It gets no more blocks. The next balance moves its blocks away, or copies them from other\n"
      "disks if it is dead, and removes it from the store. For a new disk in its place, use\n"
      "replace-disk.\n\n"
      "Example:\n  weir-store remove-disk /srv/store /disk2 && weir-store balance /srv/store\n",
      2, 2, json_entries, remove_disk_run },
  { "replace-disk", "DIR OLD NEW", "Put a new disk in the place of one that is dead or is to go",
      "NEW gets the number and all copies of OLD: from OLD if it is there, or from the other "
      "copies.\n"
      "Each is written once, and none on other disks. NEW may be the path of OLD, if OLD is dead "
      "and an\n"
      "empty disk is mounted there. Ended or killed, it goes on when it is started again.\n\n"
      "Examples:\n"
      "  weir-store replace-disk /srv/store /disk2/weir /disk5/weir --rate 200M\n"
      "  weir-store replace-disk /srv/store /disk2/weir /disk2/weir\n",
      3, 3, paced_entries, replace_disk_run },
  { "model", "[DIR]", "Print how many streams disks can give",
      "Computes N = D t_b r_d / (t_a r_d + r_c t_b) for D disks with access time t_a and rate "
      "r_d,\n"
      "slices of t_b, and streams of r_c bits a second (Y. R. Choe, Purdue University, 2007). "
      "With\n"
      "DIR, measures t_a and r_d by reads of the store's blocks.\n\n"
      "Examples:\n"
      "  weir-store model --access 17ms --rate 525M --disks 8 --slice 5s\n"
      "  weir-store model /srv/store --line 10G\n",
      0, 1, model_entries, model_run },
  { "torrent", "DIR TITLE | FILE", "Write a .torrent of a title or a file",
      "Players of it send each other its pieces, and get from the origin what is missing.\n\n"
      "Examples:\n"
      "  weir-store torrent /srv/store films/film.mp4 -o film.torrent \\\n"
      "    --origin http://10.0.0.1/films/ --tracker http://10.0.0.1:6969/announce\n"
      "  weir-store torrent /srv/films/film.mp4 --origin http://10.0.0.1/film.mp4 --private\n",
      1, 2, torrent_entries, torrent_run },
  { NULL },
};

int
commands_fail (GError *error)
{
  progress_clear ();
  fprintf (stderr, "weir-store: %s\n", error->message);
  g_error_free (error);
  return EXIT_FAILURE;
}

int
commands_usage (const gchar *format, ...)
{
  va_list args;

  fputs ("weir-store: ", stderr);
  va_start (args, format);
  vfprintf (stderr, format, args);
  va_end (args);
  fputs ("; see --help\n", stderr);
  return EXIT_USAGE;
}

WeirBlockStore *
commands_open (const Args *args)
{
  GError *error = NULL;
  WeirBlockStore *store = weir_block_store_open (args->words[0], &error);

  if (!store)
    commands_fail (error);
  return store;
}

JsonBuilder *
commands_begin_done (const Args *args)
{
  return args->json ? json_builder_begin_array (json_builder_new ()) : NULL;
}

void
commands_print_done (
    JsonBuilder *builder, const gchar *member, const gchar *value, const gchar *text)
{
  if (!builder) {
    printf ("%s\n", text);
    return;
  }
  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, member);
  json_builder_add_string_value (builder, value);
  json_builder_end_object (builder);
}

void
commands_end_done (JsonBuilder *builder)
{
  if (builder)
    commands_print_json (json_builder_end_array (builder));
}

void
commands_print_json (JsonBuilder *builder)
{
  JsonNode *root = json_builder_get_root (builder);
  gchar *text = json_to_string (root, TRUE);

  printf ("%s\n", text);
  g_free (text);
  json_node_unref (root);
  g_object_unref (builder);
}
