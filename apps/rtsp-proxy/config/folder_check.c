// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/folder_check.h"

#include "text/config_error.h"

#include <glib/gstdio.h>
#include <unistd.h>

gchar *
folder_check_writable (SchemaText *it, const gchar *why)
{
  if (g_file_test (it->text, G_FILE_TEST_IS_DIR) && g_access (it->text, W_OK | X_OK) == 0)
    return NULL;
  it->code = CONFIG_ERROR_ABSENT;
  return g_strdup_printf ("cannot write to the folder %s: %s", it->text, why);
}
