// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/publication.h"

#include <string.h>

#include "events/events.h"

#define SILENT_NS G_GINT64_CONSTANT (1000000000)

// A run of the upstream `publish`. The upstream holds a reference, as do the slot and everybody who
// uses the context.
struct _PublishRun {
  gatomicrefcount refs;
  guint64 number;
  const PullContext *context;
  gchar *key;     // of its slot
  gboolean taken; // it has, or had, a publisher; protected by `table`
  GDestroyNotify closed;
  gpointer data;
};

struct _Publication {
  gatomicrefcount refs;
  gchar *key; // of its slot
  gchar *peer, *identity;
  gint64 heard; // ns; 0: never; atomic
  const PublicationOps *ops;
  gpointer owner;
  GDestroyNotify free_owner;
  // Protected by `table`, and not known before publication_begin():
  GPtrArray *caps; // NULL: it has not begun
  const gchar *transport;
  gint64 since; // Unix time, us
  gchar *layer;
  gboolean told; // by the events: it has begun, and not ended
  GMutex lock;
  PublishRun *run; // that takes packets, or NULL
  gboolean ended;
};

typedef struct {
  Publication *current; // not a reference: publication_give_back() removes it
  PublishRun *run;      // the newest, or NULL
} Slot;

static GMutex table;
static GHashTable *slots; // key -> Slot, which has a publisher, a run or both

// Returns the key of a slot, which is the path for rank 0. (transfer full)
static gchar *
dup_key (const gchar *path, guint rank)
{
  return rank > 0 ? g_strdup_printf ("%s\n%u", path, rank) : g_strdup (path);
}

// Makes the event that a publisher has begun or ended. Only the publication of rank 0 is told of.
static void
make_event (Publication *self, EventKind kind, const gchar *reason)
{
  const gboolean begins = kind == EVENT_PUBLISH;
  const gchar *transport;
  gboolean tells;

  g_mutex_lock (&table);
  transport = self->transport;
  tells = self->told != begins && !strchr (self->key, '\n');
  self->told = begins;
  g_mutex_unlock (&table);
  if (tells)
    events_add (
        kind, self->key, "peer", self->peer, "transport", transport, "reason", reason, NULL);
}

static void (*watch) (const gchar *path); // atomic

void
publication_set_watch (void (*changed) (const gchar *path))
{
  g_atomic_pointer_set (&watch, changed);
}

// Only the publication of rank 0 is told of, whose key is the path.
static void
tell_watch (const gchar *key)
{
  void (*changed) (const gchar *path) = g_atomic_pointer_get (&watch);

  if (changed && !strchr (key, '\n'))
    changed (key);
}

static Slot *
find_slot (const gchar *key)
{
  Slot *slot;

  if (!slots)
    slots = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  slot = g_hash_table_lookup (slots, key);
  if (!slot) {
    slot = g_new0 (Slot, 1);
    g_hash_table_insert (slots, g_strdup (key), slot);
  }
  return slot;
}

static void
forget_slot_if_empty (const gchar *key)
{
  const Slot *slot = find_slot (key);

  if (!slot->current && !slot->run)
    g_hash_table_remove (slots, key);
}

// ---- references ----

static PublishRun *
run_ref (PublishRun *run)
{
  g_atomic_ref_count_inc (&run->refs);
  return run;
}

static void
run_unref (PublishRun *run)
{
  if (!g_atomic_ref_count_dec (&run->refs))
    return;
  if (run->closed)
    run->closed (run->data);
  g_free (run->key);
  g_free (run);
}

static Publication *
publication_ref (Publication *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
publication_unref (gpointer data)
{
  Publication *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  if (self->free_owner)
    self->free_owner (self->owner);
  g_clear_pointer (&self->caps, g_ptr_array_unref);
  g_mutex_clear (&self->lock);
  g_free (self->key);
  g_free (self->peer);
  g_free (self->identity);
  g_free (self->layer);
  g_free (self);
}

// ---- meeting ----

static void
ask_key (gpointer data, guint track, gint64 now)
{
  Publication *self = data;
  gboolean ended;

  g_mutex_lock (&self->lock);
  ended = self->ended;
  g_mutex_unlock (&self->lock);
  if (!ended)
    self->ops->ask_key (self->owner, track);
}

// Ends a run, whose upstream starts the next one.
static void
end_run (PublishRun *run, const gchar *reason)
{
  if (!g_atomic_int_get (&run->context->cancelled))
    run->context->callbacks->ended (run->context->owner, reason);
}

// Joins the publisher and the run of a slot, if both are there.
static void
meet (const gchar *key)
{
  Publication *self = NULL;
  PublishRun *run = NULL;
  const PullContext *context;
  GPtrArray *caps;
  gboolean ended;
  Slot *slot;

  g_mutex_lock (&table);
  slot = find_slot (key);
  if (slot->current && slot->current->caps && slot->run && !slot->run->taken) {
    self = publication_ref (slot->current);
    run = run_ref (slot->run);
    run->taken = TRUE;
    caps = g_ptr_array_ref (self->caps);
  }
  forget_slot_if_empty (key);
  g_mutex_unlock (&table);
  if (!self)
    return;
  context = run->context;
  if (!g_atomic_int_get (&context->cancelled)) {
    context->callbacks->begun (context->owner, relay_source_begin (context->source, caps));
    relay_source_set_key_handler (
        context->source, ask_key, publication_ref (self), publication_unref);
  }
  g_ptr_array_unref (caps);
  g_mutex_lock (&self->lock);
  ended = self->ended;
  if (!ended) {
    PublishRun *former = self->run;

    self->run = g_steal_pointer (&run);
    run = former;
  }
  g_mutex_unlock (&self->lock);
  if (ended)
    end_run (run, "the publisher has left");
  g_clear_pointer (&run, run_unref);
  publication_unref (self);
}

// ---- publishers ----

void
publication_hear (Publication *self, gint64 now)
{
  __atomic_store_n (&self->heard, now, __ATOMIC_RELAXED);
}

// Reports whether a publisher has come back, which has lost its line. Two that send at once do not
// displace each other.
static gboolean
is_back (const Publication *former, const gchar *identity, gint64 now)
{
  gint64 heard = __atomic_load_n (&former->heard, __ATOMIC_RELAXED);

  return g_str_equal (former->identity, identity) && heard > 0 && now - heard > SILENT_NS;
}

Publication *
publication_claim (const PublicationClaim *claim, const PublicationOps *ops, gpointer owner,
    GDestroyNotify free, GError **error)
{
  Publication *self = NULL, *former;
  gchar *key = dup_key (claim->path, claim->rank);
  Slot *slot;

  g_mutex_lock (&table);
  slot = find_slot (key);
  former = slot->current;
  if (!former || claim->takeover || is_back (former, claim->identity, claim->now)) {
    self = g_new0 (Publication, 1);
    g_atomic_ref_count_init (&self->refs);
    g_mutex_init (&self->lock);
    self->key = g_steal_pointer (&key);
    self->peer = g_strdup (claim->peer);
    self->identity = g_strdup (claim->identity);
    self->ops = ops;
    self->owner = owner;
    self->free_owner = free;
    slot->current = self;
    if (former)
      publication_ref (former);
  } else {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY,
        "%s publishes %s already, and the mount does not have takeover: yes", former->peer,
        claim->path);
  }
  g_mutex_unlock (&table);
  g_free (key);
  if (self && former) {
    former->ops->displaced (former->owner);
    publication_unref (former);
  }
  return self;
}

void
publication_note_layer (Publication *self, const gchar *layer)
{
  gchar *former;

  g_mutex_lock (&table);
  former = self->layer;
  self->layer = g_strdup (layer);
  g_mutex_unlock (&table);
  g_free (former);
}

void
publication_begin (Publication *self, const gchar *transport, GPtrArray *caps)
{
  PublishRun *run = publication_enter (self);
  GPtrArray *former;

  g_mutex_lock (&table);
  former = self->caps;
  if (!former)
    self->since = g_get_real_time ();
  self->transport = transport;
  self->caps = g_ptr_array_ref (caps);
  g_mutex_unlock (&table);
  if (!former) {
    tell_watch (self->key);
    make_event (self, EVENT_PUBLISH, NULL);
  }
  g_clear_pointer (&former, g_ptr_array_unref);
  if (run) {
    run->context->callbacks->begun (
        run->context->owner, relay_source_begin (run->context->source, caps));
    publication_leave (run);
  } else {
    meet (self->key);
  }
}

void
publication_give_back (Publication *self)
{
  Slot *slot;

  g_mutex_lock (&table);
  slot = find_slot (self->key);
  if (slot->current == self)
    slot->current = NULL;
  forget_slot_if_empty (self->key);
  g_mutex_unlock (&table);
  tell_watch (self->key);
}

void
publication_end (Publication *self, const gchar *reason)
{
  PublishRun *run;

  publication_give_back (self);
  make_event (self, EVENT_PUBLISH_END, reason);
  g_mutex_lock (&self->lock);
  self->ended = TRUE;
  run = g_steal_pointer (&self->run);
  g_mutex_unlock (&self->lock);
  if (run) {
    end_run (run, reason);
    run_unref (run);
  }
  publication_unref (self);
}

gboolean
publication_is_taken (const gchar *path, const gchar *identity, gint64 now)
{
  const Slot *slot;
  gboolean taken;

  g_mutex_lock (&table);
  slot = slots ? g_hash_table_lookup (slots, path) : NULL;
  taken = slot && slot->current && slot->current->caps && !is_back (slot->current, identity, now);
  g_mutex_unlock (&table);
  return taken;
}

gboolean
publication_is_claimed (const gchar *path)
{
  const Slot *slot;
  gboolean claimed;

  g_mutex_lock (&table);
  slot = slots ? g_hash_table_lookup (slots, path) : NULL;
  claimed = slot && slot->current;
  g_mutex_unlock (&table);
  return claimed;
}

gboolean
publication_find (const gchar *path, PublisherFacts *facts)
{
  const Publication *found;
  const Slot *slot;

  g_mutex_lock (&table);
  slot = slots ? g_hash_table_lookup (slots, path) : NULL;
  found = slot && slot->current && slot->current->caps ? slot->current : NULL;
  if (found)
    *facts = (PublisherFacts) { g_strdup (found->peer), found->transport, found->since,
      g_strdup (found->layer) };
  g_mutex_unlock (&table);
  return found != NULL;
}

PublishRun *
publication_enter (Publication *self)
{
  PublishRun *run;

  g_mutex_lock (&self->lock);
  run =
      self->run && !g_atomic_int_get (&self->run->context->cancelled) ? run_ref (self->run) : NULL;
  g_mutex_unlock (&self->lock);
  return run;
}

const PullContext *
publication_context (const PublishRun *run)
{
  return run->context;
}

guint64
publication_get_number (const PublishRun *run)
{
  return run->number;
}

void
publication_leave (PublishRun *run)
{
  run_unref (run);
}

// ---- upstreams ----

static gpointer
start (const PullContext *context, GError **error)
{
  static guint64 n_runs; // main thread only
  PublishRun *run = g_new0 (PublishRun, 1), *former;
  Slot *slot;

  g_atomic_ref_count_init (&run->refs);
  run->number = ++n_runs;
  run->context = context;
  run->key = dup_key (context->config->path, context->rank);
  g_mutex_lock (&table);
  slot = find_slot (run->key);
  former = slot->run;
  slot->run = run_ref (run);
  g_mutex_unlock (&table);
  g_clear_pointer (&former, run_unref);
  meet (run->key);
  return run;
}

static void
close_run (gpointer data, GDestroyNotify closed, gpointer closed_data)
{
  PublishRun *run = data, *own = NULL, *used = NULL;
  Publication *current = NULL;
  Slot *slot;

  run->closed = closed;
  run->data = closed_data;
  relay_source_set_key_handler (run->context->source, NULL, NULL, NULL);
  g_mutex_lock (&table);
  slot = find_slot (run->key);
  if (slot->run == run)
    own = g_steal_pointer (&slot->run);
  if (slot->current)
    current = publication_ref (slot->current);
  forget_slot_if_empty (run->key);
  g_mutex_unlock (&table);
  if (current) {
    g_mutex_lock (&current->lock);
    if (current->run == run)
      used = g_steal_pointer (&current->run);
    g_mutex_unlock (&current->lock);
    publication_unref (current);
  }
  g_clear_pointer (&own, run_unref);
  g_clear_pointer (&used, run_unref);
  run_unref (run);
}

const PullLight publish_pull_light = { .start = start, .close = close_run, .awaits = TRUE };

gchar *
publish_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  config->uri = g_strdup (uri);
  return NULL;
}
