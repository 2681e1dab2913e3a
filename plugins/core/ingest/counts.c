// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ingest/counts.h"

const char *
weir_ingest_drop_name (WeirIngestDrop reason)
{
  static const char *const names[WEIR_INGEST_N_DROPS] = {
    [WEIR_INGEST_MALFORMED] = "malformed",
    [WEIR_INGEST_FOREIGN] = "foreign",
    [WEIR_INGEST_OTHER_SSRC] = "other-ssrc",
    [WEIR_INGEST_PAYLOAD_TYPE] = "payload-type",
    [WEIR_INGEST_DUPLICATE] = "duplicate",
    [WEIR_INGEST_LATE] = "late",
    [WEIR_INGEST_FLUSHED] = "flushed",
    [WEIR_INGEST_NO_MEMORY] = "no-memory",
  };

  return (unsigned) reason < WEIR_INGEST_N_DROPS ? names[reason] : "unknown";
}
