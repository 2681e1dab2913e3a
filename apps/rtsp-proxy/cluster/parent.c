// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cluster/parent.h"

#include "cluster/placement.h"

#include <string.h>

#define MS G_GINT64_CONSTANT (1000000)
// A suspicion lasts for as long as the lease of a member that has died, and doubles each time.
#define SUSPICION_NS ((CLUSTER_LEASE_S + 2) * 1000 * MS)
#define SUSPICION_MAX_NS (60000 * MS)

typedef struct {
  const ParentQuery *query;
  GPtrArray *names;   // of those who serve the stream, in order
  GPtrArray *parents; // their names, or NULL
  GHashTable *places; // name -> 1 + its index
} Order;

static void
add (Order *self, const gchar *name, const gchar *parent)
{
  g_ptr_array_add (self->names, (gpointer) name);
  g_ptr_array_add (self->parents, (gpointer) parent);
  g_hash_table_insert (self->places, (gpointer) name, GUINT_TO_POINTER (self->names->len));
}

static void
list_members (Order *self)
{
  const ParentQuery *query = self->query;
  const ClusterStream *stream = cluster_map_get_stream (query->map, query->path);
  gboolean have_me = FALSE;

  if (stream && stream->owner) {
    add (self, stream->owner, NULL);
    have_me = g_str_equal (stream->owner, query->me);
  }
  for (guint i = 0; stream && i < stream->takers->len; i++) {
    const ClusterTaker *taker = g_ptr_array_index (stream->takers, i);
    const gboolean is_me = g_str_equal (taker->member, query->me);

    if (g_strcmp0 (taker->member, stream->owner) == 0)
      continue;
    add (self, taker->member, is_me ? query->present : taker->parent);
    have_me |= is_me;
  }
  if (!have_me)
    add (self, query->me, query->present);
}

static size_t
find (const Order *self, const gchar *name)
{
  const guint place = name ? GPOINTER_TO_UINT (g_hash_table_lookup (self->places, name)) : 0;

  return place > 0 ? place - 1 : WEIR_PLACEMENT_NONE;
}

static WeirPlacementMember
describe (const Order *self, guint i)
{
  const ParentQuery *query = self->query;
  const gchar *name = g_ptr_array_index (self->names, i);
  const ClusterMember *member = cluster_map_get_member (query->map, name);
  const Suspicion *suspicion = g_hash_table_lookup (query->suspected, name);
  WeirPlacementMember it = { .name = weir_placement_hash (name, strlen (name)),
    .parent = find (self, g_ptr_array_index (self->parents, i)) };

  if (g_str_equal (name, query->me))
    return it;
  it.load = member ? member->rate : 0;
  it.gone_until = !member || member->drains ? G_MAXINT64 : suspicion ? suspicion->until : 0;
  return it;
}

void
parent_suspect (GHashTable *suspected, const gchar *name, gint64 now)
{
  Suspicion *suspicion = g_hash_table_lookup (suspected, name);
  gint64 lasts = SUSPICION_NS;

  if (!suspicion) {
    suspicion = g_new0 (Suspicion, 1);
    g_hash_table_insert (suspected, g_strdup (name), suspicion);
  }
  if (now - suspicion->until > SUSPICION_MAX_NS)
    suspicion->n = 0;
  for (guint i = 0; i < suspicion->n && lasts < SUSPICION_MAX_NS; i++)
    lasts *= 2;
  suspicion->n++;
  suspicion->until = now + MIN (lasts, SUSPICION_MAX_NS);
}

static const gchar *
find_feed (const ClusterStream *stream, const gchar *name)
{
  for (guint i = 0; i < stream->takers->len; i++) {
    const ClusterTaker *taker = g_ptr_array_index (stream->takers, i);

    if (g_str_equal (taker->member, name))
      return taker->fed && *taker->fed ? taker->fed : NULL;
  }
  return NULL;
}

gboolean
parent_is_fed_by_me (const ParentQuery *query, const gchar *name)
{
  const ClusterStream *stream = cluster_map_get_stream (query->map, query->path);

  if (!stream)
    return FALSE;
  // A way that is longer than their number goes round.
  for (guint i = 0; name && i <= stream->takers->len; i++) {
    if (g_str_equal (name, query->me))
      return TRUE;
    name = find_feed (stream, name);
  }
  return name != NULL;
}

gchar *
parent_dup (const ParentQuery *query)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new (), parents = g_ptr_array_new ();
  g_autoptr (GHashTable) places = g_hash_table_new (g_str_hash, g_str_equal);
  Order order = { query, names, parents, places };
  g_autofree WeirPlacementMember *members = NULL;
  g_autofree WeirPlaced *placed = NULL;
  size_t parent;

  list_members (&order);
  members = g_new (WeirPlacementMember, names->len);
  placed = g_new (WeirPlaced, names->len);
  for (guint i = 0; i < names->len; i++)
    members[i] = describe (&order, i);
  weir_placement_run (members, names->len, weir_placement_fan_out (names->len),
      weir_placement_hash (query->path, strlen (query->path)), query->now, placed);
  parent = placed[find (&order, query->me)].parent;
  return parent == WEIR_PLACEMENT_NONE ? NULL : g_strdup (g_ptr_array_index (names, parent));
}
