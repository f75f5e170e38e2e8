// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/source.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "conformance/validate/divergence.h"
#include "conformance/validate/error_band.h"
#include "conformance/validate/step_findings.h"
#include "conformance/validate/tensor_error.h"
#include "engine/base/error_json.h"
#include "engine/base/json.h"
#include "engine/base/sha256.h"
#include "engine/format/checkpoint.h"

namespace hallmark {
namespace {

constexpr std::string_view kReject = "format-reject";
constexpr std::string_view kGolden = "model-golden";

constexpr std::array kChecks = {
    StepCheck{"reference-differs", Severity::kError, kReject,
              "Give the very model that the checkpoint was quantized from."},
    StepCheck{"tensor-of-another-model", Severity::kError, kReject,
              "Give the very model that was quantized, or quantize the tensor again."},
    StepCheck{"plain-tensor-differs", Severity::kError, kReject,
              "Copy the tensor from the source model: it is not quantized."},
    StepCheck{"error-gross", Severity::kError, kReject,
              "Quantize the tensor again: its error is that of two bits less, or worse."},
    StepCheck{"error-above-band", Severity::kWarning, kGolden,
              "Quantize the tensor again: its width allows a smaller error."},
    StepCheck{"error-below-band", Severity::kWarning, kGolden,
              "Give the unquantized source: this one seems made from the quantized model."},
    StepCheck{"logits-not-finite", Severity::kError, kGolden,
              "See what the numbers and behaviour steps say about the model."},
    StepCheck{"top1-low", Severity::kWarning, kGolden,
              "Look at the tensors with the largest errors: the first id differs at most places."},
};

// <W, W_q> / <W, W> is about 1 - NMSE for the same matrix, 0.73 at one bit, and near 0 for another.
constexpr double kSameMatrix = 0.5;
// One rounding to fp16 or bf16 of every value gives at most 2^-17.
constexpr double kOneRounding = 0x1p-17;
constexpr double kLowTop1 = 0.5;
constexpr size_t kWorst = 5;

// The first number of both configs that differs; empty when none does.
std::string DifferentKey(const ModelConfig& a, const ModelConfig& b) {
  struct Number {
    const char* key;
    double a, b;
  };
  const std::array numbers = {
      Number{"hidden_size", double(a.hidden), double(b.hidden)},
      Number{"intermediate_size", double(a.intermediate), double(b.intermediate)},
      Number{"vocab_size", double(a.vocab), double(b.vocab)},
      Number{"num_hidden_layers", double(a.layers.size()), double(b.layers.size())},
      Number{"num_attention_heads", double(a.heads), double(b.heads)},
      Number{"num_key_value_heads", double(a.kv_heads), double(b.kv_heads)},
      Number{"head_dim", double(a.head_dim), double(b.head_dim)},
      Number{"partial_rotary_factor", double(a.rotary_dim), double(b.rotary_dim)},
      Number{"rope_theta", a.rope_theta, b.rope_theta},
      Number{"rms_norm_eps", a.eps, b.eps},
      Number{"linear_num_key_heads", double(a.linear_key_heads), double(b.linear_key_heads)},
      Number{"linear_num_value_heads", double(a.linear_value_heads), double(b.linear_value_heads)},
      Number{"linear_key_head_dim", double(a.linear_key_dim), double(b.linear_key_dim)},
      Number{"linear_value_head_dim", double(a.linear_value_dim), double(b.linear_value_dim)},
      Number{"linear_conv_kernel_dim", double(a.conv_kernel), double(b.conv_kernel)}};
  for (const Number& number : numbers) {
    if (number.a != number.b) return fmt::format("{} {}, {}", number.key, number.a, number.b);
  }
  if (a.layers != b.layers) return "layer_types";
  return "";
}

class Judge {
 public:
  explicit Judge(StepFindings* findings) : findings_(findings) {}

  void Look(const TensorError& error) {
    const Locator where = error.tensor->where();
    if (error.group == nullptr) {
      if (error.nmse <= kOneRounding) return;
      Tell("plain-tensor-differs", where,
           fmt::format("the NMSE against the source is {:.3g}, expected {:.1g} at most", error.nmse,
                       kOneRounding));
      return;
    }
    const ErrorBand band = ErrorBandOf({error.group->codebook, error.group->k2});
    const std::string text = fmt::format(
        "the NMSE against the source is {:.4g}; {} bits of {} are expected to reach {:.3g} .. "
        "{:.3g}",
        error.nmse, error.group->bits(), CodebookName(error.group->codebook), band.least,
        band.most);
    // Written so that a NaN is at fault.
    if (!(error.scale >= kSameMatrix)) {
      Tell("tensor-of-another-model", where,
           fmt::format("the tensor has {:.3g} of the source's in it; {}", error.scale, text));
    } else if (!(error.nmse <= band.gross)) {
      Tell("error-gross", where, text);
    } else if (error.nmse > band.most) {
      Tell("error-above-band", where, text);
    } else if (error.nmse < band.least) {
      Tell("error-below-band", where, text);
    }
  }

  void Look(const Divergence& divergence, const std::string& folder) {
    if (divergence.non_finite > 0) {
      Tell("logits-not-finite", {.file = folder},
           fmt::format("{} logits are infinite or not a number", divergence.non_finite));
    } else if (divergence.top1() < kLowTop1) {
      Tell("top1-low", {.file = folder},
           fmt::format("{} of {} rows have the reference's first id", divergence.same_first,
                       divergence.rows));
    }
  }

 private:
  void Tell(std::string_view check, Locator where, std::string message) {
    findings_->Add(check, {Code::kMismatch, std::move(message), std::move(where)});
  }

  StepFindings* findings_;
};

// SHA-256 of all ids as little-endian int32: whoever has the windows finds it again.
std::string DigestOf(const std::vector<TokenWindow>& windows) {
  Sha256 hash;
  for (const TokenWindow& window : windows) hash.Update(std::as_bytes(std::span(window)));
  return Hex(hash.Finish());
}

Json NumberOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json ErrorJson(const TensorError& error) {
  const ErrorBand band = ErrorBandOf({error.group->codebook, error.group->k2});
  return {{"tensor", error.name},
          {"bits", error.group->bits()},
          {"codebook", std::string(CodebookName(error.group->codebook))},
          {"nmse", NumberOrNull(error.nmse)},
          {"expected", {{"least", band.least}, {"middle", band.middle}, {"most", band.most}}},
          {"in_band", error.nmse >= band.least && error.nmse <= band.most}};
}

Json TensorsJson(std::vector<TensorError> errors) {
  Json json = {{"compared", errors.size()}};
  std::erase_if(errors, [](const TensorError& error) { return error.group == nullptr; });
  // A NaN would break the order.
  const auto key = [](const TensorError& error) {
    return std::isnan(error.nmse) ? INFINITY : error.nmse;
  };
  json["quantized"] = errors.size();
  json["linears"] = Json::array();
  for (const TensorError& error : errors) json["linears"].push_back(ErrorJson(error));
  std::ranges::stable_sort(errors, std::ranges::greater(), key);
  json["worst"] = Json::array();
  for (size_t i = 0; i < std::min(kWorst, errors.size()); ++i) {
    json["worst"].push_back(ErrorJson(errors[i]));
  }
  return json;
}

std::vector<std::string> Lines(const Json& facts) {
  std::vector<std::string> lines;
  if (facts.contains("tensors")) {
    const Json& worst = facts["tensors"]["worst"];
    if (!worst.empty()) {
      lines.push_back(fmt::format("the largest errors (NMSE) of {} quantized tensors:",
                                  facts["tensors"]["quantized"].get<uint64_t>()));
    }
    for (const Json& linear : worst) {
      const Json& nmse = linear["nmse"];
      lines.push_back(fmt::format(
          "  {} at {} bit{}, {:.3g} .. {:.3g} expected: {}",
          nmse.is_null() ? "not a number" : fmt::format("{:.4g}", nmse.get<double>()),
          linear["bits"].get<double>(), linear["bits"] == 1 ? "" : "s",
          linear["expected"]["least"].get<double>(), linear["expected"]["most"].get<double>(),
          linear["tensor"].get<std::string>()));
    }
  }
  if (facts.contains("predictions")) {
    const Json& predictions = facts["predictions"];
    lines.push_back(fmt::format(
        "over {} tokens in {} windows: mean KL {:.4g} nat, largest {:.4g} nat, top-1 agreement "
        "{:.4g}",
        predictions["tokens"].get<uint64_t>(), predictions["windows"].get<uint64_t>(),
        predictions["mean_kl_nat"].get<double>(), predictions["largest_kl_nat"].get<double>(),
        predictions["top1_agreement"].get<double>()));
  }
  return lines;
}

// Logits [tokens, vocab] of each window, by a session that is open for no longer.
class Runs {
 public:
  Runs(const SourceOptions& options, const StepProgress& progress)
      : options_(options), progress_(progress), windows_(options.windows) {}

  Result<Divergence> Compare() {
    std::vector<std::vector<float>> reference;
    {
      const std::unique_ptr<Session> session = TRY(Open(options_.reference));
      if (windows_.empty()) windows_ = TRY(SampleWindows(*session, options_.sampled, progress_));
      for (const TokenWindow& window : windows_) {
        reference.push_back(TRY(Logits(*session, window, reference.size(), "reference windows")));
      }
    }
    const std::unique_ptr<Session> session = TRY(Open(options_.folder));
    Divergence divergence;
    for (size_t i = 0; i < windows_.size(); ++i) {
      const std::vector<float> logits = TRY(Logits(*session, windows_[i], i, "windows"));
      divergence.Add(reference[i], logits, static_cast<size_t>(session->vocab_size()));
    }
    return divergence;
  }

  const std::vector<TokenWindow>& windows() const { return windows_; }

 private:
  Result<std::unique_ptr<Session>> Open(const std::string& folder) const {
    SessionOptions options = options_.session;
    options.drafter.clear();
    options.kept_bytes = 0;
    return Session::Open(folder, options);
  }

  Result<std::vector<float>> Logits(Session& session, const TokenWindow& window, size_t index,
                                    std::string_view what) const {
    auto logits = session.Logits(window);
    if (progress_) progress_(what, index + 1, windows_.size());
    return logits;
  }

  const SourceOptions& options_;
  const StepProgress& progress_;
  std::vector<TokenWindow> windows_;
};

}  // namespace

WindowLimits WindowLimitsOf(const std::string& folder, const std::string& reference) {
  WindowLimits limits;
  for (const std::string& path : {folder + "/config.json", reference + "/config.json"}) {
    const auto document = ReadJsonFile(path);
    if (!document.has_value()) continue;
    const ModelConfigReading reading = ReadModelConfig(*document, path);
    if (!reading.faults.empty()) continue;
    limits.vocab = std::min(limits.vocab, reading.config.vocab);
    limits.tokens = std::min(limits.tokens, reading.config.max_positions);
    const uint64_t row = sizeof(float) * static_cast<uint64_t>(reading.config.vocab);
    limits.total = std::min(limits.total, static_cast<int64_t>(kMostLogitBytes / row));
  }
  return limits;
}

Result<StepReport> ValidateSource(const SourceOptions& options, const StepProgress& progress) {
  StepFindings findings(kChecks);
  std::map<std::string, uint64_t> compared;
  const auto report = [&](Json facts) {
    std::vector<std::string> lines = Lines(facts);
    return StepReport{.step = "source",
                      .findings = findings.Sorted(),
                      .facts = std::make_shared<const Json>(std::move(facts)),
                      .compared = compared,
                      .lines = std::move(lines)};
  };
  Json facts = Json::object();
  {
    const Checkpoint source = TRY(Checkpoint::Open(options.reference));
    const Checkpoint model = TRY(Checkpoint::Open(options.folder));
    const std::string key = DifferentKey(source.config(), model.config());
    if (!key.empty()) {
      findings.Add("reference-differs", {Code::kMismatch,
                                         "the reference has another geometry: " + key,
                                         {.file = options.reference + "/config.json"}});
      return report(std::move(facts));
    }
    const CheckpointInventory source_tensors = TRY(TakeInventory(source));
    const CheckpointInventory model_tensors = TRY(TakeInventory(model));
    const std::vector<TensorError> errors =
        TRY(MeasureTensorErrors(source_tensors, model_tensors, options.threads, progress));
    Judge judge(&findings);
    for (const TensorError& error : errors) judge.Look(error);
    facts["tensors"] = TensorsJson(errors);
    compared["tensors"] = errors.size();
  }
  if (!options.run) return report(std::move(facts));
  Runs runs(options, progress);
  const auto divergence = runs.Compare();
  if (!divergence.has_value()) {
    // A model that cannot be run at all says so in the behaviour step; here it has no numbers.
    if (divergence.error().code != Code::kOutOfRange) return Fail(divergence.error());
    findings.Add("logits-not-finite", divergence.error());
    return report(std::move(facts));
  }
  Judge(&findings).Look(*divergence, options.folder);
  compared["tokens"] = divergence->rows;
  Json& json = facts["predictions"];
  json = {{"windows", runs.windows().size()},         {"tokens", divergence->rows},
          {"ids_sha256", DigestOf(runs.windows())},   {"mean_kl_nat", divergence->mean_kl()},
          {"largest_kl_nat", divergence->largest_kl}, {"top1_agreement", divergence->top1()}};
  if (options.windows.empty()) {
    json["sampled_with_seed"] = options.sampled.seed;
    json["rule_ids"] = kRuleIds;
  } else {
    json["windows_file"] = Utf8(options.windows_file);
  }
  return report(std::move(facts));
}

}  // namespace hallmark
