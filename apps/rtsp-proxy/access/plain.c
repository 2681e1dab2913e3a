// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/plain.h"

#include <string.h>

static void
wipe (gchar *secret)
{
  if (secret)
    explicit_bzero (secret, strlen (secret));
  g_free (secret);
}

AccessDecision *
access_ask_plain (Access *self, AccessPeer *peer, const AccessRequest *request, const gchar *user,
    const gchar *secret, AccessDone done, gpointer data)
{
  gchar *pair = user ? g_strconcat (user, ":", secret ? secret : "", NULL) : NULL;
  gchar *coded = pair ? g_base64_encode ((const guchar *) pair, strlen (pair)) : NULL;
  gchar *header = coded ? g_strconcat ("Basic ", coded, NULL) : NULL;
  AccessRequest whole = *request;
  AccessDecision *asked;

  whole.authorization = header;
  asked = access_ask (self, peer, &whole, done, data);
  wipe (header);
  wipe (coded);
  wipe (pair);
  return asked;
}
