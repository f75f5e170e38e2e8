// SPDX-License-Identifier: Apache-2.0
// Clause: row-invariance
// Clause: slice-equals-parent
// Random shapes: every tier and thread count has the bits of the scalar definitions, a row those it
// has alone, and a column slice those of the whole.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "conformance/harness/random_exl3.h"
#include "conformance/harness/tolerances.h"
#include "engine/backend/cpu/cpu_linear.h"
#include "engine/backend/cpu/draft_ops.h"
#include "engine/backend/cpu/ref/affine_linear.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

bool SameBits(const float* a, const float* b, size_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

// A random 4-bit matrix, kept alive beside its source.
struct RandomAffine {
  std::vector<uint32_t> words;
  std::vector<float> scales, biases;
  LinearSource source;

  RandomAffine(int64_t n, int64_t k, uint64_t seed) {
    SplitMix64 random(seed);
    words.resize(static_cast<size_t>(n * k / 8));
    for (uint32_t& word : words) word = static_cast<uint32_t>(random.Next() >> 32);
    scales = RandomRows(n, k / 64, seed + 1);
    biases = RandomRows(n, k / 64, seed + 2);
    const auto view = [](const auto& values, DType dtype, std::vector<int64_t> shape) {
      return TensorView{.name = "affine",
                        .dtype = dtype,
                        .shape = std::move(shape),
                        .bytes = std::as_bytes(std::span(values))};
    };
    source = {k, n,
              AffineLinear{.name = "affine",
                           .k = k,
                           .n = n,
                           .weight = view(words, DType::kU32, {n, k / 8}),
                           .scales = view(scales, DType::kF32, {n, k / 64}),
                           .biases = view(biases, DType::kF32, {n, k / 64})}};
  }
};

RC_GTEST_PROP(DraftOps, AffineHasTheBitsOfTheDefinitionForAnyShape, ()) {
  const int64_t k = 64 * *rc::gen::inRange<int64_t>(1, 6);
  const int64_t n = *rc::gen::inRange<int64_t>(1, 300);
  const int64_t rows = *rc::gen::inRange<int64_t>(1, 70);
  const RandomAffine affine(n, k, *rc::gen::arbitrary<uint32_t>());
  const std::vector<float> x = RandomRows(rows, k, *rc::gen::arbitrary<uint32_t>());
  std::vector<float> expected(static_cast<size_t>(rows * n));
  RefAffineLinear(x.data(), rows, affine.words.data(), affine.scales.data(), affine.biases.data(),
                  n, k, expected.data());
  ThreadPool pool(*rc::gen::inRange(1, 4));
  for (const CpuTier tier : SupportedCpuTiers()) {
    const auto linear = CpuLinear::Load(affine.source, tier);
    RC_ASSERT(linear.has_value());
    std::vector<float> y(expected.size());
    RC_ASSERT((*linear)->Run({x.data(), rows, k}, {y.data(), rows, n}, pool).has_value());
    RC_ASSERT(SameBits(y.data(), expected.data(), y.size()));
    RC_ASSERT(
        (*linear)->Run({x.data() + (rows - 1) * k, 1, k}, {y.data(), 1, n}, pool).has_value());
    RC_ASSERT(SameBits(y.data(), expected.data() + (rows - 1) * n, static_cast<size_t>(n)));
  }
}

// Random spans of strips, apart from each other or touching.
std::vector<ColumnSpan> RandomSpans(int64_t n) {
  const int64_t strips = (n + kColumnStrip - 1) / kColumnStrip;
  std::vector<ColumnSpan> spans;
  for (int64_t s = *rc::gen::inRange<int64_t>(0, strips); s < strips;) {
    const int64_t end = *rc::gen::inRange<int64_t>(s + 1, strips + 1);
    spans.push_back({s * kColumnStrip, std::min(n, end * kColumnStrip) - s * kColumnStrip});
    s = end + *rc::gen::inRange<int64_t>(0, 3);
  }
  return spans;
}

void CheckSlice(const LinearSource& source, int64_t rows, int threads) {
  ThreadPool pool(threads);
  CpuDraftOps ops(pool);
  const int64_t n = source.out_features;
  const int64_t k = source.in_features;
  const std::vector<float> x = RandomRows(rows, k, 77);
  const std::vector<ColumnSpan> spans = RandomSpans(n);
  const int64_t width = WidthOf(spans);
  for (const CpuTier tier : SupportedCpuTiers()) {
    const auto linear = CpuLinear::Load(source, tier);
    RC_ASSERT(linear.has_value());
    std::vector<float> whole(static_cast<size_t>(rows * n));
    RC_ASSERT((*linear)->Run({x.data(), rows, k}, {whole.data(), rows, n}, pool).has_value());
    std::vector<float> slice(static_cast<size_t>(rows * width), 1e30f);
    RC_ASSERT(ops.LinearColumns(**linear, spans, {x.data(), rows, k}, {slice.data(), rows, width})
                  .has_value());
    for (int64_t row = 0; row < rows; ++row) {
      const float* out = slice.data() + row * width;
      for (const ColumnSpan& span : spans) {
        RC_ASSERT(
            SameBits(out, whole.data() + row * n + span.first, static_cast<size_t>(span.count)));
        out += span.count;
      }
    }
  }
}

RC_GTEST_PROP(DraftOps, ASliceOfAnExl3LinearHasItsParentsBits, ()) {
  const auto rates = AllExl3Rates();
  RandomExl3Options options;
  options.rate = rates[*rc::gen::inRange<size_t>(0, rates.size())];
  options.in_features = *rc::gen::inRange<int64_t>(1, 300);
  options.out_features = *rc::gen::inRange<int64_t>(1, 700);
  options.output_packed = *rc::gen::arbitrary<bool>();
  options.bias = *rc::gen::arbitrary<bool>();
  options.seed = *rc::gen::arbitrary<uint32_t>();
  const RandomExl3 linear(options);
  CheckSlice(linear.source(), *rc::gen::inRange<int64_t>(1, 20), *rc::gen::inRange(1, 4));
}

RC_GTEST_PROP(DraftOps, ASliceOfAPlainOrAffineLinearHasItsParentsBits, ()) {
  const int64_t n = *rc::gen::inRange<int64_t>(1, 500);
  const int64_t rows = *rc::gen::inRange<int64_t>(1, 20);
  const std::vector<float> weight = RandomRows(n, 100, 9);
  const PlainLinear plain{.name = "plain",
                          .k = 100,
                          .n = n,
                          .weight = {.name = "plain.weight",
                                     .dtype = DType::kF32,
                                     .shape = {n, 100},
                                     .bytes = std::as_bytes(std::span(weight))}};
  CheckSlice({100, n, plain}, rows, 2);
  CheckSlice(RandomAffine(n, 128, 4).source, rows, 2);
}

// Attention in double over the keys that the rule, and not the code, says are seen.
RC_GTEST_PROP(DraftOps, AttentionAgreesWithItsRuleAndRowsAreAlone, ()) {
  const int64_t length = *rc::gen::inRange<int64_t>(0, 200);
  const int64_t block = *rc::gen::inRange<int64_t>(2, 17);
  const int64_t window = *rc::gen::element<int64_t>(0, 1, 5, 64, 130);
  const bool causal = *rc::gen::arbitrary<bool>();
  const int kv_heads = *rc::gen::inRange(1, 3);
  const int heads = kv_heads * *rc::gen::inRange(1, 4);
  constexpr int64_t kDim = 16;
  constexpr int64_t kPage = 64;
  const int64_t width = kv_heads * kDim;
  const std::vector<float> keys = RandomRows(length + block, width, 1 + length);
  const std::vector<float> values = RandomRows(length + block, width, 2 + length);
  const std::vector<float> q = RandomRows(block, heads * kDim, 3 + length);
  const int64_t pages = (length + kPage - 1) / kPage;
  // Rows past the end hold NaN: they are never read.
  std::vector<float> context(static_cast<size_t>(pages * 2 * kPage * width), NAN);
  std::vector<const float*> addresses;
  for (int64_t p = 0; p < pages; ++p) addresses.push_back(context.data() + p * 2 * kPage * width);
  for (int64_t t = 0; t < length; ++t) {
    float* row = context.data() + (t / kPage * 2 * kPage + t % kPage) * width;
    std::copy_n(keys.data() + t * width, width, row);
    std::copy_n(values.data() + t * width, width, row + kPage * width);
  }
  std::vector<float> out(static_cast<size_t>(block * heads * kDim));
  const DraftAttentionGeometry geometry{
      .heads = heads, .kv_heads = kv_heads, .head_dim = kDim, .window = window, .causal = causal};
  const DraftContextView view{0, length, kPage, addresses};
  const ConstRows k{keys.data() + length * width, block, width};
  const ConstRows v{values.data() + length * width, block, width};
  std::vector<float> again(out.size());
  for (const auto& [threads, result] : {std::pair{1, &out}, std::pair{3, &again}}) {
    ThreadPool pool(threads);
    CpuDraftOps ops(pool);
    RC_ASSERT(ops.DraftAttention(geometry, view, {q.data(), block, heads * kDim}, k, v,
                                 {result->data(), block, heads * kDim})
                  .has_value());
  }
  RC_ASSERT(SameBits(out.data(), again.data(), out.size()));
  const double allowed = Tolerance("draft-attention-absolute");
  for (int64_t row = 0; row < block; ++row) {
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t at = head / (heads / kv_heads) * kDim;
      std::vector<double> expected(kDim, 0.0);
      double sum = 0.0;
      for (int64_t t = 0; t < length + block; ++t) {
        const int64_t query = length + row;
        const bool ahead = t > query && (causal || (window > 0 && t - query >= window));
        if (ahead || (window > 0 && query - t >= window)) continue;
        double dot = 0.0;
        for (int64_t d = 0; d < kDim; ++d) {
          dot += double{q[row * heads * kDim + head * kDim + d]} * keys[t * width + at + d];
        }
        const double p = std::exp(dot / 4.0);
        sum += p;
        for (int64_t d = 0; d < kDim; ++d) expected[d] += p * values[t * width + at + d];
      }
      for (int64_t d = 0; d < kDim; ++d) {
        const double got = out[row * heads * kDim + head * kDim + d];
        RC_ASSERT(std::fabs(got - expected[d] / sum) <= allowed);
      }
    }
  }
}

RC_GTEST_PROP(DraftOps, TopColumnsAreThoseOfAStableSort, ()) {
  const auto values =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(-5, 6)));
  const std::vector<float> logits(values.begin(), values.end());
  const int64_t count = *rc::gen::inRange<int64_t>(1, static_cast<int64_t>(logits.size()) + 1);
  ThreadPool pool(1);
  CpuDraftOps ops(pool);
  std::vector<int32_t> columns(static_cast<size_t>(count));
  std::vector<float> best(columns.size());
  RC_ASSERT(
      ops.TopColumns({logits.data(), 1, static_cast<int64_t>(logits.size())}, count, columns, best)
          .has_value());
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  order.resize(columns.size());
  RC_ASSERT(columns == order);
}

}  // namespace
}  // namespace hallmark
