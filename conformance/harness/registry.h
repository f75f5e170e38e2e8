// SPDX-License-Identifier: Apache-2.0
// CaseRegistry: named cases that each yield one Row, run in one fixed order. Used by receipts and
// by suites that run on a subject. Not a test framework: the gate's suites are GoogleTest.
#ifndef HALLMARK_CONFORMANCE_HARNESS_REGISTRY_H_
#define HALLMARK_CONFORMANCE_HARNESS_REGISTRY_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/harness/row.h"
#include "engine/base/result.h"

namespace hallmark {

// What a case hands back: everything of a Row but its names.
using CaseFunction = std::function<Result<Row>()>;

class CaseRegistry {
 public:
  // Adds a case. kMalformed when the clause or name is empty, or the pair is already there.
  Status Add(std::string clause, std::string case_name, CaseFunction function);

  // Runs every case whose "clause/case" starts with `prefix`, ordered by clause, then case. An
  // error becomes a row: kUnsupported -> notSupported, kResource -> resourceError, all else
  // harnessError. Vacuous passes become harnessError. `before` (may be empty) is told each name for
  // progress.
  std::vector<Row> Run(std::string_view prefix,
                       const std::function<void(std::string_view)>& before) const;

  // "clause/case" of every case, in running order: the must-pass list of this registry.
  std::vector<std::string> Names() const;

 private:
  struct Case {
    std::string clause;
    std::string name;
    CaseFunction function;
  };
  std::vector<Case> cases_;  // kept sorted by (clause, name)
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_HARNESS_REGISTRY_H_
