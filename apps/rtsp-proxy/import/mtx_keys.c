// SPDX-License-Identifier: LGPL-2.1-or-later
#include "import/mtx_keys.h"

#include <string.h>

#define KEYS_MAX 1000 // of a mapping

typedef struct {
  const gchar *key;  // the last character * stands for any text; the first row that fits counts
  const gchar *fate; // NULL: a former name
} Row;

#define LOG "left out: the log goes to stderr, so to the journal or the container's log"
#define HTTP_SERVER "http: one listener for HLS, WebRTC and the web pages"
#define CERTIFICATE "tls: one certificate for all servers"
#define PROXIES "left out: behind a reverse proxy, set http: {tls-in-front: yes}"
#define PORTS "left out: Weir takes ports that are free, of net.ipv4.ip_local_port_range"
#define MULTICAST "left out: Weir sends on groups with the key broadcast of a mount"
#define MOQ "left out: Weir does not speak Media over QUIC"
#define PPROF "left out: GET /metrics has the figures of the process"
#define HOOK "left out: the key hooks runs programs, by their whole path and without a shell"
#define CONNECT "left out: hooks run for readers and publishers, not for connections"
#define CAMERA "left out: Weir reads no camera module itself"

static const Row top_rows[] = {
  { "logLevel", LOG },
  { "logDestinations", LOG },
  { "logStructured", LOG },
  { "logFile", LOG },
  { "sysLogPrefix", LOG },
  { "dumpPackets", "left out: use tcpdump" },
  { "readTimeout", "read-timeout of mounts" },
  { "writeTimeout", "limits: {write-timeout: ...}" },
  { "writeQueueSize", "left out: all readers of a track share one window of packets" },
  { "udpMaxPayloadSize", "left out: packets stay as the source makes them" },
  { "udpReadBufferSize", "left out: Weir asks for what a keyframe needs" },
  { "runOnConnect*", CONNECT },
  { "runOnDisconnect", CONNECT },
  { "authMethod", "users, jwt or external-auth" },
  { "authInternalUsers", "users; a path covers what is below it, too" },
  { "authHTTPAddress", "external-auth: {url: ...}, with method http" },
  { "authHTTPFingerprint", "left out: the server needs a certificate that this machine trusts" },
  { "authHTTPExclude", "external-auth: {exclude: ...}" },
  { "authJWTJWKS", "jwt: {jwks: ...}, with method jwt" },
  { "authJWTJWKSFingerprint", "left out: the server needs a certificate that this machine trusts" },
  { "authJWTClaimKey", "jwt: {permissions-claim: ...}" },
  { "authJWTExclude", "left out: the API and the metrics serve this machine without a token" },
  { "authJWTIssuer", "jwt: {issuer: ...}" },
  { "authJWTAudience", "jwt: {audience: ...}" },
  { "authJWTInHTTPQuery", "left out: a token may always be in the query" },
  { "api", "api: the control API, with requests of its own" },
  { "apiAddress", "api, unless metricsAddress is in use: one address for both" },
  { "apiEncryption", "left out: tls: {api: yes} serves the API over HTTPS" },
  { "apiServer*", CERTIFICATE },
  { "apiAllowOrigin*", "left out: web pages of other servers cannot use the API" },
  { "apiTrustedProxies", PROXIES },
  { "metrics", "api: the metrics are at /metrics, with names of their own" },
  { "metricsAddress", "api: one address for the API and the metrics" },
  { "metricsEncryption", "left out: tls: {api: yes} serves the metrics over HTTPS" },
  { "metricsServer*", CERTIFICATE },
  { "metricsAllowOrigin*", "left out: web pages of other servers cannot read the metrics" },
  { "metricsTrustedProxies", PROXIES },
  { "pprof*", PPROF },
  { "playback*", "left out: the API has recordings, GET /v1/recordings" },
  { "rtsp", "listen" },
  { "rtspTransports", "left out: readers may use UDP and TCP" },
  { "rtspEncryption", "listen and tls" },
  { "rtspAddress", "listen, on IPv4; [::]:PORT is all addresses" },
  { "rtspsAddress", "tls: {listen: ...}" },
  { "rtpAddress", PORTS },
  { "rtcpAddress", PORTS },
  { "srtpAddress", PORTS },
  { "srtcpAddress", PORTS },
  { "multicast*", MULTICAST },
  { "rtspServerKey", CERTIFICATE },
  { "rtspServerCert", CERTIFICATE },
  { "rtspAuthMethods", "basic-without-tls; digest always works with a password" },
  { "rtspTrustedProxies", PROXIES },
  { "rtmp", "rtmp: publishers only" },
  { "rtmpEncryption", "rtmp: {listen: ..., tls-listen: ...}" },
  { "rtmpAddress", "rtmp: {listen: ...}" },
  { "rtmpsAddress", "rtmp: {tls-listen: ...}" },
  { "rtmpServer*", CERTIFICATE },
  { "rtmpTrustedProxies", PROXIES },
  { "hls", HTTP_SERVER "; a playlist is /hls/PATH/index.m3u8" },
  { "hlsAddress", HTTP_SERVER },
  { "hlsEncryption", "http: {tls-listen: ...}" },
  { "hlsServer*", CERTIFICATE },
  { "hlsAllowOrigins", "http: {allow-origins: ...}" },
  { "hlsTrustedProxies", PROXIES },
  { "hlsAlwaysRemux", "left out: segments are made while a stream has HLS readers" },
  { "hlsVariant", "left out: low latency at index.m3u8, whole segments at plain.m3u8" },
  { "hlsSegmentCount", "hls: {segments: ...}, from 3 to 100" },
  { "hlsSegmentDuration", "hls: {segment: ...}" },
  { "hlsPartDuration", "hls: {part: ...}" },
  { "hlsSegmentMaxSize", "left out: memory has the bound limits: {memory: ...}" },
  { "hlsDirectory", "left out: segments are in memory" },
  { "hlsMuxerCloseAfter", "left out: the key linger of a mount" },
  { "hlsCDNSecret", "left out: give the CDN a user" },
  { "webrtc", "webrtc; players use /PATH/whep, publishers /PATH/whip" },
  { "webrtcAddress", HTTP_SERVER "; this one counts without HLS" },
  { "webrtcEncryption", "http: {tls-listen: ...}, without HLS" },
  { "webrtcServer*", CERTIFICATE },
  { "webrtcAllowOrigins", "http: {allow-origins: ...}, without HLS" },
  { "webrtcTrustedProxies", PROXIES },
  { "webrtcLocalUDPAddress", "webrtc: {listen: ...}" },
  { "webrtcLocalTCPAddress", "webrtc: {tcp: yes}, or no without an address" },
  { "webrtcIPsFromInterfaces*", "left out: all addresses of the machine are told" },
  { "webrtcAdditionalHosts", "webrtc: {additional-hosts: ...}" },
  { "webrtcICEServers2", "webrtc: {stun-servers: ...}" },
  { "webrtc*Timeout", "left out: Weir has fixed times" },
  { "srt", "srt" },
  { "srtAddress", "srt: {listen: ...}" },
  { "moq*", MOQ },
  { "pathDefaults", "defaults, and the keys of mounts" },
  { "paths", "mounts" },
  { "readBufferCount", NULL },
  { "externalAuthenticationURL", NULL },
  { "rtspDisable", NULL },
  { "protocols", NULL },
  { "encryption", NULL },
  { "serverKey", NULL },
  { "serverCert", NULL },
  { "authMethods", NULL },
  { "rtspUDPReadBufferSize", NULL },
  { "rtmpDisable", NULL },
  { "hlsDisable", NULL },
  { "hlsAllowOrigin", NULL },
  { "webrtcDisable", NULL },
  { "webrtcAllowOrigin", NULL },
  { "webrtcICE*", NULL },
  { "record*", NULL },
  { NULL, NULL },
};

static const Row path_rows[] = {
  { "source", "upstream" },
  { "sourceFingerprint", "tls-fingerprint" },
  { "sourceOnDemand", "on-demand" },
  { "sourceOnDemandStartTimeout", "start-timeout" },
  { "sourceOnDemandCloseAfter", "linger" },
  { "maxReaders", "max-readers" },
  { "srtReadPassphrase", "srt: {passphrase: ...}, one for all paths" },
  { "srtPublishPassphrase", "srt: {passphrase: ...}, one for all paths" },
  { "useAbsoluteTimestamp", "left out: sender reports of the camera are passed on" },
  { "alwaysAvailable", "slate, with alwaysAvailableFile" },
  { "alwaysAvailableFile", "slate" },
  { "alwaysAvailableTracks", "left out: Weir shows a clip, the key slate" },
  { "forward", "push: SRT and RTMP" },
  { "record", "record" },
  { "recordPath",
      "record: {folder: ...}; files are below the mount's path, the folder must exist" },
  { "recordFormat", "left out: recordings are fragmented MP4" },
  { "recordPartDuration", "record: {part: ...}" },
  { "recordMaxPartSize", "left out: a part has its duration" },
  { "recordSegmentDuration", "record: {segment: ...}" },
  { "recordDeleteAfter", "record: {keep: ...}" },
  { "overridePublisher", "takeover" },
  { "rtspDemuxMpegts", "left out: MPEG-TS in RTSP is passed on" },
  { "rtspTransport", "transport" },
  { "rtspAnyPort", "left out: Weir takes media from the address that the camera names" },
  { "rtspRange*", "left out: Weir plays from where the server begins" },
  { "rtspScale", "left out: Weir plays at the usual speed" },
  { "rtspUDPSourcePortRange", PORTS },
  { "rtpSDP", "left out: write it to a file, and upstream: sdp:///DIR/FILE.sdp" },
  { "moq*", MOQ },
  { "whep*", "left out: Weir reads no WHEP server" },
  { "sourceRedirect", "left out: Weir sends no readers elsewhere" },
  { "rpiCamera*", CAMERA },
  { "runOnReady*", NULL },
  { "runOnNotReady", NULL },
  { "runOnDemand*", "left out: the key pipeline transcodes, launch: runs a pipeline on demand" },
  { "runOnInit*", "left out: start it as a service of the system" },
  { "runOnOnline*", HOOK " (on-up)" },
  { "runOnAvailable*", HOOK " (on-up)" },
  { "runOnOffline", HOOK " (on-down)" },
  { "runOnUnavailable", HOOK " (on-down)" },
  { "runOnRead*", HOOK " (on-reader)" },
  { "runOnUnread", HOOK " (on-reader-left)" },
  { "runOnRecordSegmentCreate", HOOK " (on-record)" },
  { "runOnRecordSegmentComplete", HOOK " (on-record-done)" },
  { "runOn*", HOOK },
  { "fallback", NULL },
  { "playback", NULL },
  { "publishUser", NULL },
  { "publishPass", NULL },
  { "publishIPs", NULL },
  { "readUser", NULL },
  { "readPass", NULL },
  { "readIPs", NULL },
  { "disablePublisherOverride", NULL },
  { "sourceProtocol", NULL },
  { "sourceAnyPortEnable", NULL },
  { "rtspUDPReadBufferSize", NULL },
  { "mpegtsUDPReadBufferSize", NULL },
  { "rtpUDPReadBufferSize", NULL },
  { NULL, NULL },
};

static gboolean
fits (const gchar *pattern, const gchar *key)
{
  const gchar *star = strchr (pattern, '*');

  if (!star)
    return g_str_equal (pattern, key);
  return !strncmp (pattern, key, (gsize) (star - pattern)) && g_str_has_suffix (key, star + 1);
}

// Returns the fate of a key. Sets `*former` if it is a former name.
static const gchar *
get_fate (const Row *rows, const gchar *key, gboolean *former)
{
  for (; rows->key && !fits (rows->key, key); rows++)
    ;
  *former = rows->key && !rows->fate;
  return rows->key ? rows->fate : "left out: Weir does not know this key";
}

static const gchar *
get_key (const MtxFile *self, const YamlNode *key)
{
  const gchar *text = yaml_text (self->reader, key);

  return text ? text : "";
}

// Returns a word before the new name of a key.
static const gchar *
get_now (const gchar *fate)
{
  return g_str_has_prefix (fate, "left out") ? "" : "now ";
}

// Reports whether a mapping has more keys than any file of MediaMTX: each is compared with others.
static gboolean
has_too_many (MtxFile *self, const YamlNode *mapping)
{
  YamlNode *key, *value;

  if (!yaml_pair (self->reader, mapping, KEYS_MAX, &key, &value))
    return FALSE;
  mtx_fail (self, key, NULL, "more than 1000 keys");
  return TRUE;
}

static void
fail_former (MtxFile *self, const YamlNode *key)
{
  mtx_fail (self, key, get_key (self, key),
      "a former name; write the present one, as the documentation of MediaMTX says, and import "
      "again");
}

typedef struct {
  const YamlNode *first;
  const gchar *fate;
  guint n;
} PathKey;

// Counts the keys of a path, or of the defaults.
static void
count_keys (MtxFile *self, const YamlNode *path, GHashTable *counts, GPtrArray *order)
{
  YamlNode *key, *value;

  if (!path || !yaml_is_mapping (path) || has_too_many (self, path))
    return;
  for (guint i = 0; yaml_pair (self->reader, path, i, &key, &value); i++) {
    const gchar *name = get_key (self, key);
    PathKey *found = g_hash_table_lookup (counts, name);
    gboolean former;

    if (!found) {
      found = g_new0 (PathKey, 1);
      *found = (PathKey) { key, get_fate (path_rows, name, &former), 0 };
      g_hash_table_insert (counts, (gpointer) name, found);
      g_ptr_array_add (order, found);
      if (former)
        fail_former (self, key);
    }
    found->n++;
  }
}

// Notes the keys of all paths together.
static void
note_path_keys (MtxFile *self)
{
  const YamlNode *root = yaml_root (self->reader);
  const YamlNode *paths = yaml_get (self->reader, root, "paths");
  g_autoptr (GHashTable) counts = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, g_free);
  g_autoptr (GPtrArray) order = g_ptr_array_new ();
  YamlNode *key, *value;

  count_keys (self, yaml_get (self->reader, root, "pathDefaults"), counts, order);
  for (guint i = 0;
      paths && yaml_is_mapping (paths) && yaml_pair (self->reader, paths, i, &key, &value); i++)
    count_keys (self, value, counts, order);
  for (guint i = 0; i < order->len; i++) {
    const PathKey *it = g_ptr_array_index (order, i);
    g_autofree gchar *times = it->n > 1 ? g_strdup_printf (" (%u times)", it->n) : g_strdup ("");

    if (it->fate)
      mtx_note (self, it->first, get_key (self, it->first), "%s%s%s", get_now (it->fate), it->fate,
          times);
  }
}

gboolean
mtx_keys_note (MtxFile *self)
{
  const YamlNode *root = yaml_root (self->reader);
  YamlNode *key, *value;

  if (has_too_many (self, root))
    return FALSE;
  for (guint i = 0; yaml_pair (self->reader, root, i, &key, &value); i++) {
    const gchar *name = get_key (self, key);
    gboolean former;
    const gchar *fate = get_fate (top_rows, name, &former);

    if (yaml_get (self->reader, root, name) != value)
      mtx_fail (self, key, name, "this key appears twice");
    else if (former)
      fail_former (self, key);
    else
      mtx_note (self, key, name, "%s%s", get_now (fate), fate);
  }
  note_path_keys (self);
  return !*self->error;
}
