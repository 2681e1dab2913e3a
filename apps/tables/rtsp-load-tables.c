// SPDX-License-Identifier: LGPL-2.1-or-later
// Prints the options of rtsp-load, as JSON.
#include "option_table.h"

#include "../rtsp-load/options.h"

int
main (void)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  option_table_write (builder, options_entries, options_summary, options_description);
  json_builder_end_object (builder);
  option_table_print (builder);
}
