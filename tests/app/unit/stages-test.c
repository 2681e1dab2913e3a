// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/clock.h"
#include "base/element.h"
#include "base/fades.h"
#include "config/proxy_config.h"
#include "stages/choice.h"
#include "stages/stage_elements.h"
#include "stages/stage_parse.h"
#include "stages/stage_text.h"

#include <glib/gstdio.h>
#include <gst/gst.h>
#include <string.h>

#define HEAD "---\nsummary: s\n"
#define RAW HEAD "media: video\ntakes: raw\ngives: raw\n"

static gchar *
shipped_dir (void)
{
  return g_build_filename (g_getenv ("WEIR_DATA"), "..", "..", "pipelines", "stages", NULL);
}

static StageSet *
load_shipped (void)
{
  gchar *directories[] = { shipped_dir (), NULL };
  GError *error = NULL;
  StageSet *set = stage_set_load ((const gchar *const *) directories, &error);

  g_assert_no_error (error);
  g_free (directories[0]);
  return set;
}

/* Parameters */

static void
values_have_one_spelling (void)
{
  static const struct {
    const gchar *param, *text, *value; // NULL: refused
  } cases[] = {
    { "size", "640x360", "640x360" },
    { "size", "0640x0360", "640x360" },
    { "size", "641x360", NULL },
    { "size", "62x360", NULL },
    { "size", "640x3842", NULL },
    { "size", "640X360", NULL },
    { "size", "640x360x2", NULL },
    { "size", "-640x360", NULL },
    { "size", "640x", NULL },
    { "size", "x", NULL },
    { "size", "", NULL },
    { "size", "9999999999x2", NULL },
    { "rate", "600k", "600000" },
    { "rate", "0.6M", "600000" },
    { "rate", "600000", "600000" },
    { "rate", "600.0K", "600000" },
    { "rate", "32k", "32000" },
    { "rate", "31999", NULL },
    { "rate", "50.000001M", NULL },
    { "rate", "1e6", NULL },
    { "rate", "0x100000", NULL },
    { "rate", ".6M", NULL },
    { "rate", "6.M", NULL },
    { "rate", " 600k", NULL },
    { "rate", "600 k", NULL },
    { "rate", "nan", NULL },
    { "rate", "-600k", NULL },
    { "rate", "100000000000000000000000000000000000000", NULL },
    { "keys", "2", NULL },
    { "keys", "2s", "2000" },
    { "keys", "2000ms", "2000" },
    { "keys", "0.5m", "30000" },
    { "keys", "61s", NULL },
    { "keys", "0", NULL },
    { "encoder", "x264", "x264" },
    { "encoder", "openh264", "openh264" },
    { "encoder", "x264 ! fakesink", NULL },
    { "encoder", "", NULL },
    { "none", "1", NULL },
  };
  StageSet *set = load_shipped ();

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Stage *stage = stage_new (set, "transcode", NULL);
    gchar *before = stage_dup_key (stage), *after;
    gchar *wrong = stage_assign (stage, cases[i].param, cases[i].text);

    if (cases[i].value) {
      g_assert_cmpstr (wrong, ==, NULL);
      g_assert_cmpstr (stage_get_value (stage, cases[i].param), ==, cases[i].value);
    } else {
      after = stage_dup_key (stage);
      g_assert_nonnull (wrong);
      g_assert_cmpstr (before, ==, after);
      g_free (after);
    }
    g_free (wrong);
    g_free (before);
    stage_unref (stage);
  }
  stage_set_unref (set);
}

static const StageParam *
find_param (Stage *stage, const gchar *name)
{
  GPtrArray *params = stage_get_file (stage)->params;

  for (guint i = 0; i < params->len; i++) {
    const StageParam *param = g_ptr_array_index (params, i);

    if (g_str_equal (param->name, name))
      return param;
  }
  g_assert_not_reached ();
}

static void
values_are_shown_in_the_largest_unit (void)
{
  static const struct {
    const gchar *param, *text, *shown;
    gboolean is_default;
  } cases[] = {
    { "size", "640x360", "640x360", TRUE },
    { "size", "0320x180", "320x180", FALSE },
    { "rate", "600000", "600k", TRUE },
    { "rate", "2000000", "2M", FALSE },
    { "rate", "600001", "600001", FALSE },
    { "keys", "2000ms", "2s", TRUE },
    { "keys", "150ms", "150ms", FALSE },
    { "keys", "60s", "1m", FALSE },
    { "encoder", "openh264", "openh264", TRUE },
    { "encoder", "x264", "x264", FALSE },
  };
  StageSet *set = load_shipped ();
  Stage *stage = stage_new (set, "transcode", NULL);

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const StageParam *param = find_param (stage, cases[i].param);
    const gchar *value;
    gchar *shown;

    g_assert_null (stage_assign (stage, cases[i].param, cases[i].text));
    value = stage_get_value (stage, cases[i].param);
    shown = stage_param_dup_shown (param, value);
    g_assert_cmpstr (shown, ==, cases[i].shown);
    g_assert_cmpint (stage_param_is_default (param, value), ==, cases[i].is_default);
    g_free (shown);
  }
  stage_unref (stage);
  stage_set_unref (set);
}

static void
an_error_names_range_and_default (void)
{
  static const gchar *const cases[][3] = {
    { "size", "1x1",
        "size: \"1x1\" is not a size from 64x64 to 3840x2160; the default is 640x360" },
    { "rate", "9", "rate: \"9\" is not a bitrate from 32k to 50M; the default is 600k" },
    { "keys", "2", "keys: \"2\" is not a duration from 100ms to 60s; the default is 2s" },
    { "keys", "\xff", "keys: \"…\" is not a duration from 100ms to 60s; the default is 2s" },
    { "encoder", "nvenc", "encoder: \"nvenc\" is not one of openh264, x264" },
    { "sise", "1x1",
        "transcode has no parameter \"sise\"; known parameters: encoder, keys, rate, size" },
  };
  StageSet *set = load_shipped ();
  Stage *stage = stage_new (set, "transcode", NULL);

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *wrong = stage_assign (stage, cases[i][0], cases[i][1]);

    g_assert_cmpstr (wrong, ==, cases[i][2]);
    g_free (wrong);
  }
  stage_unref (stage);
  stage_set_unref (set);
}

/* Files */

static StageFile *
parse (const gchar *text, GError **error)
{
  return stage_file_parse ("x", "x.launch", text, strlen (text), error);
}

static void
an_error_in_a_stage_file_names_its_place (void)
{
  static const gchar *const cases[][2] = {
    { "", "1:1: expected a YAML header between two lines ---" },
    { "videoscale", "1:1: expected a YAML header between two lines ---" },
    { "---\n---\nidentity", "2:1: expected \"key: value\" lines" },
    { "---\nsummary: [\n---\nidentity", "3:1: a { or [ above has no end; add } or ]" },
    { "---\n- a\n---\nidentity", "2:1: expected \"key: value\" lines; this is a list" },
    { HEAD "---\nidentity", "2:1: gives must be rtp or raw" },
    { "---\ngives: rtp\n---\nidentity", "2:1: the summary is missing" },
    { HEAD "gives: rtp\n---\nidentity", "2:1: takes must be rtp or raw" },
    { HEAD "gives: mpegts\n---\nx", "3:8: gives: expected one of nothing, rtp, raw" },
    { HEAD "tkaes: raw\n---\nx", "3:1: unknown key \"tkaes\"; the nearest known one is \"takes\"" },
    { HEAD "takes: raw\ngives: rtp\n---\nx",
        "2:1: the codec is missing: the stage makes RTP of raw frames" },
    { RAW "codec: H264\n---\nx", "2:1: codec is allowed only with gives: rtp" },
    { RAW "codecs: {H264: x}\n---\nx",
        "6:9: codecs: expected {CODEC: LAUNCH TEXT}, in a stage that takes rtp" },
    { RAW "---\n# nothing\n\n", "7:1: expected launch text" },
    { RAW "native: yes\n---\nidentity", "8:1: a native stage has no launch text" },
    { RAW "---\nidentity !\n  identity {a}",
        "8:12: placeholder {a} is not allowed here; allowed: none" },
    { RAW "---\nidentity !\n  # {b}\nidentity {a.b}",
        "9:10: placeholder {a.b} is not allowed here; allowed: none" },
    { RAW "---\n{codec}", "7:1: placeholder {codec} is not allowed here; allowed: none" },
    { RAW "parameters: x\n---\nx",
        "6:13: parameters: expected names with their types: {NAME: {type: TYPE}}" },
    { RAW "parameters: {A: {type: size}}\n---\nx",
        "6:14: parameters: expected a unique name of a-z, 0-9 and -, other than codec, at most 32 "
        "characters" },
    { RAW "parameters: {codec: {type: size}}\n---\nx",
        "6:14: parameters: expected a unique name of a-z, 0-9 and -, other than codec, at most 32 "
        "characters" },
    { RAW "parameters: {a: {}}\n---\nx", "6:14: a: the type is missing" },
    { RAW "parameters: {a: {type: pixels}}\n---\nx",
        "6:24: type: expected one of size, bitrate, duration, integer, number, choice, "
        "text, file, time" },
    { RAW "parameters: {a: {type: size}}\n---\nx", "6:14: a: the default is missing" },
    { RAW "parameters: {a: {type: file, default: /a}}\n---\nx",
        "6:14: a: a parameter of type file has no default" },
    { RAW "parameters: {a: {type: integer, default: 1.5}}\n---\nx",
        "6:42: default: \"1.5\" is not an integer" },
    { RAW "parameters: {a: {type: integer, default: 5, max: 4}}\n---\nx",
        "6:42: default: \"5\" is not an integer up to 4" },
    { RAW "parameters: {a: {type: integer, default: 5, choices: [a]}}\n---\nx",
        "6:14: a: choices and type: choice are allowed only together" },
    { RAW "parameters: {a: {type: choice}}\n---\nx",
        "6:14: a: choices and type: choice are allowed only together" },
    { RAW "parameters: {a: {type: choice, choices: [b, b]}}\n---\nx",
        "6:45: choices: expected a unique name of a-z, 0-9 and -, at most 32 characters" },
    { RAW "parameters: {a: {type: choice, choices: {b: [c]}}}\n---\nx",
        "6:45: b: expected launch text" },
    { RAW "parameters: {a: {type: choice, choices: {b: '{c}'}}}\n---\nx",
        "6:13: parameters: placeholder {c} is not allowed here; allowed: none" },
    { RAW "parameters: {a: {type: choice, choices: {b: '{a}'}}}\n---\nx",
        "6:13: parameters: placeholder {a} is not allowed here; allowed: none" },
    { RAW "parameters: {a: {type: duration, default: 1s}}\n---\nx {a}",
        "8:3: placeholder {a} is not allowed here; allowed: {a.ms}, {a.ns}, {a.frames}" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *expected = g_strconcat ("x.launch:", cases[i][1], NULL);
    GError *error = NULL;

    g_assert_null (parse (cases[i][0], &error));
    g_assert_cmpstr (error->message, ==, expected);
    g_error_free (error);
    g_free (expected);
  }
}

static void
the_first_folder_with_a_stage_counts (void)
{
  gchar *own = g_dir_make_tmp ("stages-XXXXXX", NULL);
  gchar *path = g_build_filename (own, "restamp.launch", NULL);
  gchar *directories[] = { own, (gchar *) "/nonexistent", shipped_dir (), NULL };
  GError *error = NULL;
  StageSet *set;
  Stage *stage;

  g_assert_true (g_file_set_contents (path, RAW "---\nidentity", -1, NULL));
  set = stage_set_load ((const gchar *const *) directories, &error);
  g_assert_no_error (error);
  g_assert_nonnull (stage_set_find (set, "transcode"));
  stage = stage_new (set, "restamp", NULL);
  g_assert_cmpint (stage_get_file (stage)->takes, ==, STAGE_RAW);
  stage_set_unref (set); // the stage holds a reference
  g_assert_cmpstr (stage_get_file (stage)->summary, ==, "s");
  stage_unref (stage);

  // One wrong file makes the whole set fail.
  g_assert_true (g_file_set_contents (path, "x", -1, NULL));
  g_assert_null (stage_set_load ((const gchar *const *) directories, &error));
  g_assert_true (g_str_has_prefix (error->message, path));
  g_clear_error (&error);
  g_unlink (path);

  g_free (path);
  path = g_build_filename (own, "Two Words.launch", NULL);
  g_assert_true (g_file_set_contents (path, RAW "---\nidentity", -1, NULL));
  g_assert_null (stage_set_load ((const gchar *const *) directories, &error));
  g_clear_error (&error);
  g_unlink (path);
  g_rmdir (own);
  g_assert_null (stage_set_load_usual (own, &error));
  g_assert_true (g_str_has_prefix (error->message, "cannot read stages from "));
  g_clear_error (&error);

  g_free (path);
  g_free (own);
  g_free (directories[2]);
}

static void
a_program_in_its_build_folder_finds_the_stages (void)
{
  GError *error = NULL;
  StageSet *set = stage_set_load_usual (NULL, &error);
  static const gchar *const names[] = { "aac", "decode", "layers", "opus", "pace", "pull",
    "restamp", "transcode" };

  g_assert_no_error (error);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    g_assert_nonnull (stage_set_find (set, names[i]));
  g_assert_null (stage_new (set, "transcdoe", &error));
  g_assert_true (
      g_str_has_prefix (error->message, "there is no stage \"transcdoe\"; known stages: "));
  g_clear_error (&error);
  stage_set_unref (set);
}

/* Launch text */

static gchar *
find (const gchar *name, const gchar *form, gpointer data)
{
  return g_str_equal (name, "a") ? g_strconcat ("<", form ? form : "", ">", NULL) : NULL;
}

static void
placeholders_are_replaced (void)
{
  static const gchar *const cases[][2] = {
    { "x {a} y{a.b}z", "x <> y<b>z" },
    { "  x !\n   y !\n\n\tz\n", "x ! y ! z" },
    { "format={I420,NV12} {A} {a {1} {}", "format={I420,NV12} {A} {a {1} {}" },
    { "", "" },
    { "x {b}", NULL },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gsize offset = 0;
    gchar *text = stage_text_expand (cases[i][0], find, NULL, &offset);

    g_assert_cmpstr (text, ==, cases[i][1]);
    g_assert_cmpuint (offset, ==, cases[i][1] ? 0 : 2);
    g_free (text);
  }
}

static void
missing_elements_are_found (void)
{
  static const gchar *const cases[][2] = {
    { "identity ! fakesink", NULL },
    { "identity ! nosuch ! fakesink", "nosuch" },
    { "nosuch2 a=b ! identity", "nosuch2" },
    { "identity name=nosuch ! video/x-raw,format=I420 ! tee name=t t. ! nosuch3", "nosuch3" },
    { "identity name = nosuch ! fakesink", NULL },
    { "filesrc location=\"a nosuch b\" ! fakesink", NULL },
    { "filesrc location=\"a \\\" nosuch b\" ! fakesink", NULL },
  };
  gchar *text;

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    text = stage_elements_find_missing (cases[i][0]);
    g_assert_cmpstr (text, ==, cases[i][1]);
    g_free (text);
  }
  text = element_missing ("x264enc");
  g_assert_cmpstr (text, ==,
      "GStreamer has no element \"x264enc\"; on Debian install gstreamer1.0-plugins-ugly");
  g_free (text);
  text = stage_elements_check ("identity nosuch=1", NULL, 0);
  g_assert_nonnull (text);
  g_free (text);
  g_assert_null (stage_elements_check ("identity ! videoconvertscale ! identity", NULL, 0));
}

// Whatever its text, it is the value of one property, and no placeholder.
// A duration may be as long as any parameter of this type, which is more than fits into 64 bits.
static void
a_fade_may_last_forever (void)
{
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch ("audiotestsrc ! volume name=v ! fakesink", &error), *v;
  const gint64 begin = g_get_real_time () * GST_USECOND + 3600 * (gint64) GST_SECOND;
  gchar *fades =
      g_strdup_printf ("%" G_GINT64_FORMAT " 1000000000000000000000 v.volume 1 0", begin);
  GValue *value;

  g_assert_no_error (error);
  gst_element_set_base_time (pipeline, (GstClockTime) clock_now ());
  g_assert_true (fades_begin (pipeline, fades, &error));
  v = gst_bin_get_by_name (GST_BIN (pipeline), "v");
  for (guint hours = 0; hours < 3; hours++) {
    value = gst_object_get_value (GST_OBJECT (v), "volume", hours * 3600 * GST_SECOND);
    g_assert_cmpfloat_with_epsilon (g_value_get_double (value), 1, 0.001);
    g_value_unset (value);
    g_free (value);
  }
  gst_object_unref (v);
  gst_object_unref (pipeline);
  g_free (fades);
}

static void
any_text_is_a_value (void)
{
  static const gchar *const texts[] = { "", "a", "/srv/logo.png", "a b", "\"", "\"a\"", "'a'", "\\",
    "a\\", "\\\"", "a\" ! fakesink name=\"b", "{a}", "{a.b} ! {", "\n \t\r!", "a=b", "é ✓", "%s",
    "#", "(a)", "[1, 2]", "\\101", "\"\\" };

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    gchar *value = stage_text_dup_value (texts[i]), *got;
    gchar *written = g_strdup_printf ("filesrc location=%s name=\"file\" ! fakesink", value);
    gsize offset;
    gchar *launch = stage_text_expand (written, find, NULL, &offset);
    GError *error = NULL;
    GstElement *pipeline = gst_parse_launch (launch, &error), *file;
    const gchar *at = value;
    gchar *word = stage_text_next_word (&at);

    g_assert_no_error (error);
    g_assert_cmpstr (word, ==, value);
    g_assert_cmpstr (launch, ==, written);
    file = gst_bin_get_by_name (GST_BIN (pipeline), "file");
    g_object_get (file, "location", &got, NULL);
    g_assert_cmpstr (got, ==, texts[i]);
    gst_object_unref (file);
    gst_object_unref (pipeline);
    g_free (got);
    g_free (word);
    g_free (launch);
    g_free (written);
    g_free (value);
  }
}

static void
a_line_is_quoted_for_a_shell (void)
{
  gchar *line = stage_text_quote ("a b=\"c d\" ! video/x-raw(memory:X),w=1 ! e.");

  g_assert_cmpstr (line, ==, "a 'b=\"c d\"' ! 'video/x-raw(memory:X),w=1' ! e.");
  g_free (line);
}

/* Presentations */

typedef struct {
  StageSet *set;
  GPtrArray *stages;
  GHashTable *choices;
} Fixture;

static const gchar *const transcode_choices[] = { "size", "rate", NULL };
static const gchar *const restamp_choices[] = { "limit", NULL };

static void
add (Fixture *f, const gchar *name)
{
  Stage *stage = stage_new (f->set, name, NULL);

  g_assert_nonnull (stage);
  g_ptr_array_add (f->stages, stage);
}

static void
set_up (Fixture *f, gconstpointer unused)
{
  f->set = load_shipped ();
  f->stages = g_ptr_array_new_with_free_func ((GDestroyNotify) stage_unref);
  f->choices = g_hash_table_new (g_str_hash, g_str_equal);
  add (f, "pull");
  g_hash_table_insert (f->choices, (gpointer) "transcode", (gpointer) transcode_choices);
}

static void
tear_down (Fixture *f, gconstpointer unused)
{
  g_ptr_array_unref (f->stages);
  g_hash_table_unref (f->choices);
  stage_set_unref (f->set);
}

// Returns the key of the chain for a query, shortened to the values that matter here, or NULL if
// the query is refused.
static gchar *
choose (Fixture *f, const gchar *query)
{
  GError *error = NULL;
  GPtrArray *chain = choice_make_chain (f->set, f->stages, f->choices, query, &error);
  GString *short_key;
  gchar *key;

  g_assert_true ((chain == NULL) == (error != NULL));
  if (!chain) {
    g_assert_cmpstr (error->message, !=, "");
    g_error_free (error);
    return NULL;
  }
  key = choice_dup_key (chain);
  g_ptr_array_unref (chain);
  short_key = g_string_new (key);
  g_string_replace (short_key, "pull(simulcast=1,transport=auto,upstream=)", "pull", 0);
  g_string_replace (short_key, "decode()", "decode", 0);
  g_string_replace (short_key, "encoder=openh264,keys=2000,", "", 0);
  g_string_replace (short_key, "encoder=x264,keys=2000,", "", 0);
  g_free (key);
  return g_string_free (short_key, FALSE);
}

static void
check (Fixture *f, const gchar *query, const gchar *expected)
{
  gchar *key = choose (f, query);

  g_assert_cmpstr (key, ==, expected);
  g_free (key);
}

static void
equal_choices_are_one_presentation (Fixture *f, gconstpointer unused)
{
  static const gchar *const queries[] = { "size=320x180&rate=600k", "rate=600k&size=320x180",
    "rate=600000&size=320x180", "rate=0.6M&size=320x180", "rate=0.60M&size=0320x180",
    "r%61te=600k&size=320x180", "rate=600%6B&size=320%780180", "%72ate=600K&size=320x0180",
    "size=320x180&rate=600.0k", "size=%33%32%30x180", "size=320x180&rate=600k&" };

  for (guint i = 0; i < G_N_ELEMENTS (queries); i++)
    check (f, queries[i], "pull ! decode ! transcode(rate=600000,size=320x180)");
  check (f, NULL, "pull");
  check (f, "", "pull");
  check (f, "rate=600k", "pull ! decode ! transcode(rate=600000,size=640x360)");
}

static void
choices_that_are_not_offered_are_refused (Fixture *f, gconstpointer unused)
{
  static const gchar *const queries[] = { "keys=1s", "encoder=x264", "upstream=rtsp://other/",
    "transport=tcp", "limit=1s", "size", "size=", "=640x360", "&size=640x360",
    "size=640x360&&rate=600k", "size=640x360&size=640x360", "size=640x360&s%69ze=320x180", "rate=1",
    "size=640x360&rate=1", "size=640x360;rate=600k", "size=640x360&other=1", "size=%", "size=%zz",
    "size=640x360%00", "si%00ze=640x360", "size=\xff\xfe", "size=%ff", "SIZE=640x360",
    "size=640x360#", "size=640x360?rate=600k", "transcode=", "rate=600k%20", "rate=+600k" };
  GString *longer = g_string_new ("rate=600k&size=");
  GError *error = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (queries); i++)
    check (f, queries[i], NULL);
  for (guint i = 0; i < 600; i++)
    g_string_append_c (longer, '0');
  g_assert_null (choice_make_chain (f->set, f->stages, f->choices, longer->str, &error));
  g_assert_cmpstr (error->message, ==, "the query is longer than 512 characters");
  g_clear_error (&error);
  for (guint i = 0; i < 1000; i++) {
    g_string_printf (longer, "undeclared%u=%u", i, i);
    check (f, longer->str, NULL);
  }
  g_string_free (longer, TRUE);
  g_hash_table_remove_all (f->choices);
  check (f, "size=640x360", NULL);
  check (f, "", "pull");
}

static void
a_choice_sets_a_stage_of_the_pipeline (Fixture *f, gconstpointer unused)
{
  Stage *stage;

  add (f, "restamp");
  add (f, "transcode");
  stage = g_ptr_array_index (f->stages, 2);
  g_assert_null (stage_assign (stage, "rate", "1M"));
  check (f, NULL, "pull ! restamp(limit=2000) ! decode ! transcode(rate=1000000,size=640x360)");
  check (f, "size=320x180",
      "pull ! restamp(limit=2000) ! decode ! transcode(rate=1000000,size=320x180)");
  // The pipeline of the mount is unchanged.
  check (f, NULL, "pull ! restamp(limit=2000) ! decode ! transcode(rate=1000000,size=640x360)");
}

static void
appended_stages_have_a_fixed_order (Fixture *f, gconstpointer unused)
{
  g_hash_table_insert (f->choices, (gpointer) "restamp", (gpointer) restamp_choices);
  check (f, "limit=1s&size=640x360",
      "pull ! restamp(limit=1000) ! decode ! transcode(rate=600000,size=640x360)");
  check (f, "size=640x360&limit=1000ms",
      "pull ! restamp(limit=1000) ! decode ! transcode(rate=600000,size=640x360)");
}

static void
check_refused (Fixture *f, const gchar *expected)
{
  GError *error = NULL;

  g_assert_false (choice_check (f->set, f->stages, f->choices, NULL, &error));
  g_assert_cmpstr (error->message, ==, expected);
  g_error_free (error);
}

static gboolean
skip_without_encoder (void)
{
  gchar *svcenc = stage_elements_find_missing ("svcenc");
  gchar *x264enc = stage_elements_find_missing ("x264enc");
  gboolean skip = svcenc && x264enc;

  if (skip)
    g_test_skip ("neither svcenc nor x264enc");
  g_free (svcenc);
  g_free (x264enc);
  return skip;
}

static void
stages_that_do_not_fit_are_refused (Fixture *f, gconstpointer unused)
{
  GError *error = NULL;

  if (skip_without_encoder ())
    return;
  g_assert_true (choice_check (f->set, f->stages, f->choices, NULL, &error));
  g_assert_no_error (error);
  g_assert_true (choice_check (f->set, f->stages, NULL, NULL, &error));

  add (f, "pull");
  check_refused (f, "stage pull: appears twice");
  g_ptr_array_set_size (f->stages, 1);
  add (f, "decode");
  add (f, "restamp");
  check_refused (f, "stage restamp: takes rtp, but stage decode before it gives another format");
  g_ptr_array_set_size (f->stages, 2);
  g_assert_false (choice_check (f->set, f->stages, NULL, NULL, &error));
  g_assert_cmpstr (
      error->message, ==, "stage decode: gives raw video; add a stage that makes RTP of it");
  g_clear_error (&error);
  add (f, "transcode");
  g_assert_true (choice_check (f->set, f->stages, NULL, NULL, &error));
  check (f, NULL,
      "pull ! decode ! transcode(rate=600000,size=640x360)"); // a named decoder is not added again
  g_ptr_array_set_size (f->stages, 0);
  check_refused (f, "the pipeline is empty; begin it with a source, such as pull");
  add (f, "restamp");
  check_refused (f, "stage restamp: the first stage must be a source, such as pull");
}

static void
impossible_choices_are_refused (Fixture *f, gconstpointer unused)
{
  static const gchar *const upstream[] = { "upstream", NULL };
  static const gchar *const unknown[] = { "sise", NULL };

  g_hash_table_insert (f->choices, (gpointer) "pull", (gpointer) upstream);
  check_refused (f, "choices: a URL cannot set upstream of stage pull");
  g_hash_table_remove (f->choices, "pull");
  g_hash_table_insert (f->choices, (gpointer) "transcode", (gpointer) unknown);
  check_refused (f, "choices: stage transcode has no parameter \"sise\"");
  g_hash_table_remove_all (f->choices);
  g_hash_table_insert (f->choices, (gpointer) "nosuch", (gpointer) unknown);
  check_refused (f,
      "there is no stage \"nosuch\"; known stages: aac, caption, cross-fade, "
      "cross-fade-sound, decode, decode-audio, late, layers, mix, opus, overlay, pace, "
      "picture-in-picture, pull, restamp, transcode");
}

static void
the_codec_is_known_at_each_stage (Fixture *f, gconstpointer unused)
{
  GPtrArray *chain = choice_make_chain (f->set, f->stages, f->choices, "size=320x180", NULL);

  g_assert_cmpuint (chain->len, ==, 3);
  g_assert_cmpstr (choice_get_codec (chain, 1, STAGE_VIDEO, "VP8"), ==, "VP8");
  g_assert_cmpstr (choice_get_codec (chain, 3, STAGE_VIDEO, "VP8"), ==, "H264");
  g_assert_cmpstr (choice_get_codec (chain, 3, STAGE_AUDIO, "OPUS"), ==, "OPUS");
  g_ptr_array_unref (chain);
}

/* Noise: no crash, and an accepted query has a valid key. */

static void
spoil (GRand *rand, gchar *text, gsize len)
{
  guint n = (guint) g_rand_int_range (rand, 1, 8);

  while (n-- > 0) {
    gsize at = (gsize) g_rand_int_range (rand, 0, (gint32) len);
    gsize from = (gsize) g_rand_int_range (rand, 0, (gint32) len);

    if (g_rand_boolean (rand))
      text[at] = (gchar) (g_rand_int_range (rand, 0, 16) ? g_rand_int_range (rand, 32, 127)
                                                         : g_rand_int_range (rand, 0, 256));
    else
      memmove (text + at, text + from, MIN (len - MAX (at, from), 24));
  }
}

static void
corrupt_stage_files_do_no_harm (void)
{
  static const gchar *const names[] = { "decode", "pull", "restamp", "transcode" };
  GRand *rand = g_rand_new_with_seed (7);
  gchar *directory = shipped_dir ();

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    gchar *base = g_strconcat (names[i], ".launch", NULL);
    gchar *path = g_build_filename (directory, base, NULL), *text;
    gsize len;

    g_assert_true (g_file_get_contents (path, &text, &len, NULL));
    for (guint n = 0; n < 2000; n++) {
      gchar *copy = g_memdup2 (text, len + 1);
      GError *error = NULL;
      StageFile *file;

      spoil (rand, copy, len);
      file = stage_file_parse ("x", "x", copy, len, &error);
      g_assert_true ((file == NULL) == (error != NULL));
      g_clear_pointer (&file, stage_file_free);
      g_clear_error (&error);
      g_free (copy);
    }
    g_free (text);
    g_free (path);
    g_free (base);
  }
  g_free (directory);
  g_rand_free (rand);
}

static void
corrupt_queries_do_no_harm (Fixture *f, gconstpointer unused)
{
  static const gchar query[] = "size=640x360&rate=600k&rate=0.5M&size=%36";
  GRand *rand = g_rand_new_with_seed (8);

  for (guint n = 0; n < 50000; n++) {
    gchar *copy = g_memdup2 (query, sizeof query);
    gchar *key;

    copy[g_rand_int_range (rand, 1, sizeof query)] = '\0';
    spoil (rand, copy, sizeof query - 1);
    key = choose (f, copy);
    if (key)
      g_assert_true (
          g_str_equal (key, "pull") || g_str_has_prefix (key, "pull ! decode ! transcode(rate="));
    g_free (key);
    g_free (copy);
  }
  g_rand_free (rand);
}

#define ADD(path, test) g_test_add ("/presentation/" path, Fixture, NULL, set_up, test, tear_down)

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/stage/values-have-one-spelling", values_have_one_spelling);
  g_test_add_func (
      "/stage/values-are-shown-in-the-largest-unit", values_are_shown_in_the_largest_unit);
  g_test_add_func ("/stage/an-error-names-range-and-default", an_error_names_range_and_default);
  g_test_add_func (
      "/stage/an-error-in-a-stage-file-names-its-place", an_error_in_a_stage_file_names_its_place);
  g_test_add_func (
      "/stage/the-first-folder-with-a-stage-counts", the_first_folder_with_a_stage_counts);
  g_test_add_func ("/stage/a-program-in-its-build-folder-finds-the-stages",
      a_program_in_its_build_folder_finds_the_stages);
  g_test_add_func ("/stage/placeholders-are-replaced", placeholders_are_replaced);
  g_test_add_func ("/stage/missing-elements-are-found", missing_elements_are_found);
  g_test_add_func ("/stage/a-fade-may-last-forever", a_fade_may_last_forever);
  g_test_add_func ("/stage/any-text-is-a-value", any_text_is_a_value);
  g_test_add_func ("/stage/a-line-is-quoted-for-a-shell", a_line_is_quoted_for_a_shell);
  g_test_add_func ("/stage/corrupt-stage-files-do-no-harm", corrupt_stage_files_do_no_harm);
  ADD ("equal-choices-are-one-presentation", equal_choices_are_one_presentation);
  ADD ("choices-that-are-not-offered-are-refused", choices_that_are_not_offered_are_refused);
  ADD ("a-choice-sets-a-stage-of-the-pipeline", a_choice_sets_a_stage_of_the_pipeline);
  ADD ("appended-stages-have-a-fixed-order", appended_stages_have_a_fixed_order);
  ADD ("stages-that-do-not-fit-are-refused", stages_that_do_not_fit_are_refused);
  ADD ("impossible-choices-are-refused", impossible_choices_are_refused);
  ADD ("the-codec-is-known-at-each-stage", the_codec_is_known_at_each_stage);
  ADD ("corrupt-queries-do-no-harm", corrupt_queries_do_no_harm);
  return g_test_run ();
}
