// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "commands.h"
#include "interrupt.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

static void
print_help (void)
{
  printf ("Usage:\n  weir-store COMMAND [OPTION...] DIR...\n\n%s\n\nCommands:\n", commands_summary);
  for (const Command *command = commands; command->name; command++)
    printf ("  %-12s %s\n", command->name, command->summary);
  printf ("\nOptions:\n"
          "  -h, --help   Print this help and exit; of a command: weir-store COMMAND --help\n"
          "  --version    Print the version and exit\n"
          "\n"
          "Example, a store on four disks:\n"
          "  weir-store init /srv/store --disks /disk1,/disk2,/disk3,/disk4\n"
          "  weir-store add /srv/store /srv/films\n"
          "  weir-store list /srv/store\n"
          "\n%s",
      commands_description);
}

static const Command *
find_command (const gchar *name)
{
  for (const Command *command = commands; command->name; command++) {
    if (g_str_equal (command->name, name))
      return command;
  }
  return NULL;
}

static GOptionContext *
make_context (const Command *command, Args *args)
{
  GOptionContext *context = g_option_context_new (command->words);
  GArray *entries = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));
  GOptionEntry words = { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &args->words, NULL,
    NULL };

  for (const GOptionEntry *from = command->entries; from->long_name; from++) {
    GOptionEntry entry = *from;

    entry.arg_data = G_STRUCT_MEMBER_P (args, GPOINTER_TO_SIZE (entry.arg_data));
    g_array_append_val (entries, entry);
  }
  g_array_append_val (entries, words);
  g_option_context_add_main_entries (context, (const GOptionEntry *) entries->data, NULL);
  g_option_context_set_summary (context, command->summary);
  g_option_context_set_description (context, command->text);
  g_array_unref (entries);
  return context;
}

static int
parse_and_run (const Command *command, int argc, char **argv)
{
  g_autofree gchar *name = g_strdup_printf ("weir-store %s", command->name);
  Args args = { 0 };
  GOptionContext *context = make_context (command, &args);
  GError *error = NULL;
  guint n_words;
  int status;

  g_set_prgname (name); // which --help prints
  if (g_option_context_parse (context, &argc, &argv, &error)) {
    g_set_prgname ("weir-store");
    n_words = args.words ? g_strv_length (args.words) : 0;
    if (n_words < command->least_words || n_words > command->most_words)
      status = commands_usage ("%s takes the arguments %s", command->name, command->words);
    else
      status = command->run (&args);
  } else {
    status = commands_usage ("%s: %s", command->name, error->message);
    g_error_free (error);
  }
  g_option_context_free (context);
  g_strfreev (args.words);
  g_free (args.disks);
  g_free (args.policy);
  g_free (args.slice);
  g_free (args.name);
  g_free (args.rate);
  g_free (args.access);
  g_free (args.line);
  g_free (args.output);
  g_free (args.origin);
  g_free (args.piece);
  g_strfreev (args.trackers);
  return status;
}

int
main (int argc, char **argv)
{
  const Command *command;
  int status;

  setlocale (LC_CTYPE, ""); // not LC_NUMERIC: numbers keep their decimal points
  if (argc < 2)
    return commands_usage ("a command is missing, such as list");
  if (g_str_equal (argv[1], "--help") || g_str_equal (argv[1], "-h")) {
    print_help ();
    return EXIT_SUCCESS;
  }
  if (g_str_equal (argv[1], "--version")) {
    printf ("weir-store %s\n", PACKAGE_VERSION);
    return EXIT_SUCCESS;
  }
  command = find_command (argv[1]);
  if (!command)
    return commands_usage ("there is no command '%s'", argv[1]);
  interrupt_init ();
  status = parse_and_run (command, argc - 1, argv + 1);
  if (status == EXIT_SUCCESS || !interrupted ())
    return status;
  fputs ("weir-store: interrupted\n", stderr);
  return EXIT_INTERRUPTED;
}
