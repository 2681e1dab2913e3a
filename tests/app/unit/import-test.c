// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What becomes of a configuration of MediaMTX.

#include "import/mtx_import.h"
#include "import/mtx_pattern.h"
#include "import/weir_text.h"

#include <string.h>

#include "text/yaml_reader.h"

// Returns the result, or the error after "ERROR ". (transfer full)
static gchar *
import (const gchar *text, gsize len, gchar **notes)
{
  GError *error = NULL;
  gchar *result = mtx_import ("m.yml", text, len, "/srv", notes, &error), *wrong;

  if (result)
    return result;
  wrong = g_strconcat ("ERROR ", error->message, NULL);
  g_assert_null (*notes);
  g_error_free (error);
  return wrong;
}

static const struct {
  const gchar *text;
  const gchar *has[4];   // in the result
  const gchar *notes[3]; // in the notes
  const gchar *lacks;    // in the result
} cases[] = {
  // What MediaMTX does without a key.
  { "paths: {cam: }\n",
      { "listen: \":8554\"\n", "rtmp: {listen: \":1935\"}\nsrt: {listen: \":8890\"}\n",
          "{name: any, permissions: [{action: publish}, {action: read}, {action: playback}]}",
          "  /cam: {upstream: publish, takeover: yes}\n" } },
  { "rtmp: no\nsrt: off\nhls: false\nwebrtc: No\n", { "api: off\n", "mounts: {}\n" }, { NULL },
      "http:" },
  // Listeners.
  { "rtspAddress: localhost:9000\nhlsAddress: 192.0.2.1:80\n",
      { "listen: 127.0.0.1:9000\n", "http: {listen: 192.0.2.1:80, allow-origins: [\"*\"]}" } },
  { "hls: no\nwebrtcAddress: :90\nwebrtcLocalTCPAddress: :8189\nwebrtcAllowOrigins: []\n",
      { "http: {listen: \":90\"}\n", "webrtc: {listen: \":8189\"}\n" } },
  { "rtspEncryption: strict\nrtspServerCert: a.crt\nrtspServerKey: /k\nrtmpEncryption: "
    "\"optional\"\n",
      { "listen: off\ntls: {listen: \":8322\", certificate: /srv/server.crt, key: "
        "/srv/server.key}\n",
          "rtmp: {listen: \":1935\", tls-listen: \":1936\"}\n" },
      { "m.yml:2:17: rtspServerCert: left out: Weir has one certificate for all servers" },
      "basic-without-tls" },
  { "metrics: yes\napi: yes\napiAddress: :1\n", { "api: 127.0.0.1:9998\n" },
      { "metricsAddress: this machine only" } },
  { "api: yes\nauthInternalUsers: [{user: a, pass: b, permissions: [{action: api}]}]\n",
      { "api: \":9997\"\n", "permissions: [{action: api}]" } },
  { "writeTimeout: 1m30s\nhlsSegmentDuration: 500ms\nhlsSegmentCount: 2\n",
      { "limits: {write-timeout: 90s}\n", "hls: {segment: 500ms, segments: 3}\n" } },
  // Sources.
  { "paths: {a: {source: 'rtsp://u:p@h/x', sourceOnDemand: yes, sourceOnDemandCloseAfter: 1m}}\n",
      { "/a: {upstream: rtsp://u:p@h/x, linger: 1m}\n" }, { "source: now upstream" } },
  { "paths: {a: {source: 'https://u:p%40@h/x.m3u8'}}\n",
      { "/a: {user: u, password: p@, upstream: https://h/x.m3u8, on-demand: no}\n" } },
  { "paths: {a: {source: 'srt://h:1?streamid=x&mode=caller&passphrase=secret1234'}}\n",
      { "/a: {password: secret1234, upstream: \"srt://h:1?streamid=x\", on-demand: no}\n" } },
  { "paths: {a: {source: 'udp+mpegts://239.1.1.1:5?interface=eth0&source=1.2.3.4'}}\n",
      { "/a: {upstream: \"udp://239.1.1.1:5?iface=eth0\", on-demand: no}\n" } },
  { "paths: {a: {source: rpiCamera}, b: {source: gopher://x}}\n", { "mounts: {}\n" },
      { "m.yml:1:9: a: left out: Weir reads no camera module",
          "m.yml:1:33: b: left out: Weir knows no such source" } },
  // Paths.
  { "paths: {'~^live/(.+)$': {source: 'rtsp://h/$G1', sourceOnDemand: yes}, all_others: }\n",
      { "\"/live/{g1*}\": {upstream: \"rtsp://h/{g1}\"", "\"/{path*}\": {upstream: publish" },
      { "now /live/{g1*}; see that it means the same paths" } },
  { "paths: {'~^cam[0-9]': , 'a b': , a: , /a: }\n", { "  /a: {" },
      { "~^cam[0-9]: left out: a path of Weir has whole segments", "a b: left out:" } },
  // What most mounts have is a default, and others say that they have it not.
  { "pathDefaults: {rtspTransport: tcp, source: 'rtsp://h/x', maxReaders: 3}\n"
    "paths: {a: , b: , c: {source: publisher}}\n",
      { "defaults: {max-readers: 3, on-demand: no, transport: tcp}\n",
          "  /a: {upstream: rtsp://h/x}\n", "  /c: {upstream: publish, takeover: yes, ",
          "transport: null" } },
  // Recordings.
  { "paths: {a: {record: yes, recordPath: './r/%path/%s%f', recordDeleteAfter: 0s}}\n",
      { "record: {folder: /srv/r, keep: 0s}" } },
  { "paths: {a: {record: yes, recordPath: '/r/%Y/%path/%s%f', recordSegmentDuration: 1h30m, "
    "recordPartDuration: 100ms, recordDeleteAfter: 1d12h}}\n",
      { "record: {folder: /r, segment: 90m, part: 100ms, keep: 24h}" } },
  // Users.
  { "authInternalUsers: [{user: a, pass: b, ips: [192.0.2.0/24], permissions: [{action: read, "
    "path: '~^x/.*$'}, {action: pprof}, {action: publish, path: cam}]}]\n",
      { "users:\n  - {name: a, digest: [SHA-256:", "networks: [192.0.2.0/24]",
          "[{action: read, path: \"/x/*\"}, {action: publish, path: /cam}]}\n" },
      { "action pprof: left out" }, "pass" },
  { "authInternalUsers: [{user: a, pass: 'sha256:AAEC/w==', permissions: [{action: read}]}]\n",
      { "hash: sha256:000102ff," } },
  { "authInternalUsers: [{user: a, pass: 'argon2:$argon2id$v=19$m=4096,t=3,p=1$YQ$Yg', "
    "permissions: [{action: read}]}]\n",
      { "hash: \"$argon2id$v=19$m=4096,t=3,p=1$YQ$Yg\"" } },
  { "authInternalUsers: [{user: 'sha256:AA==', pass: x, permissions: [{action: read}]}, {user: b, "
    "permissions: [{action: read}]}, {user: any, permissions: [{action: api}]}]\n",
      { "users: []\n" },
      { "user: left out: Weir needs the name itself",
          "b: left out: a user of Weir other than any" } },
  { "authInternalUsers: [{user: a, pass: x, permissions: [{action: read, path: '~^x[0-9]+$'}]}]\n",
      { "users: []\n" }, { "path ~^x[0-9]+$: left out: write it as a pattern" } },
  { "authMethod: jwt\nauthJWTJWKS: https://h/k\nauthJWTAudience: me\n",
      { "jwt: {jwks: https://h/k, audience: me, permissions-claim: mediamtx_permissions}\n" },
      { NULL }, "users" },
  { "authMethod: http\nauthHTTPAddress: http://h/a\nauthHTTPExclude: [{action: metrics}, {action: "
    "pprof}]\n",
      { "external-auth: {url: http://h/a, exclude: [metrics]}\n" } },
  // Secrets of SRT: one for all.
  { "pathDefaults: {srtPublishPassphrase: secret1234}\npaths: {a: , b: {srtReadPassphrase: "
    "other12345}}\n",
      { "srt: {listen: \":8890\", passphrase: secret1234}\n" },
      { "b: srtReadPassphrase: left out" } },
  // A value cannot leave its place, or name a variable of the environment.
  { "paths: {a: {source: \"rtsp://h/\\\"}, /b: {${HOME}\"}}\n",
      { "upstream: \"rtsp://h/\\\"}, /b: {$${HOME}\"" } },
  { "colour: blue\npaths: {a: {shape: round}}\n", { "/a:" },
      { "colour: left out: Weir does not know this key", "shape: left out: Weir does not know" } },
  { "runOnConnect: x\npaths: {a: {runOnRead: x, runOnReadRestart: yes, runOnDemand: y}}\n",
      { "/a:" },
      { "runOnConnect: left out: hooks run for readers", "runOnRead: left out: the key hooks",
          "runOnDemand: left out: the key pipeline" } },
  // Anchors and merge keys are those of YAML.
  { "x: &x {source: 'rtsp://h/x'}\npaths: {a: *x, b: {<<: *x, maxReaders: 2}}\n",
      { "/b: {upstream: rtsp://h/x, max-readers: 2}\n", "defaults: {on-demand: no}\n" } },
  // Mistakes.
  { "", { "ERROR m.yml: the file is empty" } },
  { "- a\n", { "ERROR m.yml:1:1: expected the keys of MediaMTX; this is a list" } },
  { "rtsp: perhaps\nreadTimeout: 10\nhlsSegmentCount: many\npaths: [a]\npathDefaults: 1\n",
      { "m.yml:1:7: rtsp: expected yes or no", "m.yml:2:14: readTimeout: expected a time such as",
          "m.yml:3:18: hlsSegmentCount: expected a number",
          "m.yml:4:8: paths: expected a mapping of paths" } },
  { "paths: {a: {source: [x]}, b: c}\n",
      { "m.yml:1:21: source: expected a text", "m.yml:1:30: b: expected the keys of a path" } },
  { "paths: {a: {readUser: x}}\n", { "ERROR m.yml:1:13: readUser: a former name" } },
  { "rtsp: yes\nrtsp: no\n", { "rtsp: this key appears twice" } },
  { "paths:\n\ta: x\n", { "ERROR m.yml:2:1: a tab indents this line" } },
  { "a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n", { "nested too deeply" } },
  { "authMethod: magic\nauthInternalUsers: x\n", { "expected internal, http or jwt" } },
  { "readTimeout: 99999999999999h\n", { "readTimeout: expected a time" } },
};

static void
files (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *notes = NULL;
    g_autofree gchar *result = import (cases[i].text, strlen (cases[i].text), &notes);

    for (guint k = 0; k < G_N_ELEMENTS (cases[i].has) && cases[i].has[k]; k++) {
      if (!strstr (result, cases[i].has[k]))
        g_error ("%s lacks %s\n%s", cases[i].text, cases[i].has[k], result);
    }
    for (guint k = 0; k < G_N_ELEMENTS (cases[i].notes) && cases[i].notes[k]; k++) {
      if (!notes || !strstr (notes, cases[i].notes[k]))
        g_error ("%s: no note %s\n%s", cases[i].text, cases[i].notes[k], notes);
    }
    if (cases[i].lacks && strstr (result, cases[i].lacks))
      g_error ("%s has %s\n%s", cases[i].text, cases[i].lacks, result);
  }
}

static const struct {
  const gchar *expression, *path, *permission;
} expressions[] = {
  { "^.*$", "/{part1*}", "/*" },
  { ".+", "/{part1*}", NULL },
  { "^(.*)$", "/{g1*}", "/*" },
  { "^live/([a-z0-9_-]+)$", "/live/{g1}", NULL },
  { "^([^/]+)/(.+)$", "/{g1}/{g2*}", NULL },
  { "^a/\\w+/b$", "/a/{part2}/b", NULL },
  { "^cam\\.1$", "/cam.1", "/cam.1" },
  { "^cam", NULL, "/cam*" },
  { "cam$", NULL, "*cam" },
  { "^cam.1$", NULL, NULL },
  { "^(a|b)$", NULL, NULL },
  { "^a/$", NULL, "/a/" },
  { "^x\\", NULL, NULL },
  { "", NULL, "*" },
};

static void
regular_expressions (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (expressions); i++) {
    g_autofree gchar *path = mtx_pattern_dup_path (expressions[i].expression);
    g_autofree gchar *permission = mtx_pattern_dup_permission (expressions[i].expression);

    g_test_message ("%s", expressions[i].expression);
    g_assert_cmpstr (path, ==, expressions[i].path);
    g_assert_cmpstr (permission, ==, expressions[i].permission);
  }
}

// Each text comes back as it was, whatever is in it.
static void
quotes (void)
{
  static const gchar *const texts[] = { "plain", "yes", "Off", "~", "", "-1", "12", "a: b", "a #b",
    "[x]", "{x}", "'", "\"", "\\", "line\nbreak", "\t", "*x", "&x", "!x", "%x", "@x", "a,b",
    "x:", "\xc3\xa4", "/a:b", "null" };

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    GError *error = NULL;
    GString *yaml = g_string_new ("{k: ");
    YamlReader *reader;
    YamlNode *value;

    weir_text_append (yaml, texts[i]);
    g_string_append (yaml, ", l: 1}");
    reader = yaml_reader_new ("x", yaml->str, yaml->len, &error);
    g_assert_no_error (error);
    value = yaml_get (reader, yaml_root (reader), "k");
    g_assert_false (yaml_is_null (value));
    g_assert_cmpstr ((const gchar *) value->data.scalar.value, ==, texts[i]);
    yaml_reader_free (reader);
    g_string_free (yaml, TRUE);
  }
}

// Files of any size and shape end soon.
static void
large_files (void)
{
  const struct {
    const gchar *begin, *item;
    guint n;
    const gchar *wrong;
  } large[] = {
    { "", "aaaaaaaaaaaaaaaa: b\n", 600000, "ERROR m.yml: larger than 4 MiB" },
    { "", "a%07u: b\n", 200000, "more than 1000 keys" },
    { "paths:\n", " a%07u: {}\n", 200000, "paths: more than 10000 paths" },
    { "authInternalUsers:\n", " - {user: a%06u}\n", 200000, "more than 1000 users" },
    { "logDestinations:\n", " - a%07u\n", 200000, "mounts: {}" },
    { "paths:\n a:\n", "  a%07u: x\n", 200000, "more than 1000 keys" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (large); i++) {
    GString *text = g_string_new (large[i].begin);
    g_autofree gchar *notes = NULL, *result = NULL;

    for (guint k = 0; k < large[i].n; k++) {
      gchar number[16];
      const gchar *at = strstr (large[i].item, "%0");

      if (!at) {
        g_string_append (text, large[i].item);
        continue;
      }
      g_snprintf (number, sizeof number, "%07u", k);
      g_string_append_printf (
          text, "%.*s%s%s", (int) (at - large[i].item), large[i].item, number, at + 4);
    }
    result = import (text->str, text->len, &notes);
    g_assert_nonnull (strstr (result, large[i].wrong));
    g_string_free (text, TRUE);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/import/files", files);
  g_test_add_func ("/import/regular-expressions", regular_expressions);
  g_test_add_func ("/import/quotes", quotes);
  g_test_add_func ("/import/large-files", large_files);
  return g_test_run ();
}
