// SPDX-License-Identifier: Apache-2.0
#include "engine/format/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "engine/format/safetensors_header.h"

namespace hallmark {
namespace {

class Counter : public HeaderVisitor {
 public:
  void Metadata(JsonString, uint64_t, JsonString) override { ++metadata; }
  void Tensor(const HeaderRecord&) override { ++tensors; }
  size_t metadata = 0;
  size_t tensors = 0;
};

// What the checks across records need. 24 bytes: less than the shortest record's own text (50), so
// that the whole list stays below the size of the header.
struct Extent {
  uint64_t begin;
  uint64_t end;
  uint32_t name_byte;
  uint32_t name_hash;
};
static_assert(sizeof(Extent) == 24);

// Metadata keys as positions: 4 bytes, less than the shortest entry's 6.
class Collector : public HeaderVisitor {
 public:
  explicit Collector(const Counter& counts) {
    keys.reserve(counts.metadata);
    extents.reserve(counts.tensors);
  }
  void Metadata(JsonString, uint64_t key_byte, JsonString) override {
    keys.push_back(static_cast<uint32_t>(key_byte));
  }
  void Tensor(const HeaderRecord& record) override {
    extents.push_back({record.begin, record.end, static_cast<uint32_t>(record.name_byte),
                       HashJsonString(record.name)});
  }
  std::vector<uint32_t> keys;
  std::vector<Extent> extents;
};

class Builder : public HeaderVisitor {
 public:
  Builder(std::span<const std::byte> data, uint64_t data_byte, const std::string& path,
          size_t tensors)
      : data_(data), data_byte_(data_byte), path_(path) {
    table.tensors.reserve(tensors);
  }
  void Metadata(JsonString key, uint64_t, JsonString value) override {
    table.metadata.emplace(key.Decode(), value.Decode());
  }
  void Tensor(const HeaderRecord& record) override {
    TensorView view;
    view.name = record.name.Decode();
    view.dtype = record.dtype;
    view.shape = ShapeOf(record);
    view.bytes = data_.subspan(record.begin, record.end - record.begin);
    view.file = path_;
    view.file_offset = data_byte_ + record.begin;
    table.tensors.push_back(std::move(view));
  }
  SafetensorsTable table;

 private:
  std::span<const std::byte> data_;
  uint64_t data_byte_;
  const std::string& path_;
};

// The string whose opening quote is at this byte of the file. Only for positions already walked.
JsonString StringAt(std::string_view header, uint32_t file_byte) {
  const size_t begin = file_byte - kHeaderPrefixBytes;
  return {header.substr(begin + 1, SkipJsonString(header, begin).end - begin - 2)};
}

Status CheckTiling(std::string_view header, std::vector<Extent>& extents, uint64_t data_bytes,
                   const std::string& path) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::tie(a.begin, a.end, a.name_byte) < std::tie(b.begin, b.end, b.name_byte);
  });
  const uint64_t data_byte = kHeaderPrefixBytes + header.size();
  uint64_t next = 0;
  for (const Extent& extent : extents) {
    const auto refuse = [&](uint64_t byte, std::string message) {
      return Fail(
          Code::kMalformed, std::move(message),
          {.file = path, .byte = byte, .tensor = NameForError(StringAt(header, extent.name_byte))});
    };
    if (extent.end > data_bytes) {
      return refuse(extent.name_byte, "the data ends at " + std::to_string(extent.end) +
                                          ", the file's data section at " +
                                          std::to_string(data_bytes));
    }
    if (extent.begin < next) {
      return refuse(data_byte + extent.begin, "the data begins at " + std::to_string(extent.begin) +
                                                  ", inside another tensor that ends at " +
                                                  std::to_string(next));
    }
    if (extent.begin > next) {
      return refuse(data_byte + next, "a hole of " + std::to_string(extent.begin - next) +
                                          " bytes lies before the tensor's data");
    }
    next = extent.end;
  }
  if (next == data_bytes) return {};
  return Fail(Code::kMalformed,
              std::to_string(data_bytes - next) + " bytes follow the last tensor's data",
              {.file = path, .byte = data_byte + next});
}

uint32_t PositionOf(uint32_t key) { return key; }
uint32_t PositionOf(const Extent& extent) { return extent.name_byte; }
uint32_t HashOf(uint32_t) { return 0; }
uint32_t HashOf(const Extent& extent) { return extent.name_hash; }

// Sorts names (the hash first: it spares most comparisons of text) and refuses the second of two
// equal ones.
template <typename Item>
Status CheckUnique(std::string_view header, std::vector<Item>& items, const char* what,
                   const std::string& path) {
  const auto position = [](const Item& item) { return PositionOf(item); };
  const auto compare = [&](const Item& a, const Item& b) {
    if (HashOf(a) != HashOf(b)) return HashOf(a) < HashOf(b) ? -1 : 1;
    return CompareJsonStrings(StringAt(header, position(a)), StringAt(header, position(b)));
  };
  std::sort(items.begin(), items.end(), [&](const Item& a, const Item& b) {
    const int order = compare(a, b);
    return order != 0 ? order < 0 : position(a) < position(b);
  });
  for (size_t i = 1; i < items.size(); ++i) {
    if (compare(items[i - 1], items[i]) == 0) {
      const std::string name = NameForError(StringAt(header, position(items[i])));
      return Fail(Code::kMalformed, std::string(what) + " \"" + name + "\" appears twice",
                  {.file = path, .byte = position(items[i]), .tensor = name});
    }
  }
  return {};
}

Result<std::string_view> FindHeader(std::span<const std::byte> bytes, const std::string& path) {
  if (bytes.size() < kHeaderPrefixBytes) {
    return Fail(Code::kMalformed,
                "the file has " + std::to_string(bytes.size()) +
                    " bytes, the header's length alone takes 8",
                {.file = path, .byte = bytes.size()});
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kHeaderPrefixBytes; ++i) {
    length |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  }
  const Locator start{.file = path, .byte = 0};
  if (length == 0) return Fail(Code::kMalformed, "the header's length is 0", start);
  if (length > kMaxHeaderBytes) {
    return Fail(Code::kOutOfRange,
                "the header's length is " + std::to_string(length) + ", at most " +
                    std::to_string(kMaxHeaderBytes) + " is allowed",
                start);
  }
  if (length > bytes.size() - kHeaderPrefixBytes) {
    return Fail(Code::kMalformed,
                "the header's length is " + std::to_string(length) + ", but only " +
                    std::to_string(bytes.size() - kHeaderPrefixBytes) + " bytes follow",
                start);
  }
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + kHeaderPrefixBytes, length);
}

}  // namespace

Result<SafetensorsTable> ParseSafetensors(std::span<const std::byte> bytes,
                                          const std::string& path) {
  const std::string_view header = TRY(FindHeader(bytes, path));
  const uint64_t data_byte = kHeaderPrefixBytes + header.size();
  const auto data = bytes.subspan(data_byte);

  // First a walk that stores nothing, then one that stores extents, in exactly the room counted.
  // Only a header that passed every check is turned into names and shapes.
  Counter counts;
  TRY(WalkHeader(header, path, counts));
  {
    Collector all(counts);
    TRY(WalkHeader(header, path, all));
    TRY(CheckUnique(header, all.keys, "the metadata key", path));
    TRY(CheckUnique(header, all.extents, "the tensor", path));
    TRY(CheckTiling(header, all.extents, data.size(), path));
  }
  Builder builder(data, data_byte, path, counts.tensors);
  TRY(WalkHeader(header, path, builder));
  std::sort(builder.table.tensors.begin(), builder.table.tensors.end(),
            [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  return std::move(builder.table);
}

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  MappedFile file = TRY(MappedFile::Open(path));
  auto table = ParseSafetensors(file.bytes(), path);
  TRY(file.Intact());  // before a fault that zeros may have made
  return SafetensorsFile(std::move(file), TRY(std::move(table)));
}

const TensorView* SafetensorsFile::Find(std::string_view name) const {
  return FindTensor(table_.tensors, name);
}

const TensorView* FindTensor(std::span<const TensorView> sorted, std::string_view name) {
  const auto at = std::lower_bound(
      sorted.begin(), sorted.end(), name,
      [](const TensorView& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return at != sorted.end() && at->name == name ? &*at : nullptr;
}

}  // namespace hallmark
