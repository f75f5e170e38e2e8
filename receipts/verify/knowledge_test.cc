// SPDX-License-Identifier: Apache-2.0
// What the verifier carries, held against the tree's other documents, and its readers of schemas,
// patterns and prompts.
#include "receipts/verify/knowledge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "receipts/verify/edited_receipt.h"
#include "receipts/verify/receipt.h"

namespace hallmark::verify {
namespace {

TEST(Knowledge, EveryCaseOfEveryListHasARule) {
  const Knowledge& knowledge = BuiltInKnowledge();
  EXPECT_GT(knowledge.case_levels.size(), 80u);
  for (const auto& [name, rank] : knowledge.case_levels) {
    const size_t slash = name.find('/');
    EXPECT_NE(knowledge.RuleOf(name.substr(0, slash), name.substr(slash + 1)), nullptr)
        << name << ": add a rule to receipts/verify/rules.json";
  }
}

TEST(Knowledge, EveryVectorOfARuleIsAGoldenFile) {
  const Knowledge& knowledge = BuiltInKnowledge();
  for (const RowRule& rule : knowledge.rules) {
    for (const std::string& name : rule.vectors) {
      if (name.find("{model}") != std::string::npos) continue;
      EXPECT_TRUE(knowledge.golden_files.contains(name)) << name;
    }
  }
}

TEST(Knowledge, PinsAreThoseOfThePublishedReceipts) {
  const Knowledge& knowledge = BuiltInKnowledge();
  std::set<std::string> pinned;
  for (const Pin& pin : knowledge.pins) pinned.insert(pin.core_sha256);
  std::set<std::string> published;
  for (const char* device : {"cpu", "h200"}) {
    for (const PublishedReceipt& receipt : PublishedReceipts(device)) {
      const Json statement = Json::parse(receipt.bytes);
      const Json& core = statement["predicate"]["core"];
      const std::string core_sha256 = statement["predicate"]["core_sha256"];
      published.insert(core_sha256);
      const auto& shared = knowledge.shared_rows.at(core["arithmetic"].get<std::string>());
      size_t pins = 0;
      for (const Pin& pin : knowledge.pins) {
        if (pin.core_sha256 == core_sha256) pins = pin.rows.size();
      }
      // Together they hold every row of every published receipt.
      EXPECT_EQ(pins + shared.size(), core["rows"].size()) << receipt.name;
    }
  }
  EXPECT_EQ(pinned, published) << "run receipts/pin";
}

TEST(Knowledge, ADocumentThatIsMissingOrBrokenIsAnError) {
  Documents documents = EmbeddedDocuments();
  ASSERT_TRUE(ReadKnowledge(documents).has_value());
  documents.erase("receipts/verify/pins.json");
  EXPECT_EQ(ReadKnowledge(documents).error().code, Code::kNotFound);
  documents = EmbeddedDocuments();
  documents["receipts/must_pass/L1.json"] = documents["receipts/must_pass/L0.json"];
  EXPECT_EQ(ReadKnowledge(documents).error().code, Code::kMalformed);
  documents = EmbeddedDocuments();
  documents["golden/manifest.json"] = "{\"files\":[{\"path\":1}]}";
  EXPECT_EQ(ReadKnowledge(documents).error().code, Code::kMalformed);
}

// A level more is three documents more and no code: it takes a drafter, its rows and its policy.
TEST(Knowledge, ANewLevelIsDataAlone) {
  Documents documents = EmbeddedDocuments();
  const std::string list = R"({"cases":["slice-equals-parent/one"],"level":"L8","schema":"x"})";
  Json policy = Json::parse(documents.at("receipts/policies/L0.json"));
  policy["name"] = policy["level"] = "L8";
  policy["must_pass"].push_back("L8");
  policy["drafter"] = "required";
  const std::string policy_text = policy.dump();
  documents["receipts/must_pass/L8.json"] = list;
  documents["receipts/policies/L8.json"] = policy_text;
  // Levels are what the receipt's schema admits, too.
  Json schema = Json::parse(documents.at("receipts/schemas/receipt.v1.schema.json"));
  Json& core = schema["properties"]["predicate"]["properties"]["core"]["properties"];
  core["level"]["enum"].push_back("L8");
  core["must_pass"]["propertyNames"]["enum"].push_back("L8");
  const std::string schema_text = schema.dump();
  documents["receipts/schemas/receipt.v1.schema.json"] = schema_text;
  const auto knowledge = ReadKnowledge(documents);
  ASSERT_TRUE(knowledge.has_value()) << knowledge.error().ToString();
  ASSERT_EQ(knowledge->levels.back().name, "L8");

  EditedReceipt receipt(PublishedReceiptOf("prism-exl3"));
  receipt.core()["level"] = "L8";
  for (const LevelList& level : knowledge->levels) {
    receipt.core()["must_pass"][level.name] = level.sha256;
  }
  Json row = receipt.row("text-exact/ids");
  row["clause"] = "slice-equals-parent";
  row["case"] = "one";
  receipt.rows().push_back(row);
  std::vector<Json> rows = receipt.rows();
  std::sort(rows.begin(), rows.end(), [](const Json& a, const Json& b) {
    return std::tie(a["clause"], a["case"]) < std::tie(b["clause"], b["case"]);
  });
  receipt.rows() = rows;
  receipt.core()["drafter"] = {
      {"files", {{{"name", "model.safetensors"}, {"bytes", 1}, {"sha256", std::string(64, 'd')}}}}};
  receipt.statement()["subject"].push_back(
      {{"name", "drafter/model.safetensors"}, {"digest", {{"sha256", std::string(64, 'd')}}}});
  receipt.SealAll();
  const auto judge = [&](const EditedReceipt& judged) {
    return *VerifyReceipt(*knowledge, judged.Name(), judged.Bytes(), {});
  };
  const bool only_l2 = knowledge->levels.size() == 4;
  if (only_l2) {
    EXPECT_EQ(ReasonsOf(judge(receipt)), std::vector<std::string>{});
    EXPECT_EQ(judge(receipt).level_reached, "L8");
  }
  receipt.core().erase("drafter");
  receipt.statement()["subject"].erase(2);
  receipt.SealAll();
  const auto reasons = ReasonsOf(judge(receipt));
  EXPECT_TRUE(std::find(reasons.begin(), reasons.end(), "policy-drafter /predicate/core/drafter") !=
              reasons.end());
}

// The rules of drafting and lanes, on rows of their own.
TEST(RowRules, HoldCountsAgainstTheCaseAndEachOther) {
  const Knowledge& knowledge = BuiltInKnowledge();
  const auto reasons = [&](const std::string& clause, const std::string& case_name,
                           const Json& counts) {
    EditedReceipt edited(PublishedReceiptOf("prism-exl3"));
    Json row = edited.row("text-exact/ids");
    row["clause"] = clause;
    row["case"] = case_name;
    row["counts"] = counts;
    edited.rows() = {row};
    Findings findings;
    CheckRows(knowledge, ReadClaims(knowledge, edited.statement()), findings);
    std::vector<std::string> found;
    for (const Reason& reason : findings.reasons()) {
      const std::string at = "/predicate/core/rows/0/counts/";
      if (reason.pointer.starts_with(at)) {
        found.push_back(reason.code + " " + reason.pointer.substr(at.size()));
      }
    }
    return found;
  };
  using Texts = std::vector<std::string>;
  const std::string resumed = "prompt,kept=100,tail=17";
  Json counts = {{"fed_rows", 17}, {"ids", 6}, {"resumed_rows", 100}, {"values", 12}};
  EXPECT_EQ(reasons("resumed-equals-fresh", resumed, counts), Texts{});
  counts["resumed_rows"] = 99;
  EXPECT_EQ(reasons("resumed-equals-fresh", resumed, counts),
            Texts{"row-count-contradiction resumed_rows"});
  counts["resumed_rows"] = 0;
  EXPECT_EQ(reasons("resumed-equals-fresh", resumed, counts)[0], "row-count-zero resumed_rows");
  counts = {{"ids", 48}, {"peak_streams", 4}, {"values", 96}};
  EXPECT_EQ(reasons("concurrent-equals-solo", "staggered,streams=4", counts), Texts{});
  counts["peak_streams"] = 1;
  EXPECT_EQ(reasons("concurrent-equals-solo", "staggered,streams=4", counts),
            (Texts{"row-count-low peak_streams", "row-count-contradiction peak_streams"}));
  counts = {{"accepted", 9}, {"drafted", 20}, {"ids", 48}, {"rounds", 34}, {"values", 48}};
  EXPECT_EQ(reasons("drafted-equals-undrafted", "drafts-land", counts), Texts{});
  counts["rounds"] = 48;
  EXPECT_EQ(reasons("drafted-equals-undrafted", "drafts-land", counts),
            (Texts{"row-count-contradiction rounds", "row-count-contradiction ids"}));
}

TEST(JsonSchema, RefusesKeywordsItDoesNotUnderstand) {
  const auto schema = JsonSchema::Parse(R"({"properties":{"a":{"not":{}}}})", "s.json");
  ASSERT_FALSE(schema.has_value());
  EXPECT_EQ(schema.error().code, Code::kUnsupported);
  EXPECT_EQ(schema.error().where.pointer, "/properties/a/not");
}

TEST(Glob, MatchesWholeTexts) {
  EXPECT_TRUE(GlobMatches("a*c", "abc"));
  EXPECT_TRUE(GlobMatches("a*c", "ac"));
  EXPECT_TRUE(GlobMatches("tap_*_rms", "tap_12_rms"));
  EXPECT_TRUE(GlobMatches("*", ""));
  EXPECT_TRUE(GlobMatches("*b*", "abba"));
  EXPECT_FALSE(GlobMatches("a*c", "abcd"));
  EXPECT_FALSE(GlobMatches("a*a", "a"));
  EXPECT_FALSE(GlobMatches("abc", "abcd"));
  EXPECT_FALSE(GlobMatches("*b*b", "ab"));
}

TEST(Prompt, TheRuleGivesThePublishedDigest) {
  const PromptRule& rule = BuiltInKnowledge().prompts.front();
  EXPECT_EQ(PromptDigest(rule, 4096),
            "c2e07b12c9e429b07b041c9d1d0c3647d25e413e3b0b5c96c5b33329bb4f7c94");
  EXPECT_EQ(BoundOf(rule, rule.words + "4096"), 4096u);
  for (const char* bad : {"", "0", "-1", "+1", "01", "1 ", "2147483648", "99999999999999999999"}) {
    EXPECT_EQ(BoundOf(rule, rule.words + bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace hallmark::verify
