// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The type of an enumerated property, registered when it is first asked for.

#include <glib-object.h>

// `type` is the caller's, static and 0 to begin; `values` and `name` are static too.
static inline GType
weir_enum_type (gsize *type, const gchar *name, const GEnumValue *values)
{
  if (g_once_init_enter (type))
    g_once_init_leave (type, g_enum_register_static (name, values));
  return *type;
}
