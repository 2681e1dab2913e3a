// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/member_authenticator.h"

#include "access/member_token.h"

// The keys of a cluster change with a restart only.
typedef struct {
  gchar *secret; // NULL: there is no cluster
  gchar *name;
} MemberAuthenticator;

static void
answer (AccessDecision *asked, MemberVerdict verdict, const gchar *from)
{
  const AccessRequest *request = access_decision_get_request (asked);
  g_autofree gchar *user = from ? g_strconcat ("member ", from, NULL) : NULL;

  switch (verdict) {
    case MEMBER_TOKEN_NONE:
      access_decision_answer (asked, AUTH_PASSES, NULL, NULL);
      break;
    case MEMBER_TOKEN_WRONG:
      access_decision_answer (asked, AUTH_DENIES, NULL, "wrong token of a member");
      break;
    case MEMBER_TOKEN_EXPIRED:
      access_decision_answer (asked, AUTH_RENEWS, user, NULL);
      break;
    case MEMBER_TOKEN_GOOD:
      if (request->action == ACCESS_READ && !request->lists)
        access_decision_answer (asked, AUTH_ADMITS, user, NULL);
      else
        access_decision_answer (asked, AUTH_FORBIDS, user, "members may only read");
      break;
  }
}

static void
member_authenticator_ask (gpointer data, AccessDecision *asked)
{
  const MemberAuthenticator *self = data;
  const gchar *token = access_decision_get_request (asked)->token;
  g_autofree gchar *from = NULL;
  MemberVerdict verdict = MEMBER_TOKEN_NONE;

  if (self->secret && token)
    verdict = member_token_check (
        self->secret, token, self->name, g_get_real_time () / G_USEC_PER_SEC, &from);
  answer (asked, verdict, from);
}

static void
member_authenticator_free (gpointer data)
{
  MemberAuthenticator *self = data;

  g_free (self->secret);
  g_free (self->name);
  g_free (self);
}

gpointer
member_authenticator_new (const ProxyConfig *config)
{
  MemberAuthenticator *self = g_new0 (MemberAuthenticator, 1);

  if (!config->cluster.address)
    return self;
  self->secret = g_strdup (config->cluster.secret);
  self->name = cluster_config_dup_name (&config->cluster);
  return self;
}

const AuthenticatorOps member_authenticator = { .ask = member_authenticator_ask,
  .free = member_authenticator_free };
