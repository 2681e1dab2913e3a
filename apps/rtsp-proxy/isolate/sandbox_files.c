// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/sandbox_files.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// The interface of Linux 6.12; the system's header may be older. An older kernel takes a beginning
// of it.
typedef struct {
  guint64 fs, net, scoped;
} Ruleset;

// The rights in the order of their bits, which has not changed.
#define EXECUTE G_GUINT64_CONSTANT (1)
#define WRITE_FILE (EXECUTE << 1)
#define READ_FILE (EXECUTE << 2)
#define READ_DIR (EXECUTE << 3)
#define IOCTL_DEV (EXECUTE << 15)

#define SCOPE_ABSTRACT_SOCKETS 1
#define SCOPE_SIGNALS 2

#define READS (READ_FILE | READ_DIR)
#define DEVICE (READS | WRITE_FILE | IOCTL_DEV)

// For a folder, the right is to all that lies below. The folders of the system have no secrets.
static const gchar *const system_files[] = { "/usr", "/lib", "/lib32", "/lib64", "/gnu/store",
  "/nix/store", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload",
  "/etc/localtime", "/etc/timezone", "/etc/machine-id", "/etc/fonts", "/var/cache/fontconfig",
  "/etc/OpenCL", "/etc/vulkan", "/etc/glvnd", "/etc/drirc", "/etc/alsa", "/etc/asound.conf",
  "/proc", "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices", "/dev/null", "/dev/zero",
  "/dev/random", "/dev/urandom", NULL };

// Not /etc/ssl and /etc/pki as a whole, which have private keys. A program that writes
// /etc/resolv.conf anew replaces the file; where it is a link, the folder behind it is here.
static const gchar *const name_files[] = { "/etc/resolv.conf", "/run/systemd/resolve",
  "/run/resolvconf", "/run/NetworkManager/resolv.conf", "/etc/hosts", "/etc/host.conf",
  "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols", "/etc/ssl/certs",
  "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs",
  "/etc/pki/tls/openssl.cnf", "/etc/pki/ca-trust", "/etc/ca-certificates",
  "/var/lib/ca-certificates", "/etc/crypto-policies", "/etc/gnutls", "/etc/pkcs11", NULL };

static const gchar *const devices[] = { "/dev/dri", "/dev/nvidia*", "/dev/kfd", "/dev/video*",
  "/dev/media*", "/dev/v4l*", "/dev/dma_heap", "/dev/udmabuf", "/dev/mali*", "/dev/mpp_service",
  "/dev/rga", "/dev/vpu*", "/dev/snd", "/dev/dvb", "/dev/blackmagic", "/dev/bus/usb", NULL };

// Variables with folders, or a file, from which GStreamer and the linker load code.
static const gchar *const code_variables[] = { "GST_PLUGIN_PATH", "GST_PLUGIN_PATH_1_0",
  "GST_PLUGIN_SYSTEM_PATH", "GST_PLUGIN_SYSTEM_PATH_1_0", "GST_REGISTRY", "GST_REGISTRY_1_0",
  "GIO_EXTRA_MODULES", "GIO_MODULE_DIR", "LD_LIBRARY_PATH", NULL };

guint
sandbox_files_version (void)
{
  glong version = syscall (SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

  return version > 0 ? (guint) version : 0;
}

typedef struct {
  gint fd;
  guint64 handled; // the rights that the kernel knows
} Rules;

static void
allow (const Rules *self, const gchar *path, guint64 rights)
{
  struct landlock_path_beneath_attr rule = { .parent_fd = open (path, O_PATH | O_CLOEXEC) };
  struct stat st;

  if (rule.parent_fd < 0)
    return; // what is not there cannot be opened either
  rule.allowed_access = rights & self->handled;
  if (fstat (rule.parent_fd, &st) == 0 && !S_ISDIR (st.st_mode))
    rule.allowed_access &= READ_FILE | WRITE_FILE | IOCTL_DEV;
  if (rule.allowed_access)
    syscall (SYS_landlock_add_rule, self->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  close (rule.parent_fd);
}

static void
allow_all (const Rules *self, const gchar *const *paths, guint64 rights)
{
  for (guint i = 0; paths && paths[i]; i++)
    allow (self, paths[i], rights);
}

static void
allow_devices (const Rules *self)
{
  for (guint i = 0; devices[i]; i++) {
    glob_t found = { 0 };

    if (glob (devices[i], GLOB_NOSORT, NULL, &found) == 0)
      allow_all (self, (const gchar *const *) found.gl_pathv, DEVICE);
    globfree (&found);
  }
}

// Allows the folder of a library that the program has loaded: others that it needs lie there, too.
static gint
allow_library (struct dl_phdr_info *info, size_t size, void *rules)
{
  g_autofree gchar *folder = NULL;

  if (!info->dlpi_name || !g_path_is_absolute (info->dlpi_name))
    return 0;
  folder = g_path_get_dirname (info->dlpi_name);
  if (!g_str_equal (folder, "/"))
    allow (rules, folder, READS);
  return 0;
}

static void
allow_code (const Rules *self)
{
  const gchar *const homes[] = { g_get_user_data_dir (), g_get_user_cache_dir () };

  for (guint i = 0; code_variables[i]; i++) {
    const gchar *value = g_getenv (code_variables[i]);
    g_auto (GStrv) paths = g_strsplit (value ? value : "", ":", -1);

    allow_all (self, (const gchar *const *) paths, READS);
  }
  // The plugins of the user, and the registry of all.
  for (guint i = 0; i < G_N_ELEMENTS (homes); i++) {
    g_autofree gchar *path = g_build_filename (homes[i], "gstreamer-1.0", NULL);

    allow (self, path, READS);
  }
  dl_iterate_phdr (allow_library, (gpointer) self);
}

static guint64
get_handled (guint version)
{
  // Each version has added rights; 1 has 13 of them.
  static const guint n_rights[] = { 0, 13, 14, 15, 15, 16 };

  return (EXECUTE << n_rights[MIN (version, G_N_ELEMENTS (n_rights) - 1)]) - 1;
}

gint
sandbox_files_limit (SandboxFiles which, const gchar *const *reads)
{
  guint version = sandbox_files_version ();
  Ruleset attributes = { .fs = get_handled (version) };
  // Up to the third version, there was only the first field.
  gsize size = version < 4   ? sizeof attributes.fs
               : version < 6 ? 2 * sizeof attributes.fs
                             : sizeof attributes;
  Rules rules = { .handled = attributes.fs };
  gint error = 0;

  if (version == 0)
    return 0;
  if (version >= 6)
    attributes.scoped = SCOPE_SIGNALS | (which & SANDBOX_FILES_SHARED ? 0 : SCOPE_ABSTRACT_SOCKETS);
  rules.fd = (gint) syscall (SYS_landlock_create_ruleset, &attributes, size, 0);
  if (rules.fd < 0)
    return errno;
  allow_all (&rules, system_files, READS);
  allow_code (&rules);
  if (which & SANDBOX_FILES_NAMES)
    allow_all (&rules, name_files, READS);
  if (which & SANDBOX_FILES_DEVICES)
    allow_devices (&rules);
  allow_all (&rules, reads, READS);
  if (syscall (SYS_landlock_restrict_self, rules.fd, 0) < 0)
    error = errno;
  close (rules.fd);
  return error;
}
