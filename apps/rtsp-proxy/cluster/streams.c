// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cluster/streams.h"

#include "access/member_token.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/timer.h"
#include "cluster/etcd_requests.h"
#include "cluster/own_key.h"
#include "cluster/parent.h"
#include "sources/publication.h"
#include "sources/sharing.h"

#include <string.h>

#define MS G_GINT64_CONSTANT (1000000)
#define TICK_MS 500
#define WAIT_NS (1000 * MS)  // for the answer who has a stream
#define BEGIN_NS (3000 * MS) // after which it no longer waits to be in the cluster
#define CLAIM_NS (1000 * MS) // between two claims; and for the one that runs the upstream by now
#define TOKEN_S 90
// Times of a member that is read: it starts its own upstream for this one, or has it running.
#define START_MS 10000
#define CONNECT_MS 800
#define SILENCE_MS 1200
#define SILENT_MAX 8 // runs

struct _Streams {
  Etcd *etcd;
  ClusterMap *map;
  Registration *registration;
  gchar *secret;
  GHashTable *wants; // path -> Want
  gboolean drains;
  gint64 begun; // ns
  Timer *timer;
};

// A stream that this member serves.
typedef struct {
  Streams *streams;
  gchar *path;
  gboolean publishes;     // the upstream is `publish`
  gboolean has_publisher; // here
  GPtrArray *uses;        // of Use
  SharingRoute route;
  guint slot;
  gchar *parent;               // who is to be read, or NULL
  gchar *fed;                  // who is read at the moment, or NULL
  gchar *aimed[SHARING_SLOTS]; // the member of each slot, or NULL
  guint n_silent; // runs in a row of the parent that ended by silence: it must answer at once
  gint64 claim_at, waits_until; // ns
  gint64 ownerless;             // ns; since when nobody owns the stream; 0: somebody does
  gboolean asking;              // an answer about the key of the owner is awaited
  gint64 claim_lease;           // of the last claim
  gboolean owns;                // that key is under the lease
  gboolean disowns;             // it may be there yet, and is to be deleted
  OwnKey *taker;                // of this member as one that reads the stream
  GHashTable *suspected;        // name -> Suspicion
  LogLimit routes;
} Want;

typedef struct {
  Want *want;
  void (*routed) (gpointer user);
  gpointer user;
} Use;

static Streams *the_streams; // of on_publication(); main thread only

static void look (Want *want);

// ---- keys ----

static const gchar *
my_name (Want *want)
{
  return registration_get_name (want->streams->registration);
}

static gint64
get_lease (Want *want)
{
  return registration_get_lease (want->streams->registration);
}

static gboolean
is_used (Want *want)
{
  return want->uses->len > 0 || want->has_publisher;
}

static void
on_disowned (JsonObject *answer, const GError *error, gpointer data)
{
  Want *want = data;

  want->asking = FALSE;
  want->disowns &= error != NULL; // the next tick asks again
}

static void
delete_ownership (Want *want)
{
  Streams *self = want->streams;
  const gint64 lease = get_lease (want);
  g_autofree gchar *key = cluster_map_dup_owner_key (self->map, want->path);

  if (!want->disowns || want->asking || !lease)
    return;
  want->asking = TRUE;
  etcd_call (self->etcd, "/v3/kv/txn", etcd_delete_body (key, lease), on_disowned, want);
}

static void
give_up_ownership (Want *want)
{
  if (want->owns) {
    want->owns = FALSE;
    want->disowns = TRUE;
    cluster_map_note_owner (want->streams->map, want->path, NULL);
  }
  delete_ownership (want);
}

static void
stop_taking (Want *want)
{
  own_key_set (want->taker, NULL, get_lease (want));
}

// Says that this member has the stream, and from whom.
static void
take (Want *want)
{
  g_autofree gchar *value = g_strdup_printf ("{\"parent\":\"%s\",\"fed\":\"%s\"}",
      want->parent ? want->parent : "", want->fed ? want->fed : ""); // names need no escapes

  own_key_set (want->taker, value, get_lease (want));
}

// ---- claims ----

static void
on_claimed (JsonObject *answer, const GError *error, gpointer data)
{
  Want *want = data;
  Streams *self = want->streams;
  const gchar *me = my_name (want);
  g_autofree gchar *existing = NULL, *owner = NULL;
  gboolean is_mine = FALSE;

  if (answer) {
    is_mine = etcd_create_succeeded (answer, want->claim_lease, &existing);
    owner = is_mine ? g_strdup (me) : existing ? cluster_owner_dup_member (existing) : NULL;
  }
  want->asking = FALSE;
  want->claim_at = clock_now () + CLAIM_NS;
  want->owns |= is_mine && want->claim_lease == get_lease (want);
  want->disowns |= error && !is_used (want); // it may have reached etcd
  if (owner)
    cluster_map_note_owner (self->map, want->path, owner);
  if (want->publishes && want->has_publisher && owner && !g_str_equal (owner, me))
    log_event (
        "cluster: %s is published to %s, too; its readers see that publisher", want->path, owner);
  look (want);
}

static void
claim (Want *want, gint64 now)
{
  Streams *self = want->streams;
  const gint64 lease = get_lease (want);
  g_autofree gchar *key = NULL, *value = NULL;

  if (want->asking || want->disowns || !lease || now < want->claim_at)
    return;
  key = cluster_map_dup_owner_key (self->map, want->path);
  value = g_strdup_printf ("{\"member\":\"%s\"}", my_name (want));
  want->asking = TRUE;
  want->claim_lease = lease;
  etcd_call (self->etcd, "/v3/kv/txn", etcd_create_body (key, value, lease), on_claimed, want);
}

// ---- the route ----

static void
set_route (Want *want, SharingRoute route, const gchar *parent)
{
  g_autoptr (GPtrArray) uses = NULL;

  if (want->route == route && g_strcmp0 (want->parent, parent) == 0)
    return;
  if (want->route == SHARING_MEMBER && route == SHARING_MEMBER)
    want->slot = (want->slot + 1) % SHARING_SLOTS;
  if (route == SHARING_MEMBER)
    log_event_limited (&want->routes, "cluster: %s is read from %s", want->path, parent);
  else if (want->route == SHARING_MEMBER)
    log_event_limited (&want->routes, "cluster: %s is read from its own upstream", want->path);
  want->route = route;
  g_free (want->parent);
  want->parent = g_strdup (parent);
  want->n_silent = 0;
  uses = g_ptr_array_copy (want->uses, NULL, NULL);
  for (guint i = 0; i < uses->len; i++) {
    Use *use = g_ptr_array_index (uses, i);

    if (g_ptr_array_find (want->uses, use, NULL))
      use->routed (use->user);
  }
}

static const gchar *
get_owner (Want *want)
{
  const ClusterStream *stream = cluster_map_get_stream (want->streams->map, want->path);

  return stream ? stream->owner : NULL;
}

// Reports whether it is open yet who has the stream: an answer is awaited; or this member has only
// begun, and does not know the others.
static gboolean
is_asked (Want *want, const gchar *parent, gint64 now)
{
  Streams *self = want->streams;

  if (want->route != SHARING_WAITS)
    return FALSE;
  if (want->asking)
    return now < want->waits_until;
  return !parent && now < self->begun + BEGIN_NS
         && !cluster_map_get_member (self->map, my_name (want));
}

// Reports whether a new parent (NULL: none) reads this member: it is left alone until it has
// another source.
static gboolean
is_fed_by_me (const ParentQuery *query, const gchar *parent)
{
  return parent && g_strcmp0 (parent, query->present) != 0 && parent_is_fed_by_me (query, parent);
}

// Reads a member, or the upstream if this one is the first of those who have the stream.
static void
follow (Want *want, gint64 now)
{
  const ParentQuery query = { want->streams->map, want->path, my_name (want), want->parent,
    want->suspected, now };
  g_autofree gchar *parent = parent_dup (&query);

  if (want->ownerless && (!parent || (!want->streams->drains && now - want->ownerless >= CLAIM_NS)))
    claim (want, now);
  if (is_asked (want, parent, now))
    return;
  if (is_fed_by_me (&query, parent))
    return;
  set_route (want, parent ? SHARING_MEMBER : SHARING_OWN, parent);
  if (parent || get_owner (want))
    take (want);
}

// Nobody but the member with the publisher can run the upstream.
static void
follow_publisher (Want *want, gint64 now)
{
  const ParentQuery query = { want->streams->map, want->path, my_name (want), want->parent,
    want->suspected, now };
  g_autofree gchar *parent = get_owner (want) ? parent_dup (&query) : NULL;

  if (is_fed_by_me (&query, parent))
    return;
  set_route (want, parent ? SHARING_MEMBER : SHARING_OWN, parent);
  if (parent || want->fed)
    take (want);
  else
    stop_taking (want);
}

static void
look (Want *want)
{
  const gint64 now = clock_now ();
  const gchar *owner = get_owner (want);
  const gboolean is_mine = g_strcmp0 (owner, my_name (want)) == 0;

  if (!is_used (want))
    return;
  want->owns &= is_mine; // an operator may have deleted the key
  want->ownerless = owner ? 0 : want->ownerless ? want->ownerless : now;
  if (want->publishes && !want->has_publisher) {
    give_up_ownership (want);
    follow_publisher (want, now);
  } else if (is_mine || want->publishes) {
    if (!want->owns)
      claim (want, now); // under an earlier lease it runs out
    set_route (want, SHARING_OWN, NULL);
    if (want->fed)
      take (want);
    else if (is_mine)
      stop_taking (want);
  } else {
    follow (want, now);
  }
}

void
streams_look (Streams *self, const gchar *path)
{
  Want *want = path ? g_hash_table_lookup (self->wants, path) : NULL;
  g_autoptr (GList) paths = NULL;

  if (want)
    look (want);
  if (path)
    return;
  paths = g_hash_table_get_keys (self->wants);
  for (GList *each = paths; each; each = each->next) {
    want = g_hash_table_lookup (self->wants, each->data);
    if (want)
      look (want);
  }
}

static gboolean
has_takers (Want *want)
{
  const ClusterStream *stream = cluster_map_get_stream (want->streams->map, want->path);

  return stream && stream->takers->len > 0;
}

void
streams_drain (Streams *self)
{
  GHashTableIter iter;
  gpointer each;

  self->drains = TRUE;
  g_hash_table_iter_init (&iter, self->wants);
  while (g_hash_table_iter_next (&iter, NULL, &each)) {
    Want *want = each;

    if (!want->has_publisher && has_takers (want))
      give_up_ownership (want);
  }
  streams_look (self, NULL);
}

void
streams_lose_keys (Streams *self)
{
  GHashTableIter iter;
  gpointer each;

  g_hash_table_iter_init (&iter, self->wants);
  while (g_hash_table_iter_next (&iter, NULL, &each)) {
    Want *want = each;

    want->owns = want->disowns = FALSE;
    own_key_lose (want->taker);
  }
}

// ---- wants ----

static void
want_free (gpointer data)
{
  Want *self = data;

  g_ptr_array_unref (self->uses);
  own_key_free (self->taker);
  g_hash_table_unref (self->suspected);
  for (guint i = 0; i < SHARING_SLOTS; i++)
    g_free (self->aimed[i]);
  g_free (self->parent);
  g_free (self->fed);
  g_free (self->path);
  g_free (self);
}

static Want *
get_want (Streams *self, const gchar *path)
{
  Want *want = g_hash_table_lookup (self->wants, path);
  const gint64 now = clock_now ();

  if (want)
    return want;
  want = g_new0 (Want, 1);
  *want = (Want) { .streams = self,
    .path = g_strdup (path),
    .uses = g_ptr_array_new (),
    .taker = own_key_new (self->etcd,
        cluster_map_dup_taker_key (self->map, registration_get_name (self->registration), path)),
    .route = SHARING_WAITS,
    .claim_at = now,
    .waits_until = now + WAIT_NS,
    .suspected = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free),
    .routes = LOG_LIMIT_FAILURES };
  g_hash_table_insert (self->wants, want->path, want);
  return want;
}

// Forgets a want that nobody has any more, when its keys are gone.
static void
forget_if_unused (Want *want)
{
  if (is_used (want))
    return;
  give_up_ownership (want);
  stop_taking (want);
  if (!want->asking && !want->disowns && own_key_is_gone (want->taker))
    g_hash_table_remove (want->streams->wants, want->path);
}

static gpointer
use (gpointer data, const gchar *path, gboolean publishes, void (*routed) (gpointer user),
    gpointer user)
{
  Want *want = get_want (data, path);
  Use *self = g_new (Use, 1);

  *self = (Use) { want, routed, user };
  want->publishes |= publishes;
  g_ptr_array_add (want->uses, self);
  look (want);
  return self;
}

static void
leave (gpointer data)
{
  Use *self = data;

  // A tick forgets the want, if nobody uses it: it may be the one that has called the user.
  g_ptr_array_remove (self->want->uses, self);
  g_free (self);
}

static SharingRoute
get_route (gpointer data, guint *slot)
{
  const Want *want = ((Use *) data)->want;

  *slot = want->slot;
  return want->route;
}

static void
aim (gpointer data, PullConfig *config)
{
  Want *want = ((Use *) data)->want;
  Streams *self = want->streams;
  const ClusterMember *member =
      want->parent ? cluster_map_get_member (self->map, want->parent) : NULL;
  const gint64 now_s = g_get_real_time () / G_USEC_PER_SEC;
  g_autofree gchar *token = NULL;
  gboolean is_ipv6;

  config->connect_timeout_ms = want->n_silent > 0 ? CONNECT_MS : START_MS;
  config->read_timeout_ms = SILENCE_MS;
  config->is_member = TRUE;
  if (!member)
    return;
  g_free (want->aimed[want->slot]);
  want->aimed[want->slot] = g_strdup (member->name);
  token = member_token_new (
      self->secret, my_name (want), member->name, now_s + member->ahead_s + TOKEN_S);
  is_ipv6 = strchr (member->address, ':') != NULL;
  g_free (config->uri);
  config->uri = g_strdup_printf ("%s://%s%s%s:%u%s?token=%s", member->rtsp ? "rtsp" : "rtsps",
      is_ipv6 ? "[" : "", member->address, is_ipv6 ? "]" : "",
      member->rtsp ? member->rtsp : member->rtsps, want->path, token);
}

// A member that is silent has answered before, and its camera may be at fault: whether it lives,
// the next try tells. One that answers that it has nothing lives, too.
static void
failed (gpointer data, guint slot, const gchar *reason)
{
  Want *want = ((Use *) data)->want;

  if (want->route != SHARING_MEMBER || slot != want->slot)
    return;
  if (strstr (reason, "answered") && strstr (reason, " with 5"))
    return;
  if (g_str_has_prefix (reason, "no media") && ++want->n_silent < SILENT_MAX)
    return;
  want->n_silent = 0;
  parent_suspect (want->suspected, want->parent, clock_now ());
  look (want);
}

static void
fed (gpointer data, gint slot)
{
  Want *want = ((Use *) data)->want;
  const gchar *name = slot < 0 ? NULL : want->aimed[slot];

  if (g_strcmp0 (want->fed, name) == 0)
    return;
  g_free (want->fed);
  want->fed = g_strdup (name);
  look (want);
}

// ---- publishers ----

static gboolean
take_publication (gpointer data)
{
  const gchar *path = data;
  PublisherFacts facts = { 0 };
  const gboolean is_there = publication_find (path, &facts);
  Want *want = the_streams ? g_hash_table_lookup (the_streams->wants, path) : NULL;

  g_free (facts.peer);
  g_free (facts.layer);
  if (!the_streams || (!is_there && !want))
    return G_SOURCE_REMOVE;
  want = get_want (the_streams, path);
  want->publishes = TRUE;
  want->has_publisher = is_there;
  look (want);
  forget_if_unused (want);
  return G_SOURCE_REMOVE;
}

static void
on_publication (const gchar *path)
{
  g_idle_add_full (G_PRIORITY_DEFAULT, take_publication, g_strdup (path), g_free);
}

// ---- construction ----

static gboolean
on_tick (gpointer data)
{
  Streams *self = data;
  g_autoptr (GList) wants = g_hash_table_get_values (self->wants);

  for (GList *each = wants; each; each = each->next) {
    delete_ownership (each->data);
    forget_if_unused (each->data);
  }
  streams_look (self, NULL);
  return G_SOURCE_CONTINUE;
}

Streams *
streams_new (Etcd *etcd, ClusterMap *map, Registration *registration, const ClusterConfig *config)
{
  static const Sharing sharing = { use, leave, get_route, aim, failed, fed };
  Streams *self = g_new0 (Streams, 1);

  *self = (Streams) { .etcd = etcd, .map = map, .registration = registration };
  self->begun = clock_now ();
  self->secret = g_strdup (config->secret);
  self->wants = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, want_free);
  self->timer = timer_add (TICK_MS, on_tick, self);
  the_streams = self;
  sharing_set (&sharing, self);
  publication_set_watch (on_publication);
  return self;
}

void
streams_stop (Streams *self)
{
  publication_set_watch (NULL);
  sharing_set (NULL, NULL);
  the_streams = NULL;
  g_clear_pointer (&self->timer, timer_remove);
}

void
streams_free (Streams *self)
{
  g_hash_table_unref (self->wants);
  g_free (self->secret);
  g_free (self);
}
