// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/behaviour.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "conformance/cases/chunked_equals_whole.h"
#include "conformance/cases/levels.h"
#include "conformance/cases/row_invariance.h"
#include "conformance/cases/scratch_clean.h"
#include "conformance/harness/comparators.h"
#include "conformance/validate/layer_trace.h"
#include "conformance/validate/step_findings.h"
#include "conformance/validate/text_likelihood.h"
#include "conformance/validate/watched_backend.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/text/tokenizer.h"

namespace hallmark {
namespace {

constexpr std::string_view kReject = "format-reject";
constexpr std::string_view kGolden = "model-golden";

constexpr std::array kChecks = {
    StepCheck{"does-not-open", Severity::kError, kReject,
              "Mend what the message names: the engine refuses this checkpoint."},
    StepCheck{"input-overflow", Severity::kError, kGolden,
              "Compare the layer's scales with the source model: its inputs leave fp16."},
    StepCheck{"layer-not-finite", Severity::kError, kGolden,
              "Compare the layer's tensors with the source model: it is the first to fail."},
    StepCheck{"logits-not-finite", Severity::kError, kGolden,
              "Compare the head with the source model: the layers before it are finite."},
    StepCheck{"logits-dead", Severity::kError, kGolden,
              "Compare the tensors with the source model: its predictions hardly depend on the "
              "prompt, or hardly on anything."},
    StepCheck{"drafts-never-land", Severity::kError, "drafted-equals-undrafted",
              "Use a drafter that was made for this very model."},
    StepCheck{"case-failed", Severity::kError, kGolden,
              "Report this: with these weights the engine breaks its contract."},
    StepCheck{"case-undecided", Severity::kError, kGolden,
              "Remove what kept the case from running, then validate again."},
    StepCheck{"fp16-headroom", Severity::kWarning, kGolden,
              "Let the output scales take some of the magnitude: another prompt may overflow."},
    StepCheck{
        "text-below-chance", Severity::kWarning, kGolden,
        "Compare the checkpoint with its source: it finds plain text less likely than noise."},
    StepCheck{"drafts-rarely-land", Severity::kWarning, "drafted-equals-undrafted",
              "Use a drafter that was made for this very model."},
};

// Cases of a short run, by the beginning of "clause/case".
constexpr std::array<std::string_view, 2> kShort = {"row-invariance/forward,rows=64",
                                                    "chunked-equals-whole/prompt,cut=17"};
constexpr std::array<std::string_view, 2> kShortDrafted = {"drafted-equals-undrafted/",
                                                           "resumed-equals-fresh/"};
constexpr std::string_view kDraftsLand = "drafts-land";

constexpr double kLargestHalf = 65504;
constexpr double kHeadroom = 8;  // times; less is told
constexpr double kRarely = 0.01;

bool IsSystem(Code code) {
  return code == Code::kIo || code == Code::kResource || code == Code::kDevice ||
         code == Code::kInternal;
}

class Run {
 public:
  Run(const BehaviourOptions& options, std::unique_ptr<Backend> backend,
      const StepProgress& progress)
      : options_(options), progress_(progress), findings_(kChecks), backend_(std::move(backend)) {}

  Result<StepReport> Go() {
    if (TRY(Open()) && TRY(Trace()) && TRY(Alive())) {
      TRY(Texts());
      TRY(Cases());
    }
    return StepReport{.step = "behaviour",
                      .findings = findings_.Sorted(),
                      .facts = std::make_shared<const Json>(std::move(facts_)),
                      .compared = std::move(compared_),
                      .lines = std::move(lines_)};
  }

 private:
  void Tell(std::string_view check, Error error, std::string_view clause = {}) {
    findings_.Add(check, std::move(error), clause);
  }
  void Say(std::string_view what, uint64_t done, uint64_t total) const {
    if (progress_) progress_(what, done, total);
  }

  // A backend in the host's memory is watched.
  Result<std::unique_ptr<Backend>> MakeBackend() {
    if (backend_ == nullptr && options_.session.device != "cpu") return std::unique_ptr<Backend>();
    if (backend_ == nullptr) {
      CpuBackendOptions cpu{.threads = options_.session.threads};
      if (!options_.session.tier.empty()) {
        cpu.tier = ParseCpuTier(options_.session.tier);
        if (!cpu.tier) {
          return Fail(Code::kOutOfRange, "there is no tier \"" + options_.session.tier + "\"",
                      {.flag = "--tier"});
        }
      }
      backend_ = TRY(MakeCpuBackend(cpu));
    }
    auto watched = std::make_unique<WatchedBackend>(std::move(backend_));
    watched_ = watched.get();
    return std::unique_ptr<Backend>(std::move(watched));
  }

  Result<bool> Open() {
    Say("loading", 0, 1);
    auto session = Session::Open(options_.folder, options_.session, TRY(MakeBackend()));
    if (!session.has_value()) {
      if (IsSystem(session.error().code)) return Fail(session.error());
      Tell("does-not-open", session.error());
      return false;
    }
    session_ = std::move(*session);
    Say("loading", 1, 1);
    facts_["device"] = session_->backend_name();
    facts_["tier"] = session_->tier();
    return true;
  }

  Result<bool> Trace() {
    if (watched_ != nullptr) watched_->Watch(true);
    const LayerTrace trace = TRY(TraceLayers(*session_));
    if (watched_ != nullptr) watched_->Watch(false);
    Inputs(trace.refused.has_value());
    std::optional<int> layer = trace.first_not_finite;
    // A pass that was refused has no rows: the norms saw them.
    if (watched_ != nullptr && watched_->first_norm_not_finite()) {
      layer = *watched_->first_norm_not_finite() / 2 - (*watched_->first_norm_not_finite() + 1) % 2;
    }
    if (layer) {
      NotFinite(*layer);
      return false;
    }
    compared_["finite_rows"] += trace.rows;
    if (trace.refused) {
      Tell("input-overflow", *trace.refused);
      return false;
    }
    facts_["residual_largest"] = *std::ranges::max_element(trace.largest);
    return true;
  }

  // `layer` -1: the embedding.
  void NotFinite(int layer) {
    const CheckpointInventory& inventory = session_->inventory();
    const Locator where = layer < 0
                              ? inventory.embedding.where()
                              : inventory.layers[static_cast<size_t>(layer)].input_norm.where();
    Tell(
        "layer-not-finite",
        {Code::kOutOfRange,
         layer < 0 ? "rows of the embedding are not finite"
                   : fmt::format("layer {} is the first to give values that are not finite", layer),
         where});
  }

  void Inputs(bool refused) {
    if (watched_ == nullptr || watched_->inputs().empty()) return;
    const WatchedBackend::Input* largest = &watched_->inputs().front();
    for (const WatchedBackend::Input& input : watched_->inputs()) {
      if (input.largest > largest->largest) largest = &input;
      // What has overflowed is told as such.
      if (refused || !(input.largest > kLargestHalf / kHeadroom)) continue;
      Tell("fp16-headroom",
           {Code::kOutOfRange,
            fmt::format("a rotated input is {:.4g}, {:.2g} times below the largest fp16 value",
                        input.largest, kLargestHalf / input.largest),
            {.tensor = input.name}});
    }
    if (!(largest->largest > 0) || refused) return;
    facts_["largest_input"] = {{"linear", largest->name},
                               {"magnitude", largest->largest},
                               {"times_to_fp16_limit", kLargestHalf / largest->largest}};
  }

  // Of the built-in prompt, fed whole.
  Result<bool> Alive() {
    const CaseSubject subject{.session = session_.get()};
    runs_ = std::make_shared<PromptRuns>(subject);
    const auto run = runs_->Get(0);
    if (!run.has_value()) {
      if (run.error().code != Code::kOutOfRange) return Fail(run.error());
      Tell("input-overflow", run.error());
      return false;
    }
    const Liveness& liveness = (*run)->liveness;
    facts_["logits"] = {{"rows", liveness.rows},
                        {"mean_entropy_nat",
                         liveness.non_finite == 0 ? Json(liveness.mean_entropy) : Json(nullptr)},
                        {"distinct_first_ids", liveness.distinct_ids}};
    compared_["finite_rows"] += liveness.rows;
    if (liveness.Passed()) {
      lines_.push_back(
          fmt::format("logits of {} rows: finite, mean entropy {:.3g} nat, {} first ids",
                      liveness.rows, liveness.mean_entropy, liveness.distinct_ids));
      return true;
    }
    Tell(liveness.non_finite > 0 ? "logits-not-finite" : "logits-dead",
         {Code::kOutOfRange, liveness.ToString(), {.file = options_.folder}});
    return false;
  }

  Status Texts() {
    if (session_->tokenizer() == nullptr) return {};
    const TextLikelihood text = TRY(MeasureTexts(*session_, progress_));
    compared_["text_tokens"] = static_cast<uint64_t>(text.tokens);
    if (text.tokens == 0) return {};
    const double chance = std::log(static_cast<double>(session_->drawable_ids()));
    facts_["text"] = {{"texts", text.texts},
                      {"tokens", text.tokens},
                      {"mean_nll_nat", text.mean_nll()},
                      {"chance_nat", chance}};
    lines_.push_back(fmt::format("plain text: {:.3g} nat a token over {} tokens, {:.3g} by chance",
                                 text.mean_nll(), text.tokens, chance));
    if (text.mean_nll() <= chance) return {};
    Tell("text-below-chance",
         {Code::kOutOfRange,
          fmt::format("the mean negative log-likelihood of plain text is {:.3f} nat, {:.3f} by "
                      "chance",
                      text.mean_nll(), chance),
          {.file = options_.folder}});
    return {};
  }

  Status Cases() {
    const bool drafted = session_->drafter() != nullptr;
    const CaseSubject subject{.session = session_.get()};
    CaseRegistry registry;
    TRY(AddForwardRowCases(runs_, registry));
    TRY(AddChunkedEqualsWholeCases(runs_, registry));
    TRY(AddScratchCleanCases(subject, registry));
    TRY(AddLevelCases(Level::kL3, subject, registry));
    std::vector<std::string_view> wanted(options_.cases.begin(), options_.cases.end());
    if (wanted.empty()) {
      wanted.assign(kShort.begin(), kShort.end());
      if (drafted) wanted.insert(wanted.end(), kShortDrafted.begin(), kShortDrafted.end());
    }
    uint64_t total = 0;
    for (const std::string_view prefix : wanted) {
      const uint64_t before = total;
      for (const std::string& name : registry.Names()) total += name.starts_with(prefix);
      if (total > before) continue;
      return Fail(Code::kOutOfRange,
                  fmt::format("no case has a name that begins with \"{}\"", prefix));
    }
    uint64_t done = 0;
    Json cases = Json::object();
    Json counts = Json::array();
    std::map<std::string, std::pair<uint64_t, uint64_t>> clauses;  // cases, values
    for (const std::string_view prefix : wanted) {
      for (const Row& row :
           registry.Run(prefix, [&](std::string_view) { Say("cases", done++, total); })) {
        const std::string name = row.clause + "/" + row.case_name;
        cases[name] = std::string(OutcomeName(row.outcome));
        counts.push_back(row.counts);
        counts.back()["case"] = name;
        counts.back()["outcome"] = cases[name];
        auto& [ran, values] = clauses[row.clause];
        ++ran;
        values += Count(row, row.counts.contains("values") ? "values" : "ids");
        Judge(row);
      }
    }
    Say("cases", total, total);
    compared_["cases"] = cases.size();
    for (const auto& [clause, what] : clauses) {
      std::string key = clause + "_values";
      std::ranges::replace(key, '-', '_');
      compared_[key] = what.second;
      lines_.push_back(fmt::format("{}: {} case{}, {} values", clause, what.first,
                                   what.first == 1 ? "" : "s", what.second));
    }
    facts_["cases"] = std::move(cases);
    facts_["case_counts"] = std::move(counts);
    return {};
  }

  void Judge(const Row& row) {
    if (row.case_name == kDraftsLand) Drafts(row);
    if (row.outcome == Outcome::kPass) return;
    const bool none_landed = row.case_name == kDraftsLand && Count(row, "accepted") == 0;
    const bool failed = row.outcome == Outcome::kFail || row.outcome == Outcome::kCrash;
    const Code code = failed                                   ? Code::kMismatch
                      : row.outcome == Outcome::kResourceError ? Code::kResource
                                                               : Code::kInternal;
    if (none_landed && !failed) return;  // told already
    Tell(failed ? "case-failed" : "case-undecided",
         {code, fmt::format("case {}: {}", row.case_name, row.detail), {.file = options_.folder}},
         row.clause);
  }

  static uint64_t Count(const Row& row, const std::string& name) {
    const auto found = row.counts.find(name);
    return found == row.counts.end() ? 0 : found->second;
  }

  void Drafts(const Row& row) {
    const uint64_t drafted = Count(row, "drafted");
    const uint64_t accepted = Count(row, "accepted");
    facts_["drafts"] = {{"ids", Count(row, "ids")},
                        {"rounds", Count(row, "rounds")},
                        {"drafted", drafted},
                        {"accepted", accepted}};
    lines_.push_back(
        fmt::format("drafts: {} of {} accepted in {} ids", accepted, drafted, Count(row, "ids")));
    const double share =
        drafted == 0 ? 0 : static_cast<double>(accepted) / static_cast<double>(drafted);
    if (share >= kRarely) return;
    Tell(accepted == 0 ? "drafts-never-land" : "drafts-rarely-land",
         {Code::kMismatch,
          fmt::format("{} of {} drafts were accepted", accepted, drafted),
          {.file = options_.session.drafter}});
  }

  const BehaviourOptions& options_;
  const StepProgress& progress_;
  StepFindings findings_;
  Json facts_ = Json::object();
  std::map<std::string, uint64_t> compared_;
  std::vector<std::string> lines_;
  std::unique_ptr<Backend> backend_;   // the caller's, until it is the session's
  WatchedBackend* watched_ = nullptr;  // the session's
  std::unique_ptr<Session> session_;
  std::shared_ptr<PromptRuns> runs_;
};

}  // namespace

Result<StepReport> ValidateBehaviour(const BehaviourOptions& options,
                                     const StepProgress& progress) {
  return Run(options, nullptr, progress).Go();
}

Result<StepReport> ValidateBehaviour(const BehaviourOptions& options,
                                     std::unique_ptr<Backend> backend,
                                     const StepProgress& progress) {
  return Run(options, std::move(backend), progress).Go();
}

}  // namespace hallmark
