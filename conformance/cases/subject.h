// SPDX-License-Identifier: Apache-2.0
// CaseSubject: what the cases of a receipt run on, and the golden folder they read truths from. The
// functions of this folder add cases to a registry; the same cases serve receipts and suites, so no
// test framework is named here. Cases take the engine through its public headers alone.
#ifndef HALLMARK_CONFORMANCE_CASES_SUBJECT_H_
#define HALLMARK_CONFORMANCE_CASES_SUBJECT_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace hallmark {

class Session;

struct CaseSubject {
  Session* session = nullptr;  // null only where cases are listed and never run
  std::string golden;          // the golden folder, e.g. GoldenPath("")
};

// "scope,a=1,b=2": how the names of all cases are built. Parameters keep the order given.
inline std::string CaseName(
    std::string_view scope,
    std::initializer_list<std::pair<std::string_view, std::string>> parameters = {}) {
  std::string name(scope);
  for (const auto& [key, value] : parameters) {
    name.append(",").append(key).append("=").append(value);
  }
  return name;
}

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_SUBJECT_H_
