// SPDX-License-Identifier: Apache-2.0
// The source step, on the golden model and a source made for it: its own weights and noise, as
// large as an honest quantizer's error would be.
#include "conformance/validate/source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "conformance/harness/paths.h"
#include "conformance/validate/divergence.h"
#include "conformance/validate/model_copy.h"
#include "conformance/validate/noisy_source.h"
#include "conformance/validate/tensor_error.h"
#include "engine/base/sha256.h"
#include "engine/format/checkpoint.h"

namespace hallmark {
namespace {

constexpr char kScribe[] = "models/scribe-11m-exl3";
const std::string kLayers = "model.language_model.layers.";

void WriteSource(const std::string& folder, const Noise& noise = {}) {
  const Status written = WriteNoisySource(GoldenPath(kScribe), folder, noise);
  ASSERT_TRUE(written.has_value()) << written.error().ToString();
}

class Source : public testing::Test {
 protected:
  void SetUp() override {
    source_ = testing::TempDir() + "/source";
    model_ = testing::TempDir() + "/model";
  }

  // Tensors alone, unless a case asks for more.
  StepReport Judged(const std::string& model, bool run = false) {
    auto report = ValidateSource({.folder = model,
                                  .reference = source_,
                                  .sampled = {.windows = 2, .tokens = 24},
                                  .run = run},
                                 {});
    EXPECT_TRUE(report.has_value()) << report.error().ToString();
    return report.has_value() ? *report : StepReport{};
  }
  static std::string Text(const StepReport& report) {
    std::string text;
    for (const Finding& finding : report.findings) {
      text += finding.check + ": " + finding.error.ToString() + "\n";
    }
    return text;
  }
  static void ExpectOne(const StepReport& report, const std::string& check,
                        const std::string& tensor) {
    ASSERT_EQ(report.findings.size(), 1u) << Text(report);
    EXPECT_EQ(report.findings[0].check, check) << Text(report);
    EXPECT_EQ(report.findings[0].error.where.tensor, tensor);
  }

  std::string source_, model_;
};

TEST_F(Source, AnHonestQuantizationIsQuietAndItsWorstTensorsAreNamed) {
  WriteSource(source_);
  const StepReport report = Judged(GoldenPath(kScribe), true);
  EXPECT_EQ(report.step, "source");
  EXPECT_TRUE(report.findings.empty()) << Text(report);
  const Json& tensors = report.facts->at("tensors");
  EXPECT_EQ(tensors.at("quantized"), 51);
  EXPECT_EQ(tensors.at("compared"), 109);
  ASSERT_EQ(tensors.at("worst").size(), 5u);
  EXPECT_EQ(tensors.at("worst")[0].at("bits"), 1);
  EXPECT_EQ(tensors.at("worst")[0].at("tensor"), kLayers + "2.linear_attn.in_proj_z");
  EXPECT_EQ(tensors.at("worst")[1].at("bits"), 2);
  for (const Json& linear : tensors.at("linears")) {
    // BF16 rounds the source too, which shows at eight bits.
    EXPECT_NEAR(linear.at("nmse").get<double>() / linear.at("expected").at("middle").get<double>(),
                1.2, 0.15)
        << linear;
  }
  const Json& predictions = report.facts->at("predictions");
  EXPECT_EQ(predictions.at("windows"), 2);
  EXPECT_EQ(predictions.at("tokens"), 48);
  EXPECT_GT(predictions.at("mean_kl_nat"), 1e-4);
  EXPECT_LT(predictions.at("mean_kl_nat"), 3);
  EXPECT_GT(predictions.at("top1_agreement"), 0.3);
  // The same again.
  EXPECT_EQ(*Judged(GoldenPath(kScribe), true).facts, *report.facts);
}

TEST_F(Source, WindowsThatAreGivenTakeThePlaceOfDraws) {
  WriteSource(source_);
  const WindowOptions sampled{.windows = 2, .tokens = 24};
  auto session = Session::Open(source_);
  ASSERT_TRUE(session.has_value());
  const auto windows = SampleWindows(**session, sampled, {});
  ASSERT_TRUE(windows.has_value());
  const auto judged = [&](const std::vector<TokenWindow>& given, const std::string& file) {
    const auto report = ValidateSource({.folder = GoldenPath(kScribe),
                                        .reference = source_,
                                        .windows = given,
                                        .windows_file = file,
                                        .sampled = sampled},
                                       {});
    EXPECT_TRUE(report.has_value()) << report.error().ToString();
    return report->facts->at("predictions");
  };
  Json drawn = judged({}, "");
  EXPECT_EQ(drawn.at("rule_ids"), kRuleIds);
  Json given = judged(*windows, "w.jsonl");
  EXPECT_EQ(given.at("windows_file"), "w.jsonl");
  given.erase("windows_file");
  drawn.erase("rule_ids");
  drawn.erase("sampled_with_seed");
  EXPECT_EQ(given, drawn);
  // Others are others.
  const Json short_one = judged({{1, 2, 3}}, "w.jsonl");
  EXPECT_EQ(short_one.at("windows"), 1);
  EXPECT_EQ(short_one.at("tokens"), 3);
  EXPECT_EQ(short_one.at("ids_sha256"),
            Sha256HexOf(std::span<const int32_t>(std::vector<int32_t>{1, 2, 3})));
}

TEST_F(Source, WindowsAreBoundByBothModels) {
  WriteSource(source_);
  const WindowLimits limits = WindowLimitsOf(GoldenPath(kScribe), source_);
  EXPECT_EQ(limits.vocab, 4096);
  EXPECT_EQ(limits.tokens, 4096);
  EXPECT_EQ(limits.total, int64_t{1} << 19);
  const WindowLimits other = WindowLimitsOf(GoldenPath("models/prism-exl3"), source_);
  EXPECT_EQ(other.vocab, 1000);
  EXPECT_EQ(other.total, int64_t{1} << 19);
  EXPECT_EQ(WindowLimitsOf("nowhere", "nowhere").total, WindowLimits().total);
}

TEST_F(Source, AModelAgainstItselfHasNoErrorAtAll) {
  WriteSource(source_);
  const StepReport report = Judged(source_, true);
  EXPECT_TRUE(report.findings.empty()) << Text(report);
  EXPECT_EQ(report.facts->at("tensors").at("quantized"), 0);
  EXPECT_EQ(report.facts->at("predictions").at("mean_kl_nat"), 0);
  EXPECT_EQ(report.facts->at("predictions").at("top1_agreement"), 1);
}

TEST_F(Source, SwappedTensorsAreBothAnotherModels) {
  WriteSource(source_);
  ModelCopy model(GoldenPath(kScribe));
  for (const char* part : {".trellis", ".suh", ".svh"}) {
    model.Swap(kLayers + "4.mlp.gate_proj" + part, kLayers + "5.mlp.gate_proj" + part);
  }
  model.Write(model_);
  const StepReport report = Judged(model_);
  ASSERT_EQ(report.findings.size(), 2u) << Text(report);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(report.findings[i].check, "tensor-of-another-model");
    EXPECT_EQ(report.findings[i].error.where.tensor,
              kLayers + (i == 0 ? "4" : "5") + ".mlp.gate_proj.trellis");
  }
}

TEST_F(Source, TilesOutOfPlaceAreAnotherModels) {
  WriteSource(source_);
  ModelCopy model(GoldenPath(kScribe));
  const std::string name = kLayers + "3.mlp.down_proj.trellis";
  std::string& bytes = model.Tensor(name).bytes;
  bytes = bytes.substr(128) + bytes.substr(0, 128);
  model.Write(model_);
  ExpectOne(Judged(model_), "tensor-of-another-model", name);
}

TEST_F(Source, AScaleTimes1000IsAGrossError) {
  WriteSource(source_);
  ModelCopy model(GoldenPath(kScribe));
  model.Map(kLayers + "3.mlp.down_proj.svh", [](float value) { return value * 1000; });
  model.Write(model_);
  ExpectOne(Judged(model_), "error-gross", kLayers + "3.mlp.down_proj.trellis");
}

TEST_F(Source, NegatedScalesAreAnotherModels) {
  WriteSource(source_);
  ModelCopy model(GoldenPath(kScribe));
  model.Map(kLayers + "3.mlp.down_proj.suh", [](float value) { return -value; });
  model.Write(model_);
  ExpectOne(Judged(model_), "tensor-of-another-model", kLayers + "3.mlp.down_proj.trellis");
}

TEST_F(Source, OneBitLostIsAboveTheBandAndTwoAreGross) {
  const std::string linear = kLayers + "3.self_attn.k_proj";
  WriteSource(source_, {{linear, 4.0}});
  ExpectOne(Judged(GoldenPath(kScribe)), "error-above-band", linear + ".trellis");
  WriteSource(source_, {{linear, 16.0}});
  ExpectOne(Judged(GoldenPath(kScribe)), "error-gross", linear + ".trellis");
}

TEST_F(Source, AReferenceMadeFromTheQuantizedModelIsTold) {
  const std::string linear = kLayers + "3.mlp.down_proj";
  WriteSource(source_, {{linear, 0.0}});
  ExpectOne(Judged(GoldenPath(kScribe)), "error-below-band", linear + ".trellis");
}

TEST_F(Source, APlainTensorThatIsNotTheSourcesIsTold) {
  WriteSource(source_);
  for (const std::string& name :
       {std::string("model.language_model.norm.weight"), kLayers + "1.linear_attn.A_log",
        kLayers + "6.linear_attn.in_proj_b.weight",
        std::string("model.language_model.embed_tokens.weight")}) {
    ModelCopy model(GoldenPath(kScribe));
    model.Map(name, [](float value) { return value * 1.25f; });
    model.Write(model_);
    ExpectOne(Judged(model_), "plain-tensor-differs", name);
  }
}

TEST_F(Source, AnotherGeometryIsRefusedAndNothingIsCompared) {
  WriteSource(source_);
  const StepReport report = Judged(GoldenPath("models/prism-exl3"), true);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].check, "reference-differs");
  EXPECT_TRUE(report.facts->empty());
}

TEST_F(Source, AQuantizedReferenceIsAnError) {
  const auto report = ValidateSource(
      {.folder = GoldenPath(kScribe), .reference = GoldenPath(kScribe), .run = false}, {});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, Code::kUnsupported);
}

TEST_F(Source, LogitsThatAreNotFiniteAreAFinding) {
  WriteSource(source_);
  ModelCopy model(GoldenPath(kScribe));
  model.Map("model.language_model.embed_tokens.weight", [](float) { return NAN; });
  model.Write(model_);
  const StepReport report = Judged(model_, true);
  ASSERT_EQ(report.findings.size(), 2u) << Text(report);
  EXPECT_EQ(report.findings[0].check, "plain-tensor-differs");
  EXPECT_EQ(report.findings[1].check, "logits-not-finite");
}

TEST_F(Source, TheErrorIsMeasuredInPartsOfTheSource) {
  WriteSource(source_);
  ModelCopy model(GoldenPath(kScribe));
  const std::string name = "model.language_model.norm.weight";
  model.Map(name, [](float value) { return value * 4; });
  model.Write(model_);
  const auto source = Checkpoint::Open(source_);
  const auto changed = Checkpoint::Open(model_);
  ASSERT_TRUE(source.has_value() && changed.has_value());
  const auto errors = MeasureTensorErrors(*TakeInventory(*source), *TakeInventory(*changed), 2, {});
  ASSERT_TRUE(errors.has_value());
  size_t found = 0;
  for (const TensorError& error : *errors) {
    if (error.name != name) continue;
    EXPECT_EQ(error.nmse, 9.0);
    EXPECT_EQ(error.scale, 4.0);
    ++found;
  }
  EXPECT_EQ(found, 1u);
}

TEST(Divergence, IsKlOfTheReferenceAndCountsFirstIds) {
  // p = (3/4, 1/4), q = (1/4, 3/4): KL = ln 3 / 2.
  const float three = std::log(3.0f);
  const std::vector<float> p = {three, 0, three, 0};
  const std::vector<float> q = {0, three, three, 0};
  Divergence divergence;
  divergence.Add(p, q, 2);
  EXPECT_EQ(divergence.rows, 2u);
  EXPECT_NEAR(divergence.mean_kl(), std::log(3.0) / 4, 1e-7);
  EXPECT_NEAR(divergence.largest_kl, std::log(3.0) / 2, 1e-7);
  EXPECT_EQ(divergence.top1(), 0.5);
  // Not symmetric: a sure reference against a flat model, and the other way round.
  Divergence sure, flat;
  const std::vector<float> sharp = {8, 0};
  const std::vector<float> even = {0, 0};
  sure.Add(sharp, even, 2);
  flat.Add(even, sharp, 2);
  EXPECT_NEAR(sure.mean_kl(), std::log(2.0), 0.01);
  EXPECT_GT(flat.mean_kl(), 3);
}

TEST(Divergence, RowsThatAreNotFiniteAreCountedAndNotMeasured) {
  const std::vector<float> good = {1, 0, 0, 1};
  const std::vector<float> bad = {1, 0, NAN, 1};
  Divergence divergence;
  divergence.Add(good, bad, 2);
  EXPECT_EQ(divergence.rows, 1u);
  EXPECT_EQ(divergence.non_finite, 1u);
  EXPECT_EQ(Divergence().top1(), 0);
}

TEST(Windows, AreADrawOfTheModelAndTheSeed) {
  auto session = Session::Open(GoldenPath("models/prism-exl3"));
  ASSERT_TRUE(session.has_value());
  const WindowOptions options{.windows = 3, .tokens = 12};
  const auto windows = SampleWindows(**session, options, {});
  ASSERT_TRUE(windows.has_value());
  ASSERT_EQ(windows->size(), 3u);
  for (const TokenWindow& window : *windows) EXPECT_EQ(window.size(), 12u);
  EXPECT_NE((*windows)[0], (*windows)[1]);
  EXPECT_EQ(*SampleWindows(**session, options, {}), *windows);
  EXPECT_NE(*SampleWindows(**session, {.windows = 3, .tokens = 12, .seed = 5}, {}), *windows);
  const auto none = SampleWindows(**session, {.windows = 3, .tokens = kRuleIds}, {});
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::kOutOfRange);
}

TEST(Windows, AreReadLineByLine) {
  const std::string path = testing::TempDir() + "/windows.jsonl";
  ASSERT_TRUE(
      WriteText(path, "{\"ids\": [0, 99]}\r\n{\"text\": \"x\", \"ids\": [1, 2, 3]}").has_value());
  const WindowLimits limits{.vocab = 100, .tokens = 3, .total = 5};
  const auto windows = ReadWindows(path, limits);
  ASSERT_TRUE(windows.has_value()) << windows.error().ToString();
  EXPECT_EQ(*windows, (std::vector<TokenWindow>{{0, 99}, {1, 2, 3}}));
  EXPECT_EQ(ReadWindows(path + ".no", limits).error().code, Code::kNotFound);
}

TEST(Windows, AreRefusedByTheirPlace) {
  const std::string path = testing::TempDir() + "/windows.jsonl";
  const std::string good = "{\"ids\": [1, 2]}\n";
  struct Fault {
    std::string line;
    Code code;
    std::string pointer;
    uint64_t byte = 0;  // in the line
  };
  const std::vector<Fault> faults = {
      {"", Code::kMalformed, ""},
      {"[1, 2]", Code::kMalformed, ""},
      {"{\"ids\": [1, 2", Code::kMalformed, "", 13},
      {"{\"ids\": [1], \"ids\": [2]}", Code::kMalformed, "/ids"},
      {"{}", Code::kMalformed, "/ids"},
      {"{\"ids\": {}}", Code::kMalformed, "/ids"},
      {"{\"ids\": []}", Code::kMalformed, "/ids"},
      {"{\"ids\": [1, \"a\"]}", Code::kMalformed, "/ids/1"},
      {"{\"ids\": [1, 2.5]}", Code::kMalformed, "/ids/1"},
      {"{\"ids\": [1, 100]}", Code::kOutOfRange, "/ids/1"},
      {"{\"ids\": [-1, 1]}", Code::kOutOfRange, "/ids/0"},
      {"{\"ids\": [18446744073709551615, 1]}", Code::kOutOfRange, "/ids/0"},
      {"{\"ids\": [1, 2, 3, 4]}", Code::kOutOfRange, "/ids"},
      {"{\"ids\": [1, 2, 3]}", Code::kOutOfRange, "/ids"}};  // the third window's ids are too many
  for (const Fault& fault : faults) {
    ASSERT_TRUE(WriteText(path, good + fault.line + "\n" + good).has_value());
    const auto windows = ReadWindows(path, {.vocab = 100, .tokens = 3, .total = 4});
    ASSERT_FALSE(windows.has_value()) << fault.line;
    EXPECT_EQ(windows.error().code, fault.code) << fault.line;
    EXPECT_TRUE(windows.error().where ==
                (Locator{.file = path, .byte = good.size() + fault.byte, .pointer = fault.pointer}))
        << windows.error().ToString();
  }
  ASSERT_TRUE(WriteText(path, "").has_value());
  EXPECT_EQ(ReadWindows(path, {}).error().code, Code::kMalformed);
}

}  // namespace
}  // namespace hallmark
