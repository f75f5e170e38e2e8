// SPDX-License-Identifier: Apache-2.0
#include "conformance/draft/draft_golden.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "conformance/harness/golden_tensor.h"
#include "engine/format/safetensors.h"
#include "engine/model/forward.h"

namespace hallmark {
namespace {

// anchor{key}, [peer_]rows{key}, [peer_]draft{key}, and margin{key} where it is.
Result<DraftGoldenRun> ReadBlock(const SafetensorsFile& file, const std::string& key) {
  const std::string peer = file.Find("peer_rows" + key) != nullptr ? "peer_" : "";
  DraftGoldenRun run;
  const auto anchor = TRY(ReadGoldenTensor<int32_t>(file, "anchor" + key));
  if (anchor.size() != 1) {
    return Fail(Code::kMalformed, "expected one id", {.tensor = "anchor" + key});
  }
  run.anchor = anchor[0];
  run.rows = TRY(ReadGoldenTensor<float>(file, peer + "rows" + key));
  run.draft = TRY(ReadGoldenTensor<int32_t>(file, peer + "draft" + key));
  if (file.Find("margin" + key) != nullptr) {
    run.margins = TRY(ReadGoldenTensor<float>(file, "margin" + key));
  }
  return run;
}

// The first `length` rows of the taps that belong to `length`, or of longer ones: the target is
// causal.
Result<std::vector<float>> ReadTaps(const SafetensorsFile& file, int64_t length) {
  const TensorView* best = file.Find("taps" + std::to_string(length));
  for (const TensorView& tensor : file.tensors()) {
    if (best == nullptr && tensor.name.starts_with("taps") && tensor.shape[0] >= length) {
      best = &tensor;
    }
  }
  if (best == nullptr) return std::vector<float>();
  std::vector<float> taps = TRY(ReadGoldenTensor<float>(file, best->name));
  taps.resize(static_cast<size_t>(length * best->shape[1]));
  return taps;
}

Status ReadFile(const std::string& path, std::span<const int32_t> given,
                std::vector<DraftGoldenRun>* runs) {
  const SafetensorsFile file = TRY(SafetensorsFile::Open(path));
  std::vector<int32_t> ids(given.begin(), given.end());
  if (file.Find("ids") != nullptr) ids = TRY(ReadGoldenTensor<int32_t>(file, "ids"));
  for (const TensorView& tensor : file.tensors()) {
    constexpr std::string_view kAnchor = "anchor";
    if (!tensor.name.starts_with(kAnchor)) continue;
    const std::string key = tensor.name.substr(kAnchor.size());
    DraftGoldenRun run = TRY(ReadBlock(file, key));
    if (file.Find("seq" + key) != nullptr) {
      run.name = "seq" + key;
      run.ids = TRY(ReadGoldenTensor<int32_t>(file, "seq" + key));
      run.length = static_cast<int64_t>(run.ids.size());
      run.taps = TRY(ReadGoldenTensor<float>(file, "taps" + key));
    } else {
      run.name = "F" + key;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), run.length);
      if (error != std::errc() || end != key.data() + key.size() || run.length < 0) {
        return Fail(Code::kMalformed, "expected anchor and a number of ids", tensor.where());
      }
      if (run.length < static_cast<int64_t>(ids.size())) {
        run.ids.assign(ids.begin(), ids.begin() + run.length);
      }
      run.taps = TRY(ReadTaps(file, run.length));
    }
    runs->push_back(std::move(run));
  }
  return {};
}

}  // namespace

std::string DraftComparison::ToString() const {
  char text[160];
  std::snprintf(text, sizeof(text),
                "%zu rows, worst relative %.3e; %zu proposals compared, %zu differ, %zu close",
                rows, worst_relative, compared, differ, close);
  return text;
}

Result<std::vector<DraftGoldenRun>> ReadDraftGolden(const std::string& directory,
                                                    std::span<const int32_t> ids) {
  std::vector<DraftGoldenRun> runs;
  TRY(ReadFile(directory + "/golden.safetensors", ids, &runs));
  const std::string longer = directory + "/golden_long.safetensors";
  auto status = ReadFile(longer, ids, &runs);
  if (!status && status.error().code != Code::kNotFound) return Fail(std::move(status).error());
  std::sort(runs.begin(), runs.end(),
            [](const DraftGoldenRun& a, const DraftGoldenRun& b) { return a.length < b.length; });
  return runs;
}

Result<std::vector<int32_t>> ReadGoldenIds(const std::string& directory) {
  const SafetensorsFile file = TRY(SafetensorsFile::Open(directory + "/golden.safetensors"));
  return ReadGoldenTensor<int32_t>(file, "ids");
}

Result<std::vector<float>> EngineTaps(const Drafter& drafter, std::span<const int32_t> ids,
                                      KvType kv) {
  const Model& target = drafter.target();
  Sequence sequence = TRY(Sequence::Create(*target.backend, target.config, kv));
  ForwardPass pass = TRY(ForwardPass::Create(target));
  const ForwardOutput output =
      TRY(pass.Run(sequence, ids, {.logits = LogitRows::kNone, .taps = drafter.taps()}));
  const size_t hidden = static_cast<size_t>(target.config.hidden);
  std::vector<float> taps;
  for (size_t row = 0; row < ids.size(); ++row) {
    for (const std::vector<float>& tap : output.taps) {
      const auto first = tap.begin() + static_cast<int64_t>(row * hidden);
      taps.insert(taps.end(), first, first + static_cast<int64_t>(hidden));
    }
  }
  return taps;
}

Status AppendTaps(DraftPass& pass, const Drafter& drafter, DraftContext& context,
                  std::span<const float> taps, int64_t chunk) {
  const int64_t width = drafter.tap_width();
  const int64_t rows = static_cast<int64_t>(taps.size()) / width;
  const size_t bytes = static_cast<size_t>(std::min(chunk, rows) * width) * sizeof(float);
  const Buffer buffer = TRY(drafter.backend().Allocate(bytes));
  for (int64_t done = 0; done < rows; done += chunk) {
    const int64_t count = std::min(chunk, rows - done);
    TRY(drafter.backend().Upload(buffer.data(), taps.data() + done * width,
                                 static_cast<size_t>(count * width) * sizeof(float)));
    TRY(pass.Append(context, {buffer.floats(), count, width}));
  }
  return {};
}

Result<DraftComparison> CompareDraft(const Drafter& drafter, const DraftGoldenRun& run,
                                     TapSource source, double min_margin, int64_t chunk,
                                     KvType kv) {
  const bool recorded = source == TapSource::kGolden;
  if (recorded ? run.taps.empty() : run.ids.empty()) {
    return Fail(Code::kNotFound,
                "the golden run " + run.name + " records no " + (recorded ? "taps" : "ids"));
  }
  const std::vector<float> taps = recorded ? run.taps : TRY(EngineTaps(drafter, run.ids, kv));
  DraftPass pass = TRY(DraftPass::Create(drafter));
  DraftContext context = TRY(DraftContext::Create(drafter));
  TRY(AppendTaps(pass, drafter, context, taps, chunk));
  const DraftRequest request{.context = &context, .anchor = run.anchor};
  const auto proposals = TRY(pass.Propose(std::span(&request, 1), true));
  const DraftProposal& proposal = proposals.front();
  if (proposal.rows.size() != run.rows.size() || proposal.ids.size() != run.draft.size()) {
    return Fail(Code::kMismatch, "the golden run " + run.name + " has a block of another size");
  }
  DraftComparison comparison;
  const size_t hidden = static_cast<size_t>(drafter.config().hidden);
  for (size_t row = 0; row < run.draft.size(); ++row) {
    double largest = 0.0;
    double difference = 0.0;
    for (size_t i = row * hidden; i < (row + 1) * hidden; ++i) {
      if (!std::isfinite(proposal.rows[i]) || !std::isfinite(run.rows[i])) {
        ++comparison.non_finite;
        continue;
      }
      largest = std::max(largest, std::fabs(double{run.rows[i]}));
      difference = std::max(difference, std::fabs(double{proposal.rows[i]} - run.rows[i]));
    }
    ++comparison.rows;
    comparison.worst_relative = std::max(comparison.worst_relative, difference / largest);
    if (!run.margins.empty() && !(run.margins[row] > min_margin)) {
      ++comparison.close;
      continue;
    }
    ++comparison.compared;
    comparison.differ += proposal.ids[row] != run.draft[row];
  }
  return comparison;
}

}  // namespace hallmark
