// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/draft_golden.h"

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "conformance/draft/draft_golden.h"
#include "conformance/harness/tolerances.h"
#include "engine/format/drafter_inventory.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

constexpr char kClause[] = "draft-golden";
constexpr std::array<GoldenDrafter, 2> kDrafters = {{
    {"prism-dflash", "prism-exl3"},
    {"scribe-11m-dflash2", "scribe-11m-exl3"},
}};

// Measures become counts, rounded up: a receipt holds no decimal fractions.
uint64_t Billionths(double value) { return static_cast<uint64_t>(std::ceil(value * 1e9)); }

// The drafter, opened once, and each run measured once for either source of taps.
class DraftRuns {
 public:
  DraftRuns(const CaseSubject& subject, std::string directory, std::vector<DraftGoldenRun> runs)
      : subject_(subject), directory_(std::move(directory)), runs_(std::move(runs)) {}

  Result<Row> Rows(size_t index) {
    const DraftComparison& seen = *TRY(Compare(index, TapSource::kGolden));
    const double allowed = Tolerance("draft-rows-relative");
    Row row{.counts = {{"rows", seen.rows},
                       {"worst_relative_e9", Billionths(seen.worst_relative)},
                       {"allowed_relative_e9", Billionths(allowed)}}};
    const bool passed = seen.rows > 0 && seen.non_finite == 0 && seen.worst_relative <= allowed;
    return Judged(std::move(row), passed, seen);
  }

  Result<Row> Proposals(size_t index, TapSource source) {
    const DraftComparison& seen = *TRY(Compare(index, source));
    const double allowed = source == TapSource::kGolden ? 0.0 : Tolerance("draft-own-taps-differ");
    Row row{.counts = {{"proposals", seen.compared}}};
    const bool passed = seen.compared > 0 && static_cast<double>(seen.differ) <= allowed;
    return Judged(std::move(row), passed, seen);
  }

 private:
  static Row Judged(Row row, bool passed, const DraftComparison& seen) {
    row.outcome = passed ? Outcome::kPass : Outcome::kFail;
    if (!passed) row.detail = seen.ToString();
    return row;
  }

  Result<const DraftComparison*> Compare(size_t index, TapSource source) {
    if (drafter_ == nullptr) TRY(Open());
    const auto key = std::pair{index, source};
    auto found = done_.find(key);
    if (found == done_.end()) {
      DraftComparison comparison =
          TRY(CompareDraft(*drafter_, runs_[index], source, Tolerance("prism-draft-margin"), 128,
                           subject_.session->options().kv));
      found = done_.emplace(key, comparison).first;
    }
    return &found->second;
  }

  Status Open() {
    auto checkpoint = std::make_unique<DrafterCheckpoint>(TRY(DrafterCheckpoint::Open(directory_)));
    const DrafterInventory inventory = TRY(TakeDrafterInventory(*checkpoint));
    TRY(CheckFiniteDrafter(inventory));
    drafter_ = TRY(Drafter::Load(inventory, checkpoint->config(), subject_.session->model()));
    checkpoint_ = std::move(checkpoint);
    return {};
  }

  CaseSubject subject_;
  std::string directory_;
  std::vector<DraftGoldenRun> runs_;
  std::unique_ptr<DrafterCheckpoint> checkpoint_;
  std::unique_ptr<Drafter> drafter_;
  std::map<std::pair<size_t, TapSource>, DraftComparison> done_;
};

}  // namespace

std::span<const GoldenDrafter> GoldenDrafters() { return kDrafters; }

Status AddDraftGoldenCases(const CaseSubject& subject, const std::string& drafter,
                           CaseRegistry& registry) {
  const GoldenDrafter* golden = nullptr;
  for (const GoldenDrafter& known : kDrafters) {
    if (known.drafter == drafter) golden = &known;
  }
  if (golden == nullptr) return Fail(Code::kNotFound, "no golden drafter is called " + drafter);
  const std::string models = subject.golden + "/models/";
  // Runs that are named by their length are of the ids recorded with the target.
  std::vector<int32_t> ids;
  if (auto recorded = ReadGoldenIds(models + std::string(golden->target))) {
    ids = std::move(*recorded);
  }
  std::vector<DraftGoldenRun> read = TRY(ReadDraftGolden(models + drafter, ids));
  struct Taps {
    std::string run;
    bool recorded, own;
  };
  std::vector<Taps> taps;
  for (const DraftGoldenRun& run : read) {
    taps.push_back({run.name, !run.taps.empty(), !run.ids.empty()});
  }
  auto runs = std::make_shared<DraftRuns>(subject, models + drafter, std::move(read));
  for (size_t i = 0; i < taps.size(); ++i) {
    const auto name = [&](const char* source, const char* compared) {
      return CaseName(drafter, {{"run", taps[i].run}, {"taps", source}, {"compared", compared}});
    };
    if (taps[i].recorded) {
      TRY(registry.Add(kClause, name("recorded", "rows"), [runs, i] { return runs->Rows(i); }));
      TRY(registry.Add(kClause, name("recorded", "proposals"),
                       [runs, i] { return runs->Proposals(i, TapSource::kGolden); }));
    }
    if (taps[i].own) {
      TRY(registry.Add(kClause, name("own", "proposals"),
                       [runs, i] { return runs->Proposals(i, TapSource::kEngine); }));
    }
  }
  return {};
}

}  // namespace hallmark
