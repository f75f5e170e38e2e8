// SPDX-License-Identifier: Apache-2.0
#include "receipts/emit/statement.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/json.h"
#include "engine/base/sha256.h"

namespace hallmark {
namespace {

ReceiptCore SmallCore() {
  return {.level = Level::kL1,
          .checkpoint = {{"model.safetensors", 7, std::string(64, 'b')},
                         {"config.json", 5, std::string(64, 'a')}},
          .contract = {1, std::string(64, 'c')},
          .must_pass = {{"L1", std::string(64, 'd')}, {"L0", std::string(64, 'e')}},
          .tolerances = std::string(64, 'f'),
          .kv = "bf16",
          .arithmetic = "cpu/1/0123456789ab",
          .rows = {{.clause = "sampler-exact",
                    .case_name = "draws",
                    .outcome = Outcome::kPass,
                    .expected = "aa",
                    .actual = "aa",
                    .counts = {{"values", 400}}}}};
}

TEST(CoreJson, HasOneCanonicalTextWhateverTheOrderOfFiles) {
  ReceiptCore core = SmallCore();
  const std::string text = CanonicalJson(CoreJson(core));
  std::swap(core.checkpoint[0], core.checkpoint[1]);
  EXPECT_EQ(CanonicalJson(CoreJson(core)), text);
  // Pinned, and computed by another program (Python's json, two spaces, sorted keys): another
  // serialisation would change every published digest.
  EXPECT_EQ(Sha256Hex(text), CoreDigest(CoreJson(core)));
  EXPECT_EQ(CoreDigest(CoreJson(core)),
            "a188cd9ed4bb8a9e2b55c538cf0163b573bd7ea6f398f13a5ddd9b1b3b8f61f5");
}

TEST(CoreJson, HoldsNothingOfTheMachine) {
  const Json core = CoreJson(SmallCore());
  std::vector<std::string> names;
  for (const auto& [name, value] : core.items()) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"arithmetic", "checkpoint", "contract", "level", "must_pass",
                                      "prompts", "rows", "settings", "tolerances", "vectors"}));
}

TEST(CoreDigest, ChangesWithEveryMember) {
  const std::string digest = CoreDigest(CoreJson(SmallCore()));
  std::vector<ReceiptCore> changed(9, SmallCore());
  changed[0].level = Level::kL2;
  changed[1].checkpoint[0].sha256[0] = '0';
  changed[2].contract.version = 2;
  changed[3].must_pass["L1"][0] = '0';
  changed[4].tolerances[0] = '0';
  changed[5].kv = "fp8";
  changed[6].arithmetic = "cpu/1/0123456789ac";
  changed[7].rows[0].counts["values"] = 399;
  changed[8].rows[0].outcome = Outcome::kFail;
  for (size_t i = 0; i < changed.size(); ++i) {
    EXPECT_NE(CoreDigest(CoreJson(changed[i])), digest) << i;
  }
}

TEST(StatementJson, IsAnInTotoStatementAboutShardsAndTheBinary) {
  const Json core = CoreJson(SmallCore());
  const Json statement = StatementJson(
      {{"model.safetensors", 7, std::string(64, 'b')}, {"hallmark", 9, std::string(64, '1')}}, core,
      Json::object());
  EXPECT_EQ(statement["_type"], "https://in-toto.io/Statement/v1");
  EXPECT_EQ(statement["subject"].size(), 2u);
  EXPECT_EQ(statement["subject"][1]["digest"]["sha256"], std::string(64, '1'));
  EXPECT_EQ(statement["predicate"]["core"], core);
  EXPECT_EQ(statement["predicate"]["core_sha256"], CoreDigest(core));
  // The binary differs between builds, so it stands outside what must repeat.
  EXPECT_EQ(CanonicalJson(core).find(std::string(64, '1')), std::string::npos);
}

TEST(StatementJson, ItsCoreSurvivesAJsonRoundTrip) {
  const Json statement = StatementJson({}, CoreJson(SmallCore()), Json::object());
  auto read = ParseJson(statement.dump(), "receipt");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(CoreDigest((*read)["predicate"]["core"]),
            (*read)["predicate"]["core_sha256"].get<std::string>());
}

TEST(ReceiptName, NamesLevelBackendAndDigest) {
  EXPECT_EQ(ReceiptName(Level::kL2, "cpu/1/0123456789ab", "fedcba9876543210"),
            "L2.cpu.fedcba987654");
}

}  // namespace
}  // namespace hallmark
