// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/srt/srt_problem.h"

#include <string.h>

static const struct {
  const gchar *line; // a part of libsrt's, since 1.4.2
  const gchar *text;
} problems[SRT_PROBLEMS] = {
  [SRT_PROBLEM_UNKNOWN] = { NULL, "its handshake was not completed" },
  [SRT_PROBLEM_SECRET_WRONG] = { "KMREQ result", "its passphrase is wrong" },
  [SRT_PROBLEM_SECRET_MISSING] = { "Agent declares encryption, but Peer does not",
      "it has no passphrase, and the listener has one (srt.passphrase)" },
  [SRT_PROBLEM_SECRET_UNEXPECTED] = { "Peer declares encryption, but agent does not",
      "it has a passphrase, and the listener has none (srt.passphrase)" },
};

SrtProblem
srt_problem_find (const gchar *line)
{
  for (guint i = SRT_PROBLEM_UNKNOWN + 1; i < SRT_PROBLEMS; i++) {
    if (strstr (line, problems[i].line))
      return i;
  }
  return SRT_PROBLEM_UNKNOWN;
}

const gchar *
srt_problem_text (SrtProblem problem)
{
  return problems[problem].text;
}
