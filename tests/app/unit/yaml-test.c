// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What a text that is not YAML is told: what a person did, and where.

#include "text/config_error.h"
#include "text/yaml_reader.h"

#include <string.h>

static const struct {
  const gchar *text, *wrong;
} cases[] = {
  { "mounts:\n\t/cam:\n\t\tupstream: x\n",
      "2:1: a tab indents this line; YAML allows spaces only" },
  { "mounts:\n  /cam:\n  \tupstream: x\n",
      "3:3: a tab indents this line; YAML allows spaces only" },
  { "mounts:\n  /cam:\n    upstream: x\n\tlinger: 1s\n",
      "4:1: a tab indents this line; YAML allows spaces only" },
  { "listen: \":8554\nmounts:\n  /cam: {upstream: x}\n",
      "1:9: the quote (\") that begins this text has no end" },
  { "listen: \":8554\nmounts:\n  /cam: {upstream: \"x\"}\n",
      "1:9: the quote (\") that begins this text is missing at its end: the next one is in line "
      "3" },
  { "listen: ':8554\nmounts:\n  /cam: {upstream: x}\n",
      "1:9: the quote (') that begins this text has no end" },
  { "mounts:\n  /cam: {upstream: 'it's'}\n",
      "2:24: expected a comma or }; a text that contains \": \" or quotes needs quotes around it" },
  { "listen: \":8554\"x\n", "1:16: a text in quotes ends before this; within double quotes write "
                            "\\\" for a quote, within single ones ''" },
  { "listen :8554\nmounts:\n  /cam: {upstream: x}\n",
      "1:1: expected \"key: value\", but this line has no colon after a key" },
  { "mounts:\n  /cam:\n    upstream rtsp://x\n    linger: 2s\n",
      "3:5: expected \"key: value\", but this line has no colon after a key" },
  { "listen:8554\nmounts:\n  /cam: {upstream: x}\n",
      "1:1: a space is missing after the colon of this line" },
  { "mounts:\n  /cam:\n    upstream: x\n    linger:2s\n",
      "4:5: a space is missing after the colon of this line" },
  { "mounts:\n  /cam:\n    upstream: x\n   linger: 2s\n",
      "4:4: the indentation of this line fits none of the lines above" },
  { "mounts:\n  /cam:\n    upstream: x\n      linger: 2s\n",
      "4:7: this line is indented deeper than line 3, which has a value already" },
  { "mounts:\n  /cam:\n    upstream: x: y\n", "3:16: a value that contains \": \" needs quotes" },
  { "mounts:\n  /cam: {upstream: x\n  /b: {upstream: y}\n", "2:9: this { has no end; add }" },
  { "mounts:\n  /cam: {upstream: x\n", "2:9: this { has no end; add }" },
  { "mounts:\n  /cam:\n    upstreams: [x, y\n    linger: 2s\n", "3:16: this [ has no end; add ]" },
  { "mounts:\n  /cam: {upstream: x}}\n",
      "2:22: this } closes nothing; remove it, or put the text around it in quotes" },
  { "mounts:\n  /cam:\n    upstreams: [a]]\n",
      "3:19: this ] closes nothing; remove it, or put the text around it in quotes" },
  { "mounts:\n  /cam: {upstreams: [a}]\n",
      "2:23: this } cannot close the [ of line 2, column 21; write ]" },
  { "mounts:\n  /cam: {upstream: x linger: 2s}\n",
      "2:28: expected a comma or }; a text that contains \": \" or quotes needs quotes around it" },
  { "mounts:\n  /cam: {upstream: \"x\" linger: 2s}\n",
      "2:24: expected a comma or }; a text that contains \": \" or quotes needs quotes around it" },
  { "mounts:\n  /cam: {upstreams: [\"x\" \"y\"]}\n",
      "2:26: expected a comma or ]; a text that contains \": \" or quotes needs quotes around it" },
  { "path: *\n", "1:7: a text that begins with * needs quotes" },
  { "path: *.x\n", "1:7: a text that begins with * needs quotes" },
  { "a: %b\n", "1:4: a text that begins with % needs quotes" },
  { "a: @b\n", "1:4: a text that begins with @ needs quotes" },
  { "a: `b`\n", "1:4: a text that begins with ` needs quotes" },
  { "a: |b\n", "1:4: a text that begins with | needs quotes" },
  { "a: >b\n", "1:4: a text that begins with > needs quotes" },
  { "a: ,b\n", "1:4: a text that begins with , needs quotes" },
  { "a: *b\n", "1:4: a text that begins with * needs quotes" },
  { "a: \"C:\\path\"\n",
      "1:7: within double quotes a backslash needs another one (\\\\); or use single quotes" },
  { "a: \"x\\d\"\n",
      "1:6: within double quotes a backslash needs another one (\\\\); or use single quotes" },
  { "listen: :0\n\357\273\277mounts: {}\n", "2:2: not YAML: did not find expected key" },
  { "mounts:\n  - a\n  b: c\n", "3:3: this line belongs to no item of the list above; indent it "
                                "like the keys of an item, or begin it with \"- \"" },
  { "mounts:\n  b: c\n  - a\n",
      "3:3: an item of a list (\"- \") cannot stand here; indent it like the items of its list" },
  { "%FOO\na: b\n", "1:1: a text that begins with % needs quotes" },
  { "a: b\n---\nc: d\n", "2:1: a second YAML document begins here; put everything into one" },
  { "// hello\nlisten: :0\n", "1:1: a comment begins with #" },
  { "a\nb: c\n", "1:1: expected \"key: value\", but this line has no colon after a key" },
  { "hosts: [a, b\nlisten: :0\n", "1:8: this [ has no end; add ]" },
  { "a: \"b\" c: d\n", "1:8: a text in quotes ends before this; within double quotes write \\\" "
                       "for a quote, within single ones ''" },
  { "\"listen: x\nb: c\n", "1:1: the quote (\") that begins this text has no end" },
  { "a: & b\n", "1:4: a text that begins with & needs quotes" },
  { "a: !<x y\n", "1:7: not YAML: did not find the expected '>'" },
  { "%YAML 2.0\n---\na: b\n", "1:1: not YAML: found incompatible YAML document" },
  { "%YAML 1.1\n%YAML 1.1\n---\na: b\n", "2:1: not YAML: found duplicate %YAML directive" },
  { "a: |9x\n b\n", "1:4: a text that begins with | needs quotes" },
  { "a: |\n\tb\n", "2:1: a tab indents this line; YAML allows spaces only" },
  { "a: |\n    \n  b\n", "3:3: the indentation of this line fits none of the lines above" },
  { "a: \"b\n---\nc\"\n", "1:4: the quote (\") that begins this text has no end" },
  { "```yaml\nlisten: :0\n```\n", "1:1: a text that begins with ` needs quotes" },
  { "a: - b\n", "1:4: a list begins in the line after its key, or is written [A, B]; a text that "
                "begins with \"- \" needs quotes" },
  { "users: - name: x\n", "1:8: a list begins in the line after its key, or is written [A, B]; a "
                          "text that begins with \"- \" needs quotes" },
  { "a: [b,,c]\n", "1:7: a value is missing before this ," },
  { "a: {b: }}\n", "1:9: this } closes nothing; remove it, or put the text around it in quotes" },
  { "a: [b, c\n", "1:4: this [ has no end; add ]" },
  { "{\"a\": {\"b\": 1}\n", "1:1: this { has no end; add }" },
  { "{\"a\": 1\n \"b\": 2}\n",
      "2:5: expected a comma or }; a text that contains \": \" or quotes needs quotes around it" },
  { "{\"a: 1}\n", "1:2: the quote (\") that begins this text has no end" },
  { "{\"a\" 1}\n",
      "1:6: expected a comma or }; a text that contains \": \" or quotes needs quotes around it" },
  { "mounts:\n  /cam:\n    upstream: x\n  - y\n",
      "4:3: an item of a list (\"- \") cannot stand here; indent it like the items of its list" },
  { "mounts:\n    /a: {upstream: x}\n  /b: {upstream: y}\n",
      "3:3: the indentation of this line fits none of the lines above" },
  { "mounts: x\n  /cam:\n    upstream: y\n",
      "2:3: this line is indented deeper than line 1, which has a value already" },
  { "cache: {time: 1s}\n  bytes: 3\n",
      "2:3: the indentation of this line fits none of the lines above" },
  { "a: \"b\"\n  c: d\n", "2:3: the indentation of this line fits none of the lines above" },
  { "password: a: b\n", "1:12: a value that contains \": \" needs quotes" },
  { "password: @abc\n", "1:11: a text that begins with @ needs quotes" },
  { "password: %abc\n", "1:11: a text that begins with % needs quotes" },
  { "password: *abc\n", "1:11: a text that begins with * needs quotes" },
  { "password: {abc\n", "1:11: this { has no end; add }" },
  { "password: [abc\n", "1:11: this [ has no end; add ]" },
  { "password: ]abc\n", "1:11: a text that begins with ] needs quotes" },
  { "password: }abc\n", "1:11: a text that begins with } needs quotes" },
  { "password: \"a\n", "1:11: the quote (\") that begins this text has no end" },
  { "password: |abc\n", "1:11: a text that begins with | needs quotes" },
  { "password: >abc\n", "1:11: a text that begins with > needs quotes" },
  { "password: - abc\n", "1:11: a list begins in the line after its key, or is written [A, B]; a "
                         "text that begins with \"- \" needs quotes" },
  { "permissions: [{action: read, path: *}]\n", "1:36: a text that begins with * needs quotes" },
  { ":\n", "1:1: the key is missing before this colon" },
  { ": x\n", "1:1: the key is missing before this colon" },
  { "\t\n", "1:1: a tab indents this line; YAML allows spaces only" },
  { "listen: x\n\t# hi\nmounts: {}\n", "2:1: a tab indents this line; YAML allows spaces only" },
  { "listen: x\n\t\nmounts: {}\n", "2:1: a tab indents this line; YAML allows spaces only" },
  { "a: \"b\n", "1:4: the quote (\") that begins this text has no end" },
  { "a:\n b:\n  c:\n   - d: e\n     f: g\n    h: i\n",
      "6:5: this line belongs to no item of the list above; indent it like the keys of an item, or "
      "begin it with \"- \"" },
  { "\360\237\216\245: x: y\n", "1:5: a value that contains \": \" needs quotes" },
  { "hosts:\n  - a\n - b\n",
      "3:2: an item of a list (\"- \") cannot stand here; indent it like the items of its list" },
  { "users:\n  - name: a\n   hash: b\n",
      "3:4: this line belongs to no item of the list above; indent it like the keys of an item, or "
      "begin it with \"- \"" },
  { "users:\n  - name: a\n     hash: b\n",
      "3:6: this line is indented deeper than line 2, which has a value already" },
  { "a: 'b\\'c'\n", "1:8: a text in quotes ends before this; within double quotes write \\\" for a "
                    "quote, within single ones ''" },
  { "a: \"\\uZZZZ\"\n",
      "1:7: within double quotes a backslash needs another one (\\\\); or use single quotes" },
  { "a: !<\n", "1:6: not YAML: did not find expected tag URI" },
  { "%YAML 1.3\n---\na: b\n", "1:1: not YAML: found incompatible YAML document" },
  { "listen=:0\nmounts: {}\n",
      "1:1: expected \"key: value\", but this line has no colon after a key" },
  { "{% if x %}\n", "1:2: a text that begins with % needs quotes" },
  { "  listen: :0\nmounts: {}\n", "2:1: what stands above is complete, and this does not belong to "
                                  "it; indent all keys of the file alike" },
  { "{\"a\": 1} b\n", "1:10: what stands above is complete, and this does not belong to it; indent "
                      "all keys of the file alike" },
  { "{\"a\": 1}\n{\"b\": 2}\n", "2:1: what stands above is complete, and this does not belong to "
                                "it; indent all keys of the file alike" },
  { "%YAML 1.1\na: b\n",
      "2:1: a line --- is missing between the lines that begin with % and this one" },
  { "a: &x 1\nb: &x 2\n", "2:4: a text that begins with & needs quotes" },
  { "a: [\n", "2:1: a { or [ above has no end; add } or ]" },
  { "<<<<<<< HEAD\nlisten: :0\n=======\nlisten: :1\n>>>>>>> x\n",
      "1:1: expected \"key: value\", but this line has no colon after a key" },
};

// Returns what is wrong with a text, or NULL.
static gchar *
dup_mistake (const gchar *text, gsize len)
{
  GError *error = NULL;
  YamlReader *reader = yaml_reader_new ("f", text, len, &error);
  gchar *wrong = error ? g_strdup (error->message) : NULL;

  g_assert_true (!reader == !!error);
  g_clear_pointer (&reader, yaml_reader_free);
  g_clear_error (&error);
  return wrong;
}

static void
a_mistake_is_told_with_its_place (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *wrong = dup_mistake (cases[i].text, strlen (cases[i].text));

    g_test_message ("%s", cases[i].text);
    g_assert_nonnull (wrong);
    g_assert_true (g_str_has_prefix (wrong, "f:"));
    g_assert_cmpstr (wrong + strlen ("f:"), ==, cases[i].wrong);
    g_free (wrong);
  }
}

static void
bytes_that_are_no_text_are_told (void)
{
  static const struct {
    gchar text[32];
    gsize len;
    const gchar *wrong;
  } files[] = {
    { "a: b\0c", 6, "f:1:5: a NUL byte; save the file as text in UTF-8" },
    { "\0a\0:\0 \0b", 8, "f:1:1: a NUL byte; save the file as text in UTF-8" },
    { "a: caf\xe9\nb: c", 12, "f:1:7: this is not UTF-8; save the file in UTF-8" },
    { "# \xc3\xa9\n\xc3\xa9: \xff\n", 11, "f:2:4: this is not UTF-8; save the file in UTF-8" },
    { "a: \x1b[0m", 7, "f:1:4: a control character (U+001B); remove it" },
    { "a: \xc2\x81", 5, "f:1:4: a control character (U+0081); remove it" },
    { "a: b\r\n\x1a", 7, "f:2:1: a control character (U+001A); remove it" },
    { "\xff\xfe"
      "a\0:\0 \0{\0",
        10, "f:2:1: not YAML: did not find expected node content" },
    { "\xff\xfe"
      "a",
        3, "f:1:1: not YAML: incomplete UTF-16 character" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (files); i++) {
    gchar *wrong = dup_mistake (files[i].text, files[i].len);

    g_assert_cmpstr (wrong, ==, files[i].wrong);
    g_free (wrong);
  }
}

// What editors and other systems write.
static void
what_is_yaml_is_read (void)
{
  static const gchar *const good[] = { "\xef\xbb\xbflisten: :0\n", "a: b\r\nc:\r\n  d: e\r\n",
    "a: b\rc: d\r", "a:\tb\n", "{\n\t\"a\": 1,\n\t\"b\": [1, 2]\n}\n", "a: \"b\n  c\"\n",
    "--- \na: b\n...\n", "%YAML 1.1\n---\na: b\n", "a: |\n  x: y: z\n  \tw\n", "a: 'it''s'\n" };

  for (guint i = 0; i < G_N_ELEMENTS (good); i++)
    g_assert_cmpstr (dup_mistake (good[i], strlen (good[i])), ==, NULL);
}

// Returns the number of lines that a mistake of the text may name: libyaml counts one more after a
// last line without a line break.
static guint
count_lines (const gchar *text, gsize len)
{
  guint n = 2;

  for (gsize i = 0; i < len; i++)
    n += text[i] == '\n' || text[i] == '\r';
  return n;
}

static void
each_part_of_a_text_is_judged (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    for (gsize len = 0; len <= strlen (cases[i].text); len++) {
      for (gsize from = 0; from < len; from++) {
        // A block of its own, so that ASan sees a read beyond its end.
        gchar *part = g_memdup2 (cases[i].text + from, len - from);
        gchar *wrong = dup_mistake (part, len - from);

        if (wrong) {
          guint64 line = g_ascii_strtoull (wrong + strlen ("f:"), NULL, 10);

          g_assert_cmpuint (line, >=, 1);
          g_assert_cmpuint (line, <=, count_lines (part, len - from));
          g_assert_null (strchr (wrong, '\n'));
        }
        g_free (wrong);
        g_free (part);
      }
    }
  }
}

static void
a_long_text_is_judged_at_once (void)
{
  GString *text = g_string_new (NULL);
  gchar *wrong;

  for (guint i = 0; i < 200000; i++)
    g_string_append (text, "# nothing\n");
  g_string_append (text, "a:\n  b: c\n d: e\n");
  wrong = dup_mistake (text->str, text->len);
  g_assert_cmpstr (
      wrong, ==, "f:200003:2: the indentation of this line fits none of the lines above");
  g_free (wrong);
  g_string_free (text, TRUE);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/yaml/a-mistake-is-told-with-its-place", a_mistake_is_told_with_its_place);
  g_test_add_func ("/yaml/bytes-that-are-no-text-are-told", bytes_that_are_no_text_are_told);
  g_test_add_func ("/yaml/what-is-yaml-is-read", what_is_yaml_is_read);
  g_test_add_func ("/yaml/each-part-of-a-text-is-judged", each_part_of_a_text_is_judged);
  g_test_add_func ("/yaml/a-long-text-is-judged-at-once", a_long_text_is_judged_at_once);
  return g_test_run ();
}
