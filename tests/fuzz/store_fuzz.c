// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the reader of store.yaml.

#include "fuzz.h"
#include "store/blockstore.h"
#include "store/storefile.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  GError *error = NULL;
  WeirStoreFile *file = weir_store_file_parse ("store.yaml", (const gchar *) data, size, &error);

  require ((file == NULL) == (error != NULL));
  if (error) {
    require (g_error_matches (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NO_STORE)
             || g_error_matches (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NEWER));
    require (g_str_has_prefix (error->message, "store.yaml:"));
    g_error_free (error);
    return 0;
  }
  require (file->disks->len > 0 && file->slice_ns >= WEIR_STORE_SLICE_MIN_NS);
  for (guint i = 0; i < file->disks->len; i++)
    require (g_path_is_absolute (g_array_index (file->disks, WeirStoreFileDisk, i).path));
  weir_store_file_free (file);
  return 0;
}
