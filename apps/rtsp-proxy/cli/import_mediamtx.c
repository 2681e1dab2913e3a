// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/import_mediamtx.h"

#include "import/mtx_import.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_USAGE 2

static const gchar summary[] =
    "Makes a configuration of rtsp-proxy from one of MediaMTX, and prints it. The standard error\n"
    "says for each key what it is called now, or why it is left out; a key that is not in the\n"
    "file has MediaMTX's default. Variables MTX_... are not read. No program is started.\n\n"
    "Passwords become secrets from which the password cannot be read. Then check the result, and\n"
    "make the folders of recordings:\n"
    "  rtsp-proxy import-mediamtx -o rtsp-proxy.yaml mediamtx.yml\n"
    "  rtsp-proxy --config rtsp-proxy.yaml --check-config";

// Reads at most one byte more than a file may have. Returns NULL and sets `error` if the file
// cannot be read. (transfer full)
static gchar *
read_file (const gchar *file, gsize *len, GError **error)
{
  FILE *in = fopen (file, "re");
  gchar *text = in ? g_malloc (MTX_IMPORT_MAX + 1) : NULL;
  gboolean failed = TRUE;

  if (in) {
    *len = fread (text, 1, MTX_IMPORT_MAX + 1, in);
    failed = ferror (in);
  }
  if (failed) {
    g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (errno), "cannot read %s: %s", file,
        g_strerror (errno));
    g_clear_pointer (&text, g_free);
  }
  if (in)
    fclose (in);
  return text;
}

// Writes a new file that other users cannot read: it may have secrets.
static gboolean
write_file (const gchar *file, const gchar *text, GError **error)
{
  const gsize len = strlen (text);
  const int fd = open (file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  FILE *out = fd < 0 ? NULL : fdopen (fd, "w");
  gboolean ok = out && fwrite (text, 1, len, out) == len;

  ok = out && fclose (out) == 0 && ok;
  if (!ok)
    g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (errno), "cannot write %s: %s", file,
        g_strerror (errno));
  return ok;
}

static int
import (const gchar *file, const gchar *output)
{
  g_autofree gchar *whole = g_canonicalize_filename (file, NULL);
  g_autofree gchar *folder = g_path_get_dirname (whole), *notes = NULL, *result = NULL;
  GError *error = NULL;
  gsize len = 0;
  g_autofree gchar *text = read_file (file, &len, &error);

  if (text)
    result = mtx_import (file, text, len, folder, &notes, &error);
  if (result && output)
    write_file (output, result, &error);
  if (error) {
    fprintf (stderr, "rtsp-proxy: %s\n", error->message);
    g_error_free (error);
    return EXIT_FAILURE;
  }
  fputs (notes, stderr);
  if (!output)
    fputs (result, stdout);
  return EXIT_SUCCESS;
}

int
import_mediamtx_run (int argc, char **argv)
{
  g_autofree gchar *output = NULL;
  const GOptionEntry entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
        "New file for the configuration, which only its owner can read (default: the standard "
        "output)",
        "FILE" },
    { NULL },
  };
  GOptionContext *context = g_option_context_new ("mediamtx.yml");
  GError *error = NULL;
  int status = EXIT_USAGE;

  g_option_context_set_summary (context, summary);
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error)) {
    fprintf (stderr, "rtsp-proxy: %s; see rtsp-proxy import-mediamtx --help\n", error->message);
    g_error_free (error);
  } else if (argc != 2) {
    fputs ("rtsp-proxy: expected one file; see rtsp-proxy import-mediamtx --help\n", stderr);
  } else {
    status = import (argv[1], output);
  }
  g_option_context_free (context);
  return status;
}
