// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "lines.h"

#include <json-glib/json-glib.h>
#include <stdio.h>
#include <sys/resource.h>

gdouble
lines_percentile (const WeirHistogram *times, gdouble which)
{
  return (gdouble) weir_histogram_percentile (times, which) / 1e6;
}

gdouble
lines_cpu_seconds (void)
{
  struct rusage usage;

  getrusage (RUSAGE_SELF, &usage);
  return (gdouble) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
         + (gdouble) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void
lines_print (const Line *lines, guint n, gboolean json)
{
  JsonBuilder *b = json_builder_new ();
  gchar *text;
  JsonNode *root;

  json_builder_begin_object (b);
  for (guint i = 0; i < n; i++) {
    json_builder_set_member_name (b, lines[i].key);
    json_builder_add_double_value (b, lines[i].value);
    if (!json)
      printf ("%-22s %.10g\n", lines[i].name, lines[i].value);
  }
  json_builder_end_object (b);
  root = json_builder_get_root (b);
  text = json_to_string (root, TRUE);
  if (json)
    printf ("%s\n", text);
  g_free (text);
  json_node_unref (root);
  g_object_unref (b);
}
