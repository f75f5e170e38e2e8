// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/row_invariance.h"

#include <array>
#include <map>

#include "conformance/cases/bits_row.h"
#include "conformance/cases/host_linear.h"
#include "conformance/cases/prompt_row.h"
#include "engine/base/random.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

constexpr char kClause[] = "row-invariance";
constexpr int64_t kMaxRows = 128;
// Row counts in one call: around 2, 8, 16, 64 and 128, where kernels like to change.
constexpr std::array<int64_t, 10> kRowCounts = {2, 3, 7, 8, 16, 17, 63, 65, 127, kMaxRows};
constexpr uint64_t kInputSeed = 0x726F7773ull;

// One pass over all linears that feeds the rows of every case: each weight is visited once.
class LinearSweep {
 public:
  explicit LinearSweep(const CaseSubject& subject) : subject_(subject) {}

  Result<Row> RowFor(int64_t rows) {
    if (!done_) TRY(Sweep());
    return finished_.at(rows);
  }

 private:
  Status Sweep() {
    const Model& model = subject_.session->model();
    std::map<int64_t, BitsRow> gathered;
    SplitMix64 random(kInputSeed);
    for (const auto& [name, weight] : LinearsOf(model)) {
      const size_t in = static_cast<size_t>(weight->in_features);
      const size_t out = static_cast<size_t>(weight->out_features);
      std::vector<float> x(static_cast<size_t>(kMaxRows) * in);
      for (float& value : x) value = random.NextNormal();
      std::vector<float> alone;  // [kMaxRows, out], each row in a call of its own: the definition
      for (size_t row = 0; row < static_cast<size_t>(kMaxRows); ++row) {
        const std::vector<float> one =
            TRY(RunLinearOnHost(*model.backend, *weight, std::span(x).subspan(row * in, in), 1));
        alone.insert(alone.end(), one.begin(), one.end());
      }
      for (const int64_t rows : kRowCounts) {
        const size_t count = static_cast<size_t>(rows);
        const std::vector<float> together =
            TRY(RunLinearOnHost(*model.backend, *weight, std::span(x).first(count * in), rows));
        gathered[rows].Compare<float>(std::span(alone).first(count * out), together, name);
        gathered[rows].Count("rows", count);
        gathered[rows].Count("linears", 1);
      }
    }
    for (auto& [rows, row] : gathered) finished_[rows] = row.Finish();
    done_ = true;
    return {};
  }

  CaseSubject subject_;
  bool done_ = false;
  std::map<int64_t, Row> finished_;
};

}  // namespace

std::vector<std::pair<std::string, const LinearWeight*>> LinearsOf(const Model& model) {
  std::vector<std::pair<std::string, const LinearWeight*>> linears;
  const auto add = [&](const std::string& name, const std::unique_ptr<LinearWeight>& weight) {
    if (weight != nullptr) linears.emplace_back(name, weight.get());
  };
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const ModelLayer& layer = model.layers[i];
    const std::string prefix = "layers." + std::to_string(i) + ".";
    add(prefix + "attention.q", layer.attention.q);
    add(prefix + "attention.k", layer.attention.k);
    add(prefix + "attention.v", layer.attention.v);
    add(prefix + "attention.o", layer.attention.o);
    add(prefix + "delta_net.qkv", layer.delta_net.qkv);
    add(prefix + "delta_net.z", layer.delta_net.z);
    add(prefix + "delta_net.a", layer.delta_net.a);
    add(prefix + "delta_net.b", layer.delta_net.b);
    add(prefix + "delta_net.out", layer.delta_net.out);
    add(prefix + "gate", layer.gate);
    add(prefix + "up", layer.up);
    add(prefix + "down", layer.down);
  }
  add("head", model.head);
  return linears;
}

Status AddLinearRowCases(const CaseSubject& subject, CaseRegistry& registry) {
  auto sweep = std::make_shared<LinearSweep>(subject);
  for (const int64_t rows : kRowCounts) {
    TRY(registry.Add(kClause, CaseName("linears", {{"rows", std::to_string(rows)}}),
                     [sweep, rows] { return sweep->RowFor(rows); }));
  }
  return {};
}

Status AddForwardRowCases(std::shared_ptr<PromptRuns> runs, CaseRegistry& registry) {
  for (const int64_t rows : {7, 64, 128}) {
    TRY(registry.Add(kClause, CaseName("forward", {{"rows", std::to_string(rows)}}),
                     [runs, rows]() -> Result<Row> {
                       const PromptRun* alone = TRY(runs->Get(1));
                       return ComparePromptRuns(*alone, *TRY(runs->Get(rows)));
                     }));
  }
  return {};
}

}  // namespace hallmark
