// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/hash_password.h"

#include "config/user.h"

#include <argon2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <termios.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define PASSWORD_MAX 1024

// The least that OWASP's Password Storage Cheat Sheet recommends for argon2id: about 20 ms.
#define PASSES 2
#define KIB (19 * 1024)
#define LANES 1
#define SALT_BYTES 16
#define HASH_BYTES 32

// Reads a line without its end. Returns FALSE if it is empty or too long.
static gboolean
read_line (gchar *line)
{
  gsize len;

  if (!fgets (line, PASSWORD_MAX + 2, stdin))
    line[0] = '\0';
  len = strcspn (line, "\r\n");
  line[len] = '\0';
  return len > 0 && len <= PASSWORD_MAX;
}

// Asks on the terminal, without showing what is typed.
static gboolean
ask (const gchar *prompt, gchar *line)
{
  struct termios shown, hidden;
  gboolean ok;

  fputs (prompt, stderr);
  tcgetattr (STDIN_FILENO, &shown);
  hidden = shown;
  hidden.c_lflag &= ~(tcflag_t) ECHO;
  tcsetattr (STDIN_FILENO, TCSAFLUSH, &hidden);
  ok = read_line (line);
  tcsetattr (STDIN_FILENO, TCSADRAIN, &shown);
  fputc ('\n', stderr);
  return ok;
}

static const gchar *
read_password (gchar *password)
{
  static const gchar wrong_length[] = "a password has 1 to 1024 bytes";
  gchar again[PASSWORD_MAX + 2];
  gboolean same;

  if (!isatty (STDIN_FILENO))
    return read_line (password) ? NULL : wrong_length;
  if (!ask ("Password: ", password))
    return wrong_length;
  ask ("Again: ", again);
  same = g_str_equal (password, again);
  explicit_bzero (again, sizeof again);
  return same ? NULL : "the two passwords differ";
}

static gboolean
print_hash (const gchar *password)
{
  guint8 salt[SALT_BYTES];
  gchar encoded[256];

  if (getrandom (salt, sizeof salt, 0) != sizeof salt
      || argon2id_hash_encoded (PASSES, KIB, LANES, password, strlen (password), salt, sizeof salt,
             HASH_BYTES, encoded, sizeof encoded)
             != ARGON2_OK)
    return FALSE;
  printf ("hash: \"%s\"\n", encoded);
  return TRUE;
}

static void
print_digests (const gchar *user, const gchar *password)
{
  g_autofree gchar *text = g_strdup_printf ("%s:" USERS_REALM ":%s", user, password);
  g_autofree gchar *sha256 = g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);
  g_autofree gchar *md5 = g_compute_checksum_for_string (G_CHECKSUM_MD5, text, -1);

  printf ("digest: [SHA-256:%s, MD5:%s]\n", sha256, md5);
  explicit_bzero (text, strlen (text));
}

static const GOptionEntry *
entries (gchar **user)
{
  static GOptionEntry table[] = {
    { "user", 'u', 0, G_OPTION_ARG_STRING, NULL,
        "Also print the secrets for RTSP digest authentication, which depend on the name", "NAME" },
    { NULL },
  };

  table[0].arg_data = user;
  return table;
}

static gboolean
parse (int *argc, char ***argv, gchar **user)
{
  GOptionContext *context = g_option_context_new (NULL);
  g_autoptr (GError) error = NULL;
  gboolean ok;

  g_option_context_set_summary (context,
      "Reads a password from the terminal or the standard input, and prints the secrets of a user "
      "for\nthe configuration.");
  g_option_context_add_main_entries (context, entries (user), NULL);
  ok = g_option_context_parse (context, argc, argv, &error);
  g_option_context_free (context);
  if (!ok)
    fprintf (stderr, "rtsp-proxy: %s\n", error->message);
  else if (*argc > 1)
    fputs ("rtsp-proxy: hash-password takes no password as an argument, because ps shows arguments "
           "to all users\n",
        stderr);
  return ok && *argc == 1;
}

int
hash_password_run (int argc, char **argv)
{
  gchar password[PASSWORD_MAX + 2], *user = NULL;
  const gchar *wrong;
  int status = EXIT_USAGE;

  g_set_prgname ("rtsp-proxy " HASH_PASSWORD_COMMAND);
  if (parse (&argc, &argv, &user)) {
    wrong = read_password (password);
    if (!wrong && !print_hash (password))
      wrong = "the password cannot be hashed";
    if (!wrong && user)
      print_digests (user, password);
    if (wrong)
      fprintf (stderr, "rtsp-proxy: %s\n", wrong);
    explicit_bzero (password, sizeof password);
    status = wrong ? EXIT_FAILURE : EXIT_SUCCESS;
  }
  g_free (user);
  return status;
}
