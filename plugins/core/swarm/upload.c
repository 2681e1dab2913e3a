// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swarm/upload.h"

#define SECONDS 8 // that are averaged
#define PART_MAX 8

uint64_t
weir_upload_limit (WeirUpload *self, uint64_t payload, int64_t messages)
{
  const double most = (double) payload / PART_MAX;

  self->rate += ((double) (messages - self->messages) - self->rate) / SECONDS;
  self->messages = messages;
  return payload + (uint64_t) (self->rate < 0 ? 0 : self->rate > most ? most : self->rate);
}
