// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disks/model.h"

double
weir_disk_model_share (const WeirDiskModel *model, double rate)
{
  double read_s, disk_s = model->n_disks * model->slice_s;

  if (model->n_stripes == 0 || model->access_s < 0 || model->disk_rate <= 0 || disk_s <= 0
      || rate <= 0)
    return 0;
  read_s = model->access_s * model->n_stripes + rate * model->slice_s / model->disk_rate;
  return read_s / disk_s;
}

uint64_t
weir_disk_model_streams (const WeirDiskModel *model, double rate)
{
  double share = weir_disk_model_share (model, rate);
  double n = share > 0 ? 1 / share : 0;

  if (model->line_rate > 0 && n * rate > model->line_rate)
    n = model->line_rate / rate;
  return (uint64_t) (n + 1e-9);
}
