// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of transport feedback and REMB, and the estimator that takes what they read.
// The input is one compound packet.

#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "net/estimate.h"

#define SECOND INT64_C (1000000000)
#define PACKETS 300
#define SIZE 1200

// Feedback cannot make an estimate higher than what was sent.
static void
take (WeirEstimate *estimate, const WeirFeedback *feedback, int64_t now)
{
  WeirEstimateView view;

  require (feedback->n <= WEIR_FEEDBACK_MAX);
  weir_estimate_feedback (estimate, feedback, now);
  view = weir_estimate_view (estimate, now);
  require (!view.is_lower_bound || view.bits <= UINT64_C (8) * PACKETS * SIZE * 10);
  require (view.queue_ns >= 0 && view.loss <= 1000);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  // Exactly the input's size, so that a sanitizer sees a read past its end.
  uint8_t *copy = malloc (size ? size : 1);
  WeirEstimate *estimate = weir_estimate_new (WEIR_ESTIMATE_RING);
  static WeirFeedback feedback;
  WeirBytes compound;
  uint64_t bits = 0;
  int64_t now = SECOND;
  int read;

  require (copy != NULL && estimate != NULL);
  memcpy (copy, data, size);
  compound = weir_bytes (copy, size);
  while ((read = weir_feedback_next (&compound, &feedback)) == 1) {
    for (unsigned i = 0; i < PACKETS; i++)
      weir_estimate_sent (estimate, (uint16_t) (feedback.first + i), SIZE, now + i);
    now += SECOND / 10;
    take (estimate, &feedback, now);
    take (estimate, &feedback, now);
  }
  require (read == 0 || read == -EBADMSG);
  if (weir_feedback_read_remb (copy, size, &bits))
    weir_estimate_remb (estimate, bits, now);
  weir_estimate_view (estimate, now);
  weir_estimate_free (estimate);
  free (copy);
  return 0;
}
