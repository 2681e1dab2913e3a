// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "outlets/http/http_pieces.h"

#include "access/connections.h"
#include "config/limits.h"
#include "stores/block_admission.h"

static GMutex lock;
static gint64 line_free_ns; // when the line has sent all that was taken; with `lock` held

// ---- addresses ----

static Connections *
get_pieces (void)
{
  static gsize made;
  static Connections *pieces;

  if (g_once_init_enter (&made)) {
    pieces = connections_new ();
    g_once_init_leave (&made, 1);
  }
  return pieces;
}

gboolean
http_pieces_enter (GInetAddress *address)
{
  static const Limits limits = { .connections = G_MAXUINT,
    .address_connections = HTTP_PIECES_AT_ONCE };
  RefusedReason unused;

  return connections_enter (get_pieces (), &limits, address, &unused);
}

void
http_pieces_leave (GInetAddress *address)
{
  connections_leave (get_pieces (), address);
}

// ---- the line ----

// Returns the bits a second that all pieces share, or 0: no limit.
static guint64
get_rate (guint64 least)
{
  guint64 line, used;
  Limits limits;

  limits_get (&limits);
  line = (guint64) limits.line_rate * 1000000;
  if (line == 0)
    return 0;
  used = WITH_STORE ? block_admission_get_line () : 0;
  return MAX (line - MIN (line, used), MAX (least, 1));
}

gint64
http_pieces_take_line (gsize bytes, guint64 least_rate, gint64 now_ns)
{
  const guint64 rate = get_rate (least_rate);
  gint64 due;

  if (rate == 0)
    return now_ns;
  g_mutex_lock (&lock);
  due = MAX (now_ns, line_free_ns);
  line_free_ns = due + (gint64) ((gdouble) bytes * 8e9 / (gdouble) rate);
  g_mutex_unlock (&lock);
  return due;
}
