// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/model_golden.h"

#include <array>
#include <cmath>
#include <map>
#include <memory>

#include "conformance/harness/tolerances.h"
#include "conformance/model/golden.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

constexpr char kClause[] = "model-golden";
constexpr std::array<std::string_view, 2> kNames = {"prism-exl3", "scribe-11m-exl3"};

// "scribe" of "scribe-11m-exl3": the register's entries are named after it and the cache type, such
// as "scribe-logits-rms-bf16".
std::string ShortName(const std::string& model) { return model.substr(0, model.find('-')); }

// Measures become counts, rounded up: a receipt holds no decimal fractions.
uint64_t Billionths(double value) { return static_cast<uint64_t>(std::ceil(value * 1e9)); }

Row Judge(Row row, bool passed, std::string reason) {
  row.outcome = passed ? Outcome::kPass : Outcome::kFail;
  if (!passed) row.detail = std::move(reason);
  return row;
}

// Each golden run is fed once and measured in all its aspects.
class GoldenRuns {
 public:
  GoldenRuns(const CaseSubject& subject, std::string model, std::vector<GoldenRun> runs)
      : subject_(subject), model_(std::move(model)), runs_(std::move(runs)) {}

  Result<Row> Logits(size_t index) {
    const Drift& drift = TRY(Compare(index))->logits;
    const double rms = Allowed("logits-rms");
    const double kl = Allowed("logits-kl");
    return Judge({.counts = {{"rows", drift.rows},
                             {"worst_rms_over_std_e9", Billionths(drift.worst_rms)},
                             {"allowed_rms_over_std_e9", Billionths(rms)},
                             {"mean_kl_nat_e9", Billionths(drift.mean_kl)},
                             {"allowed_kl_nat_e9", Billionths(kl)}}},
                 drift.Within(rms, kl), drift.ToString());
  }

  Result<Row> Hidden(size_t index) {
    const GoldenComparison* comparison = TRY(Compare(index));
    const double allowed = Allowed("hidden-rms");
    Row row;
    row.counts["allowed_rms_over_std_e9"] = Billionths(allowed);
    bool passed = true;
    std::string reason;
    for (size_t i = 0; i < comparison->hidden.size(); ++i) {
      const Drift& drift = comparison->hidden[i];
      const int tap = runs_[index].hidden[i].tap;
      row.counts["rows"] += drift.rows;
      // Tap 0 is the embedding: the table's own bits.
      if (tap > 0) {
        row.counts["tap_" + std::to_string(tap) + "_rms_over_std_e9"] = Billionths(drift.worst_rms);
      }
      if (drift.non_finite != 0 || !(drift.worst_rms <= (tap == 0 ? 0.0 : allowed))) {
        passed = false;
        reason += "tap " + std::to_string(tap) + ": " + drift.ToString() + " ";
      }
    }
    return Judge(std::move(row), passed, std::move(reason));
  }

  Result<Row> Argmax(size_t index) {
    const ArgmaxAgreement& agreement = TRY(Compare(index))->argmax;
    return Judge({.counts = {{"steps_above_margin", agreement.compared},
                             {"margin_e9", Billionths(Allowed("logits-margin"))}}},
                 agreement.Passed(), agreement.ToString());
  }

 private:
  double Allowed(const std::string& what) const {
    const bool bf16 = subject_.session->options().kv == KvType::kBf16;
    return Tolerance(model_ + "-" + what + (bf16 ? "-bf16" : "-fp8"));
  }

  Result<const GoldenComparison*> Compare(size_t index) {
    auto found = done_.find(index);
    if (found == done_.end()) {
      GoldenComparison comparison =
          TRY(CompareGolden(subject_.session->model(), runs_[index], subject_.session->options().kv,
                            Allowed("logits-margin")));
      found = done_.emplace(index, std::move(comparison)).first;
    }
    return &found->second;
  }

  CaseSubject subject_;
  std::string model_;
  std::vector<GoldenRun> runs_;
  std::map<size_t, GoldenComparison> done_;
};

}  // namespace

std::span<const std::string_view> GoldenModelNames() { return kNames; }

Status AddModelGoldenCases(const CaseSubject& subject, const std::string& model,
                           CaseRegistry& registry) {
  std::vector<GoldenRun> read = TRY(ReadGolden(subject.golden + "/models/" + model));
  struct Aspects {
    std::string name;
    bool hidden, argmax;
  };
  std::vector<Aspects> aspects;
  for (const GoldenRun& run : read) {
    aspects.push_back({run.name, !run.hidden.empty(), !run.argmax.empty()});
  }
  auto runs = std::make_shared<GoldenRuns>(subject, ShortName(model), std::move(read));
  for (size_t i = 0; i < aspects.size(); ++i) {
    const auto name = [&](const char* aspect) {
      return CaseName(model, {{"run", aspects[i].name}, {"compared", aspect}});
    };
    TRY(registry.Add(kClause, name("logits"), [runs, i] { return runs->Logits(i); }));
    if (aspects[i].hidden) {
      TRY(registry.Add(kClause, name("hidden"), [runs, i] { return runs->Hidden(i); }));
    }
    if (aspects[i].argmax) {
      TRY(registry.Add(kClause, name("argmax"), [runs, i] { return runs->Argmax(i); }));
    }
  }
  return {};
}

}  // namespace hallmark
