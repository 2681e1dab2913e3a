// SPDX-License-Identifier: LGPL-2.1-or-later
#include "import/mtx_servers.h"

#include <string.h>

#include "import/mtx_paths.h"
#include "import/mtx_users.h"
#include "import/weir_text.h"

#define LOOPBACK "127.0.0.1"
#define TIMEOUT_MS 10000 // the default of both programs

typedef struct {
  MtxFile *file;
  MtxScope root;
  GString *out;
  const gchar *certificate, *key; // NULL: no server is encrypted so far
} Servers;

typedef enum { PLAIN = 1, ENCRYPTED = 2 } Ports;

// Returns the address of a key as the proxy takes it. (transfer full)
static gchar *
dup_address (Servers *self, const gchar *key, const gchar *preset)
{
  const gchar *text = mtx_text (self->file, &self->root, key, preset);

  return g_str_has_prefix (text, "localhost:") ? g_strconcat (LOOPBACK, strchr (text, ':'), NULL)
                                               : g_strdup (text);
}

// Says that a server needs a certificate: the proxy has one for all.
static void
need_certificate (Servers *self, const gchar *cert_key, const gchar *key_key)
{
  const gchar *certificate = mtx_text (self->file, &self->root, cert_key, "server.crt");
  const gchar *key = mtx_text (self->file, &self->root, key_key, "server.key");

  if (self->certificate && !g_str_equal (self->certificate, certificate))
    mtx_note (self->file, mtx_find (self->file, &self->root, cert_key), cert_key,
        "left out: Weir has one certificate for all servers, %s", self->certificate);
  self->certificate = self->certificate ? self->certificate : certificate;
  self->key = self->key ? self->key : key;
}

// Reads "no", "optional" or "strict".
static Ports
read_encryption (Servers *self, const gchar *key)
{
  const gchar *text = mtx_text (self->file, &self->root, key, "no");

  if (g_str_equal (text, "optional"))
    return PLAIN | ENCRYPTED;
  if (g_str_equal (text, "strict") || g_str_equal (text, "yes") || g_str_equal (text, "true"))
    return ENCRYPTED;
  if (!g_str_equal (text, "no") && !g_str_equal (text, "false"))
    mtx_fail (self->file, mtx_find (self->file, &self->root, key), key,
        "expected no, optional or strict");
  return PLAIN;
}

static gboolean
is_on (Servers *self, const gchar *key, gboolean preset)
{
  return mtx_flag (self->file, &self->root, key, preset);
}

static void
append_line (Servers *self, const gchar *key, const gchar *text)
{
  g_autoptr (GString) line = g_string_new (NULL);

  weir_text_pair (line, key, text);
  g_string_append_printf (self->out, "%s\n", line->str);
}

// ---- RTMP, HTTP ----

static void
append_rtmp (Servers *self)
{
  const Ports ports = read_encryption (self, "rtmpEncryption");
  g_autofree gchar *plain = dup_address (self, "rtmpAddress", ":1935");
  g_autofree gchar *tls = dup_address (self, "rtmpsAddress", ":1936");
  g_autoptr (GString) pairs = g_string_new (NULL);

  if (!is_on (self, "rtmp", TRUE))
    return;
  if (ports & PLAIN)
    weir_text_pair (pairs, "listen", plain);
  if (ports & ENCRYPTED) {
    weir_text_pair (pairs, "tls-listen", tls);
    need_certificate (self, "rtmpServerCert", "rtmpServerKey");
  }
  g_string_append_printf (self->out, "rtmp: {%s}\n", pairs->str);
}

static void
append_http (Servers *self)
{
  const gboolean hls = is_on (self, "hls", TRUE), webrtc = is_on (self, "webrtc", TRUE);
  const gboolean is_tls = is_on (self, hls ? "hlsEncryption" : "webrtcEncryption", FALSE);
  const gchar *origins_key = hls ? "hlsAllowOrigins" : "webrtcAllowOrigins";
  g_autofree gchar *address = hls ? dup_address (self, "hlsAddress", ":8888")
                                  : dup_address (self, "webrtcAddress", ":8889");
  g_autoptr (GPtrArray) origins = mtx_list (self->file, &self->root, origins_key);
  g_autofree gchar *list = weir_text_dup_list (origins);

  if (!hls && !webrtc)
    return;
  if (is_tls)
    need_certificate (
        self, hls ? "hlsServerCert" : "webrtcServerCert", hls ? "hlsServerKey" : "webrtcServerKey");
  g_string_append_printf (self->out, "http: {%s: ", is_tls ? "tls-listen" : "listen");
  weir_text_append (self->out, address);
  if (!mtx_find (self->file, &self->root, origins_key))
    g_string_append (self->out, ", allow-origins: [\"*\"]");
  else if (origins->len > 0)
    g_string_append_printf (self->out, ", allow-origins: %s", list);
  g_string_append (self->out, "}\n");
}

static void
append_time (Servers *self, GString *pairs, const gchar *key, const gchar *name, guint64 preset)
{
  const guint64 ms = mtx_time (self->file, &self->root, key, preset);
  g_autofree gchar *text = weir_text_dup_time (ms);

  if (ms != preset)
    weir_text_pair (pairs, name, text);
}

static void
append_hls (Servers *self)
{
  const guint64 segments = mtx_number (self->file, &self->root, "hlsSegmentCount", 7);
  g_autoptr (GString) pairs = g_string_new (NULL);

  append_time (self, pairs, "hlsSegmentDuration", "segment", 1000);
  append_time (self, pairs, "hlsPartDuration", "part", 200);
  if (segments != 7)
    g_string_append_printf (
        pairs, "%ssegments: %" G_GUINT64_FORMAT, pairs->len ? ", " : "", CLAMP (segments, 3, 100));
  if (pairs->len > 0 && is_on (self, "hls", TRUE))
    g_string_append_printf (self->out, "hls: {%s}\n", pairs->str);
}

// ---- WebRTC, SRT ----

// Returns the STUN servers; adds a note about others.
static GPtrArray *
get_stun_servers (Servers *self)
{
  const YamlNode *list = mtx_find (self->file, &self->root, "webrtcICEServers2"), *item;
  GPtrArray *servers = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; list && yaml_is_sequence (list) && i < 100
                    && (item = yaml_item (self->file->reader, list, i));
      i++) {
    const MtxScope scope = { item, NULL };
    const gchar *url = mtx_text (self->file, &scope, "url", "");

    if (g_str_has_prefix (url, "stun:") || g_str_has_prefix (url, "stuns:"))
      g_ptr_array_add (servers, g_strdup (url));
    else
      mtx_note (self->file, item, "webrtcICEServers2",
          "left out: browsers reach Weir without a TURN server, over UDP or TCP");
  }
  return servers;
}

static const gchar *
get_port (const gchar *address)
{
  const gchar *colon = strrchr (address, ':');

  return colon ? colon : "";
}

static void
append_webrtc (Servers *self)
{
  g_autofree gchar *udp = dup_address (self, "webrtcLocalUDPAddress", ":8189");
  g_autofree gchar *tcp = dup_address (self, "webrtcLocalTCPAddress", "");
  g_autoptr (GPtrArray) hosts = mtx_list (self->file, &self->root, "webrtcAdditionalHosts");
  g_autoptr (GPtrArray) servers = get_stun_servers (self);
  g_autofree gchar *host_list = weir_text_dup_list (hosts);
  g_autofree gchar *server_list = weir_text_dup_list (servers);

  if (!is_on (self, "webrtc", TRUE))
    return;
  if (*udp && *tcp && !g_str_equal (get_port (udp), get_port (tcp)))
    mtx_note (self->file, mtx_find (self->file, &self->root, "webrtcLocalTCPAddress"),
        "webrtcLocalTCPAddress", "now the port of webrtcLocalUDPAddress: both have one number");
  g_string_append (self->out, "webrtc: {listen: ");
  weir_text_append (self->out, *udp ? udp : *tcp ? tcp : ":8189");
  if (hosts->len > 0)
    g_string_append_printf (self->out, ", additional-hosts: %s", host_list);
  if (servers->len > 0)
    g_string_append_printf (self->out, ", stun-servers: %s", server_list);
  g_string_append (self->out, *tcp ? "}\n" : ", tcp: no}\n");
}

static void
append_srt (Servers *self)
{
  const gchar *passphrase = mtx_paths_get_passphrase (self->file);
  g_autofree gchar *address = dup_address (self, "srtAddress", ":8890");
  g_autoptr (GString) pairs = g_string_new (NULL);

  if (!is_on (self, "srt", TRUE))
    return;
  weir_text_pair (pairs, "listen", address);
  if (*passphrase)
    weir_text_pair (pairs, "passphrase", passphrase);
  g_string_append_printf (self->out, "srt: {%s}\n", pairs->str);
}

// ---- RTSP, the API ----

static void
append_passwords (Servers *self, Ports ports)
{
  g_autoptr (GPtrArray) methods = mtx_list (self->file, &self->root, "rtspAuthMethods");
  gboolean basic = methods->len == 0;

  for (guint i = 0; i < methods->len; i++)
    basic |= g_str_equal (g_ptr_array_index (methods, i), "basic");
  if ((ports & PLAIN) && basic)
    g_string_append (self->out, "basic-without-tls: yes\n");
}

static void
append_rtsp (Servers *self)
{
  const Ports ports = read_encryption (self, "rtspEncryption");
  g_autofree gchar *plain = dup_address (self, "rtspAddress", ":8554");
  g_autofree gchar *tls = dup_address (self, "rtspsAddress", ":8322");
  const gboolean rtsp = is_on (self, "rtsp", TRUE), has_tls = rtsp && (ports & ENCRYPTED);
  g_autoptr (GString) pairs = g_string_new (NULL);

  if (rtsp && !(ports & PLAIN))
    g_string_append (self->out, "listen: off\n");
  else
    append_line (self, "listen", rtsp ? plain : LOOPBACK ":8554");
  if (has_tls)
    need_certificate (self, "rtspServerCert", "rtspServerKey");
  if (self->certificate) {
    g_autofree gchar *certificate = mtx_dup_path (self->file, self->certificate);
    g_autofree gchar *key = mtx_dup_path (self->file, self->key);

    if (has_tls)
      weir_text_pair (pairs, "listen", tls);
    weir_text_pair (pairs, "certificate", certificate);
    weir_text_pair (pairs, "key", key);
    g_string_append_printf (self->out, "tls: {%s}\n", pairs->str);
  }
  append_passwords (self, rtsp ? ports : PLAIN);
}

static void
append_api (Servers *self)
{
  const gboolean api = is_on (self, "api", FALSE), metrics = is_on (self, "metrics", FALSE);
  const gchar *key = metrics ? "metricsAddress" : "apiAddress";
  g_autofree gchar *address = dup_address (self, key, metrics ? ":9998" : ":9997");
  g_autofree gchar *local = g_strconcat (LOOPBACK, get_port (address), NULL);

  if (!api && !metrics) {
    g_string_append (self->out, "api: off\n");
    return;
  }
  if (mtx_users_guard_api (self->file) || g_str_has_prefix (address, LOOPBACK ":")
      || g_str_has_prefix (address, "[::1]:")) {
    append_line (self, "api", address);
    return;
  }
  mtx_note (self->file, yaml_root (self->file->reader), key,
      "this machine only: to open it to others, add a user with the action api, or "
      "api-token-file: FILE");
  append_line (self, "api", local);
}

void
mtx_servers_append (MtxFile *file, GString *out)
{
  Servers self = { file, { yaml_root (file->reader), NULL }, out, NULL, NULL };
  g_autoptr (GString) limits = g_string_new (NULL), first = g_string_new (NULL);

  // Servers over TLS come first: `tls` has the certificate of all.
  self.out = first;
  append_http (&self);
  append_hls (&self);
  append_rtmp (&self);
  append_srt (&self);
  append_webrtc (&self);
  append_api (&self);
  append_time (&self, limits, "writeTimeout", "write-timeout", TIMEOUT_MS);
  if (limits->len > 0)
    g_string_append_printf (self.out, "limits: {%s}\n", limits->str);
  self.out = out;
  append_rtsp (&self);
  g_string_append (out, first->str);
}
