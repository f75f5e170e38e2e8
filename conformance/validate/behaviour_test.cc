// SPDX-License-Identifier: Apache-2.0
// The behaviour step: quiet on sound models, and the fault of a broken one by its name. Models are
// small enough that each runs in a second or two.
#include "conformance/validate/behaviour.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/cases/faulty_backend.h"
#include "conformance/cases/prompt_runs.h"
#include "conformance/harness/checkpoint_writer.h"
#include "conformance/harness/paths.h"
#include "conformance/validate/model_copy.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/base/float_types.h"

namespace hallmark {
namespace {

constexpr char kScribe[] = "models/scribe-11m-exl3";
constexpr char kPrism[] = "models/prism-exl3";
const std::string kRoot = "model.language_model.";

std::string Text(const StepReport& report) {
  std::string text;
  for (const Finding& finding : report.findings) {
    text += finding.check + ": " + finding.error.ToString() + "\n";
  }
  return text;
}

StepReport Judged(const std::string& folder, const std::string& drafter = "",
                  const std::vector<std::string>& cases = {}) {
  auto report =
      ValidateBehaviour({.folder = folder, .session = {.drafter = drafter}, .cases = cases}, {});
  EXPECT_TRUE(report.has_value()) << report.error().ToString();
  return report.has_value() ? *report : StepReport{};
}

StepReport JudgedCopy(const ModelCopy& model, const std::string& name) {
  const std::string folder = testing::TempDir() + "/" + name;
  model.Write(folder);
  return Judged(folder);
}

void ExpectOne(const StepReport& report, const std::string& check, const std::string& tensor) {
  ASSERT_EQ(report.findings.size(), 1u) << Text(report);
  EXPECT_EQ(report.findings[0].check, check) << Text(report);
  EXPECT_EQ(report.findings[0].error.where.tensor, tensor);
}

TEST(Behaviour, GoldenModelsAreQuietAndSayWhatRan) {
  for (const char* name : {kScribe, kPrism}) {
    const StepReport report = Judged(GoldenPath(name));
    EXPECT_EQ(report.step, "behaviour");
    EXPECT_TRUE(report.findings.empty()) << name << "\n" << Text(report);
    const Json& facts = *report.facts;
    EXPECT_EQ(facts.at("cases").size(), 2u);
    EXPECT_EQ(report.compared.at("cases"), 2u);
    // 32 ids after the embedding and each of eight layers, then the prompt's logits.
    EXPECT_EQ(report.compared.at("finite_rows"), 32 * 9u + 200) << name;
    const uint64_t logits = name == kScribe ? 200 * 4096 : 200 * 1000;
    for (const Json& row : facts.at("case_counts")) {
      EXPECT_EQ(row.at("outcome"), "pass");
      EXPECT_EQ(row.at("positions"), 200);
      EXPECT_EQ(row.at("values"), logits);
    }
    EXPECT_EQ(report.compared.at("row_invariance_values"), logits);
    EXPECT_EQ(report.compared.contains("text_tokens"), name == kScribe);
    EXPECT_EQ(report.compared.at("chunked_equals_whole_values"), logits);
    EXPECT_EQ(report.lines.size(), name == kScribe ? 4u : 3u) << name;
    EXPECT_EQ(facts.at("logits").at("rows"), 200);
    EXPECT_GT(facts.at("largest_input").at("times_to_fp16_limit"), 1000);
    EXPECT_EQ(facts.contains("text"), name == kScribe);
  }
}

// Random drafts never land.
TEST(Behaviour, ADrafterThatKnowsNothingOfTheModelIsTold) {
  const std::string drafter = GoldenPath("models/prism-dflash");
  const StepReport report =
      Judged(GoldenPath(kPrism), drafter, {"drafted-equals-undrafted/drafts-land"});
  ASSERT_EQ(report.findings.size(), 1u) << Text(report);
  EXPECT_TRUE(report.findings[0].check.starts_with("drafts-")) << Text(report);
  EXPECT_EQ(report.findings[0].clause, "drafted-equals-undrafted");
  EXPECT_EQ(report.findings[0].error.where.file, drafter);
  EXPECT_GT(report.facts->at("drafts").at("drafted"), 100);
}

TEST(Behaviour, TheModelsOwnDrafterLands) {
  const StepReport report = Judged(GoldenPath(kScribe), GoldenPath("models/scribe-11m-dflash2"),
                                   {"drafted-equals-undrafted/drafts-land"});
  EXPECT_TRUE(report.findings.empty()) << Text(report);
  EXPECT_GT(report.facts->at("drafts").at("accepted"), 10);
}

TEST(Behaviour, CasesThatNameNoneAreAnError) {
  // Beside others that name some, too.
  const std::vector<std::vector<std::string>> cases = {
      {"row-invarianze/"}, {"row-invariance/forward,rows=7", "row-invarianze/"}};
  for (const auto& names : cases) {
    const auto report = ValidateBehaviour({.folder = GoldenPath(kPrism), .cases = names}, {});
    ASSERT_FALSE(report.has_value());
    EXPECT_EQ(report.error().code, Code::kOutOfRange);
  }
}

TEST(Behaviour, ADrafterForAnotherGeometryDoesNotOpen) {
  const StepReport report = Judged(GoldenPath(kPrism), GoldenPath("models/scribe-11m-dflash2"));
  ASSERT_EQ(report.findings.size(), 1u) << Text(report);
  EXPECT_EQ(report.findings[0].check, "does-not-open");
}

TEST(Behaviour, AScaleThatIsNotANumberDoesNotOpen) {
  ModelCopy model(GoldenPath(kScribe));
  const std::string name = kRoot + "layers.3.mlp.down_proj.suh";
  model.Set(name, 4, NAN);
  ExpectOne(JudgedCopy(model, "nan"), "does-not-open", name);
}

TEST(Behaviour, AnInputThatLeavesFp16IsNamed) {
  ModelCopy model(GoldenPath(kScribe));
  const std::string linear = kRoot + "layers.3.self_attn.o_proj";
  model.Map(linear + ".suh", [](float value) { return std::copysign(65504.0f, value); });
  model.Map(linear + ".svh", [](float value) { return value * 0.001f; });
  model.Map(kRoot + "layers.3.self_attn.v_proj.svh", [](float value) { return value * 1000; });
  ExpectOne(JudgedCopy(model, "overflow"), "input-overflow", linear);
}

TEST(Behaviour, LittleHeadroomIsTold) {
  ModelCopy model(GoldenPath(kPrism));
  const std::string linear = kRoot + "layers.1.mlp.down_proj";
  // About 7.4 before; the product of both sides stays what it was.
  model.Map(linear + ".suh", [](float value) { return value * 2048; });
  model.Map(linear + ".svh", [](float value) { return value / 2048; });
  ExpectOne(JudgedCopy(model, "headroom"), "fp16-headroom", linear);
}

TEST(Behaviour, AnEmbeddingThatIsNotFiniteIsNotBlamedOnALayer) {
  ModelCopy model(GoldenPath(kScribe));
  const std::string name = kRoot + "embed_tokens.weight";
  model.Map(name, [](float) { return INFINITY; });
  ExpectOne(JudgedCopy(model, "embedding"), "layer-not-finite", name);
}

TEST(Behaviour, TheFirstLayerThatIsNotFiniteIsNamed) {
  for (const int layer : {1, 2, 3}) {
    CheckpointWriter writer({.quantized = false});
    const std::string at = "layers." + std::to_string(layer);
    std::string& bytes = writer.Tensor(writer.Name(at + ".mlp.down_proj.weight")).bytes;
    for (size_t i = 0; i < bytes.size(); i += 2) {
      const uint16_t largest = FloatToBf16(i % 4 == 0 ? 3e38f : -3e38f);
      std::memcpy(bytes.data() + i, &largest, sizeof(largest));
    }
    const std::string folder = testing::TempDir() + "/layer";
    ASSERT_TRUE(writer.Write(folder).has_value());
    ExpectOne(Judged(folder), "layer-not-finite", writer.Name(at + ".input_layernorm.weight"));
  }
}

TEST(Behaviour, AHeadThatIsNotFiniteIsTold) {
  // The head is the embedding; the row of an id that the prompt lacks.
  const std::vector<int32_t> prompt = BuiltInPrompt(1000);
  const std::set<int32_t> used(prompt.begin(), prompt.end());
  size_t free = 0;
  while (used.contains(static_cast<int32_t>(free))) ++free;
  ModelCopy model(GoldenPath(kPrism));
  model.Set(kRoot + "embed_tokens.weight", free * 256, NAN);
  ExpectOne(JudgedCopy(model, "head"), "logits-not-finite", "");
}

TEST(Behaviour, AModelThatSaysTheSameWhateverItIsAskedIsDead) {
  ModelCopy model(GoldenPath(kScribe));
  model.Map(kRoot + "norm.weight", [](float) { return -1.0f; });
  ExpectOne(JudgedCopy(model, "dead"), "logits-dead", "");
}

TEST(Behaviour, AModelThatFindsTextLessLikelyThanNoiseIsTold) {
  ModelCopy model(GoldenPath(kScribe));
  model.Map("lm_head.svh", [](float value) { return -value; });
  ExpectOne(JudgedCopy(model, "text"), "text-below-chance", "");
}

// Owns what FaultyBackend borrows.
class OwningFaulty : private std::unique_ptr<Backend>, public FaultyBackend {
 public:
  OwningFaulty(std::unique_ptr<Backend> real, Fault fault)
      : std::unique_ptr<Backend>(std::move(real)), FaultyBackend(**this, fault) {}
};

StepReport JudgedOn(Fault fault) {
  auto real = MakeCpuBackend({});
  EXPECT_TRUE(real.has_value());
  auto report = ValidateBehaviour({.folder = GoldenPath(kPrism)},
                                  std::make_unique<OwningFaulty>(*std::move(real), fault), {});
  EXPECT_TRUE(report.has_value()) << report.error().ToString();
  return report.has_value() ? *report : StepReport{};
}

TEST(Behaviour, AnEngineWithTwoArithmeticsFailsTheCasesUnderTheirClauses) {
  EXPECT_TRUE(JudgedOn(Fault::kNone).findings.empty());
  const StepReport report = JudgedOn(Fault::kLastBitAboveSixteenRows);
  ASSERT_EQ(report.findings.size(), 2u) << Text(report);
  std::set<std::string> clauses;
  for (const Finding& finding : report.findings) {
    EXPECT_EQ(finding.check, "case-failed");
    EXPECT_EQ(finding.error.code, Code::kMismatch);
    clauses.insert(finding.clause);
  }
  EXPECT_EQ(clauses, (std::set<std::string>{"chunked-equals-whole", "row-invariance"}));
}

TEST(Behaviour, MemoryThatRunsOutIsAnErrorOfTheSystem) {
  auto real = MakeCpuBackend({});
  ASSERT_TRUE(real.has_value());
  const auto report =
      ValidateBehaviour({.folder = GoldenPath(kPrism)},
                        std::make_unique<OwningFaulty>(*std::move(real), Fault::kOutOfMemory), {});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, Code::kResource);
}

}  // namespace
}  // namespace hallmark
