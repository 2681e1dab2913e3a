// SPDX-License-Identifier: LGPL-2.1-or-later
#include "system/report.h"

static void
free_finding (gpointer data)
{
  Finding *finding = data;

  g_free (finding->name);
  g_free (finding->state);
  g_free (finding->why);
  g_free (finding->now);
  g_free (finding->lasting);
  g_free (finding);
}

Report *
report_new (void)
{
  Report *self = g_new (Report, 1);

  self->findings = g_ptr_array_new_with_free_func (free_finding);
  return self;
}

void
report_free (Report *self)
{
  g_ptr_array_unref (self->findings);
  g_free (self);
}

void
report_add (Report *self, const Finding *finding)
{
  g_ptr_array_add (self->findings, g_memdup2 (finding, sizeof *finding));
}

void
report_good (Report *self, const gchar *name, const gchar *format, ...)
{
  va_list arguments;

  va_start (arguments, format);
  report_add (self, &(Finding) { FINDING_GOOD, g_strdup (name),
                        g_strdup_vprintf (format, arguments), NULL, NULL, NULL });
  va_end (arguments);
}

void
report_unknown (Report *self, const gchar *name, GError *error)
{
  report_add (self,
      &(Finding) { FINDING_UNKNOWN, g_strdup (name), g_strdup (error->message), NULL, NULL, NULL });
  g_error_free (error);
}

static guint
count (const Report *self, FindingKind kind)
{
  guint n = 0;

  for (guint i = 0; i < self->findings->len; i++)
    n += ((Finding *) g_ptr_array_index (self->findings, i))->kind == kind;
  return n;
}

gboolean
report_binds (const Report *self)
{
  return count (self, FINDING_BINDS) > 0;
}

// ---- text ----

static void
append_line (GString *text, const gchar *label, const gchar *line)
{
  if (line)
    g_string_append_printf (text, "    %s%s\n", label, line);
}

static void
append_finding (GString *text, const Finding *finding)
{
  g_string_append_printf (text, "  %s: %s\n", finding->name, finding->state);
  append_line (text, "", finding->why);
  append_line (text, "now:     ", finding->now);
  append_line (text, "lasting: ", finding->lasting);
}

static void
append_kind (GString *text, const Report *self, FindingKind kind, const gchar *heading)
{
  if (count (self, kind) == 0)
    return;
  g_string_append_printf (text, "\n%s\n", heading);
  for (guint i = 0; i < self->findings->len; i++) {
    const Finding *finding = g_ptr_array_index (self->findings, i);

    if (finding->kind == kind)
      append_finding (text, finding);
  }
}

gchar *
report_dup_text (const Report *self)
{
  guint n = count (self, FINDING_BINDS);
  GString *text = g_string_new (NULL);

  if (n == 0)
    g_string_append (text, "\nNo limit is too low.\n");
  else
    g_string_append_printf (
        text, "\n%u limit%s. As root:\n", n, n == 1 ? " is too low" : "s are too low");
  for (guint i = 0; i < self->findings->len; i++) {
    const Finding *finding = g_ptr_array_index (self->findings, i);

    if (finding->kind == FINDING_BINDS)
      append_finding (text, finding);
  }
  append_kind (text, self, FINDING_HINT, "Hints:");
  append_kind (text, self, FINDING_UNKNOWN,
      "Cannot be read here; if this is a container, run the check on its host, too:");
  append_kind (text, self, FINDING_GOOD, "Good:");
  return g_string_free (text, FALSE);
}
