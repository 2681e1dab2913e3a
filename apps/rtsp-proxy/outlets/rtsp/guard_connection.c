// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/guard_connection.h"

static GInputStream *(*get_socket_stream) (GIOStream *stream);
static GPrivate accepting; // TRUE in the thread that accepts a connection
static RequestGuard *made;

static GQuark
guard_quark (void)
{
  return g_quark_from_static_string ("rtsp-proxy-guard");
}

static GInputStream *
get_input_stream (GIOStream *stream)
{
  RequestGuard *guard = g_object_get_qdata (G_OBJECT (stream), guard_quark ());

  if (!guard && g_private_get (&accepting)) {
    made = guard = guard_new (get_socket_stream (stream));
    g_object_set_qdata_full (G_OBJECT (stream), guard_quark (), guard, g_object_unref);
  }
  return guard ? G_INPUT_STREAM (guard) : get_socket_stream (stream);
}

static void
replace_function (void)
{
  static gsize done;
  GIOStreamClass *klass;

  if (!g_once_init_enter (&done))
    return;
  klass = g_type_class_ref (G_TYPE_TCP_CONNECTION); // forever
  get_socket_stream = klass->get_input_stream;
  klass->get_input_stream = get_input_stream;
  g_once_init_leave (&done, 1);
}

void
guard_connection_begin (void)
{
  replace_function ();
  made = NULL;
  g_private_set (&accepting, GINT_TO_POINTER (TRUE));
}

void
guard_connection_end (void)
{
  g_private_set (&accepting, NULL);
  made = NULL;
}

RequestGuard *
guard_connection_get (void)
{
  return made;
}
