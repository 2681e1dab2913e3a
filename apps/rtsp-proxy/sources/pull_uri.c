// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/pull_uri.h"

#include <gio/gio.h>
#include <gst/rtsp/rtsp.h>
#include <string.h>

#include "sources/launch_pull.h"
#include "sources/sdp.h"

static const struct {
  const gchar *name;
  const gchar *media;
  gint clock_rate; // 0: it must be said
  gint payload;    // -1: drawn by the sender
} encodings[] = {
  { "H264", "video", 90000, -1 },
  { "H265", "video", 90000, -1 },
  { "VP8", "video", 90000, -1 },
  { "VP9", "video", 90000, -1 },
  { "AV1", "video", 90000, -1 },
  { "JPEG", "video", 90000, 26 },
  { "MP2T", "video", 90000, 33 },
  { "MPV", "video", 90000, 32 },
  { "MP4V-ES", "video", 90000, -1 },
  { "OPUS", "audio", 48000, -1 },
  { "PCMU", "audio", 8000, 0 },
  { "PCMA", "audio", 8000, 8 },
  { "G722", "audio", 8000, 9 },
  { "MPA", "audio", 90000, 14 },
  { "L16", "audio", 0, -1 },
  { "MPEG4-GENERIC", "audio", 0, -1 },
  { "MP4A-LATM", "audio", 0, -1 },
};

void
pull_config_clear (PullConfig *config)
{
  g_clear_pointer (&config->uri, g_free);
  g_clear_pointer (&config->user, g_free);
  g_clear_pointer (&config->password, g_free);
  g_clear_pointer (&config->endpoint.address, g_free);
  g_clear_pointer (&config->endpoint.iface, g_free);
  gst_clear_caps (&config->rtp);
  g_clear_pointer (&config->path, g_free);
  g_clear_pointer (&config->launch, g_free);
}

// ---- rtsp ----

// What the library's parser takes, and gets wrong: a password with an '@' or a '/' in it becomes
// part of the host, a wrong port is cut off, and a line break would end the line of a request.
static gboolean
is_sound_authority (const gchar *uri)
{
  const gchar *authority = strstr (uri, "://") + 3;
  const gchar *end = authority + strcspn (authority, "/?#");
  const gchar *at = memchr (authority, '@', (gsize) (end - authority));
  const gchar *host = at ? at + 1 : authority;
  const gchar *colon = g_strrstr_len (host, end - host, ":");
  gchar *rest = NULL;
  guint64 port;

  for (const gchar *c = uri; *c; c++) {
    if ((guchar) *c <= 0x20 || *c == 0x7f)
      return FALSE;
  }
  if (memchr (host, '@', (gsize) (end - host)))
    return FALSE;
  if (!colon || memchr (colon, ']', (gsize) (end - colon)))
    return TRUE;
  port = g_ascii_strtoull (colon + 1, &rest, 10);
  return g_ascii_isdigit (colon[1]) && rest == end && port > 0 && port <= 65535;
}

// Takes the credentials out of the URI into the configuration.
static gchar *
check_rtsp (const gchar *uri, PullConfig *config)
{
  GstRTSPUrl *url = NULL;
  gchar *request;

  if (!is_sound_authority (uri) || gst_rtsp_url_parse (uri, &url) != GST_RTSP_OK || !url->host
      || !*url->host) {
    if (url)
      gst_rtsp_url_free (url);
    return g_strdup ("not a valid RTSP URI");
  }
  if (url->user) {
    config->user = g_uri_unescape_string (url->user, NULL);
    config->password = g_uri_unescape_string (url->passwd ? url->passwd : "", NULL);
    g_clear_pointer (&url->user, g_free);
    g_clear_pointer (&url->passwd, g_free);
  }
  request = gst_rtsp_url_get_request_uri (url);
  config->uri = request;
  if (g_str_has_prefix (uri, "rtsps:") && g_str_has_prefix (request, "rtsp:")) {
    config->uri = g_strconcat ("rtsps", request + 4, NULL);
    g_free (request);
  }
  gst_rtsp_url_free (url);
  return NULL;
}

// ---- files ----

static gchar *
check_file (const gchar *uri, PullConfig *config)
{
  gchar *path = g_filename_from_uri (uri, NULL, NULL);

  if (!path)
    return g_strdup ("not a file URI like file:///dir/clip.mp4");
  config->path = path;
  if (g_str_has_suffix (uri, "/")) {
    config->kind = PULL_FOLDER;
    if (!g_file_test (path, G_FILE_TEST_IS_DIR))
      return g_strdup_printf ("there is no folder %s", path);
  } else if (!g_file_test (path, G_FILE_TEST_IS_REGULAR)) {
    return g_strdup_printf ("there is no file %s", path);
  }
  config->uri = g_strdup (uri);
  return NULL;
}

// ---- udp, rtp, sdp ----

// The parameters behind the '?'; NULL if they are none.
static GHashTable *
query_of (const gchar *uri)
{
  const gchar *query = strchr (uri, '?');

  return g_uri_parse_params (query ? query + 1 : "", -1, "&", G_URI_PARAMS_NONE, NULL);
}

static gchar *
take_parameter (GHashTable *query, const gchar *name)
{
  gchar *value = g_strdup (g_hash_table_lookup (query, name));

  g_hash_table_remove (query, name);
  return value;
}

static gchar *
no_more_parameters (GHashTable *query, const gchar *known)
{
  GHashTableIter iter;
  gpointer name;

  g_hash_table_iter_init (&iter, query);
  if (!g_hash_table_iter_next (&iter, &name, NULL))
    return NULL;
  return g_strdup_printf ("unknown parameter \"%s\"; there is %s", (gchar *) name, known);
}

static gchar *
check_endpoint (const gchar *uri, GHashTable *query, gint last_port, PullEndpoint *endpoint)
{
  gchar *host = NULL, *path = NULL, *user = NULL;
  gint port = -1;
  gboolean ok = g_uri_split_with_user (
      uri, G_URI_FLAGS_NONE, NULL, &user, NULL, NULL, &host, &port, &path, NULL, NULL, NULL);
  gchar *wrong = NULL;

  if (ok && host && !*host) {
    g_free (host);
    host = g_strdup ("0.0.0.0");
  }
  if (!ok || !host || user || (path && *path && !g_str_equal (path, "/")))
    wrong = g_strdup ("not an address and a port like 239.1.2.3:5000 or [::]:5000");
  else if (!g_hostname_is_ip_address (host))
    wrong = g_strdup_printf ("\"%s\" is not an IP address", host);
  else if (port < 1 || port > last_port)
    wrong = g_strdup_printf ("its port is not one from 1 to %d", last_port);
  endpoint->address = host;
  endpoint->port = (guint16) port;
  endpoint->iface = take_parameter (query, "iface");
  if (!wrong && endpoint->iface && !*endpoint->iface)
    wrong = g_strdup ("iface is empty");
  g_free (path);
  g_free (user);
  return wrong;
}

static gchar *
check_ts (const gchar *uri, PullConfig *config)
{
  GHashTable *query = query_of (uri);
  gchar *wrong;

  if (!query)
    return g_strdup ("what is behind the ? can't be read");
  wrong = check_endpoint (uri, query, 65535, &config->endpoint);
  if (!wrong)
    wrong = no_more_parameters (query, "iface");
  g_hash_table_unref (query);
  config->uri = g_strdup (uri);
  return wrong;
}

static gchar *
check_number (const gchar *name, const gchar *text, gint least, gint most, gint *number)
{
  guint64 value;

  if (!text)
    return *number >= least ? NULL : g_strdup_printf ("its %s is missing", name);
  if (!g_ascii_string_to_unsigned (text, 10, (guint64) least, (guint64) most, &value, NULL))
    return g_strdup_printf ("%s=%s is not a number from %d to %d", name, text, least, most);
  *number = (gint) value;
  return NULL;
}

// What is left are parameters of the format, as a=fmtp has them.
static gchar *
add_format (GstStructure *s, GHashTable *query)
{
  GHashTableIter iter;
  gpointer name, value;

  g_hash_table_iter_init (&iter, query);
  while (g_hash_table_iter_next (&iter, &name, &value)) {
    if (!*(gchar *) name || strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen (name)
        || !g_ascii_isalpha (*(gchar *) name))
      return g_strdup_printf ("\"%s\" is not the name of a parameter", (gchar *) name);
    for (const gchar *c = value; *c; c++) {
      if (!g_ascii_isgraph (*c))
        return g_strdup_printf ("%s holds a character that can't be", (gchar *) name);
    }
    gst_structure_set (s, name, G_TYPE_STRING, value, NULL);
  }
  return NULL;
}

static gchar *
check_track (GHashTable *query, GstStructure *s)
{
  gchar *given = take_parameter (query, "encoding-name");
  gchar *name = given ? g_ascii_strup (given, -1) : NULL;
  gchar *media = take_parameter (query, "media");
  gchar *payload_text = take_parameter (query, "payload");
  gchar *rate_text = take_parameter (query, "clock-rate");
  gint payload = -1, rate = 0;
  const gchar *kind = media;
  gchar *wrong = NULL;

  for (guint i = 0; name && i < G_N_ELEMENTS (encodings); i++) {
    if (g_str_equal (name, encodings[i].name)) {
      kind = media ? media : encodings[i].media;
      payload = encodings[i].payload;
      rate = encodings[i].clock_rate;
    }
  }
  if (!name)
    wrong =
        g_strdup ("its encoding-name is missing (rtp://ADDR:PORT?encoding-name=H264&payload=96)");
  else if (!kind || (!g_str_equal (kind, "video") && !g_str_equal (kind, "audio")))
    wrong = g_strdup_printf ("%s needs media=video or media=audio", name);
  if (!wrong)
    wrong = check_number ("payload", payload_text, 0, 127, &payload);
  if (!wrong)
    wrong = check_number ("clock-rate", rate_text, 1, 192000, &rate);
  if (!wrong) {
    gst_structure_set (s, "media", G_TYPE_STRING, kind, "encoding-name", G_TYPE_STRING, name,
        "payload", G_TYPE_INT, payload, "clock-rate", G_TYPE_INT, rate, NULL);
    if (g_str_equal (name, "H264") && !g_hash_table_contains (query, "packetization-mode"))
      gst_structure_set (s, "packetization-mode", G_TYPE_STRING, "1", NULL);
    wrong = add_format (s, query);
  }
  g_free (given);
  g_free (name);
  g_free (media);
  g_free (payload_text);
  g_free (rate_text);
  return wrong;
}

static gchar *
check_rtp (const gchar *uri, PullConfig *config)
{
  GHashTable *query = query_of (uri);
  GstStructure *s;
  gchar *wrong;

  if (!query)
    return g_strdup ("what is behind the ? can't be read");
  wrong = check_endpoint (uri, query, 65534, &config->endpoint); // RTCP is on the next
  s = gst_structure_new_empty ("application/x-rtp");
  if (!wrong)
    wrong = check_track (query, s);
  if (!wrong && !g_strcmp0 (gst_structure_get_string (s, "encoding-name"), "MP2T"))
    config->kind = PULL_TS;
  config->rtp = gst_caps_new_full (s, NULL);
  config->uri = g_strdup (uri);
  g_hash_table_unref (query);
  return wrong;
}

static gchar *
check_sdp (const gchar *uri, PullConfig *config)
{
  gsize len = strcspn (uri, "?");
  gchar *file = g_strdup_printf ("file%.*s", (int) (len - 3), uri + 3);
  GHashTable *query = query_of (uri);
  GPtrArray *streams;
  GError *error = NULL;
  gchar *wrong = NULL;

  config->uri = g_strdup (uri);
  config->path = g_filename_from_uri (file, NULL, NULL);
  g_free (file);
  if (!query || !config->path || !g_str_has_prefix (uri, "sdp:///")) {
    g_clear_pointer (&query, g_hash_table_unref);
    return g_strdup ("not a URI like sdp:///dir/session.sdp");
  }
  config->endpoint.iface = take_parameter (query, "iface");
  wrong = no_more_parameters (query, "iface");
  g_hash_table_unref (query);
  if (wrong)
    return wrong;
  streams = sdp_read (config->path, config->endpoint.iface, &error);
  if (streams) {
    g_ptr_array_unref (streams);
    return NULL;
  }
  wrong = g_strdup (error->message);
  g_error_free (error);
  return wrong;
}

// ---- launch ----

static gchar *
check_launch (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  if (flags & PULL_URI_FROM_API)
    return g_strdup ("launch lines are taken from the configuration file and arguments only");
  config->uri = g_strdup (uri);
  config->launch = g_strstrip (g_strdup (uri + strlen ("launch:")));
  return launch_check (config->launch);
}

gchar *
pull_uri_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  static const struct {
    const gchar *prefix;
    PullKind kind;
    gchar *(*check) (const gchar *uri, PullConfig *config);
  } kinds[] = {
    { "rtsp://", PULL_RTSP, check_rtsp },
    { "rtsps://", PULL_RTSP, check_rtsp },
    { "file:", PULL_FILE, check_file },
    { "udp://", PULL_TS, check_ts },
    { "rtp://", PULL_RTP, check_rtp },
    { "sdp:", PULL_SDP, check_sdp },
  };

  if (g_str_has_prefix (uri, "launch:")) {
    config->kind = PULL_LAUNCH;
    return check_launch (uri, flags, config);
  }
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    if (g_str_has_prefix (uri, kinds[i].prefix)) {
      config->kind = kinds[i].kind;
      return kinds[i].check (uri, config);
    }
  }
  return g_strdup ("not a URI of a kind that can be pulled: rtsp://, rtsps://, udp://, rtp://, "
                   "sdp://, file:// or launch:");
}
