// SPDX-License-Identifier: Apache-2.0
#include "engine/text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/base/check.h"
#include "engine/text/unicode_ranges.h"
#include "engine/text/utf8.h"

namespace hallmark {
namespace {

// The smallest code point that NFC can change or that can compose is U+0300.
constexpr uint8_t kFirstLeadOfU0300 = 0xCC;
constexpr uint32_t kCodePointMask = 0xFFFFFF;
constexpr int kClassShift = 24;

bool NeedsNothing(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) < kFirstLeadOfU0300; });
}

bool IsInert(char32_t code_point) {
  const auto ranges = InertInNfc();
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), code_point,
      [](char32_t value, const CodePointRange& range) { return value < range.first; });
  return after != ranges.begin() && code_point <= std::prev(after)->last;
}

// Gathers code points up to an inert one and writes their NFC.
// Buffers grow with the longest stretch of text, 12 bytes for each code point.
class Composer {
 public:
  explicit Composer(std::string* out) : out_(out) {}

  void Add(char32_t code_point) {
    utf8proc_int32_t parts[8];
    int boundclass = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(code_point), parts, std::size(parts),
        static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), &boundclass);
    CHECK(count > 0 && count <= static_cast<utf8proc_ssize_t>(std::size(parts)));
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      const uint32_t combining_class =
          static_cast<uint32_t>(utf8proc_get_property(parts[i])->combining_class);
      packed_.push_back((combining_class << kClassShift) | static_cast<uint32_t>(parts[i]));
    }
  }

  void Flush() {
    SortMarks();
    code_points_.clear();
    for (const uint32_t value : packed_) {
      code_points_.push_back(static_cast<utf8proc_int32_t>(value & kCodePointMask));
    }
    packed_.clear();
    const utf8proc_ssize_t length = utf8proc_normalize_utf32(
        code_points_.data(), static_cast<utf8proc_ssize_t>(code_points_.size()),
        static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    CHECK(length >= 0 && static_cast<size_t>(length) <= code_points_.size());
    for (utf8proc_ssize_t i = 0; i < length; ++i) {
      AppendUtf8(static_cast<char32_t>(code_points_[i]), out_);
    }
  }

 private:
  // Canonical ordering: each run of marks by combining class, equal classes in their old order.
  void SortMarks() {
    const auto is_starter = [](uint32_t value) { return (value >> kClassShift) == 0; };
    auto at = packed_.begin();
    while (at != packed_.end()) {
      at = std::find_if_not(at, packed_.end(), is_starter);
      const auto end = std::find_if(at, packed_.end(), is_starter);
      std::stable_sort(
          at, end, [](uint32_t a, uint32_t b) { return (a >> kClassShift) < (b >> kClassShift); });
      at = end;
    }
  }

  std::string* out_;
  std::vector<uint32_t> packed_;  // combining class << 24 | code point
  std::vector<utf8proc_int32_t> code_points_;
};

}  // namespace

Result<std::string> NormalizeNfc(std::string_view text) {
  if (const auto bad = FirstIllFormedByte(text)) {
    return Fail(Code::kMalformed, "the text is not valid UTF-8", {.byte = *bad});
  }
  if (NeedsNothing(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  Composer composer(&out);
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = ReadUtf8(text.substr(at));
    at += step.length;
    if (IsInert(step.code_point)) {
      // Takes part in nothing, like an unassigned code point: what stands before and after it is
      // normalised apart.
      composer.Flush();
      AppendUtf8(step.code_point, &out);
    } else {
      composer.Add(step.code_point);
    }
  }
  composer.Flush();
  return out;
}

}  // namespace hallmark
