// SPDX-License-Identifier: Apache-2.0
// Waivers: failed cases that somebody answers for until a date, as data with a reason. A waived
// fail is "waived", never "pass"; a row that is missing, or that could not be decided, is never
// waived.
#ifndef HALLMARK_RECEIPTS_VERIFY_WAIVERS_H_
#define HALLMARK_RECEIPTS_VERIFY_WAIVERS_H_

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace hallmark::verify {

struct Knowledge;

struct Waiver {
  std::string case_name;  // "clause/case"
  std::string expires;    // the last day it holds, "2026-12-31", UTC
  std::string reason;
};

// kMalformed with a pointer for a text that does not fit receipts/schemas/waivers.v1.schema.json, a
// date that is none, a case on no must-pass list or named twice; kOutOfRange for a waiver that
// expired before `today`.
Result<std::vector<Waiver>> ParseWaivers(const Knowledge& knowledge, std::string_view text,
                                         const std::string& file, const std::string& today);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_WAIVERS_H_
