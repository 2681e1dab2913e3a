// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "results.h"

#include <stdio.h>

void
results_init (Results *self)
{
  *self = (Results) { 0 };
  self->refused = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->errors = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->samples = g_array_new (FALSE, FALSE, sizeof (Sample));
}

void
results_clear (Results *self)
{
  g_clear_pointer (&self->refused, g_hash_table_unref);
  g_clear_pointer (&self->errors, g_hash_table_unref);
  g_clear_pointer (&self->samples, g_array_unref);
}

static void
count (GHashTable *table, const gchar *kind, const gchar *text)
{
  guint n = GPOINTER_TO_UINT (g_hash_table_lookup (table, kind));

  if (n == 0)
    fprintf (stderr, "rtsp-load: %s\n", text);
  g_hash_table_insert (table, g_strdup (kind), GUINT_TO_POINTER (n + 1));
}

void
results_refused (Results *self, guint status, const gchar *text)
{
  gchar kind[16];

  g_snprintf (kind, sizeof kind, "%u", status);
  count (self->refused, kind, text);
}

void
results_error (Results *self, const gchar *kind, const gchar *text)
{
  count (self->errors, kind, text);
}

gboolean
results_failed (const Results *self)
{
  return g_hash_table_size (self->refused) > 0 || g_hash_table_size (self->errors) > 0;
}
