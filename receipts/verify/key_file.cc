// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/key_file.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "engine/base/mapped_file.h"
#include "receipts/verify/base64.h"

namespace hallmark::verify {
namespace {

constexpr char kSecretWord[] = "hallmark-ed25519-secret";
constexpr char kPublicWord[] = "hallmark-ed25519-public";

tl::unexpected<Error> IoError(const std::string& what, const std::string& path) {
  return Fail(Code::kIo, what + ": " + std::strerror(errno), {.file = path});
}

// Writes a file that is not there yet, with this mode from its first byte on.
Status WriteNew(const std::string& path, std::string_view text, mode_t mode) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (file < 0) return IoError("the key file could not be made", path);
  // The mask of the process may have taken bits away, and must not add any.
  bool written = ::fchmod(file, mode) == 0;
  for (size_t done = 0; written && done < text.size();) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    written = count > 0;
    if (written) done += static_cast<size_t>(count);
  }
  written = written && ::fsync(file) == 0;
  const int reason = errno;
  ::close(file);
  if (written) return {};
  ::unlink(path.c_str());
  errno = reason;
  return IoError("the key file could not be written", path);
}

std::string Line(const char* word, std::span<const uint8_t> bytes) {
  return std::string(word) + " " + ToBase64(bytes) + "\n";
}

Result<std::array<uint8_t, 32>> ReadLine(const std::string& path, const std::string& word) {
  const MappedFile file = TRY(MappedFile::Open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  std::array<uint8_t, 32> bytes{};
  if (text.starts_with(word + " ") && text.ends_with('\n')) {
    auto decoded = FromBase64(text.substr(word.size() + 1, text.size() - word.size() - 2));
    if (decoded && decoded->size() == bytes.size()) {
      std::copy(decoded->begin(), decoded->end(), bytes.begin());
      sodium_memzero(decoded->data(), decoded->size());
      return bytes;
    }
  }
  return Fail(Code::kMalformed, "expected one line, " + word + " and 32 bytes in base64",
              {.file = path});
}

}  // namespace

Result<KeyPaths> WriteNewKey(const std::string& prefix) {
  const KeyPaths paths{prefix + ".key", prefix + ".pub"};
  const SecretKey secret = TRY(NewSecretKey());
  const PublicKey open = TRY(PublicKeyOf(secret));
  std::string line = Line(kSecretWord, secret.seed);
  const Status kept = WriteNew(paths.secret, line, 0600);
  sodium_memzero(line.data(), line.size());
  TRY(kept);
  const Status published = WriteNew(paths.open, Line(kPublicWord, open), 0644);
  if (!published.has_value()) ::unlink(paths.secret.c_str());
  TRY(published);
  return paths;
}

Result<SecretKey> ReadSecretKey(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && (facts.st_mode & 077) != 0) {
    return Fail(Code::kUnsupported,
                "others may read this key, expected a file of its owner alone (chmod 600)",
                {.file = path});
  }
  SecretKey key;
  key.seed = TRY(ReadLine(path, kSecretWord));
  return key;
}

Result<PublicKey> ReadPublicKey(const std::string& path) { return ReadLine(path, kPublicWord); }

}  // namespace hallmark::verify
