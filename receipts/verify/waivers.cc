// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/waivers.h"

#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/json.h"
#include "receipts/verify/calendar.h"
#include "receipts/verify/knowledge.h"

namespace hallmark::verify {

Result<std::vector<Waiver>> ParseWaivers(const Knowledge& knowledge, std::string_view text,
                                         const std::string& file, const std::string& today) {
  const Json json = TRY(ParseJson(text, file));
  TRY(CheckShape(knowledge.waivers_schema, json, file));
  std::vector<Waiver> waivers;
  std::set<std::string> named;
  for (const Json& item : json["waivers"]) {
    const std::string pointer = Below("/waivers", waivers.size());
    Waiver waiver{.case_name = item["case"].get<std::string>(),
                  .expires = item["expires"].get<std::string>(),
                  .reason = item["reason"].get<std::string>()};
    if (knowledge.LevelOfCase(waiver.case_name) < 0) {
      return Fail(Code::kMalformed, "no must-pass list names the case " + waiver.case_name,
                  {.file = file, .pointer = pointer + "/case"});
    }
    if (!named.insert(waiver.case_name).second) {
      return Fail(Code::kMalformed, "a second waiver of " + waiver.case_name,
                  {.file = file, .pointer = pointer + "/case"});
    }
    const auto last = ParseDate(waiver.expires);
    const auto now = ParseDate(today);
    if (!last || !now) {
      return Fail(Code::kMalformed, "expected a day such as 2026-12-31, found " + waiver.expires,
                  {.file = file, .pointer = pointer + "/expires"});
    }
    if (*last < *now) {
      return Fail(Code::kOutOfRange, "the waiver expired on " + waiver.expires,
                  {.file = file, .pointer = pointer + "/expires"});
    }
    waivers.push_back(std::move(waiver));
  }
  return waivers;
}

}  // namespace hallmark::verify
