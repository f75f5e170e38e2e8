// SPDX-License-Identifier: Apache-2.0
#include "receipts/emit/machine.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "engine/base/sha256.h"

namespace hallmark {
namespace {

// The value of the first line "key : value" of a file, or empty.
std::string ValueInFile(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    if (start != std::string::npos) return line.substr(start);
  }
  return "";
}

// The head of a file that came with a checkpoint. Mapped, so that a pipe or an endless device in
// its place is passed over.
std::istringstream HeadOf(const std::string& path) {
  constexpr size_t kMost = 64 << 10;
  const auto file = MappedFile::Open(path);
  if (!file.has_value()) return std::istringstream();
  const auto bytes = file->bytes().first(std::min(file->bytes().size(), kMost));
  return std::istringstream(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// A receipt is JSON; bytes that are no printable ASCII would need a judgement of encodings.
std::string Printable(std::string line) {
  for (char& c : line) {
    if (c < ' ' || c > '~') c = '?';
  }
  return line;
}

// The first line of a file that holds more than white space, at most 120 characters of it.
std::string FirstLine(const std::string& path) {
  std::istringstream file = HeadOf(path);
  std::string line;
  while (std::getline(file, line)) {
    const size_t start = line.find_first_not_of(" \t\r");
    if (start == std::string::npos) continue;
    return Printable(line.substr(start, 120));
  }
  return "";
}

// "license: mit" between the first two "---" lines of a README.
std::string FrontMatterLicence(const std::string& path) {
  std::istringstream file = HeadOf(path);
  std::string line;
  if (!std::getline(file, line) || !line.starts_with("---")) return "";
  while (std::getline(file, line) && !line.starts_with("---")) {
    if (!line.starts_with("license:")) continue;
    const size_t start = line.find_first_not_of(" \t", 8);
    return start == std::string::npos ? "" : Printable(line.substr(start, 80));
  }
  return "";
}

}  // namespace

std::string HallmarkVersion() { return HALLMARK_VERSION; }

Json HostFacts() {
  utsname names{};
  ::uname(&names);
  std::string cpu = ValueInFile("/proc/cpuinfo", "model name");
  if (cpu.empty()) cpu = ValueInFile("/proc/cpuinfo", "CPU part");
  if (cpu.empty()) cpu = "not stated";
  return {{"system", std::string(names.sysname) + " " + names.release},
          {"cpu", cpu},
          {"cores", std::thread::hardware_concurrency()}};
}

Json DeviceFacts(const BackendDevice& device) {
  return {{"name", Printable(device.name)},
          {"compute_capability", device.compute_capability},
          {"driver", device.driver},
          {"runtime", device.runtime},
          {"fingerprint", device.fingerprint}};
}

Json BuildFacts() {
#if defined(__clang__)
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "gcc " __VERSION__;
#endif
#if defined(__x86_64__)
  const std::string architecture = "x86-64";
#elif defined(__aarch64__)
  const std::string architecture = "aarch64";
#else
  const std::string architecture = "other";
#endif
  return {{"compiler", compiler},
          {"flags", HALLMARK_BUILD_FLAGS},
          {"type", HALLMARK_BUILD_TYPE},
          {"architecture", architecture}};
}

Result<FileDigest> BinaryDigest() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return Fail(Code::kIo, "the program's own file is not known: " + error.message(),
                {.file = "/proc/self/exe"});
  }
  const MappedFile file = TRY(MappedFile::Open(path.string()));
  FileDigest digest{"hallmark", file.bytes().size(), Sha256Hex(file.bytes())};
  TRY(file.Intact());
  return digest;
}

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string StatedLicence(const std::string& directory) {
  for (const char* name : {"LICENSE", "LICENSE.txt", "LICENSE.md"}) {
    const std::string line = FirstLine(directory + "/" + name);
    if (!line.empty()) return std::string(name) + ": " + line;
  }
  const std::string stated = FrontMatterLicence(directory + "/README.md");
  return stated.empty() ? "not stated" : "README.md: " + stated;
}

}  // namespace hallmark
