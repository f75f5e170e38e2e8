// SPDX-License-Identifier: Apache-2.0
#include "fuzz/folder/scratch_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fuzz/folder/packed_folder.h"

namespace hallmark::fuzz {
namespace {

using Json = nlohmann::json;

// A hole takes no memory; beyond this the file ends early, as truncated files do.
constexpr uint64_t kMaxHole = uint64_t{1} << 40;

struct Marker {
  uint64_t begin;
  uint32_t value;
};

struct Data {
  uint64_t bytes = 0;
  std::vector<Marker> markers;
};

Data DataOf(const std::string& header) {
  Data data;
  const Json json = Json::parse(header, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return data;
  for (const auto& [name, record] : json.items()) {
    if (!record.is_object() || !record.contains("data_offsets")) continue;
    const Json& offsets = record["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2) continue;
    if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) continue;
    data.bytes = std::max(data.bytes, std::min(offsets[1].get<uint64_t>(), kMaxHole));
    const uint64_t begin = offsets[0].get<uint64_t>();
    if (name.ends_with(".mcg")) data.markers.push_back({begin, 0xCBAC1FED});
    if (name.ends_with(".mul1")) data.markers.push_back({begin, 0x83DCD12D});
  }
  return data;
}

void Put(int file, const void* bytes, size_t size, uint64_t at) {
  if (::pwrite(file, bytes, size, static_cast<off_t>(at)) != static_cast<ssize_t>(size)) {
    std::abort();  // memory ran out: nothing that the input could have done
  }
}

void WriteShard(int file, const std::string& header) {
  uint8_t length[8];
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<uint8_t>(uint64_t{header.size()} >> 8 * i);
  Put(file, length, 8, 0);
  Put(file, header.data(), header.size(), 8);
  const Data data = DataOf(header);
  const uint64_t end = 8 + header.size() + data.bytes;
  if (::ftruncate(file, static_cast<off_t>(end)) != 0) std::abort();
  for (const Marker& marker : data.markers) {
    const uint64_t at = 8 + header.size() + marker.begin;
    if (marker.begin <= data.bytes && at + 4 <= end) Put(file, &marker.value, 4, at);
  }
}

bool IsPlainName(const std::string& name) {
  return !name.empty() && name.size() <= 100 && name != "." && name != ".." &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::error_code error;
  const char* memory = "/dev/shm";
  const auto base = std::filesystem::is_directory(memory, error)
                        ? std::filesystem::path(memory)
                        : std::filesystem::temp_directory_path();
  path_ = (base / "hallmark-fuzz-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) std::abort();
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

void ScratchFolder::Write(std::string_view packed) {
  for (const std::string& name : written_) ::unlink((path_ + "/" + name).c_str());
  written_.clear();
  for (const PackedFile& packed_file : Unpack(packed)) {
    if (!IsPlainName(packed_file.name)) continue;
    const std::string& text = packed_file.text;
    const std::string path = path_ + "/" + packed_file.name;
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) continue;
    if (packed_file.name.ends_with(".safetensors") && text.starts_with("{")) {
      WriteShard(file, text);
    } else {
      Put(file, text.data(), text.size(), 0);
    }
    ::close(file);
    written_.push_back(packed_file.name);
  }
}

}  // namespace hallmark::fuzz
