// SPDX-License-Identifier: Apache-2.0
#include "fuzz/reference/safetensors_reference.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace hallmark::reference {
namespace {

using Wide = unsigned __int128;

constexpr size_t kMaxRank = 64;
constexpr uint64_t kMaxExtent = INT64_MAX;

const std::map<std::string, uint64_t, std::less<>>& Sizes() {
  static const std::map<std::string, uint64_t, std::less<>> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},     {"U32", 4},
      {"F32", 4},  {"I64", 8}, {"U64", 8}, {"F64", 8}};
  return sizes;
}

// Takes the events of the JSON parser by the place they come at; any that does not belong there
// ends the parse.
class Sax : public nlohmann::json_sax<nlohmann::json> {
 public:
  Table table;

  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool number_float(double, const std::string&) override { return false; }
  // Only of numbers that bear a minus sign, "-0" among them.
  bool number_integer(int64_t) override { return false; }
  bool binary(binary_t&) override { return false; }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

  bool number_unsigned(uint64_t value) override {
    if (place_ != Place::kNumbers) return false;
    numbers_.push_back(value);
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::kMetadata) return table.metadata.emplace(key_, value).second;
    if (place_ != Place::kRecord || field_ != "dtype") return false;
    tensor_.dtype = value;
    return true;
  }

  bool start_object(size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop && name_ == "__metadata__") {
      if (std::exchange(metadata_seen_, true)) return false;
      place_ = Place::kMetadata;
    } else if (place_ == Place::kTop) {
      if (table.tensors.contains(name_)) return false;
      tensor_ = {};
      seen_.clear();
      place_ = Place::kRecord;
    } else {
      return false;
    }
    return true;
  }

  bool key(std::string& value) override {
    if (place_ == Place::kTop) {
      name_ = value;
    } else if (place_ == Place::kMetadata) {
      key_ = value;
    } else {
      field_ = value;
      return seen_.emplace(value, true).second &&
             (value == "dtype" || value == "shape" || value == "data_offsets");
    }
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::kRecord || field_ == "dtype") return false;
    place_ = Place::kNumbers;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    place_ = Place::kRecord;
    if (field_ == "shape") {
      tensor_.shape = numbers_;
      return true;
    }
    if (numbers_.size() != 2) return false;
    tensor_.begin = numbers_[0];
    tensor_.end = numbers_[1];
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTop) {
      place_ = Place::kEnd;
      return true;
    }
    if (place_ == Place::kRecord) {
      if (seen_.size() != 3 || !SizeFits()) return false;
      table.tensors.emplace(name_, tensor_);
    }
    place_ = Place::kTop;
    return true;
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kRecord, kNumbers, kEnd };

  bool SizeFits() const {
    const auto size = Sizes().find(tensor_.dtype);
    if (size == Sizes().end() || tensor_.shape.size() > kMaxRank) return false;
    Wide elements = 1;  // below 2^63 before each step, so that no step overflows 128 bits
    for (const uint64_t extent : tensor_.shape) {
      elements *= extent;
      if (extent > kMaxExtent || elements > kMaxExtent) return false;
    }
    return tensor_.begin <= tensor_.end &&
           Wide{tensor_.end - tensor_.begin} == elements * size->second;
  }

  Place place_ = Place::kStart;
  bool metadata_seen_ = false;
  std::string name_;
  std::string key_;
  std::string field_;
  std::map<std::string, bool> seen_;
  std::vector<uint64_t> numbers_;
  Tensor tensor_;
};

// Tensors follow one another without a gap from the first byte to the last.
bool Tiles(const Table& table, uint64_t bytes) {
  std::vector<std::pair<uint64_t, uint64_t>> spans;
  for (const auto& [name, tensor] : table.tensors) spans.emplace_back(tensor.begin, tensor.end);
  std::sort(spans.begin(), spans.end());
  uint64_t at = 0;
  for (const auto& [begin, end] : spans) {
    if (begin != at) return false;
    at = end;
  }
  return at == bytes;
}

}  // namespace

std::optional<Table> ReadSafetensors(std::string_view file) {
  if (file.size() < 8) return std::nullopt;
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(file[size_t(i)]);
  if (length == 0 || length > 100'000'000 || length > file.size() - 8) return std::nullopt;
  const std::string_view header = file.substr(8, length);
  // The JSON library takes NUL for the end of its input and passes over a byte order mark; both
  // are faults here. A NUL elsewhere is a fault of JSON in any case.
  if (header.front() != '{' || header.find('\0') != std::string_view::npos) return std::nullopt;
  Sax sax;
  if (!nlohmann::json::sax_parse(header.begin(), header.end(), &sax)) return std::nullopt;
  if (!Tiles(sax.table, file.size() - 8 - length)) return std::nullopt;
  for (auto& [name, tensor] : sax.table.tensors) {
    tensor.begin += 8 + length;
    tensor.end += 8 + length;
  }
  return std::move(sax.table);
}

}  // namespace hallmark::reference
