// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disks/model.h"

#include "tap.h"

// The disks of Choe 2007, section 4.2.
static const WeirDiskModel paper = {
  .n_disks = 8, .n_stripes = 1, .access_s = 0.017, .disk_rate = 525e6, .slice_s = 5
};

static void
streams_are_as_the_paper_computes_them (void)
{
  WeirDiskModel model = paper;

  CHECK_INT (weir_disk_model_streams (&model, 6e6), 539); // 40 s / 74.1 ms
  CHECK_INT (weir_disk_model_streams (&model, 25e6), 156);
  model.n_disks = 1;
  CHECK_INT (weir_disk_model_streams (&model, 1e6), 188);
}

static void
striping_costs_an_access_for_each_disk (void)
{
  WeirDiskModel model = paper;

  model.n_stripes = 8;
  CHECK_INT (weir_disk_model_streams (&model, 6e6), 207);
}

static void
the_line_is_a_limit (void)
{
  WeirDiskModel model = paper;

  model.line_rate = 1.9e9;
  CHECK_INT (weir_disk_model_streams (&model, 6e6), 316);
}

static void
shares_add_up (void)
{
  double share = weir_disk_model_share (&paper, 6e6);

  CHECK (share * 539 <= 1);
  CHECK (share * 540 > 1);
}

static void
arguments_that_are_not_positive_give_no_streams (void)
{
  WeirDiskModel model = paper;

  CHECK_INT (weir_disk_model_streams (&model, 0), 0);
  model.disk_rate = 0;
  CHECK_INT (weir_disk_model_streams (&model, 6e6), 0);
  model = paper;
  model.n_disks = 0;
  CHECK_INT (weir_disk_model_streams (&model, 6e6), 0);
}

int
main (void)
{
  RUN (streams_are_as_the_paper_computes_them);
  RUN (striping_costs_an_access_for_each_disk);
  RUN (the_line_is_a_limit);
  RUN (shares_add_up);
  RUN (arguments_that_are_not_positive_give_no_streams);
  return tap_done ();
}
