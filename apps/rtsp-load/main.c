// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "filelimit.h"
#include "hls.h"
#include "load.h"
#include "options.h"
#include "plot.h"
#include "report.h"
#include "scheme.h"
#include "whep.h"

#include <locale.h>
#include <stdlib.h>

static int
run_load (const Options *options)
{
  Load *load;
  gboolean failed;

  if (!filelimit_raise (options) || (options->plot && !plot_can_draw ()))
    return EXIT_FAILURE;
  if (options->hls)
    return hls_run (options) ? EXIT_SUCCESS : EXIT_FAILURE;
  if (WITH_BROADCAST && options->scheme)
    return scheme_run (options) ? EXIT_SUCCESS : EXIT_FAILURE;
  if (WITH_WEBRTC && options->whep)
    return whep_run (options) ? EXIT_SUCCESS : EXIT_FAILURE;
  load = load_new (options);
  if (!load)
    return EXIT_FAILURE;
  load_run (load);
  report_end_live ();
  if (options->json)
    report_json (load);
  else
    report_table (load);
  failed = results_failed (&load->results);
  if (options->plot)
    failed = !plot_draw (load, options->plot) || failed;
  load_free (load);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int
main (int argc, char **argv)
{
  Options options;
  int status;

  setlocale (LC_CTYPE, ""); // not LC_NUMERIC: numbers keep their decimal points
  if (options_parse (&options, &argc, &argv, &status))
    status = run_load (&options);
  options_clear (&options);
  return status;
}
