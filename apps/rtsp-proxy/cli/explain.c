// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "cli/explain.h"
#include "text/config_error.h"

#include "base/log.h"
#include "cli/explain_broadcast.h"
#include "cli/explain_swarm.h"
#include "cli/explain_ways.h"
#include "config/mount_push.h"
#include "graph/stage_isolated.h"
#include "mounts/offer.h"
#include "sources/isolated_pull.h"
#include "stages/choice.h"
#include "stages/stage_text.h"
#include "text/layer_choice.h"

#include <string.h>

#define CODEC "H264" // assumed: the codec is known only while the upstream runs
#define DAY_NS (24 * 3600 * (gint64) GST_SECOND)
#define READER "fanoutsink clients=127.0.0.1:5004"
// A sink that waits for the clock or gathers packets would undo the work of ratepacer.
#define PACED_READER "fanoutsink sync=false max-coalesce=0 clients=127.0.0.1:5004"

// Returns name="value", escaped for gst-launch-1.0.
static gchar *
dup_property (const gchar *name, const gchar *value)
{
  g_autofree gchar *escaped = g_strescape (value, NULL);

  return g_strdup_printf ("%s=\"%s\"", name, escaped);
}

// Returns launch text that reads the upstream's video as RTP, or NULL for a kind of upstream that a
// launch line cannot read in the same way as the proxy.
static gchar *
dup_source (const PullConfig *pull)
{
  g_autofree gchar *path = NULL, *shown = NULL;
  gchar *location, *source = NULL;

  if (g_str_has_prefix (pull->uri, "rtsp:") || g_str_has_prefix (pull->uri, "rtsps:")) {
    shown = log_redact (pull->uri);
    location = dup_property ("location", shown);
    source = g_strdup_printf ("rtspsrc %s latency=0%s ! application/x-rtp,media=video", location,
        pull->transport == PULL_TCP ? " protocols=tcp" : "");
  } else {
    path = g_filename_from_uri (pull->uri, NULL, NULL);
    if (!path)
      return NULL;
    location = dup_property ("location", path);
    source =
        g_strdup_printf ("filesrc %s ! parsebin ! video/x-h264 ! h264parse config-interval=-1 ! "
                         "video/x-h264,stream-format=byte-stream,alignment=au ! "
                         "rtph264pay aggregate-mode=zero-latency timestamp-offset=0",
            location);
  }
  g_free (location);
  return source;
}

static void
append_to_line (gchar **line, const gchar *launch)
{
  gchar *longer = *line && launch ? g_strconcat (*line, " ! ", launch, NULL) : NULL;

  g_free (*line);
  *line = longer;
}

// Appends stage `n` as a comment, and its launch text to `*line`. Sets `*line` to NULL if the stage
// has no launch text.
static void
append_stage (GString *out, gchar **line, const GPtrArray *chain, guint n)
{
  const Stage *stage = g_ptr_array_index (chain, n);
  const StageFile *file = stage_get_file (stage);
  const gchar *codec = choice_get_codec (chain, n, file->media, CODEC);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *launch = NULL;

  if (!file->native && stage_check_elements (stage, codec, &error))
    launch = stage_dup_launch (stage, codec, &error);
  g_string_append_printf (out, "# %s: %s\n", file->name,
      launch  ? launch
      : error ? error->message
              : file->summary);
  if (n > 0 && file->media & STAGE_VIDEO)
    append_to_line (line, launch);
}

gchar *
explain_chain (const gchar *title, const PullConfig *pull, const GPtrArray *chain)
{
  GString *out = g_string_new (NULL);
  gchar *key = choice_dup_key (chain), *line = dup_source (pull);
  gboolean isolated = FALSE, wanted; // of the last stage that gives raw frames; of this one

  g_string_append_printf (out, "# %s\n# %s\n#\n", title, key);
  if (isolated_pull_wants (pull))
    g_string_append (out, "# A worker process reads the upstream.\n");
  for (guint i = 0; i < chain->len; i++) {
    const Stage *stage = g_ptr_array_index (chain, i);

    wanted = stage_isolated_wants (stage, isolated);
    if (stage_get_file (stage)->gives == STAGE_RAW)
      isolated = wanted;
    if (wanted)
      g_string_append_printf (out, "# A worker process runs %s.\n", stage_get_file (stage)->name);
    append_stage (out, &line, chain, i);
  }
  if (line) {
    append_to_line (&line, strstr (line, "! ratepacer ") ? PACED_READER : READER);
    g_free (key);
    key = stage_text_quote (line);
    g_string_append_printf (out,
        "#\n# The video, if the upstream sends " CODEC ", to port 5004 of this machine:\n"
        "gst-launch-1.0 %s\n",
        key);
  }
  g_free (line);
  g_free (key);
  return g_string_free (out, FALSE);
}

static const MountConfig *
find_mount (const ProxyConfig *config, const gchar *path)
{
  for (guint i = 0; i < config->mounts->len; i++) {
    const MountConfig *mount = g_ptr_array_index (config->mounts, i);

    if (g_str_equal (mount->path, path))
      return mount;
  }
  return NULL;
}

// Returns the URL, with comments on the choices that concern only its reader: layers and delay.
static gchar *
dup_title (const Demand *demand, gboolean delays)
{
  GString *title = g_string_new (demand->url);
  g_autofree gchar *layers = layer_choice_dup_text (demand->layers);

  if (!weir_layer_set_equal (demand->layers, WEIR_LAYER_SET_ALL))
    g_string_append_printf (title, "\n# the reader gets the layers up to %s", layers);
  if (delays && demand->delay_ns >= 0 && demand->delay_ns < DAY_NS)
    g_string_append_printf (title, "\n# the reader starts %.3g s behind the live edge",
        (gdouble) demand->delay_ns / GST_SECOND);
  else if (delays && demand->delay_ns >= 0)
    g_string_append (title, "\n# the reader starts at the oldest packet");
  return g_string_free (title, FALSE);
}

// Returns comments on what is pushed, or an empty text.
static gchar *
dup_pushes (const MountConfig *mount)
{
  GString *text = g_string_new (NULL);
  PushUri uri;

  for (gchar **each = mount->push; *each; each++) {
    g_autofree gchar *wrong = push_uri_parse (*each, &uri);

    if (!wrong) {
      g_string_append_printf (text, "# The stream is sent to %s.\n", uri.shown);
      push_uri_clear (&uri);
    }
  }
  return g_string_free (text, FALSE);
}

// Returns a comment on where the stream is recorded, or an empty text.
static gchar *
dup_record (const MountConfig *mount)
{
  if (!mount->record.folder)
    return g_strdup ("");
  return g_strdup_printf ("# The stream is recorded all the time, in files of %u s in %s%s.\n",
      mount->record.segment_ms / 1000, mount->record.folder, mount->path);
}

// Returns a comment on the mounts that stages take, or an empty text.
static gchar *
dup_inputs (const MountConfig *mount)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; mount->inputs[i]; i++)
    g_string_append_printf (
        text, "%sinput%u is %s", i ? ", " : "# Of the stages, ", i, mount->inputs[i]);
  if (text->len)
    g_string_append (text, "; each is decoded.\n");
  return g_string_free (text, FALSE);
}

// Puts the source stages of the mount into a chain, behind its source. Returns a comment on them,
// or an empty text.
static gchar *
add_source_stages (const MountConfig *mount, GPtrArray *chain)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; mount->source_chain && i < mount->source_chain->len; i++) {
    Stage *stage = g_ptr_array_index (mount->source_chain, i);

    g_ptr_array_insert (chain, (gint) i + 1, stage_ref (stage));
    g_string_append_printf (text, "%s%s",
        i ? ", " : "# Each upstream has stages of its own: ", stage_get_file (stage)->name);
  }
  if (text->len)
    g_string_append (text, ".\n");
  return g_string_free (text, FALSE);
}

static gchar *
explain_demand (
    const ProxyConfig *config, const MountConfig *mount, const Demand *demand, GError **error)
{
  const gchar *choices;
  g_autoptr (GPtrArray) chain = NULL;
  g_autofree gchar *title = NULL, *chain_text = NULL, *own = NULL, *inputs = NULL, *ways = NULL,
                   *pushes = NULL, *record = NULL;

  if (WITH_BROADCAST && mount->broadcast.groups && mount_config_get_titles (mount))
    return explain_broadcast (mount);
  if (WITH_SWARM && mount_config_get_titles (mount) == PULL_TITLES_SWARM)
    return explain_swarm (mount);
  if (!offer_check (mount, demand, &choices, error))
    return NULL;
  chain = offer_make_chain (mount, choices, error);
  if (!chain)
    return NULL;
  own = add_source_stages (mount, chain);
  title = dup_title (demand, mount->cache.time_ms > 0);
  chain_text = explain_chain (title, g_ptr_array_index (mount->pulls, 0), chain);
  ways = mount_config_get_titles (mount) ? g_strdup ("") : explain_ways (config, mount, demand);
  pushes = demand->choices ? g_strdup ("") : dup_pushes (mount);
  record = demand->choices ? g_strdup ("") : dup_record (mount);
  inputs = dup_inputs (mount);
  return g_strconcat (chain_text, own, inputs, ways, pushes, record, NULL);
}

gchar *
explain_url (const ProxyConfig *config, const gchar *url, GError **error)
{
  Demand *demand = demand_new (url);
  const MountConfig *mount = find_mount (config, demand->path);
  gchar *text = NULL;

  offer_set_strict (TRUE); // a mistake in the URL is what the operator wants to know
  if (mount)
    text = explain_demand (config, mount, demand, error);
  else
    g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_VALUE,
        "there is no mount %.255s in this configuration", demand->path);
  demand_free (demand);
  return text;
}
