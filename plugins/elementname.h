// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Gives unnamed elements the name of their factory and a number, such as fanoutsink0. GStreamer
// derives default names from type names and removes only its own prefix "Gst".

#include <string.h>

#include <gst/gst.h>

#define WEIR_TYPE_PREFIX "Weir"

static inline gchar *
weir_element_make_name (GType type)
{
  static GMutex lock;
  const GQuark quark = g_quark_from_static_string ("weir-n-elements");
  gchar *lower = g_ascii_strdown (g_type_name (type) + strlen (WEIR_TYPE_PREFIX), -1), *name;
  guint n;

  g_mutex_lock (&lock);
  n = GPOINTER_TO_UINT (g_type_get_qdata (type, quark));
  g_type_set_qdata (type, quark, GUINT_TO_POINTER (n + 1));
  g_mutex_unlock (&lock);
  name = g_strdup_printf ("%s%u", lower, n);
  g_free (lower);
  return name;
}

static inline GObject *
weir_element_construct (GType type, guint n, GObjectConstructParam *params)
{
  GObjectClass *parent = G_OBJECT_CLASS (g_type_class_peek_parent (g_type_class_peek (type)));

  for (guint i = 0; i < n; i++) {
    if (g_str_equal (params[i].pspec->name, "name") && !g_value_get_string (params[i].value))
      g_value_take_string (params[i].value, weir_element_make_name (type));
  }
  return parent->constructor (type, n, params);
}

// Call in class_init of a final class whose type name is "Weir" and the element's name.
static inline void
weir_element_class_set_default_name (GObjectClass *klass)
{
  klass->constructor = weir_element_construct;
}
