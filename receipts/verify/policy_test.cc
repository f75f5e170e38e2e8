// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/policy.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "receipts/verify/edited_receipt.h"

namespace hallmark::verify {
namespace {

Json PolicyL1() { return Json::parse(EmbeddedDocuments().at("receipts/policies/L1.json")); }

Error Refusal(const Json& json) {
  const auto policy = ParsePolicy(BuiltInKnowledge(), json.dump(), "p.json");
  return policy.has_value() ? Error{} : policy.error();
}

std::vector<std::string> Under(const Json& json, const EditedReceipt& receipt) {
  const auto policy = ParsePolicy(BuiltInKnowledge(), json.dump(), "p.json");
  EXPECT_TRUE(policy.has_value()) << policy.error().ToString();
  return ReasonsOf(receipt.Verify({.policy = &*policy}));
}

EditedReceipt Scribe() { return EditedReceipt(PublishedReceiptOf("scribe-11m-exl3")); }

TEST(Policy, EveryListedLevelHasABuiltInOne) {
  const Knowledge& knowledge = BuiltInKnowledge();
  ASSERT_GE(knowledge.levels.size(), 3u);
  for (const LevelList& list : knowledge.levels) {
    const Policy* policy = knowledge.PolicyOf(list.name);
    ASSERT_NE(policy, nullptr) << list.name;
    EXPECT_EQ(policy->level, list.name);
    // It demands its own list and every one below.
    EXPECT_EQ(static_cast<int>(policy->must_pass.size()), knowledge.RankOf(list.name) + 1);
  }
}

TEST(Policy, UnknownNamesAndShapesAreRefused) {
  const auto expect = [](const Json& json, const std::string& pointer) {
    const Error error = Refusal(json);
    EXPECT_EQ(error.code, Code::kMalformed);
    EXPECT_EQ(error.where.file, "p.json");
    EXPECT_EQ(error.where.pointer, pointer);
  };
  Json json = PolicyL1();
  json["level"] = "L7";
  expect(json, "/level");
  json = PolicyL1();
  json["clauses"].push_back("all-is-well");
  expect(json, "/clauses/" + std::to_string(json["clauses"].size() - 1));
  json = PolicyL1();
  json["must_pass"][0] = "L8";
  expect(json, "/must_pass/0");
  json = PolicyL1();
  json["must_pass"].push_back("L2");
  expect(json, "/must_pass/2");
  json = PolicyL1();
  json["lenient"] = true;
  expect(json, "/lenient");
  json = PolicyL1();
  json["schema"] = "urn:hallmark:schema:policy:v2";
  expect(json, "/schema");
  json = PolicyL1();
  json.erase("kv");
  expect(json, "/kv");
}

TEST(Policy, ALowerOneAsksForLess) {
  EXPECT_EQ(Under(PolicyL1(), Scribe()), std::vector<std::string>{});
}

TEST(Policy, AHigherLevelThanClaimedIsDenied) {
  const Policy* l2 = BuiltInKnowledge().PolicyOf("L2");
  EditedReceipt receipt = Scribe();
  Json rows = Json::array();
  for (const Json& row : receipt.rows()) {
    const std::string name =
        row["clause"].get<std::string>() + "/" + row["case"].get<std::string>();
    const int rank = BuiltInKnowledge().LevelOfCase(name);
    if (rank == 0) rows.push_back(row);
  }
  receipt.rows() = rows;
  receipt.core()["level"] = "L0";
  receipt.core()["prompts"] = Json::array();
  receipt.core()["must_pass"] = {{"L0", receipt.core()["must_pass"]["L0"]}};
  receipt.SealAll();
  EXPECT_EQ(ReasonsOf(receipt.Verify()), std::vector<std::string>{});
  const ReceiptVerdict verdict = receipt.Verify({.policy = l2});
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_EQ(verdict.level_reached, "L0");
  EXPECT_EQ(verdict.reasons.front().code, "policy-level");
}

TEST(Policy, EachDemandHasItsReason) {
  Json json = PolicyL1();
  json["arithmetic"] = {"cpu/1/0123456789ab"};
  EXPECT_EQ(Under(json, Scribe()),
            std::vector<std::string>{"policy-arithmetic /predicate/core/arithmetic"});
  json = PolicyL1();
  json["kv"] = {"fp8"};
  EXPECT_EQ(Under(json, Scribe()),
            std::vector<std::string>{"policy-kv /predicate/core/settings/kv"});
  json = PolicyL1();
  json["drafter"] = "required";
  EXPECT_EQ(Under(json, Scribe()),
            std::vector<std::string>{"policy-drafter /predicate/core/drafter"});
  json = PolicyL1();
  json["clauses"] = {"counters-zero"};
  EXPECT_EQ(Under(json, Scribe()), std::vector<std::string>{"policy-clause /predicate/core/rows"});
}

}  // namespace
}  // namespace hallmark::verify
