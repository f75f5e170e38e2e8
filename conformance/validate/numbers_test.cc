// SPDX-License-Identifier: Apache-2.0
// The numbers step: quiet on sound checkpoints, and one finding for one fault, with its place.
#include "conformance/validate/numbers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "conformance/harness/paths.h"
#include "conformance/validate/model_copy.h"
#include "conformance/validate/tensor_scan.h"
#include "conformance/validate/zero_runs.h"
#include "engine/base/mapped_file.h"
#include "engine/base/random.h"
#include "engine/base/sha256.h"
#include "engine/format/safetensors.h"

namespace hallmark {
namespace {

constexpr char kScribe[] = "models/scribe-11m-exl3";
constexpr char kPrism[] = "models/prism-exl3";
const std::string kLayers = "model.language_model.layers.";

StepReport Judged(const std::string& folder, int threads = 2) {
  auto report = ValidateNumbers({.folder = folder, .threads = threads}, {});
  EXPECT_TRUE(report.has_value()) << report.error().ToString();
  return report.has_value() ? *report : StepReport{};
}

std::string Text(const StepReport& report) {
  std::string text;
  for (const Finding& finding : report.findings) {
    text += finding.check + ": " + finding.error.ToString() + "\n";
  }
  return text;
}

struct Fault {
  std::string name;
  std::string check;
  Severity severity;
  std::string tensor;  // that the finding names; empty: a file
  std::function<void(ModelCopy&)> plant;
  // Byte in the tensor, where that is known.
  int64_t byte = -1;
  const char* model = kScribe;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

std::vector<Fault> Faults() {
  const std::string down = kLayers + "3.mlp.down_proj";
  const std::string up = kLayers + "0.mlp.up_proj";
  const std::string delta = kLayers + "1.linear_attn.";
  const auto set = [](const std::string& tensor, size_t index, float value) {
    return [=](ModelCopy& model) { model.Set(tensor, index, value); };
  };
  const auto map = [](const std::string& tensor, const std::function<float(float)>& change) {
    return [=](ModelCopy& model) { model.Map(tensor, change); };
  };
  const auto to = [](float value) { return [value](float) { return value; }; };
  // [48, 16, 64]: 768 tiles of 128 bytes.
  const auto fill = [down](size_t tile, size_t tiles, char byte) {
    return [=](ModelCopy& model) { model.Fill(down + ".trellis", tile * 128, tiles * 128, byte); };
  };
  return {
      {"NanInSuh", "value-not-finite", Severity::kError, down + ".suh", set(down + ".suh", 5, NAN),
       10},
      {"InfinityInSvh", "value-not-finite", Severity::kError, down + ".svh",
       set(down + ".svh", 255, -INFINITY), 510},
      {"NanInNorm", "value-not-finite", Severity::kError, kLayers + "2.input_layernorm.weight",
       set(kLayers + "2.input_layernorm.weight", 7, NAN), 14},
      {"NanInEmbeddingsLastRow", "value-not-finite", Severity::kError,
       "model.language_model.embed_tokens.weight",
       set("model.language_model.embed_tokens.weight", 4096 * 256 - 1, NAN), 4096 * 512 - 2},
      {"InfinityInALog", "value-not-finite", Severity::kError, delta + "A_log",
       set(delta + "A_log", 1, INFINITY)},
      {"SuhAllZero", "scale-all-zero", Severity::kError, down + ".suh", map(down + ".suh", to(0))},
      {"SvhAllZero", "scale-all-zero", Severity::kError, down + ".svh", map(down + ".svh", to(0))},
      {"SuhAllSubnormal", "scale-all-subnormal", Severity::kError, down + ".suh",
       map(down + ".suh", [](float value) { return std::copysign(0x1p-20f, value); })},
      {"SomeSubnormalScales", "scale-subnormal", Severity::kWarning, down + ".suh",
       [down](ModelCopy& model) {
         for (size_t i = 0; i < 20; ++i) model.Set(down + ".suh", 7 * i, 0x1p-20f);
       }},
      {"SaturatedScale", "scale-saturated", Severity::kError, down + ".svh",
       set(down + ".svh", 9, 65504)},
      {"OneScaleStandsOut", "scale-spike", Severity::kWarning, down + ".svh",
       set(down + ".svh", 9, 3000)},
      {"ScaleTimes1000InOneLayer", "scale-implausible", Severity::kError, down + ".svh",
       map(down + ".svh", [](float value) { return value * 1000; })},
      {"ScaleBy1000InOneLayer", "scale-implausible", Severity::kError, down + ".svh",
       map(down + ".svh", [](float value) { return value / 1000; })},
      {"ScaleTimes30InOneLayer", "scale-outlier", Severity::kWarning, down + ".svh",
       map(down + ".suh", [](float value) { return value * 30; })},
      {"ScaleTimes1000InOneOfTwo", "scale-outlier", Severity::kWarning,
       kLayers + "3.self_attn.o_proj.svh",
       map(kLayers + "3.self_attn.o_proj.svh", [](float value) { return value * 1000; })},
      {"DeadOutput", "dead-outputs", Severity::kNote, down + ".svh", set(down + ".svh", 17, 0), 34},
      {"ManyDeadOutputs", "many-dead-outputs", Severity::kWarning, up + ".svh",
       [up](ModelCopy& model) {
         for (size_t i = 0; i < 100; ++i) model.Set(up + ".svh", 3 * i, 0);
       }},
      {"DeadHeadRow", "dead-head-rows", Severity::kWarning, "lm_head.svh",
       set("lm_head.svh", 4095, -0.0f), 8190},
      {"DeadInput", "dead-inputs", Severity::kWarning, down + ".suh", set(down + ".suh", 3, 0), 6},
      {"OneZeroTile", "constant-tiles", Severity::kError, down + ".trellis", fill(5, 1, 0), 640},
      {"LastTileOfOnes", "constant-tiles", Severity::kError, down + ".trellis",
       fill(767, 1, '\xFF'), 767 * 128},
      {"AZeroPage", "constant-tiles", Severity::kError, down + ".trellis", fill(100, 64, 0), 12800},
      {"AllTilesZero", "trellis-one-tile", Severity::kError, down + ".trellis", fill(0, 768, 0), 0},
      {"AllTilesEqual", "trellis-one-tile", Severity::kError, down + ".trellis",
       [down](ModelCopy& model) {
         std::string& bytes = model.Tensor(down + ".trellis").bytes;
         for (size_t at = 128; at < bytes.size(); ++at) bytes[at] = bytes[at - 128];
       },
       0},
      {"ATileTwice", "repeated-tiles", Severity::kWarning, down + ".trellis",
       [down](ModelCopy& model) {
         std::string& bytes = model.Tensor(down + ".trellis").bytes;
         bytes.replace(9 * 128, 128, bytes, 8 * 128, 128);
       },
       9 * 128},
      {"ConvolutionAllZero", "tensor-all-zero", Severity::kError, delta + "conv1d.weight",
       map(delta + "conv1d.weight", to(0)), 0},
      {"PlainMatrixAllZero", "tensor-all-zero", Severity::kError, delta + "in_proj_b.weight",
       map(delta + "in_proj_b.weight", to(0)), 0},
      {"ZerosInsideTheEmbedding", "zero-region", Severity::kWarning,
       "model.language_model.embed_tokens.weight",
       [](ModelCopy& model) {
         model.Fill("model.language_model.embed_tokens.weight", 512 * 100, 512 * 9, 0);
       },
       512 * 100},
      {"GatedNormAllZero", "norm-all-zero", Severity::kError, delta + "norm.weight",
       map(delta + "norm.weight", to(0))},
      {"NormOfMinusOnes", "norm-all-zero", Severity::kError, "model.language_model.norm.weight",
       map("model.language_model.norm.weight", to(-1))},
      {"NormOfOnes", "norm-convention", Severity::kWarning, "model.language_model.norm.weight",
       map("model.language_model.norm.weight", to(1))},
      {"DecayOutOfRange", "decay-range", Severity::kWarning, delta + "A_log",
       set(delta + "A_log", 2, 40)},
      {"StepBiasOutOfRange", "decay-range", Severity::kWarning, delta + "dt_bias",
       set(delta + "dt_bias", 0, -100)},
      {"PlainMatrixTimesAMillion", "plain-outlier", Severity::kWarning, delta + "conv1d.weight",
       map(delta + "conv1d.weight", [](float value) { return value * 1e6f; })},
      {"ScaleTimes1000AmongPackedSigns", "scale-implausible", Severity::kError,
       kLayers + "2.mlp.down_proj.svh",
       map(kLayers + "2.mlp.down_proj.svh", [](float value) { return value * 1000; }), -1, kPrism},
  };
}

class NumbersFault : public testing::TestWithParam<Fault> {};

TEST_P(NumbersFault, IsTheOneFinding) {
  const Fault& fault = GetParam();
  ModelCopy model(GoldenPath(fault.model));
  fault.plant(model);
  const std::string folder = testing::TempDir() + "/" + fault.name;
  model.Write(folder);
  const StepReport report = Judged(folder);
  ASSERT_EQ(report.findings.size(), 1u) << Text(report);
  const Finding& finding = report.findings[0];
  EXPECT_EQ(finding.check, fault.check) << Text(report);
  EXPECT_EQ(finding.severity, fault.severity);
  EXPECT_EQ(finding.error.where.tensor, fault.tensor);
  EXPECT_EQ(finding.error.where.file, folder + "/model.safetensors");
  if (fault.byte >= 0) {
    const auto file = SafetensorsFile::Open(folder + "/model.safetensors");
    ASSERT_TRUE(file.has_value());
    EXPECT_EQ(*finding.error.where.byte,
              file->Find(fault.tensor)->file_offset + static_cast<uint64_t>(fault.byte));
  }
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Planted, NumbersFault, testing::ValuesIn(Faults()),
                         [](const auto& info) { return info.param.name; });

TEST(Numbers, GoldenModelsAreQuietAndWhollyRead) {
  for (const char* name : {kScribe, kPrism}) {
    const StepReport report = Judged(GoldenPath(name));
    EXPECT_EQ(report.step, "numbers");
    EXPECT_TRUE(report.findings.empty()) << name << "\n" << Text(report);
    const auto file = SafetensorsFile::Open(GoldenPath(name) + "/model.safetensors");
    ASSERT_TRUE(file.has_value());
    uint64_t bytes = 0;
    for (const TensorView& tensor : file->tensors()) bytes += tensor.bytes.size();
    EXPECT_EQ(report.facts->at("bytes"), bytes);
    EXPECT_EQ(report.facts->at("tensors"), file->tensors().size());
    EXPECT_GT(report.facts->at("tiles"), 30000u);
  }
}

TEST(Numbers, DraftersAreReadToo) {
  const std::string golden = GoldenPath("models/scribe-11m-dflash2");
  for (const std::string& drafter : {golden, GoldenPath("models/prism-dflash")}) {
    const auto report = ValidateNumbers({.folder = GoldenPath(kScribe), .drafter = drafter}, {});
    ASSERT_TRUE(report.has_value()) << report.error().ToString();
    EXPECT_TRUE(report->findings.empty()) << Text(*report);
    EXPECT_GT(report->facts->at("drafter").at("values"), 1000000);
  }
  const std::map<std::string, std::pair<std::string, float>> faults = {
      {"value-not-finite", {"layers.1.self_attn.k_proj.weight", NAN}},
      {"tensor-all-zero", {"layers.2.input_layernorm.weight", 0.0f}}};
  for (const auto& [check, fault] : faults) {
    ModelCopy model(golden);
    const float value = fault.second;
    model.Map(fault.first, [value](float) { return value; });
    const std::string folder = testing::TempDir() + "/drafter";
    model.Write(folder);
    const auto report = ValidateNumbers({.folder = GoldenPath(kScribe), .drafter = folder}, {});
    ASSERT_TRUE(report.has_value()) << report.error().ToString();
    ASSERT_EQ(report->findings.size(), 1u) << Text(*report);
    EXPECT_EQ(report->findings[0].check, check);
    EXPECT_EQ(report->findings[0].error.where.tensor, fault.first);
    EXPECT_EQ(report->findings[0].error.where.file, folder + "/model.safetensors");
  }
}

// A file that was set aside whole and written half: the end of the last tensors is zero.
TEST(Numbers, ATailThatWasNeverWrittenIsTheFirstFinding) {
  const std::string folder = testing::TempDir() + "/tail";
  ModelCopy(GoldenPath(kScribe)).Write(folder);
  const std::string file = folder + "/model.safetensors";
  const auto size = std::filesystem::file_size(file);
  for (const uintmax_t lost : {uintmax_t{10000}, size / 2}) {
    std::filesystem::resize_file(file, size - lost);
    std::filesystem::resize_file(file, size);
    const StepReport report = Judged(folder);
    ASSERT_FALSE(report.findings.empty());
    EXPECT_EQ(report.findings[0].check, "zero-tail") << Text(report);
    EXPECT_EQ(report.findings[0].error.where.file, file);
    // As exactly as the unit of runs is.
    const auto begin = static_cast<double>(*report.findings[0].error.where.byte);
    EXPECT_NEAR(begin, static_cast<double>(size - lost), 600);
  }
}

TEST(Numbers, DeadOutputsExcuseTheTilesThatReachOnlyThem) {
  ModelCopy model(GoldenPath(kScribe));
  const std::string down = kLayers + "3.mlp.down_proj";
  // The second 128 outputs: tile columns 8 to 15 of 16.
  for (size_t i = 128; i < 256; ++i) model.Set(down + ".svh", i, 0);
  for (size_t row = 0; row < 48; ++row) {
    model.Fill(down + ".trellis", (row * 16 + 8) * 128, 8 * 128, 0);
  }
  const std::string folder = testing::TempDir() + "/dead";
  model.Write(folder);
  const StepReport report = Judged(folder);
  ASSERT_EQ(report.findings.size(), 1u) << Text(report);
  EXPECT_EQ(report.findings[0].check, "many-dead-outputs");
}

TEST(Numbers, ManyFindingsOfOneCheckAreCountedAndNotAllTold) {
  ModelCopy model(GoldenPath(kScribe));
  size_t spoiled = 0;
  for (const TensorSpec& tensor : model.tensors()) {
    if (!tensor.name.ends_with(".suh")) continue;
    model.Set(tensor.name, 0, NAN);
    ++spoiled;
  }
  const std::string folder = testing::TempDir() + "/many";
  model.Write(folder);
  const StepReport report = Judged(folder);
  ASSERT_EQ(report.findings.size(), 20u);
  EXPECT_TRUE(report.findings.back().error.message.ends_with("and " + std::to_string(spoiled - 20) +
                                                             " more findings like this"))
      << report.findings.back().error.message;
}

TEST(Numbers, ThreadsChangeNothing) {
  ModelCopy model(GoldenPath(kPrism));
  model.Set(kLayers + "2.mlp.down_proj.svh", 0, NAN);
  const std::string folder = testing::TempDir() + "/threads";
  model.Write(folder);
  const StepReport one = Judged(folder, 1);
  for (const int threads : {2, 5}) {
    const StepReport report = Judged(folder, threads);
    EXPECT_EQ(Text(report), Text(one));
    EXPECT_EQ(*report.facts, *one.facts);
  }
}

TEST(Numbers, ProgressEndsAtAllBytesAndAFolderThatDoesNotOpenIsAnError) {
  uint64_t last = 0;
  uint64_t total = 1;
  const auto report = ValidateNumbers({.folder = GoldenPath(kPrism)},
                                      [&](std::string_view, uint64_t done, uint64_t all) {
                                        last = done;
                                        total = all;
                                      });
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(last, total);
  EXPECT_EQ(total, report->facts->at("bytes"));
  const auto absent = ValidateNumbers({.folder = testing::TempDir() + "/absent"}, {});
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().code, Code::kNotFound);
}

std::string DigestOfFile(const std::string& path) {
  const auto file = MappedFile::Open(path);
  EXPECT_TRUE(file.has_value());
  return Sha256Hex(file->bytes());
}

TEST(Numbers, DigestsAreThoseOfTheShards) {
  const std::string drafter = GoldenPath("models/prism-dflash");
  for (const int threads : {1, 2, 5}) {
    const auto report = ValidateNumbers(
        {.folder = GoldenPath(kPrism), .drafter = drafter, .digests = true, .threads = threads},
        {});
    ASSERT_TRUE(report.has_value()) << report.error().ToString();
    EXPECT_TRUE(report->findings.empty()) << Text(*report);
    ASSERT_EQ(report->files.size(), 2u);
    for (const JudgedFile& file : report->files) {
      EXPECT_EQ(file.path, (file.folder == kModelFolder ? GoldenPath(kPrism) : drafter) +
                               "/model.safetensors");
      EXPECT_EQ(file.sha256, DigestOfFile(file.path)) << file.path;
      EXPECT_TRUE(file.stamp == StampOf(file.path));
    }
  }
  const StepReport without = Judged(GoldenPath(kPrism));
  ASSERT_EQ(without.files.size(), 1u);
  EXPECT_EQ(without.files[0].sha256, "");
}

// Larger than what is held at a time, with bytes of no tensor before, between and behind, and a
// file that has no tensor at all.
TEST(Numbers, DigestsHoldEveryByteOfAFile) {
  const std::string folder = testing::TempDir() + "/bytes";
  std::filesystem::create_directories(folder);
  const size_t sizes[] = {(size_t{40} << 20) + 3, (size_t{33} << 20) + 1};
  std::string data(100 + sizes[0] + 7 + sizes[1] + 11, '\0');
  SplitMix64 random(7);
  for (size_t at = 0; at + 8 <= data.size(); at += 8) {
    const uint64_t word = random.Next();
    std::memcpy(data.data() + at, &word, sizeof(word));
  }
  const std::string names[] = {folder + "/a", folder + "/b", folder + "/c"};
  ASSERT_TRUE(WriteText(names[0], data).has_value());
  ASSERT_TRUE(WriteText(names[1], data.substr(5)).has_value());
  ASSERT_TRUE(WriteText(names[2], data.substr(0, 200000)).has_value());
  std::vector<TensorView> tensors;
  for (const std::string& name : {names[0], names[1]}) {
    const auto bytes = std::as_bytes(std::span(data));
    tensors.push_back({.name = "x",
                       .dtype = DType::kU8,
                       .bytes = bytes.subspan(0, sizes[0]),
                       .file = name,
                       .file_offset = 100});
    tensors.push_back({.name = "y",
                       .dtype = DType::kU8,
                       .bytes = bytes.subspan(0, sizes[1]),
                       .file = name,
                       .file_offset = 107 + sizes[0]});
  }
  tensors.back().file_offset -= 5;
  const std::vector<ScanTarget> targets = {
      {&tensors[0]}, {&tensors[1]}, {&tensors[2]}, {&tensors[3]}};
  for (const int threads : {1, 3}) {
    std::map<std::string, std::string> digests = {{names[0], ""}, {names[1], ""}, {names[2], ""}};
    ASSERT_TRUE(ScanTensors(targets, {.threads = threads, .digests = &digests}, {}).has_value());
    for (const auto& [name, digest] : digests) EXPECT_EQ(digest, DigestOfFile(name)) << name;
  }
  std::filesystem::remove_all(folder);
}

TEST(ZeroRuns, PiecesGiveWhatTheWholeGives) {
  // Every pattern of ten units, cut everywhere.
  for (uint32_t pattern = 0; pattern < 1024; ++pattern) {
    ZeroRuns whole;
    for (int i = 0; i < 10; ++i) whole.Add(8, (pattern >> i & 1) == 0);
    for (int cut = 0; cut <= 10; ++cut) {
      ZeroRuns first, second;
      for (int i = 0; i < cut; ++i) first.Add(8, (pattern >> i & 1) == 0);
      for (int i = cut; i < 10; ++i) second.Add(8, (pattern >> i & 1) == 0);
      first.Append(second);
      ASSERT_EQ(first.total, whole.total);
      ASSERT_EQ(first.leading, whole.leading) << pattern << " " << cut;
      ASSERT_EQ(first.trailing, whole.trailing) << pattern << " " << cut;
      ASSERT_EQ(first.longest, whole.longest) << pattern << " " << cut;
      ASSERT_EQ(first.longest_begin, whole.longest_begin) << pattern << " " << cut;
    }
  }
}

}  // namespace
}  // namespace hallmark
