// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The number of streams that disks can give (Choe 2007, section 3.1):
// N = D t_b r_d / (t_a D_s r_d + r_c t_b), and N r_c may not exceed the rate of the line.

#include <stdint.h>

typedef struct {
  uint32_t n_disks;   // D
  uint32_t n_stripes; // D_s, disks over which a block is striped; 1 in a block store
  double access_s;    // t_a
  double disk_rate;   // r_d, bits a second
  double slice_s;     // t_b
  double line_rate;   // r_l, bits a second; 0: no limit
} WeirDiskModel;

// Returns the largest number of streams of `rate` bits a second (r_c), 0 if an argument is not
// positive.
uint64_t weir_disk_model_streams (const WeirDiskModel *model, double rate);

// Returns the share of the disks' time that one stream of `rate` bits a second takes (0 to 1 and
// more). The sum over all streams may not exceed 1.
double weir_disk_model_share (const WeirDiskModel *model, double rate);
