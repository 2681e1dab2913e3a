// SPDX-License-Identifier: LGPL-2.1-or-later
// Prints the most microseconds that the clones of one message took, of the kernel path that was
// started last on this machine. Softirqs are off for this time. Needs root.
#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernel/layout.h"

// Returns a descriptor of the newest map of slots, or -1.
static int
find_slots (void)
{
  int found = -1;

  for (__u32 id = 0; bpf_map_get_next_id (id, &id) == 0;) {
    struct bpf_map_info info = { 0 };
    __u32 size = sizeof info;
    int fd = bpf_map_get_fd_by_id (id);

    if (fd < 0)
      continue;
    if (bpf_obj_get_info_by_fd (fd, &info, &size) == 0 && strcmp (info.name, "slots") == 0
        && info.value_size == sizeof (struct clone_slot)) {
      if (found >= 0)
        close (found);
      found = fd;
    } else {
      close (fd);
    }
  }
  return found;
}

int
main (void)
{
  int map = find_slots ();
  struct clone_slot slot;
  __u64 longest = 0;

  for (__u32 i = 0; i < CLONE_SLOTS; i++) {
    if (bpf_map_lookup_elem (map, &i, &slot) < 0) {
      fputs ("longest_trigger: no kernel path runs, or this process may not look\n", stderr);
      return 1;
    }
    if (slot.longest > longest)
      longest = slot.longest;
  }
  printf ("%.1f\n", (double) longest / 1e3);
  return 0;
}
