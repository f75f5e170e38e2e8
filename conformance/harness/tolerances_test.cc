// SPDX-License-Identifier: Apache-2.0
#include "conformance/harness/tolerances.h"

#include <gtest/gtest.h>

#include <string>

namespace hallmark {
namespace {

std::string Register(const std::string& entries) {
  return R"({"schema": "urn:hallmark:schema:tolerances:v1", "tolerances": [)" + entries + "]}";
}

std::string Entry(const std::string& id, const std::string& kind, const std::string& value) {
  return R"({"id": ")" + id + R"(", "clause": "model-golden", "kind": ")" + kind +
         R"(", "unit": "u", "reason": "r", "measured": null, "value": )" + value + "}";
}

void ExpectRefused(const std::string& text, const std::string& pointer) {
  const auto parsed = ParseTolerances(text, "f.json");
  ASSERT_FALSE(parsed.has_value()) << text;
  EXPECT_EQ(parsed.error().code, Code::kMalformed);
  EXPECT_EQ(parsed.error().where.pointer, pointer);
}

TEST(Tolerances, EmbeddedRegisterIsWellFormedAndNotEmpty) {
  const auto parsed = ParseTolerances(TolerancesText(), "docs/tolerances.json");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().ToString();
  ASSERT_FALSE(parsed->empty());
  for (const ToleranceEntry& entry : *parsed) EXPECT_EQ(Tolerance(entry.id), entry.value);
}

TEST(Tolerances, NoValueIsMoreThanTwiceWhatWasMeasured) {
  const auto parsed = ParseTolerances(TolerancesText(), "docs/tolerances.json");
  ASSERT_TRUE(parsed.has_value());
  for (const ToleranceEntry& entry : *parsed) {
    if (entry.measured && (entry.kind == "rms" || entry.kind == "kl")) {
      EXPECT_LE(entry.value, 2 * *entry.measured) << entry.id;
    }
  }
}

TEST(Tolerances, AnUnknownIdAborts) {
  EXPECT_DEATH(Tolerance("no-such-entry"), "no entry no-such-entry");
}

TEST(Tolerances, ReadsEveryMember) {
  const auto parsed = ParseTolerances(Register(Entry("a-b", "kl", "0.5")), "f.json");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().ToString();
  ASSERT_EQ(parsed->size(), 1u);
  EXPECT_EQ(parsed->front().id, "a-b");
  EXPECT_EQ(parsed->front().value, 0.5);
  EXPECT_FALSE(parsed->front().measured.has_value());
}

TEST(Tolerances, RefusesWhatCouldLoosenACheck) {
  ExpectRefused(Register(Entry("a", "kl", "0")), "/tolerances/0/value");
  ExpectRefused(Register(Entry("a", "kl", "-1")), "/tolerances/0/value");
  ExpectRefused(Register(Entry("a", "kl", "\"1\"")), "/tolerances/0/value");
  ExpectRefused(Register(Entry("a", "cosine", "1")), "/tolerances/0/kind");
  ExpectRefused(Register(Entry("", "kl", "1")), "/tolerances/0/id");
  ExpectRefused(Register(Entry("a", "kl", "1") + "," + Entry("a", "kl", "2")), "/tolerances/1/id");
  ExpectRefused(Register(R"({"id": "a"})"), "/tolerances/0/");
  ExpectRefused("{}", "");
}

}  // namespace
}  // namespace hallmark
