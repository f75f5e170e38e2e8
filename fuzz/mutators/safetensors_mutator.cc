// SPDX-License-Identifier: Apache-2.0
#include "fuzz/mutators/safetensors_mutator.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace hallmark::fuzz {
namespace {

using Json = nlohmann::ordered_json;  // keeps the order of the records

constexpr size_t kPrefix = 8;

std::string WithLength(uint64_t length, const std::string& rest) {
  std::string file;
  for (size_t i = 0; i < kPrefix; ++i) file += static_cast<char>(length >> (8 * i));
  return file + rest;
}

// The size of a record's data, when it has a known dtype and a shape of small numbers.
std::optional<uint64_t> BytesOf(const Json& record, uint64_t limit) {
  static const std::map<std::string, uint64_t> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},     {"U32", 4},
      {"F32", 4},  {"I64", 8}, {"U64", 8}, {"F64", 8}};
  if (!record.is_object() || !record.contains("dtype") || !record.contains("shape")) {
    return std::nullopt;
  }
  if (!record["dtype"].is_string() || !record["shape"].is_array()) return std::nullopt;
  const auto size = sizes.find(record["dtype"].get<std::string>());
  if (size == sizes.end()) return std::nullopt;
  uint64_t bytes = size->second;
  for (const Json& extent : record["shape"]) {
    if (!extent.is_number_unsigned()) return std::nullopt;
    const uint64_t count = extent.get<uint64_t>();
    if (count != 0 && bytes > limit / count) return std::nullopt;
    bytes *= count;
  }
  return bytes;
}

}  // namespace

LaidOut LayOut(const std::string& header, uint64_t max_bytes) {
  Json json = Json::parse(header, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {.header = header};
  uint64_t at = 0;
  for (auto& [name, record] : json.items()) {
    const std::optional<uint64_t> bytes = BytesOf(record, max_bytes);
    if (!bytes || *bytes > max_bytes - at) continue;
    record["data_offsets"] = {at, at + *bytes};
    at += *bytes;
  }
  return {.header = json.dump(-1, ' ', false, Json::error_handler_t::replace), .data_bytes = at};
}

std::string MutateSafetensors(std::string file, Mutation& mutation) {
  const size_t choice = mutation.Below(10);
  if (file.size() < kPrefix || choice == 0) return MutateBytes(std::move(file), mutation);
  uint64_t length = 0;
  for (size_t i = 0; i < kPrefix; ++i) {
    length |= static_cast<uint64_t>(static_cast<uint8_t>(file[i])) << (8 * i);
  }
  length = std::min<uint64_t>(length, file.size() - kPrefix);
  std::string header = file.substr(kPrefix, length);
  std::string data = file.substr(kPrefix + length);
  if (choice == 1) {
    data = MutateBytes(std::move(data), mutation);
  } else if (choice == 2) {
    header = MutateBytes(std::move(header), mutation);
  } else if (choice == 3) {
    data.resize(mutation.Below(2 * data.size() + 16));
  } else if (choice == 4) {
    const size_t wrong = length + mutation.Below(17) - 8;
    return WithLength(wrong, header + data);
  } else {
    header = MutateJson(std::move(header), mutation);
    if (choice >= 7) {
      const LaidOut laid_out = LayOut(header, mutation.max_size);
      header = laid_out.header;
      data.resize(laid_out.data_bytes);
    }
  }
  return WithLength(header.size(), header + data);
}

}  // namespace hallmark::fuzz
