// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Runs every test of the cache twice: with buffers and with lists of buffers, which take different
// paths through the cache.
#include <gst/check/gstharness.h>

static gboolean feeds_lists;

// Pushes the buffer, or a list that contains only the buffer.
static GstFlowReturn
feed (GstHarness *h, GstBuffer *buffer)
{
  GstBufferList *list;

  if (!feeds_lists)
    return gst_harness_push (h, buffer);
  list = gst_buffer_list_new ();
  gst_buffer_list_add (list, buffer);
  return gst_pad_push_list (h->srcpad, list);
}

typedef struct {
  const gchar *name;
  void (*run) (void);
} Test;

static void
test_with_buffers (gconstpointer test)
{
  feeds_lists = FALSE;
  ((const Test *) test)->run ();
}

static void
test_with_lists (gconstpointer test)
{
  feeds_lists = TRUE;
  ((const Test *) test)->run ();
}

static void
add_test (const gchar *suite, const gchar *fed, const Test *test, GTestDataFunc run)
{
  gchar *path = g_strdup_printf ("/%s/%s/%s", suite, fed, test->name);

  g_test_add_data_func (path, test, run);
  g_free (path);
}

static inline void
add_tests (const gchar *suite, const Test *tests, guint n)
{
  for (guint i = 0; i < n; i++)
    add_test (suite, "buffers", &tests[i], test_with_buffers);
  for (guint i = 0; i < n; i++)
    add_test (suite, "lists", &tests[i], test_with_lists);
}
