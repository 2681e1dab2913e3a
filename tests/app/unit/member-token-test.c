// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/member_token.h"

#include <glib.h>
#include <string.h>

#define SECRET "a secret of the whole cluster"
#define NOW 1800000000

static MemberVerdict
check (const gchar *token, const gchar *to, gint64 now_s, const gchar *from)
{
  g_autofree gchar *got = NULL;
  MemberVerdict verdict = member_token_check (SECRET, token, to, now_s, &got);

  g_assert_cmpstr (got, ==, from);
  return verdict;
}

static void
a_token_names_its_sender (void)
{
  g_autofree gchar *token = member_token_new (SECRET, "hall-1", "hall-2", NOW + 90);

  g_assert_cmpint (check (token, "hall-2", NOW, "hall-1"), ==, MEMBER_TOKEN_GOOD);
  g_assert_cmpint (check (token, "hall-2", NOW + 89, "hall-1"), ==, MEMBER_TOKEN_GOOD);
  g_assert_cmpint (check (token, "hall-2", NOW + 90, "hall-1"), ==, MEMBER_TOKEN_EXPIRED);
  g_assert_cmpint (check (token, "hall-3", NOW, NULL), ==, MEMBER_TOKEN_WRONG);
}

static void
another_secret_is_wrong (void)
{
  g_autofree gchar *token = member_token_new ("of other members", "hall-1", "hall-2", NOW + 90);

  g_assert_cmpint (check (token, "hall-2", NOW, NULL), ==, MEMBER_TOKEN_WRONG);
}

// No character of a token can be changed, and none be left out.
static void
a_changed_token_is_wrong (void)
{
  g_autofree gchar *token = member_token_new (SECRET, "hall-1", "hall-2", NOW + 90);
  const gsize header = strcspn (token, "."), len = strlen (token);

  for (gsize i = 0; i < len; i++) {
    g_autofree gchar *changed = g_strdup (token), *cut = g_strndup (token, i);
    const MemberVerdict expected = i <= header ? MEMBER_TOKEN_NONE : MEMBER_TOKEN_WRONG;

    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    g_assert_cmpint (check (changed, "hall-2", NOW, NULL), ==, expected);
    g_assert_cmpint (check (cut, "hall-2", NOW, NULL), ==, expected);
  }
}

static void
other_tokens_are_none (void)
{
  static const gchar *const tokens[] = { "", ".", "..", "x", "eyJhbGciOiJSUzI1NiJ9.e30.AA",
    "eyJhbGciOiJIUzI1NiJ9.e30.AA" };

  for (guint i = 0; i < G_N_ELEMENTS (tokens); i++)
    g_assert_cmpint (check (tokens[i], "hall-2", NOW, NULL), ==, MEMBER_TOKEN_NONE);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/member-token/sender", a_token_names_its_sender);
  g_test_add_func ("/member-token/secret", another_secret_is_wrong);
  g_test_add_func ("/member-token/changed", a_changed_token_is_wrong);
  g_test_add_func ("/member-token/other", other_tokens_are_none);
  return g_test_run ();
}
