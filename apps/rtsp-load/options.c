// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_READERS 1000000

const gchar options_summary[] =
    "Reads RTSP streams with any number of readers, and measures what they get.";

const gchar options_description[] =
    "Several URLs are given to the readers in turn, or by popularity with --zipf.\n"
    "\n"
    "Examples:\n"
    "  rtsp-load rtsp://192.0.2.7/cam\n"
    "  rtsp-load --readers 2000 --transport udp --arrivals poisson:50 --duration 60 \\\n"
    "      --plot load.png rtsp://192.0.2.7/cam\n"
    "  rtsp-load --against rtsp://192.0.2.8/stream rtsp://192.0.2.7/cam\n"
    "  rtsp-load --readers 5000 --session exp:3 --arrivals uniform:200 --mute rtsp://…\n"
    "\n"
    "What is measured, over all readers, or over the first N with --probes N:\n"
    "  packets, bytes    RTP packets and their bytes with the RTP header, from each reader's\n"
    "                    first packet to its last\n"
    "  lost, reordered, duplicates\n"
    "                    by sequence number, extended to 64 bits\n"
    "  before PLAY       RTP and RTCP that came before the answer to PLAY, which players drop; "
    "shown\n"
    "                    if there was any\n"
    "  describe, setup, play\n"
    "                    from the request to its answer (401 and the second try apart)\n"
    "  first packet      from PLAY; first frame: to the first packet of a key picture (H.264,\n"
    "                    H.265, VP8, VP9, AV1)\n"
    "  frame gap         between the first packets of one video frame and the next\n"
    "  playout delay     the smallest with which a player that starts at the first packet\n"
    "                    would never have waited; one value for each reader and track\n"
    "  jitter            RFC 3550's, at the end; one value for each reader and track\n"
    "  stalls            how often video came more than 500 ms later, after the frame before,\n"
    "                    than its timestamps say, or stayed out that long at the end\n"
    "  A/V skew          how far apart audio and video of one instant arrive, by the sender\n"
    "                    reports; either way round\n"
    "  added delay       with --against: from a packet's arrival straight from the origin to its\n"
    "                    arrival at a reader, matched by timestamp and payload\n"
    "Arrival times are the kernel's over UDP, and those of the read over TCP.\n"
    "Percentiles are exact to 3 %.\n"
    "\n"
    "Exit status: 0 if every reader connected and no error came up, 1 if not, 2 for wrong\n"
    "arguments.\n";

static gboolean fail (const gchar *format, ...) G_GNUC_PRINTF (1, 2);

static gboolean
fail (const gchar *format, ...)
{
  va_list args;

  fputs ("rtsp-load: ", stderr);
  va_start (args, format);
  vfprintf (stderr, format, args);
  va_end (args);
  fputs ("; --help tells the options\n", stderr);
  return FALSE;
}

static gboolean
parse_number (const gchar *text, gdouble *out)
{
  gchar *end;
  gdouble value = g_ascii_strtod (text, &end);

  if (end == text || *end != '\0' || !(value >= 0 && value < 1e9))
    return FALSE;
  *out = value;
  return TRUE;
}

static gboolean
parse_transport (Options *self, const gchar *text)
{
  if (!text || g_str_equal (text, "udp"))
    self->transport = TRANSPORT_UDP;
  else if (g_str_equal (text, "tcp"))
    self->transport = TRANSPORT_TCP;
  else if (g_str_equal (text, "mixed"))
    self->transport = TRANSPORT_MIXED;
  else
    return fail ("--transport is udp, tcp or mixed, not \"%s\"", text);
  return TRUE;
}

static gboolean
parse_arrivals (Options *self, const gchar *text)
{
  const gchar *rate = text ? strchr (text, ':') : NULL;

  if (!text || g_str_equal (text, "all"))
    return TRUE;
  if (g_str_has_prefix (text, "uniform:"))
    self->arrivals = ARRIVALS_UNIFORM;
  else if (g_str_has_prefix (text, "poisson:"))
    self->arrivals = ARRIVALS_POISSON;
  if (self->arrivals == ARRIVALS_ALL || !parse_number (rate + 1, &self->rate) || self->rate <= 0)
    return fail ("--arrivals is all, uniform:R or poisson:R (a second), not \"%s\"", text);
  return TRUE;
}

static gboolean
parse_session (Options *self, const gchar *text)
{
  if (!text)
    return TRUE;
  self->session_exp = g_str_has_prefix (text, "exp:");
  if (!parse_number (text + (self->session_exp ? 4 : 0), &self->session) || self->session <= 0)
    return fail ("--session is seconds or exp:SECONDS, not \"%s\"", text);
  return TRUE;
}

static gboolean
parse_tracks (Options *self, const gchar *text)
{
  self->video_only = g_strcmp0 (text, "video") == 0;
  if (text && !self->video_only && !g_str_equal (text, "all"))
    return fail ("--tracks is video or all, not \"%s\"", text);
  return TRUE;
}

static gboolean
parse_ports (Options *self, const gchar *text)
{
  gchar rest;

  if (!text)
    return TRUE;
  if (sscanf (text, "%d-%d%c", &self->port_lo, &self->port_hi, &rest) != 2 || self->port_lo < 1
      || self->port_hi > 65535 || self->port_lo >= self->port_hi)
    return fail ("--ports is LO-HI, such as 20000-29999, not \"%s\"", text);
  return TRUE;
}

static gboolean
check_numbers (const Options *self)
{
  if (self->readers < 1 || self->readers > MAX_READERS)
    return fail ("--readers is 1 to %d", MAX_READERS);
  if (self->probes < 0 || self->probes > self->readers)
    return fail ("--probes is at most as many as --readers (%d)", self->readers);
  if (self->slow < 0 || self->slow + MAX (self->probes, 1) > self->readers)
    return fail ("--slow leaves no reader to measure");
  if (!(self->duration > 0 && self->duration < 1e8))
    return fail ("--duration is seconds, more than 0");
  if (!(self->timeout > 0 && self->timeout < 1e8))
    return fail ("--timeout is seconds, more than 0");
  if (self->loss > 100)
    return fail ("--loss is 0 to 100 %%");
  if (!(self->zipf >= 0))
    return fail ("--zipf is 0 or more");
  if (self->loss >= 0 && self->no_rr)
    return fail ("--loss needs the reports that --no-rr leaves out");
  if (self->against && self->mute)
    return fail ("--against needs the media that --mute ignores");
  return TRUE;
}

static gboolean
check_urls (const Options *self)
{
  if (!self->urls || !self->urls[0])
    return fail ("which URL?");
  for (guint i = 0; self->urls[i]; i++) {
    if (!g_str_has_prefix (self->urls[i], "rtsp://"))
      return fail ("\"%s\" is no rtsp:// URL", self->urls[i]);
  }
  if (self->against && !g_str_has_prefix (self->against, "rtsp://"))
    return fail ("\"%s\" is no rtsp:// URL", self->against);
  return TRUE;
}

// What is taken from the arguments as it is, and as text that is still to be read.
typedef struct {
  Options options;
  gchar *transport, *arrivals, *session, *tracks, *ports;
} Taken;

#define AT(field) ((gpointer) G_STRUCT_OFFSET (Taken, field))

const GOptionEntry options_entries[] = {
  { "readers", 'n', 0, G_OPTION_ARG_INT, AT (options.readers), "How many readers (default 1)",
      "N" },
  { "transport", 't', 0, G_OPTION_ARG_STRING, AT (transport),
      "udp (default), tcp, or mixed: every other reader", "HOW" },
  { "duration", 'd', 0, G_OPTION_ARG_DOUBLE, AT (options.duration),
      "Seconds from the first connection to the end (default 10)", "S" },
  { "arrivals", 0, 0, G_OPTION_ARG_STRING, AT (arrivals),
      "all at once (default), or R a second: uniform:R, poisson:R", "HOW" },
  { "session", 0, 0, G_OPTION_ARG_STRING, AT (session),
      "How long each one stays: S seconds, or exp:S with that mean (default: to the end)", "S" },
  { "seed", 0, 0, G_OPTION_ARG_INT64, AT (options.seed), "For what is drawn (default 1)", "N" },
  { "tracks", 0, 0, G_OPTION_ARG_STRING, AT (tracks), "video, or all (default)", "WHICH" },
  { "zipf", 0, 0, G_OPTION_ARG_DOUBLE, AT (options.zipf),
      "Draw each reader's URL; the i-th has the weight 1/i^A", "A" },
  { "user", 'u', 0, G_OPTION_ARG_STRING, AT (options.user), "Basic or digest, as asked", "NAME" },
  { "password", 'p', 0, G_OPTION_ARG_STRING, AT (options.password), "The password of --user",
      "WORD" },
  { "mute", 0, 0, G_OPTION_ARG_NONE, AT (options.mute),
      "Control only: SETUP, PLAY, TEARDOWN; media is ignored", NULL },
  { "slow", 0, 0, G_OPTION_ARG_INT, AT (options.slow),
      "The last N readers stop reading once they play; they aren't measured", "N" },
  { "probes", 0, 0, G_OPTION_ARG_INT, AT (options.probes),
      "Measure only the first N readers, which connect before the others", "N" },
  { "ports", 0, 0, G_OPTION_ARG_STRING, AT (ports),
      "UDP ports, taken in order, two for each track (default: the kernel chooses)", "LO-HI" },
  { "no-rr", 0, 0, G_OPTION_ARG_NONE, AT (options.no_rr), "Send no receiver reports", NULL },
  { "loss", 0, 0, G_OPTION_ARG_DOUBLE, AT (options.loss),
      "Let receiver reports claim that P % are lost", "P" },
  { "against", 0, 0, G_OPTION_ARG_STRING, AT (options.against),
      "Read the origin too, and tell the delay that the server adds to it", "URL" },
  { "timeout", 0, 0, G_OPTION_ARG_DOUBLE, AT (options.timeout),
      "How long a server may take to answer (default 10 s)", "S" },
  { "plot", 0, 0, G_OPTION_ARG_FILENAME, AT (options.plot),
      "Draw the time line and the histograms (gnuplot or matplotlib)", "FILE.png" },
  { "json", 0, 0, G_OPTION_ARG_NONE, AT (options.json), "Print the result as JSON", NULL },
  { "verbose", 'v', 0, G_OPTION_ARG_NONE, AT (options.verbose), "Each reader's result too", NULL },
  { "version", 0, 0, G_OPTION_ARG_NONE, AT (options.version), "Print the version and exit", NULL },
  { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_STRING_ARRAY, AT (options.urls), NULL, "rtsp://…" },
  { NULL },
};

#undef AT

static gboolean
take_arguments (Taken *self, int *argc, char ***argv)
{
  GOptionEntry entries[G_N_ELEMENTS (options_entries)];
  GOptionContext *context = g_option_context_new (NULL);
  GError *error = NULL;
  gboolean ok;

  memcpy (entries, options_entries, sizeof entries);
  for (GOptionEntry *entry = entries; entry->long_name; entry++)
    entry->arg_data = G_STRUCT_MEMBER_P (self, GPOINTER_TO_SIZE (entry->arg_data));
  g_option_context_set_summary (context, options_summary);
  g_option_context_set_description (context, options_description);
  g_option_context_add_main_entries (context, entries, NULL);
  ok = g_option_context_parse (context, argc, argv, &error);
  g_option_context_free (context);
  if (!ok) {
    fail ("%s", error->message);
    g_error_free (error);
  }
  return ok;
}

static gboolean
take (Options *self, int *argc, char ***argv)
{
  Taken taken = { .options = *self };
  gboolean ok = take_arguments (&taken, argc, argv);

  *self = taken.options;
  ok = ok
       && (self->version
           || (check_urls (self) && parse_transport (self, taken.transport)
               && parse_arrivals (self, taken.arrivals) && parse_session (self, taken.session)
               && parse_tracks (self, taken.tracks) && parse_ports (self, taken.ports)
               && check_numbers (self)));
  g_free (taken.transport);
  g_free (taken.arrivals);
  g_free (taken.session);
  g_free (taken.tracks);
  g_free (taken.ports);
  return ok;
}

gboolean
options_parse (Options *self, int *argc, char ***argv, int *status)
{
  *self = (Options) { .readers = 1, .seed = 1, .duration = 10, .timeout = 10, .loss = -1 };
  *status = EXIT_USAGE;
  if (!take (self, argc, argv))
    return FALSE;
  if (self->version) {
    printf ("rtsp-load %s\n", PACKAGE_VERSION);
    *status = EXIT_SUCCESS;
  }
  return !self->version;
}

void
options_clear (Options *self)
{
  g_clear_pointer (&self->urls, g_strfreev);
  g_clear_pointer (&self->against, g_free);
  g_clear_pointer (&self->user, g_free);
  g_clear_pointer (&self->password, g_free);
  g_clear_pointer (&self->plot, g_free);
}
