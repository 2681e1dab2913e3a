// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_counts.h"

const gchar *const http_starved_names[HTTP_N_STARVED] = { "store", "reader" };

static guint64 starved[HTTP_N_STARVED], answers[10]; // atomic
static gint connections;                             // atomic

void
http_counts_add_connections (gint n)
{
  g_atomic_int_add (&connections, n);
}

guint
http_counts_get_connections (void)
{
  return (guint) g_atomic_int_get (&connections);
}

void
http_counts_add_starved (HttpStarved cause, guint64 n)
{
  __atomic_add_fetch (&starved[cause], n, __ATOMIC_RELAXED);
}

guint64
http_counts_get_starved (HttpStarved cause)
{
  return __atomic_load_n (&starved[cause], __ATOMIC_RELAXED);
}

void
http_counts_add_answer (guint status)
{
  __atomic_add_fetch (&answers[status / 100 % 10], 1, __ATOMIC_RELAXED);
}

guint64
http_counts_get_answers (guint first_digit)
{
  return __atomic_load_n (&answers[first_digit % 10], __ATOMIC_RELAXED);
}
