// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/disk_figures.h"

#define AT(field) G_STRUCT_OFFSET (StoreDisk, field)

const Figure disk_figures[] = {
  { "queue", "store_disk_queue", "gauge",
      "Reads that wait for the disk or are in progress. A read that waits at the disks of both "
      "copies is counted at both.",
      AT (queue) },
  { "failing", "store_disk_failing", "gauge", "1 while the disk is avoided, 0 while not.",
      AT (failing) },
  { "service-microseconds", "store_disk_service_microseconds", "gauge",
      "Moving average of the time of a read.", AT (service_us) },
  { "access-microseconds", "store_disk_access_microseconds", "gauge",
      "Measured access time, which each read takes. 0 while reads of one size do not tell it.",
      AT (access_us) },
  { "rate", "store_disk_rate", "gauge",
      "Measured rate, bits a second. 0 while reads of one size do not tell it.", AT (rate) },
  { "reads", "store_disk_reads_total", "counter", "Reads of the disk.", AT (reads) },
  { "read-bytes", "store_disk_read_bytes_total", "counter", "Bytes read from the disk.",
      AT (bytes) },
  { "errors", "store_disk_errors_total", "counter", "Reads that failed.", AT (errors) },
  { "second-choices", "store_disk_second_choices_total", "counter",
      "Reads of a copy that is not the first one of its block.", AT (second_choices) },
  { "moved-here", "store_disk_moved_here_total", "counter",
      "Copies that the proxy has moved to the disk, to balance the store.", AT (moved_here) },
  { "moved-away", "store_disk_moved_away_total", "counter",
      "Copies that the proxy has moved away from the disk, to balance the store.",
      AT (moved_away) },
  { NULL },
};

#undef AT

guint
disk_figures_sample (Mount *mount, StoreDisk disks[DISK_FIGURES_MAX])
{
  g_autoptr (Store) store = mount_dup_store (mount);

  return store ? store_get_disks (store, disks, DISK_FIGURES_MAX) : 0;
}

void
disk_figures_write (JsonBuilder *builder, Mount *mount)
{
  StoreDisk disks[DISK_FIGURES_MAX];
  guint n = disk_figures_sample (mount, disks);

  if (n == 0)
    return;
  json_builder_set_member_name (builder, "disks");
  json_builder_begin_array (builder);
  for (guint i = 0; i < n; i++) {
    json_builder_begin_object (builder);
    json_builder_set_member_name (builder, "disk");
    json_builder_add_int_value (builder, disks[i].number);
    figures_write (disk_figures, &disks[i], builder);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}
