// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of stage files and launch text. The input is a stage file.

#include "app.h"
#include "stages/stage_parse.h"
#include "stages/stage_text.h"

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  init_gst ();
  only_critical ();
  return 0;
}

static void
read_words (const gchar *text)
{
  gchar *word, *quoted = stage_text_quote (text);

  require (quoted != NULL);
  g_free (quoted);
  while ((word = stage_text_next_word (&text)))
    g_free (word);
}

static gchar *
look_up (const gchar *name, const gchar *form, gpointer data)
{
  return form ? NULL : g_strdup (name);
}

static void
expand (const gchar *text)
{
  gsize offset = 0;
  gchar *expanded = stage_text_expand (text, look_up, NULL, &offset);

  require (expanded || (offset < strlen (text) && text[offset] == '{'));
  g_free (expanded);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  gchar *text = g_strndup ((const gchar *) data, size);
  GError *error = NULL;
  StageFile *stage = stage_file_parse ("fuzz", "fuzz.launch", text, size, &error);

  check_error (stage != NULL, &error);
  if (stage)
    stage_file_free (stage);
  read_words (text);
  expand (text);
  g_free (text);
  return 0;
}
