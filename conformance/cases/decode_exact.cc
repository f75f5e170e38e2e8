// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/decode_exact.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "conformance/cases/bits_row.h"
#include "conformance/cases/exl3_truth.h"
#include "conformance/cases/host_linear.h"
#include "engine/base/float_types.h"
#include "engine/model/model.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

constexpr char kClause[] = "decode-exact";
constexpr uint16_t kHalfOne = 0x3C00;
// 1/sqrt(128) with 12 significant bits, so that all partial sums of the rotation are exact; its
// rotated unit row is 128 * this / sqrt(128) = 1 within 2^-13, which fp16 rounds to 1.
constexpr float kUnit = 0x1.6ap-4f;

float Sign(int i, int j) {
  return std::popcount(static_cast<unsigned>(i & j)) % 2 == 0 ? 1.0f : -1.0f;
}

// Distinct values of a codebook, ascending, with their fp16 bits.
std::vector<std::pair<double, uint16_t>> ValuesOf(Codebook codebook) {
  std::vector<std::pair<double, uint16_t>> values;
  for (int state = 0; state < 65536; ++state) {
    const uint16_t bits = CodebookValue(codebook, static_cast<uint16_t>(state));
    values.emplace_back(HalfToFloat(bits), bits);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// Bits of the codebook value nearest to `value`; kOutOfRange if it is further than 2^-15.
Result<uint16_t> Nearest(const std::vector<std::pair<double, uint16_t>>& values, double value) {
  auto at = std::lower_bound(values.begin(), values.end(), std::pair<double, uint16_t>(value, 0));
  if (at == values.end() ||
      (at != values.begin() && value - std::prev(at)->first < at->first - value)) {
    --at;
  }
  if (!(std::abs(at->first - value) <= 0x1p-15)) {
    return Fail(Code::kOutOfRange,
                "read back " + std::to_string(value) + ", which no state of the codebook gives");
  }
  return at->second;
}

TensorView ViewOf(const char* name, DType dtype, std::vector<int64_t> shape,
                  std::span<const uint16_t> words) {
  return {.name = name, .dtype = dtype, .shape = std::move(shape), .bytes = std::as_bytes(words)};
}

Result<Row> RunCodec(const std::string& golden, Exl3Rate rate) {
  const Exl3TileTruth truth = TRY(ReadTileTruth(golden, rate));
  std::vector<uint16_t> states(kTileWeights);
  for (int p = 0; p < kTileWeights; ++p) {
    states[static_cast<size_t>(p)] = StateAt(truth.words.data(), rate.k2, p);
  }
  std::vector<uint16_t> values(kTileWeights);
  DecodeTile(truth.words.data(), rate, values.data());
  BitsRow row;
  row.Compare<uint16_t>(truth.states, states, "states");
  row.Compare<uint16_t>(truth.values, values, "values");
  return row.Finish();
}

Status CompareLayer(Backend& backend, Exl3Rate rate, const Exl3LayerTruth& truth, const char* where,
                    BitsRow& row) {
  const auto read_back = ReadBackWeights(backend, rate, truth.trellis);
  if (!read_back.has_value() && read_back.error().code == Code::kOutOfRange) {
    row.Refuse(std::string(where) + ": " + read_back.error().message);
    return {};
  }
  if (!read_back.has_value()) return Fail(read_back.error());
  row.Compare<uint16_t>(truth.values, *read_back, where);
  row.Count("layers", 1);
  return {};
}

Result<Row> RunBackend(const CaseSubject& subject, Exl3Rate rate) {
  Backend& backend = *subject.session->model().backend;
  BitsRow row;
  const Exl3TileTruth tile = TRY(ReadTileTruth(subject.golden, rate));
  TRY(CompareLayer(backend, rate, LayerOfOneTile(tile), "one tile everywhere", row));
  if (rate.k2 % 2 == 0) {
    const Exl3LayerTruth layer = TRY(ReadLayerTruth(subject.golden, rate));
    TRY(CompareLayer(backend, rate, layer, "a layer decoded by ExLlamaV3", row));
  }
  return row.Finish();
}

}  // namespace

Result<std::vector<uint16_t>> ReadBackWeights(Backend& backend, Exl3Rate rate,
                                              std::span<const uint16_t> trellis) {
  constexpr int64_t kTiles = kExl3Block / kTileSide;
  const std::vector<uint16_t> ones(kExl3Block, kHalfOne);
  LinearSource source{.in_features = kExl3Block, .out_features = kExl3Block};
  source.weights =
      Exl3Group{.name = "published layer",
                .codebook = rate.codebook,
                .k2 = rate.k2,
                .k = kExl3Block,
                .n = kExl3Block,
                .trellis = ViewOf("published layer.trellis", DType::kI16,
                                  {kTiles, kTiles, TileWords(rate.k2)}, trellis),
                .input_scale = ViewOf("published layer.suh", DType::kF16, {kExl3Block}, ones),
                .output_scale = ViewOf("published layer.svh", DType::kF16, {kExl3Block}, ones)};
  const std::unique_ptr<LinearWeight> weight = TRY(backend.LoadLinear(source));

  std::vector<float> x;
  for (int i = 0; i < kExl3Block; ++i) {
    for (int j = 0; j < kExl3Block; ++j) x.push_back(kUnit * Sign(i, j));
  }
  const std::vector<float> y = TRY(RunLinearOnHost(backend, *weight, x, kExl3Block));

  const auto values = ValuesOf(rate.codebook);
  std::vector<uint16_t> read_back;
  for (int i = 0; i < kExl3Block; ++i) {
    for (int j = 0; j < kExl3Block; ++j) {
      double sum = 0;
      for (int c = 0; c < kExl3Block; ++c) sum += Sign(j, c) * double{y[i * kExl3Block + c]};
      read_back.push_back(TRY(Nearest(values, sum / std::sqrt(128.0))));
    }
  }
  return read_back;
}

Status AddDecodeExactCases(const CaseSubject& subject, CaseRegistry& registry) {
  for (const Exl3Rate rate : AllExl3Rates()) {
    const auto name = [&](std::string_view scope) {
      return CaseName(scope, {{"codebook", std::string(CodebookName(rate.codebook))},
                              {"bits", BitsText(rate.k2)}});
    };
    TRY(registry.Add(kClause, name("codec"),
                     [golden = subject.golden, rate] { return RunCodec(golden, rate); }));
    TRY(registry.Add(kClause, name("backend"),
                     [subject, rate] { return RunBackend(subject, rate); }));
  }
  return {};
}

}  // namespace hallmark
