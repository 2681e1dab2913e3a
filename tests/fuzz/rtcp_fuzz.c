// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes all code that reads RTCP. The input is one compound packet.

#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "rtp/rtcp_read.h"

#define STREAM 0x55667788 // the stream for which the corpus requests keyframes and packets
#define NACKS 40

static void
check_report (const WeirRtcpReport *report)
{
  require (report->n_blocks <= WEIR_RTCP_BLOCKS_MAX);
  for (size_t i = 0; i < report->n_blocks; i++)
    require (report->blocks[i].lost >= -0x800000 && report->blocks[i].lost < 0x800000);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  // Exactly the input's size, so that a sanitizer sees a read past its end.
  uint8_t *copy = malloc (size ? size : 1);
  WeirRtcpReport report;
  WeirNtpMap sr;
  uint16_t seqs[NACKS];
  size_t n;
  int read;

  require (copy != NULL);
  memcpy (copy, data, size);
  read = weir_rtcp_read (copy, size, &report);
  require (read == 0 || read == -EBADMSG || read == -ENOENT);
  if (read == 0)
    check_report (&report);
  require (!weir_rtcp_asks_key (copy, size, STREAM) || read != -EBADMSG);
  n = weir_rtcp_read_nacks (copy, size, STREAM, seqs, NACKS);
  require (n <= NACKS && (n == 0 || read != -EBADMSG));
  require (!weir_rtcp_is_sound (copy, size) || read != -EBADMSG);
  if (weir_rtcp_find_sr (copy, size, &sr) == 0)
    require (weir_rtcp_find_sr_of (copy, size, sr.ssrc, &sr) == 0);
  free (copy);
  return 0;
}
