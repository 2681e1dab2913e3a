// SPDX-License-Identifier: LGPL-2.1-or-later
#include "slots.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

class MemorySlot final : public Slot {
public:
  explicit MemorySlot (uint32_t bytes) : m_bytes (new char[bytes])
  {
  }

  bool write (uint32_t offset, const char *bytes, size_t length) override
  {
    std::memcpy (m_bytes.get () + offset, bytes, length);
    return true;
  }

  bool read (uint32_t offset, char *bytes, size_t length) const override
  {
    std::memcpy (bytes, m_bytes.get () + offset, length);
    return true;
  }

private:
  std::unique_ptr<char[]> m_bytes;
};

class FileSlot final : public Slot {
public:
  FileSlot (std::shared_ptr<Slots> slots, uint32_t number)
      : m_slots (std::move (slots)), m_number (number)
  {
  }

  ~FileSlot () override
  {
    std::lock_guard<std::mutex> lock (m_slots->m_lock);

    m_slots->m_free.push_back (m_number);
  }

  bool write (uint32_t offset, const char *bytes, size_t length) override
  {
    while (length > 0) {
      const ssize_t n = pwrite (m_slots->m_fd, bytes, length, at (offset));
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        return false;
      bytes += n;
      offset += uint32_t (n);
      length -= size_t (n);
    }
    return true;
  }

  bool read (uint32_t offset, char *bytes, size_t length) const override
  {
    while (length > 0) {
      const ssize_t n = pread (m_slots->m_fd, bytes, length, at (offset));
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0) {
        errno = n < 0 ? errno : EIO;
        return false;
      }
      bytes += n;
      offset += uint32_t (n);
      length -= size_t (n);
    }
    return true;
  }

private:
  off_t at (uint32_t offset) const
  {
    return off_t (m_number) * m_slots->m_piece_bytes + offset;
  }

  const std::shared_ptr<Slots> m_slots;
  const uint32_t m_number;
};

std::shared_ptr<Slots>
Slots::make (uint32_t piece_bytes, const std::string &folder, int file, std::string &why)
{
  int fd = -1;

  if (file >= 0) {
    fd = fcntl (file, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
      why = std::string ("cannot use \"storage-fd\": ") + std::strerror (errno);
      return nullptr;
    }
  } else if (!folder.empty ()) {
    std::string name = folder + "/swarm-XXXXXX";
    fd = mkostemp (name.data (), O_CLOEXEC);
    if (fd < 0) {
      why = "cannot make a file in folder \"" + folder + "\": " + std::strerror (errno);
      return nullptr;
    }
    unlink (name.c_str ());
  }
  return std::shared_ptr<Slots> (new Slots (piece_bytes, fd));
}

Slots::~Slots ()
{
  if (m_fd >= 0)
    close (m_fd);
}

std::shared_ptr<Slot>
Slots::take ()
{
  uint32_t number;

  if (m_fd < 0)
    return std::make_shared<MemorySlot> (m_piece_bytes);
  {
    std::lock_guard<std::mutex> lock (m_lock);

    if (m_free.empty ()) {
      number = m_n++;
    } else {
      number = m_free.back ();
      m_free.pop_back ();
    }
  }
  return std::make_shared<FileSlot> (shared_from_this (), number);
}
