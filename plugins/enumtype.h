// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Registers the GEnum type of a property when it is first used.

#include <glib-object.h>

// Returns the type, which it keeps in `type`: a static variable of the caller that is 0 at first.
// `values` and `name` must be static too.
static inline GType
weir_enum_type (gsize *type, const gchar *name, const GEnumValue *values)
{
  if (g_once_init_enter (type))
    g_once_init_leave (type, g_enum_register_static (name, values));
  return *type;
}
