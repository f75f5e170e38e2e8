// SPDX-License-Identifier: Apache-2.0
// Reason: one thing that keeps a receipt from passing, as data: a stable code, where it stands,
// what was expected and what was found. Not an Error: a denied receipt is a result.
// The codes are listed in docs/receipts/verify.md.
#ifndef HALLMARK_RECEIPTS_VERIFY_REASON_H_
#define HALLMARK_RECEIPTS_VERIFY_REASON_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace hallmark::verify {

struct Reason {
  std::string code;     // words joined by '-', stable
  std::string pointer;  // JSON pointer into the statement; empty for the document as a whole
  std::string expected;
  std::string found;
  bool operator==(const Reason&) const = default;
};

// Gathers reasons. Keeps the first kMost and counts the rest: a hostile receipt must not decide how
// much is printed.
class Findings {
 public:
  static constexpr size_t kMost = 100;

  void Add(std::string code, std::string pointer, std::string expected, std::string found);
  void AddAll(std::vector<Reason> reasons);
  // Adds `code` unless both texts are equal.
  void Equal(std::string_view code, std::string_view pointer, std::string_view expected,
             std::string_view found);

  bool empty() const { return total_ == 0; }
  size_t total() const { return total_; }
  const std::vector<Reason>& reasons() const { return reasons_; }

 private:
  std::vector<Reason> reasons_;
  size_t total_ = 0;
};

// A value in one short line of printable ASCII, cut after `most` bytes.
std::string Shown(const nlohmann::json& value);
std::string ShownText(std::string_view text, size_t most = 120);

// "/a/b~1c" from "/a" and "b/c".
std::string Below(std::string_view pointer, std::string_view member);
std::string Below(std::string_view pointer, size_t index);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_REASON_H_
