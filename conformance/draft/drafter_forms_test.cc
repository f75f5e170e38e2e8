// SPDX-License-Identifier: Apache-2.0
// Clause draft-golden: one drafter in each form its matrices may be stored in. 4-bit matrices
// quantized on load, and read from a file, give the same bits; both forms agree with the plain
// matrix of their values.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "conformance/draft/draft_golden.h"
#include "conformance/draft/loaded_drafter.h"
#include "conformance/harness/comparators.h"
#include "conformance/harness/drafter_writer.h"
#include "conformance/harness/paths.h"
#include "conformance/harness/tolerances.h"
#include "engine/backend/cpu/cpu_linear.h"
#include "engine/backend/cpu/ref/hadamard.h"
#include "engine/backend/cpu/widen.h"
#include "engine/base/float_types.h"
#include "engine/base/random.h"
#include "engine/format/affine_quantizer.h"

namespace hallmark {
namespace {

const SyntheticDrafter kShape{.hidden = 256,
                              .intermediate = 320,
                              .vocab = 4096,
                              .window = 16,
                              .targets = {3, 1},
                              .target_layers = 8,
                              .rank = 64,
                              .top_k = 8};

SyntheticDrafter WithForm(LinearForm form) {
  SyntheticDrafter drafter = kShape;
  drafter.form = form;
  return drafter;
}

std::string Folder(const std::string& name) {
  return testing::TempDir() + "hallmark_drafter_form_" + name;
}

std::vector<float> Rows(const std::string& folder, const DrafterOptions& options = {}) {
  const auto loaded = LoadDrafter(GoldenPath("models/scribe-11m-exl3"), folder, options);
  EXPECT_TRUE(loaded.has_value()) << loaded.error().ToString();
  if (!loaded) return {};
  const Drafter& drafter = *loaded->drafter;
  SplitMix64 random(21);
  std::vector<float> taps(static_cast<size_t>(40 * drafter.tap_width()));
  for (float& value : taps) value = random.NextNormal();
  auto pass = DraftPass::Create(drafter);
  auto context = DraftContext::Create(drafter);
  EXPECT_TRUE(pass && context);
  EXPECT_TRUE(AppendTaps(*pass, drafter, *context, taps).has_value());
  const DraftRequest request{.context = &*context, .anchor = 17};
  auto proposals = pass->Propose(std::span(&request, 1), true);
  EXPECT_TRUE(proposals.has_value()) << proposals.error().ToString();
  return proposals ? std::move(proposals->front().rows) : std::vector<float>();
}

double WorstRelative(const std::vector<float>& expected, const std::vector<float>& actual) {
  EXPECT_EQ(expected.size(), actual.size());
  EXPECT_FALSE(expected.empty());
  const size_t hidden = static_cast<size_t>(kShape.hidden);
  double worst = 0.0;
  for (size_t row = 0; row * hidden < expected.size(); ++row) {
    double difference = 0.0;
    double largest = 0.0;
    for (size_t i = row * hidden; i < (row + 1) * hidden; ++i) {
      EXPECT_TRUE(std::isfinite(actual[i]));
      difference = std::max(difference, std::fabs(double{expected[i]} - actual[i]));
      largest = std::max(largest, std::fabs(double{expected[i]}));
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

std::string Bytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The values of a 4-bit matrix, row by row.
std::vector<float> Dequantized(const AffineLinear& affine) {
  std::vector<float> values;
  for (int64_t i = 0; i < affine.n * affine.k; ++i) {
    uint32_t word;
    std::memcpy(&word, affine.weight.bytes.data() + i / 8 * 4, 4);
    float scale, bias;
    EXPECT_TRUE(WidenToFloat(affine.scales, i / 64, 1, &scale).has_value());
    EXPECT_TRUE(WidenToFloat(affine.biases, i / 64, 1, &bias).has_value());
    values.push_back(scale * static_cast<float>((word >> (4 * (i % 8))) & 15u) + bias);
  }
  return values;
}

// W^T of an EXL3 group: diag(suh) H W_q H diag(svh), the plain matrix [out, in].
std::vector<float> Dequantized(const Exl3Group& group, int64_t in, int64_t out) {
  const std::vector<uint16_t> halves = DecodeExl3(group, CpuTier::kScalar);
  std::vector<float> w(halves.size());  // [k, n]
  for (size_t i = 0; i < w.size(); ++i) w[i] = HalfToFloat(halves[i]);
  std::vector<float> column(128);
  for (int64_t c = 0; c < group.n; ++c) {
    for (int64_t block = 0; block < group.k; block += 128) {
      for (int64_t i = 0; i < 128; ++i) column[i] = w[(block + i) * group.n + c];
      RefHadamard128(column.data());
      for (int64_t i = 0; i < 128; ++i) w[(block + i) * group.n + c] = column[i];
    }
  }
  std::vector<float> suh(group.k), svh(group.n), values(in * out);
  EXPECT_TRUE(WidenToFloat(group.input_scale, 0, group.k, suh.data()).has_value());
  EXPECT_TRUE(WidenToFloat(group.output_scale, 0, group.n, svh.data()).has_value());
  for (int64_t i = 0; i < group.k; ++i) {
    for (int64_t block = 0; block < group.n; block += 128) {
      RefHadamard128(w.data() + i * group.n + block);
    }
  }
  for (int64_t c = 0; c < out; ++c) {
    for (int64_t i = 0; i < in; ++i) values[c * in + i] = suh[i] * w[i * group.n + c] * svh[c];
  }
  return values;
}

// Copies the drafter in `folder`, every linear replaced by the plain F32 matrix of its values.
void WritePlain(const std::string& folder, const std::string& plain) {
  const auto checkpoint = DrafterCheckpoint::Open(folder);
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().ToString();
  const auto inventory = TakeDrafterInventory(*checkpoint);
  ASSERT_TRUE(inventory.has_value()) << inventory.error().ToString();
  DrafterWriter writer(WithForm(LinearForm::kPlain));
  for (const TensorView& tensor : checkpoint->tensors()) {
    for (TensorSpec& spec : writer.tensors()) {
      if (spec.name == tensor.name) spec.bytes = Bytes(tensor.bytes);
    }
  }
  for (const LinearSource* linear : Linears(*inventory)) {
    const int64_t in = linear->in_features;
    const int64_t out = linear->out_features;
    const auto* affine = std::get_if<AffineLinear>(&linear->weights);
    const std::vector<float> values =
        affine != nullptr ? Dequantized(*affine)
                          : Dequantized(std::get<Exl3Group>(linear->weights), in, out);
    const std::string name = linear->name() + ".weight";
    writer.Tensor(name) = FloatTensor(name, DType::kF32, {out, in},
                                      [&](int64_t i) { return values[static_cast<size_t>(i)]; });
  }
  ASSERT_TRUE(writer.Write(plain).has_value());
}

TEST(DrafterForms, QuantizedOnLoadEqualsTheSameWeightsReadFromAFile) {
  const std::string plain = Folder("quantized_plain");
  const std::string file = Folder("quantized_file");
  ASSERT_TRUE(DrafterWriter(kShape).Write(plain).has_value());
  const auto checkpoint = DrafterCheckpoint::Open(plain);
  ASSERT_TRUE(checkpoint.has_value());
  const auto inventory = TakeDrafterInventory(*checkpoint);
  ASSERT_TRUE(inventory.has_value());
  DrafterWriter writer(kShape);
  for (const LinearSource* linear : Linears(*inventory)) {
    const auto quantized = QuantizeAffine(std::get<PlainLinear>(linear->weights));
    ASSERT_TRUE(quantized.has_value());
    const auto& affine = std::get<AffineLinear>(quantized->source.weights);
    writer.Tensor(linear->name() + ".weight") = {linear->name() + ".weight", DType::kU32,
                                                 affine.weight.shape, Bytes(quantized->words)};
    writer.Add(
        {linear->name() + ".scales", DType::kBF16, affine.scales.shape, Bytes(quantized->scales)});
    writer.Add(
        {linear->name() + ".biases", DType::kBF16, affine.biases.shape, Bytes(quantized->biases)});
  }
  ASSERT_TRUE(writer.Write(file).has_value());
  const std::vector<float> on_load =
      Rows(plain, {.weights = DrafterWeights::kAffine4, .affine_min_elements = 1});
  const std::vector<float> from_file = Rows(file);
  const auto bits = CompareBits<float>(on_load, from_file);
  EXPECT_TRUE(bits.Passed()) << bits.ToString();
  // And quantizing does something.
  EXPECT_GT(WorstRelative(Rows(plain), on_load), 1e-3);
}

// bf16 values written as fp32 are the same numbers: each tensor in the type it happens to have.
TEST(DrafterForms, TypesThatDifferByTensorChangeNoBit) {
  DrafterWriter writer(kShape);
  const std::string narrow = Folder("types_narrow");
  const std::string mixed = Folder("types_mixed");
  ASSERT_TRUE(writer.Write(narrow).has_value());
  size_t widened = 0;
  for (size_t n = 0; n < writer.tensors().size(); n += 2) {
    TensorSpec& tensor = writer.tensors()[n];
    const std::string bytes = tensor.bytes;
    ASSERT_EQ(tensor.dtype, DType::kBF16) << tensor.name;
    tensor = FloatTensor(tensor.name, DType::kF32, tensor.shape, [&](int64_t i) {
      uint16_t value;
      std::memcpy(&value, bytes.data() + 2 * i, 2);
      return Bf16ToFloat(value);
    });
    ++widened;
  }
  ASSERT_GT(widened, 10u);
  ASSERT_TRUE(writer.Write(mixed).has_value());
  const auto bits = CompareBits<float>(Rows(narrow), Rows(mixed));
  EXPECT_TRUE(bits.Passed()) << bits.ToString();
}

TEST(DrafterForms, AffineAgreesWithThePlainMatrixOfItsValues) {
  const std::string affine = Folder("affine");
  const std::string plain = Folder("affine_plain");
  ASSERT_TRUE(DrafterWriter(WithForm(LinearForm::kAffine)).Write(affine).has_value());
  WritePlain(affine, plain);
  const double worst = WorstRelative(Rows(plain), Rows(affine));
  std::printf("4-bit affine against its plain values: %.3e\n", worst);
  EXPECT_LE(worst, Tolerance("draft-affine-plain-relative"));
}

TEST(DrafterForms, Exl3AgreesWithThePlainMatrixOfItsValues) {
  const std::string exl3 = Folder("exl3");
  const std::string plain = Folder("exl3_plain");
  ASSERT_TRUE(DrafterWriter(WithForm(LinearForm::kExl3)).Write(exl3).has_value());
  WritePlain(exl3, plain);
  const double worst = WorstRelative(Rows(plain), Rows(exl3));
  std::printf("EXL3 against its plain values: %.3e\n", worst);
  EXPECT_LE(worst, Tolerance("draft-exl3-plain-relative"));
}

}  // namespace
}  // namespace hallmark
