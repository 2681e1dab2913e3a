// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers/renditions.h"

#include "base/log.h"
#include "config/mount_renditions.h"
#include "mounts/mounts.h"
#include "mounts/offer.h"
#include "relay/left_out.h"
#include "stages/choice.h"

#define START_TIME (20 * (gint64) GST_SECOND) // a rendition that has not begun then has failed
#define REST_TIME (30 * (gint64) GST_SECOND)  // before one that has failed is tried again

typedef struct {
  guint id;
  gchar *query, *choices;
  guint64 bits;         // bit/s
  gint64 not_before;    // it failed
  gint64 since;         // when it was asked for
  Presentation *in_use; // or NULL
} Rendition;

struct _Renditions {
  Mount *mount;
  Presentation *own;
  GStrv queries;  // of the configuration when `all` was made
  GPtrArray *all; // of Rendition
  guint last_id;
  guint at; // 0: its own stream
};

static void
rendition_free (gpointer data)
{
  Rendition *self = data;

  g_clear_pointer (&self->in_use, presentation_leave);
  g_free (self->query);
  g_free (self->choices);
  g_free (self);
}

Renditions *
renditions_new (Mount *mount, Presentation *own)
{
  Renditions *self = g_new0 (Renditions, 1);

  self->mount = mount_ref (mount);
  self->own = presentation_ref (own);
  self->all = g_ptr_array_new_with_free_func (rendition_free);
  return self;
}

void
renditions_free (Renditions *self)
{
  if (!self)
    return;
  g_ptr_array_unref (self->all);
  g_strfreev (self->queries);
  presentation_unref (self->own);
  mount_unref (self->mount);
  g_free (self);
}

static Rendition *
find (const Renditions *self, guint id)
{
  for (guint i = 0; i < self->all->len; i++) {
    Rendition *each = g_ptr_array_index (self->all, i);

    if (each->id == id)
      return each;
  }
  return NULL;
}

// ---- what there is ----

// Returns the codec of the reader's video (transfer full), or NULL.
static gchar *
dup_codec (const Renditions *self)
{
  Relay *relay = presentation_get_relay (self->own);
  gchar *codec = NULL;
  GstCaps *caps;

  for (guint i = 0; !codec && (caps = relay_dup_caps (relay, i)); i++) {
    const GstStructure *s = gst_caps_get_structure (caps, 0);

    if (!g_strcmp0 (gst_structure_get_string (s, "media"), "video"))
      codec = g_strdup (left_out_codec (caps));
    gst_caps_unref (caps);
  }
  return codec;
}

// Returns the rate that the last stage of video is to give, or 0.
static guint64
find_rate (const GPtrArray *chain)
{
  for (guint i = chain->len; i-- > 0;) {
    const Stage *stage = g_ptr_array_index (chain, i);
    const gchar *rate = stage_get_value (stage, "rate");

    if (rate && stage_get_file (stage)->media == STAGE_VIDEO)
      return g_ascii_strtoull (rate, NULL, 10);
  }
  return 0;
}

// Returns a rendition, or NULL if it does not fit. (transfer full)
static Rendition *
make (const MountConfig *config, const gchar *query, const gchar *codec)
{
  gchar *choices;
  const WeirLayerSet layers = mount_rendition_split (config, query, &choices);
  GPtrArray *chain = choices ? offer_make_chain (config, choices, NULL) : NULL;
  const gchar *gives = chain ? choice_get_codec (chain, chain->len, STAGE_VIDEO, NULL) : NULL;
  Rendition *self = NULL;

  if (gives && codec && !g_ascii_strcasecmp (gives, codec) && find_rate (chain) > 0
      && weir_layer_set_equal (layers, config->layers)) {
    self = g_new0 (Rendition, 1);
    self->query = g_strdup (query);
    self->choices = g_steal_pointer (&choices);
    // Headers, and what an encoder varies by.
    self->bits = find_rate (chain) * 11 / 10;
  }
  g_clear_pointer (&chain, g_ptr_array_unref);
  g_free (choices);
  return self;
}

// Makes the list anew if the configuration has changed. What the reader has stays in use until it
// has got something else.
static void
update (Renditions *self)
{
  MountConfig *config = mount_dup_config (self->mount);
  Rendition *at = find (self, self->at);
  gchar *codec;

  if (!self->queries
      || !g_strv_equal (
          (const gchar *const *) self->queries, (const gchar *const *) config->renditions)) {
    codec = dup_codec (self);
    for (guint i = self->all->len; i-- > 0;) {
      if (g_ptr_array_index (self->all, i) != at)
        g_ptr_array_remove_index (self->all, i);
    }
    if (at)
      at->bits = 0;
    for (gchar **each = config->renditions; *each; each++) {
      Rendition *made = make (config, *each, codec);

      if (made) {
        made->id = ++self->last_id;
        g_ptr_array_add (self->all, made);
      }
    }
    g_strfreev (self->queries);
    self->queries = g_strdupv (config->renditions);
    g_free (codec);
  }
  mount_config_unref (config);
}

gsize
renditions_list (Renditions *self, gint64 now, WeirRendition list[WEIR_RENDITIONS_MAX])
{
  gsize n = 0;

  update (self);
  for (guint i = 0; i < self->all->len && n < WEIR_RENDITIONS_MAX; i++) {
    const Rendition *each = g_ptr_array_index (self->all, i);

    if (each->bits > 0 && now >= each->not_before)
      list[n++] = (WeirRendition) { each->id, each->bits };
  }
  return n;
}

// ---- which one the reader has ----

// Ends the use of all but the one that the reader has and the one that it is to have.
static void
leave_others (Renditions *self, guint id)
{
  for (guint i = 0; i < self->all->len; i++) {
    Rendition *each = g_ptr_array_index (self->all, i);

    if (each->id != self->at && each->id != id)
      g_clear_pointer (&each->in_use, presentation_leave);
  }
}

static void
fail (Renditions *self, Rendition *rendition, gint64 now, const gchar *why)
{
  static LogLimit limit = { .burst = 3, .interval_ms = 10000 };

  log_event_limited (&limit, "mount %s: readers do not get the rendition %s: %s",
      mount_get_path (self->mount), rendition->query, why);
  rendition->not_before = now + REST_TIME;
  g_clear_pointer (&rendition->in_use, presentation_leave);
}

// Begins to use the rendition, and reports whether it has begun.
static gboolean
is_running (Renditions *self, Rendition *rendition, gint64 now)
{
  const Resolved resolved = { .mount = self->mount, .choices = rendition->choices };
  PresentationState state = PRESENTATION_DOWN;
  g_autoptr (GError) error = NULL;

  if (!rendition->in_use) {
    rendition->since = now;
    rendition->in_use = mounts_use (&resolved, &error);
  }
  if (rendition->in_use)
    state = presentation_ask (rendition->in_use, &error);
  if (state == PRESENTATION_DOWN)
    fail (self, rendition, now, error->message);
  else if (state == PRESENTATION_STARTING && now - rendition->since > START_TIME)
    fail (self, rendition, now, "it takes too long to start");
  return state == PRESENTATION_READY;
}

static gboolean
splice (Renditions *self, Reader *reader, Rendition *rendition, gint64 now)
{
  switch (reader_splice (reader, rendition ? rendition->in_use : NULL, now)) {
    case READER_SPLICE_DONE:
      return TRUE;
    case READER_SPLICE_NEVER:
      if (rendition)
        fail (self, rendition, now, "its packets are not in place of the mount's own");
      return FALSE;
    default:
      return FALSE;
  }
}

gboolean
renditions_go (Renditions *self, Reader *reader, guint id, gint64 now)
{
  Rendition *rendition = find (self, id);

  leave_others (self, id);
  if ((id != 0 && !rendition) || (rendition && now < rendition->not_before)
      || (rendition && !is_running (self, rendition, now))
      || !splice (self, reader, rendition, now))
    return FALSE;
  self->at = id;
  leave_others (self, id);
  return TRUE;
}

guint
renditions_get_id (const Renditions *self)
{
  return self->at;
}

const gchar *
renditions_get_query (const Renditions *self)
{
  const Rendition *at = find (self, self->at);

  return at ? at->query : NULL;
}
