// SPDX-License-Identifier: Apache-2.0
// The checks of the structure step: the stable id of each, how grave it is, its clause and what to
// do when it finds something. The list is in order of gravity: what stands higher explains what
// stands lower. Ids never change their meaning; scripts and reports of vendors rest on them.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_CHECKS_H_
#define HALLMARK_CONFORMANCE_VALIDATE_CHECKS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/validate/finding.h"

namespace hallmark {

struct CheckInfo {
  std::string_view id;
  Severity severity = Severity::kError;
  std::string_view action;  // one sentence
};

// Every check of the structure step, the gravest first.
std::span<const CheckInfo> StructureChecks();

// format-reject for what is refused, format-accept for what is merely told.
std::string_view ClauseOf(Severity severity);

// Findings as they come, each by its check's id. More than kMost of one check become one finding
// that counts the rest.
class FindingList {
 public:
  static constexpr size_t kMost = 50;

  void Add(std::string_view check, Error error);
  void AddAll(std::string_view check, const std::vector<Error>& errors) {
    for (const Error& error : errors) Add(check, error);
  }
  bool has_errors() const { return errors_ > 0; }
  size_t CountOf(std::string_view check) const;

  // The gravest first; equals in the order of their coming.
  std::vector<Finding> Sorted() const;

 private:
  std::vector<Finding> findings_;
  size_t errors_ = 0;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_CHECKS_H_
