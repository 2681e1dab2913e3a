// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_READERS 1000000

const gchar options_summary[] =
    "Reads RTSP streams with any number of readers and measures what each reader receives.";

const gchar options_description[] =
    "With several URLs, readers take them in turn, or by popularity with --zipf.\n"
    "\n"
    "Numbers, over all readers, or over the first N with --probes N:\n"
    "  packets, bytes    RTP packets, and their bytes with the RTP header, from each reader's\n"
    "                    first packet to its last\n"
    "  lost, reordered, duplicates\n"
    "                    by sequence number\n"
    "  stalls            how often video arrived more than 500 ms later than its timestamps\n"
    "                    say, or was missing that long at the end\n"
    "  not RTP           datagrams or frames that are not RTP; shown if there are any\n"
    "  before PLAY       RTP and RTCP packets that arrived before the answer to PLAY, which\n"
    "                    players drop; shown if there are any\n"
    "  not from origin   packets that the origin did not send, with --against; shown if there\n"
    "                    are any\n"
    "  describe, setup, play\n"
    "                    from the request to its answer; a 401 and the second attempt count\n"
    "                    separately\n"
    "  first packet      from PLAY to the first RTP packet\n"
    "  first frame       from PLAY to the first packet of a keyframe (H.264, H.265, VP8, VP9,\n"
    "                    AV1)\n"
    "  frame gap         from the first packet of a video frame to that of the next\n"
    "  playout delay     the smallest buffer with which a player that starts at the first\n"
    "                    packet never waits; one value for each reader and track\n"
    "  jitter            the jitter of RFC 3550 at the end; one value for each reader and track\n"
    "  A/V skew          how far apart audio and video of one instant arrive, by the sender\n"
    "                    reports, as an absolute value\n"
    "  added delay       with --against: from a packet's arrival straight from the origin to its\n"
    "                    arrival at a reader, matched by timestamp and payload\n"
    "With --scheme, a client keeps no media, and is measured as if it played each packet 40 ms\n"
    "after its time in the title, or, of a stream, after the first one's:\n"
    "  in time, late, lost\n"
    "                    packets that came before they were to be played, after that, or not\n"
    "  conformance       the share of packets in time\n"
    "  missed, repaired  packets that were to come on groups and did not; those of them that\n"
    "                    came by unicast\n"
    "  start-up          from the schedule's start to the first packet, with the 40 ms\n"
    "With --hls, a player keeps no media, and plays when it has three parts:\n"
    "  parts, playlists  answers with media, or with a playlist\n"
    "  parts skipped     how often a player fell so far behind that the playlist no longer had\n"
    "                    its next part\n"
    "  stalls            how often a part came after the time at which it was to be played\n"
    "  latency           from the end of what a part shows, by EXT-X-PROGRAM-DATE-TIME and the\n"
    "                    clock of this machine, to the part's last byte\n"
    "  start-up          from the first request to the first part\n"
    "With --whep, a reader counts encrypted packets and asks for none again; times are from its\n"
    "POST:\n"
    "  answer            to the answer\n"
    "  DTLS done         to the datagram that completes the keys\n"
    "  first packet      to the first RTP packet\n"
    "  keyframe          to the last packet of the first keyframe\n"
    "  delivered         the share of packets that came, of those that were sent\n"
    "Times are in ms. Over UDP, arrival times are the kernel's; over TCP, they are the times at\n"
    "which rtsp-load reads. Percentiles are exact to 3 %.\n"
    "\n"
    "Exit status: 0 if every reader connected and no error came up, 1 if not, 2 for wrong\n"
    "arguments.\n";

static gboolean fail_option (const gchar *format, ...) G_GNUC_PRINTF (1, 2);

static gboolean
fail_option (const gchar *format, ...)
{
  va_list args;

  fputs ("rtsp-load: ", stderr);
  va_start (args, format);
  vfprintf (stderr, format, args);
  va_end (args);
  fputs ("; see --help\n", stderr);
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
    return fail_option ("--transport must be udp, tcp or mixed, not \"%s\"", text);
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
    return fail_option (
        "--arrivals must be all, uniform:R or poisson:R with R above 0, not \"%s\"", text);
  return TRUE;
}

static gboolean
parse_session (Options *self, const gchar *text)
{
  if (!text)
    return TRUE;
  self->session_exp = g_str_has_prefix (text, "exp:");
  if (!parse_number (text + (self->session_exp ? 4 : 0), &self->session) || self->session <= 0)
    return fail_option ("--session must be S or exp:S, in seconds above 0, not \"%s\"", text);
  return TRUE;
}

static gboolean
parse_tracks (Options *self, const gchar *text)
{
  self->video_only = g_strcmp0 (text, "video") == 0;
  if (text && !self->video_only && !g_str_equal (text, "all"))
    return fail_option ("--tracks must be video or all, not \"%s\"", text);
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
    return fail_option ("--ports must be LO-HI, such as 20000-29999, not \"%s\"", text);
  return TRUE;
}

static gboolean
check_numbers (const Options *self)
{
  if (self->readers < 1 || self->readers > MAX_READERS)
    return fail_option ("--readers must be from 1 to %d", MAX_READERS);
  if (self->probes < 0 || self->probes > self->readers)
    return fail_option ("--probes must be from 0 to --readers (%d)", self->readers);
  if (self->slow < 0 || self->slow + MAX (self->probes, 1) > self->readers)
    return fail_option ("--slow must leave at least one reader, or --probes readers, to measure");
  if (!(self->duration > 0 && self->duration < 1e8))
    return fail_option ("--duration must be above 0 s and below 100000000 s");
  if (!(self->timeout > 0 && self->timeout < 1e8))
    return fail_option ("--timeout must be above 0 s and below 100000000 s");
  if (self->loss > 100)
    return fail_option ("--loss must be from 0 to 100 %%");
  if (!(self->zipf >= 0))
    return fail_option ("--zipf must be 0 or more");
  if (self->loss >= 0 && self->no_rr)
    return fail_option ("--loss and --no-rr exclude each other");
  if (!WITH_BROADCAST && self->scheme)
    return fail_option ("this build has no broadcasts; build it with -Dbroadcast=enabled");
  if (!WITH_WEBRTC && self->whep)
    return fail_option ("this build has no WebRTC; build it with -Dwebrtc=enabled");
  if (self->scheme + self->hls + self->whep > 1)
    return fail_option ("--scheme, --hls and --whep exclude each other");
  if ((self->scheme || self->hls || self->whep)
      && (self->against || self->mute || self->no_rr || self->loss >= 0 || self->slow > 0
          || self->probes > 0 || self->plot || self->zipf > 0 || self->session > 0
          || self->video_only || self->verbose || self->transport != TRANSPORT_UDP
          || self->port_lo > 0))
    return fail_option (
        "--%s goes with --readers, --duration, --arrivals, --seed, --user, --password "
        "and --json only",
        self->hls    ? "hls"
        : self->whep ? "whep"
                     : "scheme");
  if (self->twcc && !self->whep)
    return fail_option ("--twcc goes with --whep only");
  if (self->against && self->mute)
    return fail_option ("--against and --mute exclude each other");
  return TRUE;
}

static gboolean
check_urls (const Options *self)
{
  if (!self->urls || !self->urls[0])
    return fail_option ("the URL is missing");
  for (guint i = 0; self->urls[i]; i++) {
    const gchar *scheme = self->hls || self->whep ? "http://" : "rtsp://";

    if (!g_str_has_prefix (self->urls[i], scheme))
      return fail_option ("\"%s\" is not an %s URL", self->urls[i], scheme);
  }
  if (self->against && !g_str_has_prefix (self->against, "rtsp://"))
    return fail_option ("--against: \"%s\" is not an rtsp:// URL", self->against);
  return TRUE;
}

// The arguments as GLib parses them: complete values in `options`, and texts that take() parses.
typedef struct {
  Options options;
  gchar *transport, *arrivals, *session, *tracks, *ports;
  gboolean help;
} Taken;

#define AT(field) ((gpointer) G_STRUCT_OFFSET (Taken, field))

static const GOptionEntry reader_entries[] = {
  { "readers", 'n', 0, G_OPTION_ARG_INT, AT (options.readers),
      "Number of readers, 1 to 1000000 (default 1)", "N" },
  { "transport", 't', 0, G_OPTION_ARG_STRING, AT (transport),
      "udp (default), tcp, or mixed: every other reader over TCP", "HOW" },
  { "tracks", 0, 0, G_OPTION_ARG_STRING, AT (tracks), "video, or all tracks (default)", "WHICH" },
  { "duration", 'd', 0, G_OPTION_ARG_DOUBLE, AT (options.duration),
      "Seconds from the first connection to the end (default 10)", "S" },
  { "arrivals", 0, 0, G_OPTION_ARG_STRING, AT (arrivals),
      "all at once (default), or R readers a second: uniform:R evenly, poisson:R at random",
      "HOW" },
  { "session", 0, 0, G_OPTION_ARG_STRING, AT (session),
      "Seconds that a reader stays: S, or exp:S at random with mean S (default: to the end)", "S" },
  { "zipf", 0, 0, G_OPTION_ARG_DOUBLE, AT (options.zipf),
      "Choose each reader's URL at random; the i-th has weight 1/i^A (default: in turn)", "A" },
  { "seed", 0, 0, G_OPTION_ARG_INT64, AT (options.seed), "Seed of the random numbers (default 1)",
      "N" },
  { "scheme", 0, 0, G_OPTION_ARG_NONE, AT (options.scheme),
      "Receive titles and streams on multicast groups, by the schedules of a server that "
      "broadcasts them",
      NULL },
  { "hls", 0, 0, G_OPTION_ARG_NONE, AT (options.hls),
      "Play Low-Latency HLS: the URL is that of a playlist, http://HOST/PATH", NULL },
  { "whep", 0, 0, G_OPTION_ARG_NONE, AT (options.whep),
      "Read over WebRTC by WHEP: the URL is that of the endpoint, http://HOST/PATH/whep", NULL },
  { "twcc", 0, 0, G_OPTION_ARG_NONE, AT (options.twcc),
      "With --whep: tell the server when each packet came (transport-wide feedback)", NULL },
  { "user", 'u', 0, G_OPTION_ARG_STRING, AT (options.user),
      "User name for basic or digest authentication, as the server asks", "NAME" },
  { "password", 'p', 0, G_OPTION_ARG_STRING, AT (options.password), "Password of --user", "WORD" },
  { "timeout", 0, 0, G_OPTION_ARG_DOUBLE, AT (options.timeout),
      "Seconds that a server may take to answer a request (default 10)", "S" },
  { NULL },
};

static const GOptionEntry fault_entries[] = {
  { "mute", 0, 0, G_OPTION_ARG_NONE, AT (options.mute), "Send RTSP requests, but ignore media",
      NULL },
  { "slow", 0, 0, G_OPTION_ARG_INT, AT (options.slow),
      "The last N readers stop reading once they play; they are not measured", "N" },
  { "loss", 0, 0, G_OPTION_ARG_DOUBLE, AT (options.loss),
      "Claim a packet loss of P %, 0 to 100, in receiver reports (default: the true loss)", "P" },
  { "no-rr", 0, 0, G_OPTION_ARG_NONE, AT (options.no_rr), "Send no receiver reports", NULL },
  { NULL },
};

static const GOptionEntry measure_entries[] = {
  { "against", 0, 0, G_OPTION_ARG_STRING, AT (options.against),
      "Also read the origin, and measure the delay that the server adds", "URL" },
  { "probes", 0, 0, G_OPTION_ARG_INT, AT (options.probes),
      "Measure only the first N readers, which connect before the others (default: all)", "N" },
  { "ports", 0, 0, G_OPTION_ARG_STRING, AT (ports),
      "Take UDP ports in order, two for each track (default: the kernel chooses)", "LO-HI" },
  { NULL },
};

static const GOptionEntry output_entries[] = {
  { "json", 0, 0, G_OPTION_ARG_NONE, AT (options.json), "Print the result as JSON", NULL },
  { "verbose", 'v', 0, G_OPTION_ARG_NONE, AT (options.verbose), "Print each reader's result, too",
      NULL },
  { "plot", 0, 0, G_OPTION_ARG_FILENAME, AT (options.plot),
      "Draw the time line and the histograms (by gnuplot)", "FILE.png" },
  { "version", 0, 0, G_OPTION_ARG_NONE, AT (options.version), "Print the version and exit", NULL },
  { "help", 'h', G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_NONE, AT (help), "Print this help and exit",
      NULL },
  { NULL },
};

static const GOptionEntry url_entries[] = {
  { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_STRING_ARRAY, AT (options.urls), NULL, NULL },
  { NULL },
};

const OptionGroup options_groups[] = {
  { "Readers", "rtsp-load -n 2000 -d 60 --arrivals poisson:50 rtsp://192.0.2.7/cam",
      reader_entries },
  { "Faults", "rtsp-load -n 100 --slow 10 rtsp://192.0.2.7/cam", fault_entries },
  { "Measurement", "rtsp-load --against rtsp://192.0.2.8/stream rtsp://192.0.2.7/cam",
      measure_entries },
  { "Output", "rtsp-load -n 100 --plot load.png rtsp://192.0.2.7/cam", output_entries },
  { NULL },
};

#undef AT

static void
print_option (const GOptionEntry *entry)
{
  gchar letter[] = { '-', entry->short_name, ',', ' ', '\0' };
  gchar *option = g_strdup_printf ("%s--%s%s%s", entry->short_name ? letter : "", entry->long_name,
      entry->arg_description ? "=" : "", entry->arg_description ? entry->arg_description : "");

  printf ("  %-21s %s\n", option, entry->description);
  g_free (option);
}

// GLib has no headings within the options of a program, so this prints the help.
static void
print_help (void)
{
  printf ("Usage:\n  rtsp-load [OPTION...] rtsp://HOST/PATH...\n\n%s\n", options_summary);
  for (const OptionGroup *group = options_groups; group->title; group++) {
    printf ("\n%s:\n", group->title);
    for (const GOptionEntry *entry = group->entries; entry->long_name; entry++)
      print_option (entry);
    printf ("  Example: %s\n", group->example);
  }
  printf ("\n%s", options_description);
}

static void
add_entries (GOptionContext *context, const GOptionEntry *table, Taken *taken)
{
  GArray *entries = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));

  for (; table->long_name; table++) {
    GOptionEntry entry = *table;

    entry.arg_data = G_STRUCT_MEMBER_P (taken, GPOINTER_TO_SIZE (entry.arg_data));
    g_array_append_val (entries, entry);
  }
  g_option_context_add_main_entries (context, (const GOptionEntry *) entries->data, NULL);
  g_array_unref (entries);
}

static gboolean
take_arguments (Taken *self, int *argc, char ***argv)
{
  GOptionContext *context = g_option_context_new (NULL);
  GError *error = NULL;
  gboolean ok;

  g_option_context_set_help_enabled (context, FALSE);
  for (const OptionGroup *group = options_groups; group->title; group++)
    add_entries (context, group->entries, self);
  add_entries (context, url_entries, self);
  ok = g_option_context_parse (context, argc, argv, &error);
  g_option_context_free (context);
  if (!ok) {
    fail_option ("%s", error->message);
    g_error_free (error);
  }
  return ok;
}

static gboolean
parse_texts (Options *self, const Taken *taken)
{
  return check_urls (self) && parse_transport (self, taken->transport)
         && parse_arrivals (self, taken->arrivals) && parse_session (self, taken->session)
         && parse_tracks (self, taken->tracks) && parse_ports (self, taken->ports)
         && check_numbers (self);
}

// Returns FALSE if there is nothing to run; then `status` is the exit status.
static gboolean
take (Options *self, int *argc, char ***argv, int *status)
{
  Taken taken = { .options = *self };
  gboolean ok = take_arguments (&taken, argc, argv);
  gboolean only_tell = ok && (taken.help || taken.options.version);

  *self = taken.options;
  if (only_tell && taken.help)
    print_help ();
  else if (only_tell)
    printf ("rtsp-load %s\n", PACKAGE_VERSION);
  *status = only_tell ? EXIT_SUCCESS : EXIT_USAGE;
  ok = ok && !only_tell && parse_texts (self, &taken);
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
  return take (self, argc, argv, status);
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
