// SPDX-License-Identifier: Apache-2.0
#include "conformance/model/golden.h"

#include <algorithm>
#include <numeric>

#include "conformance/harness/golden_tensor.h"
#include "engine/format/safetensors.h"
#include "engine/model/forward.h"

namespace hallmark {
namespace {

std::vector<int64_t> Range(int64_t first, int64_t count) {
  std::vector<int64_t> positions(static_cast<size_t>(count));
  std::iota(positions.begin(), positions.end(), first);
  return positions;
}

// prompt{i}, greedy{i}, margin{i}, logits{i}: the reply follows the prompt, and position
// prompt + j - 1 predicts greedy[j].
Result<GoldenRun> ReadPromptRun(const SafetensorsFile& file, const std::string& index) {
  GoldenRun run;
  run.name = "prompt" + index;
  run.ids = TRY(ReadGoldenTensor<int32_t>(file, "prompt" + index));
  const int64_t prompt = static_cast<int64_t>(run.ids.size());
  run.argmax = TRY(ReadGoldenTensor<int32_t>(file, "greedy" + index));
  run.margins = TRY(ReadGoldenTensor<float>(file, "margin" + index));
  run.ids.insert(run.ids.end(), run.argmax.begin(), run.argmax.end());
  run.argmax_positions = Range(prompt - 1, static_cast<int64_t>(run.argmax.size()));
  run.logits = TRY(ReadGoldenTensor<float>(file, "logits" + index));
  const int64_t rows = file.Find("logits" + index)->shape[0];
  run.logit_positions = Range(static_cast<int64_t>(run.ids.size()) - rows, rows);
  return run;
}

Result<GoldenRun> ReadLongRun(const SafetensorsFile& file) {
  GoldenRun run;
  run.name = "long";
  run.ids = TRY(ReadGoldenTensor<int32_t>(file, "long_ids"));
  run.logits = TRY(ReadGoldenTensor<float>(file, "long_logits_every16"));
  for (int64_t at = 0; at < static_cast<int64_t>(run.ids.size()); at += 16) {
    run.logit_positions.push_back(at);
  }
  for (const int tap : {0, 1, 2, 4, 6}) {
    const std::string name = "hidden_" + std::to_string(tap) + "_rows";
    run.hidden.push_back(
        {tap, {0, 1, 2, 3, 63, 64, 65, 127, 199}, TRY(ReadGoldenTensor<float>(file, name))});
  }
  return run;
}

Result<GoldenRun> ReadIdsRun(const SafetensorsFile& file) {
  GoldenRun run;
  run.name = "ids";
  run.ids = TRY(ReadGoldenTensor<int32_t>(file, "ids"));
  const auto rows = TRY(ReadGoldenTensor<int32_t>(file, "rows"));
  run.logit_positions.assign(rows.begin(), rows.end());
  run.logits = TRY(ReadGoldenTensor<float>(file, "logits"));
  run.argmax = TRY(ReadGoldenTensor<int32_t>(file, "argmax"));
  run.margins = TRY(ReadGoldenTensor<float>(file, "margin"));
  run.argmax_positions = Range(0, static_cast<int64_t>(run.argmax.size()));
  for (const int tap : {4, 7}) {
    run.hidden.push_back({tap, run.logit_positions,
                          TRY(ReadGoldenTensor<float>(file, "hidden_" + std::to_string(tap)))});
  }
  return run;
}

// Rows `positions` of `all` [rows, columns].
std::vector<float> Gather(const std::vector<float>& all, const std::vector<int64_t>& positions,
                          int64_t columns) {
  std::vector<float> rows;
  rows.reserve(positions.size() * static_cast<size_t>(columns));
  for (const int64_t at : positions) {
    rows.insert(rows.end(), all.begin() + at * columns, all.begin() + (at + 1) * columns);
  }
  return rows;
}

}  // namespace

Result<std::vector<GoldenRun>> ReadGolden(const std::string& directory) {
  const SafetensorsFile file = TRY(SafetensorsFile::Open(directory + "/golden.safetensors"));
  std::vector<GoldenRun> runs;
  for (int i = 0; file.Find("prompt" + std::to_string(i)) != nullptr; ++i) {
    runs.push_back(TRY(ReadPromptRun(file, std::to_string(i))));
  }
  if (file.Find("long_ids") != nullptr) runs.push_back(TRY(ReadLongRun(file)));
  if (file.Find("ids") != nullptr) runs.push_back(TRY(ReadIdsRun(file)));
  if (runs.empty()) {
    return Fail(Code::kMalformed, "the golden file holds no run", {.file = file.path()});
  }
  return runs;
}

Result<GoldenComparison> CompareGolden(const Model& model, const GoldenRun& run, KvType kv,
                                       double min_margin, int64_t chunk) {
  ForwardPass pass = TRY(ForwardPass::Create(model));
  Sequence sequence = TRY(Sequence::Create(*model.backend, model.config, kv));
  ForwardRequest request{.logits = LogitRows::kAll};
  for (const GoldenHidden& hidden : run.hidden) request.taps.push_back(hidden.tap);
  ForwardOutput all;
  all.taps.resize(request.taps.size());
  const size_t step = chunk == 0 ? run.ids.size() : static_cast<size_t>(chunk);
  for (size_t done = 0; done < run.ids.size(); done += step) {
    const auto piece = std::span(run.ids).subspan(done, std::min(step, run.ids.size() - done));
    const ForwardOutput output = TRY(pass.Run(sequence, piece, request));
    all.logits.insert(all.logits.end(), output.logits.begin(), output.logits.end());
    for (size_t i = 0; i < all.taps.size(); ++i) {
      all.taps[i].insert(all.taps[i].end(), output.taps[i].begin(), output.taps[i].end());
    }
  }

  const int64_t vocab = model.config.vocab;
  GoldenComparison comparison;
  comparison.name = run.name;
  const auto logits = Gather(all.logits, run.logit_positions, vocab);
  comparison.logits = MeasureDrift(run.logits, logits, static_cast<size_t>(vocab));
  for (size_t i = 0; i < run.hidden.size(); ++i) {
    const auto rows = Gather(all.taps[i], run.hidden[i].positions, model.config.hidden);
    comparison.hidden.push_back(
        MeasureDrift(run.hidden[i].rows, rows, static_cast<size_t>(model.config.hidden)));
  }
  comparison.has_argmax = !run.argmax.empty();
  if (comparison.has_argmax) {
    const auto rows = Gather(all.logits, run.argmax_positions, vocab);
    comparison.argmax =
        CompareArgmax(run.argmax, run.margins, rows, static_cast<size_t>(vocab), min_margin);
  }
  return comparison;
}

}  // namespace hallmark
