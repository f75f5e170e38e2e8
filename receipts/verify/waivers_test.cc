// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/waivers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "receipts/verify/calendar.h"
#include "receipts/verify/edited_receipt.h"

namespace hallmark::verify {
namespace {

constexpr char kToday[] = "2026-11-30";
constexpr char kCase[] = "chunked-equals-whole/prompt,cut=16";

Json File(const std::string& name, const std::string& expires) {
  return {{"schema", "urn:hallmark:schema:waivers:v1"},
          {"waivers", {{{"case", name}, {"expires", expires}, {"reason", "a known fault"}}}}};
}

Result<std::vector<Waiver>> Parse(const Json& json) {
  return ParseWaivers(BuiltInKnowledge(), json.dump(), "w.json", kToday);
}

void ExpectRefused(const Json& json, Code code, const std::string& pointer) {
  const auto waivers = Parse(json);
  ASSERT_FALSE(waivers.has_value());
  EXPECT_EQ(waivers.error().code, code);
  EXPECT_EQ(waivers.error().where.file, "w.json");
  EXPECT_EQ(waivers.error().where.pointer, pointer);
}

// A receipt that says itself that one case failed, and one whose case was not decided.
EditedReceipt WithOutcome(const std::string& outcome) {
  EditedReceipt receipt(PublishedReceiptOf("prism-exl3"));
  Json& row = receipt.row(kCase);
  row["outcome"] = outcome;
  row["actual"] = std::string(64, 'a');
  row["detail"] = "the logits of position 3: the bits differ";
  receipt.SealWithVerdict(outcome, {});
  return receipt;
}

TEST(Waivers, HoldUntilTheirLastDay) {
  EXPECT_TRUE(Parse(File(kCase, "2026-11-30")).has_value());
  EXPECT_TRUE(Parse(File(kCase, "2027-01-01")).has_value());
}

TEST(Waivers, AnExpiredOneIsRefused) {
  ExpectRefused(File(kCase, "2026-11-29"), Code::kOutOfRange, "/waivers/0/expires");
  ExpectRefused(File(kCase, "2025-12-31"), Code::kOutOfRange, "/waivers/0/expires");
}

TEST(Waivers, WhatNamesNothingIsRefused) {
  ExpectRefused(File("chunked-equals-whole/prompt,cut=15", "2027-01-01"), Code::kMalformed,
                "/waivers/0/case");
  ExpectRefused(File(kCase, "2027-02-30"), Code::kMalformed, "/waivers/0/expires");
  Json json = File(kCase, "2027-01-01");
  json["waivers"].push_back(json["waivers"][0]);
  ExpectRefused(json, Code::kMalformed, "/waivers/1/case");
  json = File(kCase, "2027-01-01");
  json["waivers"][0].erase("reason");
  ExpectRefused(json, Code::kMalformed, "/waivers/0/reason");
  json = File(kCase, "2027-01-01");
  json["forever"] = true;
  ExpectRefused(json, Code::kMalformed, "/forever");
}

// The published pins know this model's row, so that the receipt below breaks no rule but its own.
TEST(Waivers, AWaivedFailIsNoPass) {
  const EditedReceipt receipt = WithOutcome("fail");
  ReceiptVerdict verdict = receipt.Verify();
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EditedReceipt other = receipt;
  // Off the pins: a checkpoint nobody published.
  Json rows = Json::array();
  for (const Json& row : other.rows()) {
    if (row["clause"] != "model-golden") rows.push_back(row);
  }
  other.rows() = rows;
  other.core()["checkpoint"]["files"][0]["sha256"] = std::string(64, 'b');
  other.SealAll();
  const auto waivers = Parse(File(kCase, "2027-01-01"));
  ASSERT_TRUE(waivers.has_value());
  verdict = other.Verify({.waivers = *waivers});
  EXPECT_EQ(ReasonsOf(verdict), std::vector<std::string>{});
  EXPECT_EQ(ResultWord(verdict.outcome), "WAIVED");
  EXPECT_EQ(ExitCode(verdict.outcome), 3);
  EXPECT_EQ(verdict.level_reached, "L1");
  ASSERT_EQ(verdict.waived.size(), 1u);
  EXPECT_EQ(verdict.waived[0].case_name, kCase);
}

TEST(Waivers, WhatWasNotDecidedOrIsMissingIsNotWaived) {
  const auto waivers = Parse(File(kCase, "2027-01-01"));
  ASSERT_TRUE(waivers.has_value());
  const ReceiptVerdict verdict = WithOutcome("harnessError").Verify({.waivers = *waivers});
  EXPECT_EQ(verdict.reasons.back().code, "row-not-passed");
  EXPECT_TRUE(verdict.waived.empty());
  EditedReceipt missing(PublishedReceiptOf("prism-exl3"));
  missing.EraseRow(kCase);
  missing.SealWithVerdict("fail", {kCase});
  EXPECT_EQ(missing.Verify({.waivers = *waivers}).reasons.back().code, "row-missing");
}

TEST(Calendar, KnowsWhichDaysExist) {
  EXPECT_EQ(ParseDate("1970-01-02"), 1);
  EXPECT_EQ(ParseUtc("1970-01-01T01:01:01Z"), 3661);
  EXPECT_TRUE(ParseDate("2028-02-29").has_value());
  for (const char* bad :
       {"2027-02-29", "2027-13-01", "2027-00-01", "2027-1-01", "+027-01-01", ""}) {
    EXPECT_FALSE(ParseDate(bad).has_value()) << bad;
  }
  for (const char* bad : {"2027-01-01 00:00:00Z", "2027-01-01T24:00:00Z", "2027-01-01T00:00:00"}) {
    EXPECT_FALSE(ParseUtc(bad).has_value()) << bad;
  }
  EXPECT_TRUE(ParseDate(Today()).has_value());
}

}  // namespace
}  // namespace hallmark::verify
