// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/make_certificate.h"

#include "tls/tls_make.h"

#include <stdio.h>
#include <stdlib.h>

#define EXIT_USAGE 2

static const gchar summary[] =
    "Writes a new private key and a self-signed certificate to FILE.pem, for the key `tls` of the\n"
    "configuration. The certificate is valid for a year. Clients must be told to trust it: give\n"
    "them a copy of the certificate, or the fingerprint that this command prints.";

static int
make (const gchar *const *hosts, const gchar *file)
{
  static const gchar *const usual[] = { "localhost", "127.0.0.1", "::1", NULL };
  GError *error = NULL;
  gchar *fingerprint = tls_make_certificate (hosts ? hosts : usual, file, &error);

  if (!fingerprint) {
    fprintf (stderr, "rtsp-proxy: %s\n", error->message);
    g_error_free (error);
    return EXIT_FAILURE;
  }
  printf ("%s: SHA-256 %s\n", file, fingerprint);
  g_free (fingerprint);
  return EXIT_SUCCESS;
}

int
make_certificate_run (int argc, char **argv)
{
  g_auto (GStrv) hosts = NULL;
  const GOptionEntry entries[] = {
    { "host", 0, 0, G_OPTION_ARG_STRING_ARRAY, &hosts,
        "Name or IP address by which clients reach the proxy; can be given several times (default "
        "localhost, 127.0.0.1 and ::1)",
        "HOST" },
    { NULL },
  };
  GOptionContext *context = g_option_context_new ("FILE.pem");
  GError *error = NULL;
  int status = EXIT_USAGE;

  g_option_context_set_summary (context, summary);
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error)) {
    fprintf (stderr, "rtsp-proxy: %s; see rtsp-proxy make-certificate --help\n", error->message);
    g_error_free (error);
  } else if (argc != 2) {
    fputs ("rtsp-proxy: expected one file; see rtsp-proxy make-certificate --help\n", stderr);
  } else {
    status = make ((const gchar *const *) hosts, argv[1]);
  }
  g_option_context_free (context);
  return status;
}
