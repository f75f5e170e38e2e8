// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/cpu_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "conformance/harness/random_exl3.h"
#include "engine/backend/cpu/cpu_linear.h"
#include "engine/backend/cpu/panels.h"
#include "engine/base/check.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

// Bit by bit the same work takes a hundred times longer, so the scalar tier gets less of it.
constexpr int64_t kScalarSide = 256;
constexpr int64_t kManyRows = 8;

// Of one thread the time it really had, so that other programs weigh less; of more the wall's.
double Now(bool one_thread) {
  timespec time{};
  clock_gettime(one_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The best of three: what another program takes away only ever adds time.
template <typename Work>
double Seconds(bool one_thread, const Work& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    const double start = Now(one_thread);
    work();
    best = std::min(best, Now(one_thread) - start);
  }
  return best;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string TierName(CpuTier tier) { return std::string(CpuTierName(tier)); }

// All tiers on one small layer, 1 and 8 rows, against the first tier.
Status CheckBits(Exl3Rate rate) {
  const RandomExl3 layer({.rate = rate, .in_features = 300, .out_features = 200, .bias = true});
  const std::vector<float> x = RandomRows(kManyRows, 300, 2);
  std::vector<float> expected;
  ThreadPool pool(1);
  for (const CpuTier tier : SupportedCpuTiers()) {
    const auto linear = TRY(CpuLinear::Load(layer.source(), tier));
    for (const int64_t rows : {int64_t{1}, kManyRows}) {
      std::vector<float> y(static_cast<size_t>(rows * 200));
      TRY(linear->Run({x.data(), rows, 300}, {y.data(), rows, 200}, pool));
      if (expected.empty()) expected = std::vector<float>(kManyRows * 200);
      if (tier == CpuTier::kScalar) std::copy(y.begin(), y.end(), expected.begin());
      if (std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)) != 0) {
        return Fail(Code::kMismatch, "tier " + TierName(tier) + " differs from scalar for " +
                                         std::string(CodebookName(rate.codebook)) +
                                         ", so no speed counts");
      }
    }
  }
  return {};
}

// One tier's weights, packed, and a layer made of them.
class Subject {
 public:
  static Result<Subject> Make(CpuTier tier, const RandomExl3& layer) {
    Subject subject;
    subject.tier_ = tier;
    subject.weights_ = static_cast<double>(layer.group().k * layer.group().n);
    const LinearLoops& loops = LinearLoopsOf(tier);
    const Exl3Group& group = layer.group();
    subject.decode_ = loops.exl3_decoder(static_cast<int>(group.codebook), group.k2);
    CHECK(subject.decode_ != nullptr);
    // For the decode alone any bytes are tiles.
    subject.panel_bytes_ = static_cast<size_t>(128 * loops.panel_columns * group.k2 / 16);
    subject.packed_.resize(group.trellis.bytes.size() + 64);
    std::memcpy(subject.packed_.data(), group.trellis.bytes.data(), group.trellis.bytes.size());
    subject.panel_.resize(static_cast<size_t>(128 * loops.panel_columns));
    subject.linear_ = TRY(CpuLinear::Load(layer.source(), tier));
    subject.x_ = RandomRows(kManyRows, group.k, 3);
    subject.y_.resize(static_cast<size_t>(kManyRows * group.n));
    return subject;
  }

  CpuTier tier() const { return tier_; }

  // Times every measure once.
  Status Measure(ThreadPool& pool) {
    decode_seconds_.push_back(Seconds(true, [&] {
      for (size_t i = 0; i + panel_bytes_ + 64 <= packed_.size(); i += panel_bytes_) {
        decode_(packed_.data() + i, panel_.data());
      }
    }));
    Status status;
    const auto run = [&](int64_t rows) {
      return Seconds(pool.threads() == 1, [&] {
        const Status ran = linear_->Run({x_.data(), rows, linear_->in_features},
                                        {y_.data(), rows, linear_->out_features}, pool);
        if (!ran.has_value()) status = ran;
      });
    };
    one_seconds_.push_back(run(1));
    many_seconds_.push_back(run(kManyRows));
    return status;
  }

  // Median over the rounds of this tier's decode speed over another's in the same round.
  double DecodeSpeedOver(const Subject& other) const {
    std::vector<double> ratios;
    for (size_t i = 0; i < decode_seconds_.size(); ++i) {
      ratios.push_back((other.decode_seconds_[i] / other.weights_) /
                       (decode_seconds_[i] / weights_));
    }
    return Median(ratios);
  }
  double ManyOverOne() const {
    std::vector<double> ratios;
    for (size_t i = 0; i < one_seconds_.size(); ++i) {
      ratios.push_back(many_seconds_[i] / one_seconds_[i]);
    }
    return Median(ratios);
  }

  Json Row() const {
    const auto rate = [&](const std::vector<double>& seconds) {
      return weights_ / Median(seconds) * 1e-9;
    };
    return {{"tier", TierName(tier_)},
            {"decode", rate(decode_seconds_)},
            {"one_row", rate(one_seconds_)},
            {"eight_rows", rate(many_seconds_)}};
  }

 private:
  CpuTier tier_ = CpuTier::kScalar;
  double weights_ = 0;
  DecodePanelLoop decode_ = nullptr;
  size_t panel_bytes_ = 0;
  std::vector<uint8_t> packed_;
  std::vector<float> panel_;
  std::unique_ptr<CpuLinear> linear_;
  std::vector<float> x_, y_;
  std::vector<double> decode_seconds_, one_seconds_, many_seconds_;
};

// Decode speed of every tier over scalar and over AVX2, and the cost of eight rows.
Json Ratios(const std::vector<Subject>& subjects) {
  Json ratios = {{"eight_rows_over_one", Json::object()}};
  for (size_t i = 0; i < subjects.size(); ++i) {
    ratios["eight_rows_over_one"][TierName(subjects[i].tier())] = subjects[i].ManyOverOne();
    for (size_t j = 0; j < std::min(i, size_t{2}); ++j) {
      ratios[TierName(subjects[i].tier()) + "_over_" + TierName(subjects[j].tier())] =
          subjects[i].DecodeSpeedOver(subjects[j]);
    }
  }
  return ratios;
}

}  // namespace

Result<Json> RunCpuLinearBench(const CpuLinearBenchOptions& options) {
  Json rows = Json::array();
  Json ratios = Json::array();
  ThreadPool pool(options.threads);
  for (const Codebook codebook : {Codebook::kMul1, Codebook::kMcg, Codebook::k3inst}) {
    for (const int width : options.widths) {
      const Exl3Rate rate{codebook, 2 * width};
      TRY(CheckBits(rate));
      const RandomExl3 large(
          {.rate = rate, .in_features = options.inputs, .out_features = options.outputs});
      const RandomExl3 small(
          {.rate = rate, .in_features = kScalarSide, .out_features = kScalarSide});
      std::vector<Subject> subjects;
      for (const CpuTier tier : SupportedCpuTiers()) {
        subjects.push_back(TRY(Subject::Make(tier, tier == CpuTier::kScalar ? small : large)));
      }
      for (int round = 0; round < options.rounds; ++round) {
        for (Subject& subject : subjects) TRY(subject.Measure(pool));
      }
      const Json key = {{"codebook", CodebookName(codebook)}, {"bits", width}};
      for (const Subject& subject : subjects) {
        rows.push_back(key);
        rows.back().update(subject.Row());
      }
      ratios.push_back(key);
      ratios.back().update(Ratios(subjects));
    }
  }
  return Json{{"unit", "G weights/s"},      {"threads", options.threads},
              {"rounds", options.rounds},   {"inputs", options.inputs},
              {"outputs", options.outputs}, {"rows", std::move(rows)},
              {"ratios", std::move(ratios)}};
}

std::string CpuLinearBenchText(const Json& result) {
  std::string text = fmt::format(
      "EXL3 linears, {} x {}, {} thread(s), median of {} rounds, G weights/s\n"
      "  codebook  bits  tier          decode   1 row  8 rows  8 rows/1 row (time)\n",
      result["inputs"].get<int64_t>(), result["outputs"].get<int64_t>(),
      result["threads"].get<int>(), result["rounds"].get<int>());
  for (const Json& row : result["rows"]) {
    text += fmt::format("  {:<8}  {:>4}  {:<11}  {:>7.3f} {:>7.3f} {:>7.3f}  {:>6.2f}\n",
                        row["codebook"].get<std::string>(), row["bits"].get<int>(),
                        row["tier"].get<std::string>(), row["decode"].get<double>(),
                        row["one_row"].get<double>(), row["eight_rows"].get<double>(),
                        row["one_row"].get<double>() / row["eight_rows"].get<double>());
  }
  text += "decode speed, ratios of the same run\n";
  for (const Json& row : result["ratios"]) {
    text +=
        fmt::format("  {:<8}  {:>4}", row["codebook"].get<std::string>(), row["bits"].get<int>());
    for (const auto& [name, value] : row.items()) {
      if (name.find("_over_") == std::string::npos || !value.is_number()) continue;
      std::string words = name;
      words.replace(words.find("_over_"), 6, "/");
      text += fmt::format("  {} {:.1f}", words, value.get<double>());
    }
    text += "\n";
  }
  return text;
}

}  // namespace hallmark
