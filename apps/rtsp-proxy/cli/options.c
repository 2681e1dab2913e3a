// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"
#include "text/config_error.h"

#include "cli/options.h"

#include "base/features.h"
#include "cli/check_system.h"
#include "cli/explain.h"
#include "cli/stage_list.h"
#include "config/mount_keys.h"
#include "config/mount_loop.h"
#include "config/mounts_check.h"
#include "config/users_check.h"
#include "config/variables.h"
#include "sources/kinds.h"

#include <gst/gst.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2

static const gchar no_mounts[] =
    "rtsp-proxy: no mounts; use --mount or --config. To start it:\n"
    "  rtsp-proxy --mount /cam=rtsp://192.0.2.7/stream      serve a camera as /cam\n"
    "  rtsp-proxy --mount /demo=file:///path/to/clip.mp4    serve a clip in a loop as /demo\n"
    "  rtsp-proxy --config rtsp-proxy.yaml                  serve the mounts of a file\n"
    "rtsp-proxy --help lists all options.\n";

const gchar options_summary[] =
    "Serves RTSP streams and files to many readers, with one connection to each upstream.";

const gchar options_examples[] =
    "Examples:\n"
    "  rtsp-proxy --mount /cam=rtsp://192.0.2.7/stream --listen 127.0.0.1:8555\n"
    "  rtsp-proxy --config rtsp-proxy.yaml --check-config\n"
    "  rtsp-proxy --config rtsp-proxy.yaml --check-system --expect 8M,500\n"
    "  rtsp-proxy --config rtsp-proxy.yaml --explain '/cam?delay=30'\n"
    "  rtsp-proxy make-certificate --host proxy.example.org proxy.pem\n\n";

static const gchar configuration[] =
    "Configuration file (YAML). A mount needs only its upstream; a value shown is the default:\n";

const gchar options_epilogue[] =
    "\n"
    "rtsp-proxy hash-password [--user NAME] prints the secrets of a user for a password.\n"
    "rtsp-proxy import-mediamtx [-o FILE] mediamtx.yml makes a configuration from one of "
    "MediaMTX.\n"
    "rtsp-proxy cluster [URL] prints the members of the cluster of a proxy, by its API.\n"
    "Keep passwords in the configuration file, or in a file or variable that it names: ps shows\n"
    "arguments to all users. SIGHUP makes the proxy read the file again.\n\n"
    "Exit status: 0 after SIGINT or SIGTERM, 1 if the proxy could not start, or if --check-system\n"
    "finds a limit that is too low, 2 for wrong arguments or a wrong configuration.\n";

static void
print_table (const SchemaKey *keys, const gchar *prefix, gpointer effects)
{
  g_autofree gchar *table = schema_to_markdown (keys, prefix, effects);

  printf ("%s\n", table);
}

// Prints the tables of docs/configuration.md.
static void
print_config_docs (void)
{
  g_autofree gchar *kinds = kinds_to_markdown ();
  g_autofree gchar *variables = variables_to_markdown (proxy_config_keys ());

  schema_each_table (proxy_config_keys (), "", print_table, (gpointer) proxy_effect_words);
  schema_each_table (mount_config_keys (), "", print_table, (gpointer) mount_effect_words);
  printf ("%s\n%s", variables, kinds);
}

#define AT(field) ((gpointer) G_STRUCT_OFFSET (Options, field))

const GOptionEntry options_entries[] = {
  { "mount", 'm', 0, G_OPTION_ARG_STRING_ARRAY, AT (mounts),
      "Serve the upstream URI under /PATH; can be given several times", "/PATH=URI" },
  { "listen", 'l', 0, G_OPTION_ARG_STRING, AT (listen),
      "Listen on this address (default 127.0.0.1:8554; port 0: any free port)", "ADDR:PORT" },
  { "config", 'c', 0, G_OPTION_ARG_FILENAME, AT (file),
      "Read the configuration from this YAML file", "FILE" },
  { "check-config", 0, 0, G_OPTION_ARG_NONE, AT (check_config), "Check the configuration and exit",
      NULL },
  { "check-system", 0, 0, G_OPTION_ARG_NONE, AT (check_system),
      "Print which limits of this system the configuration would reach, and exit", NULL },
  { "expect", 0, 0, G_OPTION_ARG_STRING, AT (expect),
      "For --check-system: bit rate of each mount, readers in all (default 4M; 2 a mount, at least "
      "100)",
      "RATE[,READERS]" },
  { "print-config-docs", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_NONE, AT (config_docs), NULL, NULL },
  { "stages", 0, 0, G_OPTION_ARG_FILENAME, AT (stage_folder),
      "Look for stages in this folder first", "DIR" },
  { "list-stages", 0, 0, G_OPTION_ARG_NONE, AT (list_stages),
      "Print all stages with their parameters and exit", NULL },
  { "explain", 0, 0, G_OPTION_ARG_STRING, AT (explain),
      "Print the stages and the launch text for this URL and exit", "/PATH[?QUERY]" },
  { "version", 0, 0, G_OPTION_ARG_NONE, AT (version),
      "Print the version and the features of this build, and exit", NULL },
  { NULL },
};

#undef AT

// ---- parsing ----

// Returns the part of --help that follows the options.
static gchar *
dup_description (void)
{
  g_autofree gchar *top = schema_to_help (proxy_config_keys (), "  ");
  g_autofree gchar *mount = schema_to_help (mount_config_keys (), "      ");
  g_autofree gchar *kinds = kinds_to_help ();
  g_autofree gchar *variables = variables_to_help (proxy_config_keys ());
  gchar *text = g_strconcat (options_examples, configuration, top, "    /cam:\n", mount,
      "\nUpstreams:\n", kinds, variables, options_epilogue, NULL);

  return g_strchomp (text);
}

static gboolean
parse_arguments (Options *self, int *argc, char ***argv, GError **error)
{
  GOptionEntry entries[G_N_ELEMENTS (options_entries)];
  GOptionContext *context = g_option_context_new ("--mount /PATH=URI | --config FILE");
  gchar *description = dup_description ();
  gboolean ok;

  memcpy (entries, options_entries, sizeof entries);
  for (GOptionEntry *entry = entries; entry->long_name; entry++)
    entry->arg_data = G_STRUCT_MEMBER_P (self, GPOINTER_TO_SIZE (entry->arg_data));
  g_option_context_set_summary (context, options_summary);
  g_option_context_set_description (context, description);
  g_free (description);
  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_add_group (context, gst_init_get_option_group ());
  ok = g_option_context_parse (context, argc, argv, error);
  g_option_context_free (context);
  return ok;
}

// Reports whether the value of an option of GStreamer is the next word.
static gboolean
has_value (const gchar *option)
{
  static const gchar *const names[] = { "--gst-debug", "--gst-debug-level",
    "--gst-debug-color-mode", "--gst-plugin-load", "--gst-plugin-path", NULL };

  return g_strv_contains (names, option);
}

// Returns the options of GStreamer (--gst-...), for worker processes. The caller owns them.
static gchar **
dup_gst_options (int argc, char **argv)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  for (int i = 1; i < argc; i++) {
    if (!g_str_has_prefix (argv[i], "--gst-"))
      continue;
    g_strv_builder_add (builder, argv[i]);
    if (has_value (argv[i]) && i + 1 < argc)
      g_strv_builder_add (builder, argv[++i]);
  }
  return g_strv_builder_end (builder);
}

gboolean
options_parse (Options *self, int *argc, char ***argv, int *status)
{
  GError *error = NULL;

  self->gst = dup_gst_options (*argc, *argv);
  setlocale (LC_CTYPE, ""); // GLib converts arguments from, and --help to, this character set
  if (!parse_arguments (self, argc, argv, &error)) {
    fprintf (stderr, "rtsp-proxy: %s; see rtsp-proxy --help\n", error->message);
    g_error_free (error);
    *status = EXIT_USAGE;
    return FALSE;
  }
  if (self->version) {
    g_autofree gchar *gst = gst_version_string (), *features = features_dup_text ();

    printf ("rtsp-proxy %s (%s)\n%s\n", PACKAGE_VERSION, gst, features);
    *status = EXIT_SUCCESS;
    return FALSE;
  }
  if (self->config_docs) {
    print_config_docs ();
    *status = EXIT_SUCCESS;
    return FALSE;
  }
  if (*argc > 1) {
    fprintf (stderr, "rtsp-proxy: unexpected argument \"%s\"; see rtsp-proxy --help\n", (*argv)[1]);
    *status = EXIT_USAGE;
    return FALSE;
  }
  if (self->expect && !self->check_system) {
    fputs ("rtsp-proxy: --expect is for --check-system; see rtsp-proxy --help\n", stderr);
    *status = EXIT_USAGE;
    return FALSE;
  }
  if (!self->mounts && !self->file && !self->list_stages) {
    fputs (no_mounts, stderr);
    *status = EXIT_USAGE;
    return FALSE;
  }
  return TRUE;
}

void
options_copy_config (Options *to, const Options *from)
{
  to->mounts = g_strdupv (from->mounts);
  to->listen = g_strdup (from->listen);
  to->file = g_strdup (from->file);
  to->stage_folder = g_strdup (from->stage_folder);
}

void
options_clear (Options *self)
{
  g_clear_pointer (&self->mounts, g_strfreev);
  g_clear_pointer (&self->listen, g_free);
  g_clear_pointer (&self->file, g_free);
  g_clear_pointer (&self->stage_folder, g_free);
  g_clear_pointer (&self->explain, g_free);
  g_clear_pointer (&self->expect, g_free);
  g_clear_pointer (&self->gst, g_strfreev);
}

// Checks the mounts against each other.
static gboolean
check_mounts (const Options *self, const ProxyConfig *config, GError **error)
{
  ListenAddress own[3] = { { NULL } };

  proxy_config_list_listen (config, own);
  for (guint i = 0; i < config->mounts->len; i++) {
    const MountConfig *mount = g_ptr_array_index (config->mounts, i);
    g_autofree gchar *wrong = mounts_check (config->mounts, mount, own);
    g_autofree gchar *place = NULL;

    if (!wrong)
      continue;
    place = mount->line ? g_strdup_printf ("%s:%u:%u", self->file, mount->line, mount->column)
                        : g_strdup ("--mount");
    g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_VALUE, "%s: %s: %s", place, mount->path, wrong);
    return FALSE;
  }
  for (guint i = 0; i < config->patterns->len; i++) {
    const MountConfig *pattern = g_ptr_array_index (config->patterns, i);

    if (!mount_loop_is_own (pattern, own))
      continue;
    g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_VALUE,
        "%s:%u:%u: %s: a path with variables may not read from this proxy: it could read from "
        "itself",
        self->file, pattern->line, pattern->column, pattern->path);
    return FALSE;
  }
  return TRUE;
}

static gboolean
build (const Options *self, ProxyConfig *config, gboolean *has_password, GError **error)
{
  config->stage_folder = g_strdup (self->stage_folder);
  config->strict = self->check_config || self->explain;
  if (!proxy_config_load (config, self->file, error))
    return FALSE;
  if (self->listen && !proxy_config_set_listen (config, self->listen, error))
    return FALSE;
  for (guint i = 0; self->mounts && self->mounts[i]; i++) {
    if (!proxy_config_add_mount (config, self->mounts[i], has_password, error))
      return FALSE;
  }
  if (config->mounts->len + config->patterns->len == 0) {
    g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_KEY,
        "%s: no mounts; add at least one /PATH under mounts", self->file);
    return FALSE;
  }
  return users_check (config, error) && check_mounts (self, config, error);
}

ProxyConfig *
options_load_config (const Options *self, GError **error)
{
  ProxyConfig *config = proxy_config_new ();
  gboolean has_password = FALSE;

  if (!build (self, config, &has_password, error))
    g_clear_pointer (&config, proxy_config_free);
  return config;
}

// Prints each mistake on its own line.
static void
print_errors (const GError *error)
{
  g_auto (GStrv) lines = g_strsplit (error->message, "\n", 0);

  for (gchar **line = lines; *line; line++)
    fprintf (stderr, "rtsp-proxy: %s\n", *line);
}

ProxyConfig *
options_build_config (const Options *self, int *status)
{
  ProxyConfig *config = proxy_config_new ();
  gboolean has_password = FALSE;
  GError *error = NULL;
  guint n_mounts;

  if (!build (self, config, &has_password, &error)) {
    print_errors (error);
    g_error_free (error);
    proxy_config_free (config);
    *status = EXIT_USAGE;
    return NULL;
  }
  if (has_password)
    fprintf (stderr, "rtsp-proxy: warning: ps shows the password in --mount to every user of "
                     "this machine; put it into a configuration file (password-file)\n");
  n_mounts = config->mounts->len + config->patterns->len;
  if (self->check_config)
    printf ("The configuration is good: %u mount%s.\n", n_mounts, n_mounts == 1 ? "" : "s");
  *status = EXIT_SUCCESS;
  return config;
}

static gchar *
list_stages (const Options *self, GError **error)
{
  StageSet *set = stage_set_load_usual (self->stage_folder, error);
  gchar *text = set ? stage_list_dup (set) : NULL;

  g_clear_pointer (&set, stage_set_unref);
  return text;
}

gboolean
options_shows (const Options *self)
{
  return self->list_stages || self->check_system || self->explain;
}

int
options_show (const Options *self, const ProxyConfig *config)
{
  GError *error = NULL;
  gboolean binds = FALSE;
  gchar *text;

  if (self->list_stages)
    text = list_stages (self, &error);
  else if (self->check_system)
    text = check_system (config, self->expect, &binds, &error);
  else
    text = explain_url (config, self->explain, &error);

  if (!text) {
    fprintf (stderr, "rtsp-proxy: %s\n", error->message);
    g_error_free (error);
    return EXIT_USAGE;
  }
  fputs (text, stdout);
  g_free (text);
  return binds ? EXIT_FAILURE : EXIT_SUCCESS;
}
