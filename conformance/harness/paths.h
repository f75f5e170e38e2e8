// SPDX-License-Identifier: Apache-2.0
// Where the suites find their data: the golden folder, and the checkpoint and drafter a vendor
// puts under test. Not for product code, which takes every path from its caller.
// Environment: HALLMARK_GOLDEN moves the golden folder, HALLMARK_MODEL and HALLMARK_DRAFTER name
// the checkpoint folders of the vendor suites.
#ifndef HALLMARK_CONFORMANCE_HARNESS_PATHS_H_
#define HALLMARK_CONFORMANCE_HARNESS_PATHS_H_

#include <string>
#include <string_view>

namespace hallmark {

// Joins `relative` to the golden folder; the folder itself when `relative` is empty.
std::string GoldenPath(std::string_view relative);

// The checkpoint folder the vendor suites run on: HALLMARK_MODEL, else golden scribe-11m-exl3.
std::string ModelUnderTest();

// The drafter folder that goes with it: HALLMARK_DRAFTER, else the golden model's own, or empty (no
// drafter) beside a HALLMARK_MODEL.
std::string DrafterUnderTest();

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_HARNESS_PATHS_H_
