// SPDX-License-Identifier: Apache-2.0
#include "engine/format/safetensors_header.h"

#include <limits>
#include <optional>

#include "engine/base/checked.h"

namespace hallmark {
namespace {

// A name in an error is cut here; no real name comes near.
constexpr size_t kMaxErrorName = 512;

// Keys are compared decoded: "dtype" may be spelled with escapes.
bool Is(JsonString text, std::string_view word) { return CompareJsonStrings(text, {word}) == 0; }

class HeaderWalk {
 public:
  HeaderWalk(std::string_view text, const std::string& path, HeaderVisitor& visitor)
      : text_(text), path_(path), visitor_(visitor) {}

  Status Run() {
    if (Peek() != '{') return Refuse("the header does not begin with \"{\"");
    ++at_;
    SkipBlank();
    if (Peek() == '}') {
      ++at_;
    } else {
      TRY(Entries());
    }
    SkipBlank();
    if (at_ == text_.size()) return {};
    if (text_[at_] == '\0') return Refuse("the header is padded with NUL instead of spaces");
    return Refuse("there are bytes after the header's closing brace");
  }

 private:
  Status Entries() {
    bool metadata_seen = false;
    for (;;) {
      const uint64_t name_byte = FileByte(at_);
      const JsonString name = TRY(String("a tensor's name"));
      TRY(Expect(':', "\":\" after a name"));
      if (Is(name, "__metadata__")) {
        if (metadata_seen) {
          return Fail(Code::kMalformed, "\"__metadata__\" appears twice",
                      {.file = path_, .byte = name_byte});
        }
        metadata_seen = true;
        TRY(Metadata());
      } else {
        TRY(Record(name, name_byte));
      }
      if (TRY(EndsAfterItem('}'))) return {};
    }
  }

  Status Metadata() {
    TRY(Expect('{', "an object of strings as \"__metadata__\""));
    if (Peek() == '}') {
      ++at_;
      return {};
    }
    for (;;) {
      const uint64_t key_byte = FileByte(at_);
      const JsonString key = TRY(String("a metadata key"));
      TRY(Expect(':', "\":\" after a metadata key"));
      const JsonString value = TRY(String("a string as metadata value"));
      visitor_.Metadata(key, key_byte, value);
      if (TRY(EndsAfterItem('}'))) return {};
    }
  }

  Status Record(JsonString name, uint64_t name_byte) {
    tensor_ = name;
    HeaderRecord record{.name = name, .name_byte = name_byte};
    bool has_dtype = false;
    bool has_shape = false;
    bool has_offsets = false;
    std::optional<uint64_t> elements;
    uint64_t offsets_byte = 0;
    TRY(Expect('{', "an object as the tensor's record"));
    if (Peek() == '}') return Refuse("the record is empty");
    for (;;) {
      const uint64_t field_byte = FileByte(at_);
      const JsonString field = TRY(String("a field name"));
      TRY(Expect(':', "\":\" after a field name"));
      bool* seen = Is(field, "dtype")          ? &has_dtype
                   : Is(field, "shape")        ? &has_shape
                   : Is(field, "data_offsets") ? &has_offsets
                                               : nullptr;
      if (seen == nullptr) {
        return RefuseAt(field_byte,
                        "the record has the unknown field \"" + NameForError(field) +
                            "\"; dtype, shape and data_offsets are known",
                        Code::kUnsupported);
      }
      if (*seen) {
        return RefuseAt(field_byte, "the field \"" + NameForError(field) + "\" appears twice");
      }
      *seen = true;
      if (seen == &has_dtype) {
        record.dtype = TRY(ReadDType());
      } else if (seen == &has_shape) {
        const size_t begin = at_;
        elements = TRY(ReadShape());
        record.shape = text_.substr(begin, at_ - begin);
      } else {
        offsets_byte = FileByte(at_);
        TRY(ReadOffsets(&record));
      }
      if (TRY(EndsAfterItem('}'))) break;
    }
    if (!has_dtype || !has_shape || !has_offsets) {
      return RefuseAt(name_byte,
                      std::string("the record lacks ") + (!has_dtype   ? "dtype"
                                                          : !has_shape ? "shape"
                                                                       : "data_offsets"));
    }
    const std::optional<uint64_t> bytes =
        CheckedMul(*elements, static_cast<uint64_t>(DTypeSize(record.dtype)));
    if (!bytes) return RefuseAt(name_byte, "the size in bytes does not fit 64 bits");
    if (record.begin > record.end) {
      return RefuseAt(offsets_byte, "data_offsets begin at " + std::to_string(record.begin) +
                                        ", after their end " + std::to_string(record.end));
    }
    if (record.end - record.begin != *bytes) {
      return RefuseAt(offsets_byte, "data_offsets span " +
                                        std::to_string(record.end - record.begin) +
                                        " bytes, dtype and shape need " + std::to_string(*bytes));
    }
    tensor_.reset();
    visitor_.Tensor(record);
    return {};
  }

  Result<DType> ReadDType() {
    const uint64_t byte = FileByte(at_);
    const JsonString name = TRY(String("a string as dtype"));
    const std::optional<DType> dtype = ParseDType(name.Decode(kMaxErrorName));
    if (!dtype) {
      return RefuseAt(byte, "the dtype \"" + NameForError(name) + "\" is not known",
                      Code::kUnsupported);
    }
    return *dtype;
  }

  // The number of elements. Multiplied in order, as the reference does: [2^40, 2^40, 0] overflows.
  Result<uint64_t> ReadShape() {
    uint64_t elements = 1;
    if (Peek() != '[') return Refuse("expected an array as shape");
    ++at_;
    SkipBlank();
    if (Peek() == ']') {
      ++at_;
      return elements;
    }
    for (int rank = 1;; ++rank) {
      const uint64_t byte = FileByte(at_);
      if (rank > kMaxRank) {
        return RefuseAt(byte, "the shape has more than " + std::to_string(kMaxRank) + " extents",
                        Code::kUnsupported);
      }
      const uint64_t extent = TRY(Integer("shape"));
      if (extent > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return RefuseAt(byte, "the extent " + std::to_string(extent) + " does not fit 63 bits");
      }
      const std::optional<uint64_t> product = CheckedMul(elements, extent);
      if (!product || *product > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return RefuseAt(byte, "the number of elements does not fit 63 bits");
      }
      elements = *product;
      if (TRY(EndsAfterItem(']'))) return elements;
    }
  }

  Status ReadOffsets(HeaderRecord* record) {
    TRY(Expect('[', "an array as data_offsets"));
    record->begin = TRY(Integer("data_offsets"));
    if (TRY(EndsAfterItem(']'))) return Refuse("data_offsets has one item, two are needed");
    record->end = TRY(Integer("data_offsets"));
    if (!TRY(EndsAfterItem(']'))) return Refuse("data_offsets has more than two items");
    return {};
  }

  // An unsigned decimal: no sign, leading zero, fraction, exponent or boolean.
  Result<uint64_t> Integer(const char* what) {
    const size_t begin = at_;
    uint64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      const uint64_t digit = static_cast<uint64_t>(text_[at_] - '0');
      const std::optional<uint64_t> scaled = CheckedMul(value, 10);
      const std::optional<uint64_t> next = scaled ? CheckedAdd(*scaled, digit) : std::nullopt;
      if (!next) {
        return RefuseAt(FileByte(begin), std::string(what) + " holds a number beyond 64 bits");
      }
      value = *next;
      ++at_;
    }
    const bool leading_zero = at_ - begin > 1 && text_[begin] == '0';
    const char next = Peek();
    if (at_ == begin || leading_zero || next == '.' || next == 'e' || next == 'E') {
      return RefuseAt(FileByte(begin),
                      std::string(what) + " holds something other than a non-negative integer");
    }
    return value;
  }

  Result<JsonString> String(const char* what) {
    if (Peek() != '"') return Refuse(std::string("expected ") + what);
    const size_t begin = at_;
    const JsonStringScan scan = SkipJsonString(text_, begin);
    at_ = scan.end;
    if (scan.problem != nullptr) return Refuse(std::string("the header has ") + scan.problem);
    return JsonString{text_.substr(begin + 1, at_ - begin - 2)};
  }

  // Takes `c` with blanks around it.
  Status Expect(char c, const char* what) {
    SkipBlank();
    if (Peek() != c) return Refuse(std::string("expected ") + what);
    ++at_;
    SkipBlank();
    return {};
  }

  // After an item: true at the closing `close`, false after a comma with an item to come.
  Result<bool> EndsAfterItem(char close) {
    SkipBlank();
    const char c = Peek();
    if (c != ',' && c != close) {
      return Refuse(std::string("expected \",\" or \"") + close + "\"");
    }
    ++at_;
    if (c == ',') SkipBlank();
    return c == close;
  }

  void SkipBlank() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  // NUL at the end, which no rule of the grammar accepts.
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  static uint64_t FileByte(size_t at) { return kHeaderPrefixBytes + at; }

  tl::unexpected<Error> Refuse(std::string message) const {
    if (at_ >= text_.size()) message += ", but the header ends";
    return RefuseAt(FileByte(at_), std::move(message));
  }
  tl::unexpected<Error> RefuseAt(uint64_t byte, std::string message,
                                 Code code = Code::kMalformed) const {
    return Fail(code, std::move(message),
                {.file = path_, .byte = byte, .tensor = tensor_ ? NameForError(*tensor_) : ""});
  }

  std::string_view text_;
  const std::string& path_;
  HeaderVisitor& visitor_;
  size_t at_ = 0;
  std::optional<JsonString> tensor_;  // the record being read
};

}  // namespace

Status WalkHeader(std::string_view header, const std::string& path, HeaderVisitor& visitor) {
  return HeaderWalk(header, path, visitor).Run();
}

std::vector<int64_t> ShapeOf(const HeaderRecord& record) {
  std::vector<int64_t> shape;
  bool in_number = false;
  for (const char c : record.shape) {
    if (c < '0' || c > '9') {
      in_number = false;
    } else {
      if (!in_number) shape.push_back(0);
      in_number = true;
      shape.back() = shape.back() * 10 + (c - '0');
    }
  }
  return shape;
}

std::string NameForError(JsonString name) {
  std::string text = name.Decode(kMaxErrorName);
  if (text.size() + 4 > kMaxErrorName) text += "...";
  return text;
}

}  // namespace hallmark
