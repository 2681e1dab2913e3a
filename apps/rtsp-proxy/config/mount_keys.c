// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_keys.h"

#include "config/mount_broadcast.h"
#include "config/mount_cache.h"
#include "config/mount_insert.h"
#include "config/mount_pattern.h"
#include "config/mount_path.h"
#include "config/mount_pipeline.h"
#include "config/mount_push.h"
#include "config/mount_record.h"
#include "config/mount_renditions.h"
#include "config/mount_swarm.h"
#include "config/mount_tls.h"
#include "config/mount_upstreams.h"
#include "stages/stage_file.h"
#include "stores/sigv4.h"
#include "text/config_error.h"
#include "text/layer_choice.h"

static const gchar *const transports[] = { "auto", "udp", "tcp", NULL }; // by PullTransport
static const gchar *const clients[] = { "rtspsrc", "light", NULL };      // by PullClient
static const gchar *const fan_outs[] = { "engine", "elements", NULL };   // by MountFanOut
static const gchar *const standbys[] = { "cold", "warm", NULL };         // by MountStandby
static const gchar *const joins[] = { "keyframe", "live", NULL };
const gchar *const mount_adapt_names[] = { "off", "fixed", "bandwidth", "aimd", "gcc", NULL };
static const gchar *const catch_ups[] = { "live", "delay", NULL };
static const gchar *const drop_policies[] = { "slowest", "head", "tail", NULL };

const gchar *const mount_effect_words[] = { NULL, "unnoticed", "layers", "serving", "pipeline",
  "upstream", "closes readers" };

// ---- slate ----

static gchar *
check_slate (SchemaText *it)
{
  if (g_file_test (it->text, G_FILE_TEST_IS_REGULAR))
    return NULL;
  it->code = CONFIG_ERROR_ABSENT;
  return g_strdup_printf ("no such file: %s", it->text);
}

// ---- layers ----

static void
reset_layers (const SchemaKey *key, gpointer object)
{
  ((MountConfig *) object)->layers = WEIR_LAYER_SET_ALL;
}

static gboolean
read_layers (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  const gchar *text = yaml_text (reader, node);

  if (!text || !layer_choice_parse (text, &mount->layers))
    return schema_fail (reader, node, key, error,
        "expected SPATIAL.QUALITY.TEMPORAL, each a number or * for all, such as 1.0.*");
  return TRUE;
}

static gboolean
equal_layers (const SchemaKey *key, gconstpointer a, gconstpointer b)
{
  return weir_layer_set_equal (
      ((const MountConfig *) a)->layers, ((const MountConfig *) b)->layers);
}

static void
write_layers (const SchemaKey *key, gconstpointer object, JsonBuilder *builder)
{
  g_autofree gchar *text = layer_choice_dup_text (((const MountConfig *) object)->layers);

  json_builder_set_member_name (builder, "layers");
  json_builder_add_string_value (builder, text);
}

static void
copy_layers (const SchemaKey *key, gpointer to, gconstpointer from)
{
  ((MountConfig *) to)->layers = ((const MountConfig *) from)->layers;
}

static const SchemaValue layers_value = { read_layers, reset_layers, equal_layers, write_layers,
  copy_layers, NULL };

// ---- keys-file ----

static void
clear_keys (const SchemaKey *key, gpointer object)
{
  g_clear_pointer (&((MountConfig *) object)->keys, s3_keys_free);
}

static gboolean
read_keys (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  const gchar *path = yaml_text (reader, node);
  GError *why = NULL;
  gchar *wrong;

  clear_keys (key, mount);
  if (!path)
    return schema_fail (reader, node, key, error, "expected a single value");
  mount->keys = s3_keys_read (path, &why);
  if (mount->keys)
    return TRUE;
  wrong = g_strdup (why->message);
  g_error_free (why);
  return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_ABSENT, error, wrong);
}

static gboolean
equal_keys (const SchemaKey *key, gconstpointer a, gconstpointer b)
{
  const S3Keys *x = ((const MountConfig *) a)->keys, *y = ((const MountConfig *) b)->keys;

  if (!x || !y)
    return x == y;
  return g_str_equal (x->access_key, y->access_key) && g_str_equal (x->secret_key, y->secret_key)
         && g_str_equal (x->region, y->region);
}

static void
copy_keys (const SchemaKey *key, gpointer to, gconstpointer from)
{
  ((MountConfig *) to)->keys = s3_keys_copy (((const MountConfig *) from)->keys);
}

// They are secret, so they are not written.
static const SchemaValue keys_value = { read_keys, clear_keys, equal_keys, NULL, copy_keys,
  clear_keys };

// ---- template ----

// Its keys have become those of the mapping, see config/mount_templates.h.
static gboolean
read_template (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  return TRUE;
}

static const SchemaValue template_value = { .read = read_template };

// ---- the table ----

#define AT(field) G_STRUCT_OFFSET (MountConfig, field)

static const SchemaKey mount_keys[] = {
  { "upstream", SCHEMA_OTHER, .form = "URI", .value = &mount_upstreams_value,
      .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "the URI of the upstream (`rtsp-proxy --help` lists the kinds); required, unless "
              "`upstreams` is set" },
  { "upstreams", SCHEMA_OTHER, .form = "[URI, ...]", .value = &mount_upstreams_list_value,
      .effect = MOUNT_EFFECT_UPSTREAM,
      .help =
          "up to 8 upstreams in order of preference, in place of `upstream`; or two HTTP servers "
          "with the same files, of which the less loaded one is read" },
  { "inputs", SCHEMA_LIST, AT (inputs), .max = STAGE_INPUTS_MAX, .form = "[PATH, ...]",
      .check = mount_path_check, .expected = "expected a list of paths of mounts: [/cam1, /cam2]",
      .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "up to 4 mounts of this proxy, in place of `upstream`: a stage such as "
              "`picture-in-picture` makes one stream of them, and what no stage works on comes "
              "from the first" },
  { "user", SCHEMA_TEXT, AT (pull.user), .form = "NAME", .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "user name for the upstream (basic or digest authentication)" },
  { "password", SCHEMA_SECRET, AT (pull.password), .form = "TEXT", .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "password for the upstream; set at most one of the three password keys" },
  { "password-file", SCHEMA_OTHER, AT (pull.password), .form = "FILE",
      .value = &schema_secret_elsewhere, .effect = MOUNT_EFFECT_UPSTREAM, .file_only = TRUE,
      .help = "a file that holds the password" },
  { "password-env", SCHEMA_OTHER, AT (pull.password), .form = "NAME",
      .value = &schema_secret_elsewhere, .effect = MOUNT_EFFECT_UPSTREAM, .file_only = TRUE,
      .help = "an environment variable that holds the password" },
  { "keys-file", SCHEMA_OTHER, .form = "FILE", .value = &keys_value,
      .effect = MOUNT_EFFECT_UPSTREAM, .file_only = TRUE,
      .help = "for an upstream that is a bucket of an S3-compatible server: a credentials file of "
              "the AWS command line, whose section `[default]` has `aws_access_key_id`, "
              "`aws_secret_access_key` and perhaps `region` (default `us-east-1`)" },
  { "transport", SCHEMA_INDEX, AT (pull.transport), "auto", .words = transports,
      .effect = MOUNT_EFFECT_UPSTREAM,
      .help =
          "how an RTSP upstream sends media; `auto`: over UDP, or over TCP if UDP brings nothing" },
  { "client", SCHEMA_INDEX, AT (pull.client), "light", .words = clients,
      .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "what reads an RTSP upstream; `light`: a client on a few threads that all upstreams "
              "share; `rtspsrc`: a GStreamer pipeline for each upstream, which tolerates fewer "
              "errors of cameras than `light`" },
  { "tls-verify", SCHEMA_FLAG, AT (pull.tls_verify), "yes", .effect = MOUNT_EFFECT_UPSTREAM,
      .help =
          "whether an `rtsps://` or `https://` upstream must have a certificate for its host name "
          "from a known "
          "authority; `no`: any certificate will do, so that anyone in between can read along" },
  { "tls-ca", SCHEMA_PATH, AT (pull.tls_ca), .form = "FILE", .check = mount_tls_check_ca,
      .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "the certificates of the authorities to trust, in PEM form, in place of those of the "
              "system" },
  { "tls-fingerprint", SCHEMA_TEXT, AT (pull.tls_fingerprint), .form = "SHA-256",
      .check = mount_tls_check_fingerprint, .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "the only certificate that an `rtsps://` or `https://` upstream may have, for "
              "cameras that sign "
              "their own: its SHA-256 as 64 hexadecimal digits, with or without colons; needs "
              "`client: light`" },
  { "standby", SCHEMA_INDEX, AT (standby), "cold", .words = standbys,
      .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "whether the next of several `upstreams` is connected before it is needed; `cold`: "
              "no; `warm`: yes, with its packets since its last keyframe in memory, so that it "
              "replaces one that fails at once" },
  { "slate", SCHEMA_PATH, AT (slate), .form = "FILE", .check = check_slate,
      .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "a clip that readers see while no upstream is available" },
  { "insert", SCHEMA_OBJECT, .form = "{folder: FOLDER, on-cue: FILE}",
      .object = &mount_insert_object, .effect = MOUNT_EFFECT_UPSTREAM, .file_only = TRUE,
      .help = "clips that the API, or cues of SCTE 35, insert into the stream" },
  { "source-stages", SCHEMA_OTHER, AT (source_steps), "[]", .form = "[STAGE, ...]",
      .value = &mount_source_stages_value, .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "stages that the media of each upstream pass through before the proxy chooses among "
              "the upstreams; a stage that fails counts as a failure of its upstream" },
  { "pipeline", SCHEMA_OTHER, AT (pipeline), "[pull]", .form = "[STAGE, ...]",
      .value = &mount_pipeline_value, .effect = MOUNT_EFFECT_PIPELINE,
      .help = "the stages that media passes through, with their parameters" },
  { "choices", SCHEMA_OTHER, .form = "{STAGE: [NAME, ...]}", .value = &mount_choices_value,
      .effect = MOUNT_EFFECT_PIPELINE, .help = "the parameters of stages that a URL may set" },
  { "renditions", SCHEMA_LIST, AT (renditions), .max = MOUNT_RENDITIONS_MAX, .form = "[QUERY, ...]",
      .expected = "expected a list of queries: [\"size=640x360&rate=600k\", ...]",
      .effect = MOUNT_EFFECT_NONE,
      .help =
          "up to 7 sets of `choices` and `layers`, as in a URL (`size=640x360&rate=600k`, "
          "`layers=0.0.*`), between which and the mount's own stream HLS players choose; they run "
          "while the mount has HLS readers. A reader that gives feedback on each packet, over "
          "WebRTC "
          "or RTSP, gets the one that its line carries (`adapt: gcc`), and one over WebRTC the "
          "first "
          "that it can play if it cannot play the mount's own stream" },
  { "max-presentations", SCHEMA_NUMBER, AT (max_presentations), "8", 1, 256,
      .effect = MOUNT_EFFECT_NONE,
      .help = "how many presentations chosen by URLs run at once, those that HTTP-TS, SRT and HLS "
              "make for a choice of layers included; a further choice gets 503" },
  { "interval", SCHEMA_DURATION, AT (interval_ms), "0s", .effect = MOUNT_EFFECT_NONE,
      .help =
          "for an upstream that plays a stored title from its beginning in each session: readers "
          "that connect within this time after a session began share the session, and get its "
          "beginning from memory; if the upstream can seek, so can readers, and those who seek to "
          "one "
          "place within this time share a session there; `0s`: readers share no session" },
  { "max-titles", SCHEMA_NUMBER, AT (max_titles), "64", 1, 4096, .effect = MOUNT_EFFECT_NONE,
      .help = "how many files of a folder may be open at once; a further file gets 503" },
  { "max-readers", SCHEMA_NUMBER, AT (max_readers), "0", 0, 1000000, .effect = MOUNT_EFFECT_NONE,
      .help = "how many readers may play at once; a further PLAY gets 453; 0: no limit" },
  { "takeover", SCHEMA_FLAG, AT (takeover), "no", .effect = MOUNT_EFFECT_NONE,
      .help = "for the upstream `publish`; `no`: while one client publishes to the mount, others "
              "get 503; `yes`: the newest publisher replaces the one before" },
  { "switch-timeout", SCHEMA_DURATION, AT (switch_timeout_ms), "10s", 100,
      .effect = MOUNT_EFFECT_NONE,
      .help = "how long a new pipeline may take to deliver media; after that it is dropped" },
  { "on-demand", SCHEMA_FLAG, AT (on_demand), "yes", .effect = MOUNT_EFFECT_NONE,
      .help = "`yes`: the first reader starts the upstream; `no`: the upstream always runs, so the "
              "first reader also sees a picture at once" },
  { "linger", SCHEMA_DURATION, AT (linger_ms), "10s", .effect = MOUNT_EFFECT_NONE,
      .help = "how long the upstream keeps running after the last reader has left" },
  { "start-timeout", SCHEMA_DURATION, AT (start_timeout_ms), "10s", 100,
      .effect = MOUNT_EFFECT_NONE,
      .help = "how long a reader's DESCRIBE may wait for the upstream, and its PLAY for a title" },
  { "connect-timeout", SCHEMA_DURATION, AT (pull.connect_timeout_ms), "5s", 100,
      .effect = MOUNT_EFFECT_UPSTREAM, .help = "how long the upstream may take to answer" },
  { "read-timeout", SCHEMA_DURATION, AT (pull.read_timeout_ms), "10s", 100,
      .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "how long the upstream may be silent before it is reconnected" },
  { "join", SCHEMA_WORD, AT (join), "keyframe", .words = joins, .effect = MOUNT_EFFECT_SERVING,
      .help = "where a reader starts; `keyframe`: at the newest keyframe, so it sees a picture at "
              "once; `live`: at the live edge" },
  { "catch-up", SCHEMA_WORD, AT (catch_up), "live", .words = catch_ups,
      .effect = MOUNT_EFFECT_SERVING,
      .help =
          "timestamps for a reader that starts in the past; `live`: compressed, so that its player "
          "catches up with the live edge; `delay`: unchanged, so that it stays behind" },
  { "spread", SCHEMA_DURATION, AT (spread_ms), "0s", 0, 1000, .effect = MOUNT_EFFECT_SERVING,
      .help = "spreads the sends of a frame to all readers over this time, so that many readers "
              "behind one narrow line get no burst; `0s`: at once" },
  { "max-pacing-rate", SCHEMA_RATE, AT (max_pacing_rate), "0", .form = "RATE",
      .effect = MOUNT_EFFECT_SERVING,
      .help = "the highest rate at which the kernel sends to a reader, with a unit, such as `8M`; "
              "`0`: no limit. For UDP it needs the queueing discipline fq" },
  { "buffer-size", SCHEMA_SIZE, AT (buffer_size), "0", 0, 1 << 30, .effect = MOUNT_EFFECT_SERVING,
      .help = "the send buffer of the mount's UDP sockets; `0`: 1 MiB, or the system's default if "
              "that is larger" },
  { "drop-policy", SCHEMA_WORD, AT (drop_policy), "slowest", .words = drop_policies,
      .effect = MOUNT_EFFECT_SERVING,
      .help =
          "what happens when a reader is so slow that the window of packets is full; `slowest`: "
          "that reader goes on at the next keyframe; `head`: at the oldest packet; `tail`: new "
          "packets are dropped for all readers" },
  { "cache", SCHEMA_OBJECT, .form = "{time: TIME, bytes: SIZE, spill: FOLDER}",
      .object = &mount_cache_object, .effect = MOUNT_EFFECT_SERVING,
      .help =
          "keeps the last `time` of the stream for readers that pause, seek or ask for a delay, or "
          "`bytes` of the blocks of titles that an HTTP server or a block store has; "
          "`bytes` (default `64M`) limits each track; `spill` stores the data in a file in "
          "this folder" },
  { "swarm", SCHEMA_OBJECT, .form = "{upload: RATE, storage: SIZE, ...}",
      .object = &mount_swarm_object, .effect = MOUNT_EFFECT_SERVING, .file_only = TRUE,
      .feature = FEATURE_SWARM,
      .help = "for a folder of torrents: what is asked of peers, and what they get" },
  { "broadcast", SCHEMA_OBJECT, .form = "{groups: ADDRESS/BITS, scheme: NAME, ...}",
      .object = &mount_broadcast_object, .effect = MOUNT_EFFECT_NONE, .feature = FEATURE_BROADCAST,
      .help =
          "sends the titles of a folder or a store on multicast groups, too, or a stream on one "
          "group, for any number of clients that know broadcasts" },
  { "push", SCHEMA_LIST, AT (push), .max = PUSHES_MAX, .form = "[URI, ...]", .check = push_check,
      .show = push_dup_shown, .expected = "expected a list of URIs: [URI, ...]",
      .effect = MOUNT_EFFECT_NONE,
      .help = "up to 8 receivers to which the stream is sent all the time: `udp://ADDR:PORT` (with "
              "`?ttl=` and `iface=` for a group), `srt://HOST:PORT?streamid=...`, "
              "`rtmp://HOST/APP/STREAM` or `rtmps://`" },
  { "record", SCHEMA_OBJECT, .form = "{folder: FOLDER, segment: TIME, ...}",
      .object = &mount_record_object, .effect = MOUNT_EFFECT_NONE, .file_only = TRUE,
      .help = "writes the stream into files all the time" },
  { "priority", SCHEMA_NUMBER, AT (priority), "4", 0, 7, .was = "class",
      .effect = MOUNT_EFFECT_SERVING,
      .help = "priority of the readers under load: 0 is served first, 7 last" },
  { "fan-out", SCHEMA_INDEX, AT (fan_out), "engine", .words = fan_outs,
      .effect = MOUNT_EFFECT_CLOSES,
      .help =
          "what serves RTSP readers; `engine`: a media without a thread; `elements`: a media of "
          "gst-rtsp-server's own, with its `rtpbin`, for comparison: it costs more, and lacks "
          "what [architecture](architecture.md#a-mount-as-elements) says" },
  { "adapt", SCHEMA_INDEX, AT (adapt), "gcc", .words = mount_adapt_names,
      .effect = MOUNT_EFFECT_LAYERS,
      .help =
          "how much of a stream a reader gets; `gcc`: what its line carries by the feedback on "
          "each packet, or over TCP by what waits in its socket, or else as with `aimd`; `aimd`, "
          "`bandwidth`: as many layers as its reports allow; `fixed`: the layers that its URL asks "
          "for; `off`: all" },
  { "hosts", SCHEMA_LIST, AT (hosts), .max = 1000, .form = "[HOST, ...]",
      .check = mount_pattern_check_host, .effect = MOUNT_EFFECT_UPSTREAM, .file_only = TRUE,
      .unshown = TRUE,
      .help = "of a path with variables, one of which is in the host of the upstream: the hosts "
              "that it may lead to; other paths are not served" },
  { "max-instances", SCHEMA_NUMBER, AT (max_instances), "100", 1, 100000,
      .effect = MOUNT_EFFECT_NONE, .file_only = TRUE, .unshown = TRUE,
      .help = "of a path with variables: how many mounts it may make at once; a further one gets "
              "503" },
  { "template", SCHEMA_OTHER, .form = "NAME", .value = &template_value, .effect = MOUNT_EFFECT_NONE,
      .file_only = TRUE,
      .help = "the one of the file's `templates` whose keys the mount has, too" },
  { "layers", SCHEMA_OTHER, .preset = "*.*.*", .form = "S.Q.T", .value = &layers_value,
      .effect = MOUNT_EFFECT_LAYERS,
      .help = "the highest spatial, quality and temporal layer that readers get, each a number or "
              "`*` for all" },
  { NULL },
};

#undef AT

const SchemaKey *
mount_config_keys (void)
{
  return mount_keys;
}
