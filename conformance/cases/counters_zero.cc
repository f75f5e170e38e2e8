// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/counters_zero.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/bits_row.h"
#include "conformance/cases/host_linear.h"
#include "conformance/cases/prompt_runs.h"
#include "engine/backend/device_checks.h"
#include "engine/base/random.h"
#include "engine/format/synth_tensor.h"
#include "engine/model/model.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

constexpr uint64_t kSeed = 0x636F756E74657273ull;
// Inputs enough for 4 splits of 8 ranges, by every rule a range plan has had; one block of 128
// outputs, and eight, which take eight times the counters.
constexpr int64_t kInputs = 4096;
constexpr int64_t kNarrow = 128;
constexpr int64_t kWide = 1024;
constexpr int kBits = 3;
constexpr int64_t kMaxRows = 128;
constexpr size_t kPassIds = 17;

// A random EXL3 layer in host memory.
class SplitLayer {
 public:
  explicit SplitLayer(int64_t outputs) {
    const std::string name = "split." + std::to_string(outputs);
    const float spread = 1 / std::sqrt(static_cast<float>(kInputs));
    Exl3Group group{
        .name = name, .codebook = Codebook::kMul1, .k2 = 2 * kBits, .k = kInputs, .n = outputs};
    group.trellis = Make({.name = name + ".trellis",
                          .dtype = DType::kI16,
                          .shape = {kInputs / 16, outputs / 16, int64_t{16} * kBits}});
    group.input_scale = Make({.name = name + ".suh",
                              .dtype = DType::kF16,
                              .shape = {kInputs},
                              .fill = SynthFill::kSigned,
                              .spread = 1});
    group.output_scale = Make({.name = name + ".svh",
                               .dtype = DType::kF16,
                               .shape = {outputs},
                               .fill = SynthFill::kSigned,
                               .spread = spread});
    source_ = {.in_features = kInputs, .out_features = outputs, .weights = std::move(group)};
  }
  const LinearSource& source() const { return source_; }

 private:
  TensorView Make(const SynthTensor& tensor) {
    auto& bytes = storage_.emplace_back(tensor.bytes());
    SynthFiller(kSeed).Fill(tensor, 0, bytes);
    return {.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape, .bytes = bytes};
  }

  std::vector<std::vector<std::byte>> storage_;
  LinearSource source_;
};

// Memory that is handed out next was full of ones.
Status Dirty(Backend& backend) {
  std::vector<Buffer> taken;
  for (size_t bytes = 256; bytes <= size_t{1} << 23; bytes *= 2) {
    for (int i = 0; i < 4; ++i) {
      taken.push_back(TRY(backend.Allocate(bytes)));
      TRY(backend.Fill(taken.back().data(), 0xFF, bytes));
    }
  }
  return backend.Finish();
}

struct Call {
  bool wide = false;
  int64_t rows = 0;
  bool grows = false;  // counters
};
// New; enough, with partial sums that grow; grown; enough for both again.
constexpr Call kCalls[] = {{false, 1, true}, {false, 1}, {false, kMaxRows}, {false, 17},
                           {true, 3, true},  {false, 1}, {true, kMaxRows},  {false, 63}};

class Play {
 public:
  Play(Backend& backend, BitsRow& row) : backend_(backend), row_(row) {}

  Status Run() {
    DeviceChecks* const checks = backend_.device_checks();
    if (checks == nullptr) return Fail(Code::kInternal, "the backend beside has no checks");
    SplitMix64 random(kSeed);
    std::vector<float> x(static_cast<size_t>(kMaxRows * kInputs));
    for (float& value : x) value = random.NextNormal();
    for (const int64_t outputs : {kNarrow, kWide}) {
      layers_.push_back(std::make_unique<SplitLayer>(outputs));
      weights_.push_back(TRY(backend_.LoadLinear(layers_.back()->source())));
    }
    int64_t growths = 0;
    for (const Call& call : kCalls) {
      const std::string where = std::string(call.wide ? "wide" : "narrow") + " linear of " +
                                std::to_string(call.rows) + " rows";
      if (call.grows) TRY(Dirty(backend_));
      const std::vector<float> y = TRY(
          RunLinearOnHost(backend_, *weights_[call.wide ? 1 : 0],
                          std::span(x).first(static_cast<size_t>(call.rows * kInputs)), call.rows));
      CompareRows(y, first_rows_[call.wide ? 1 : 0], where);
      const SplitCounters counters = TRY(checks->ReadSplitCounters());
      const std::vector<int32_t> zeros(counters.values.size(), 0);
      row_.Compare<int32_t>(zeros, counters.values, where + ": the counters");
      row_.Count("counters", counters.values.size());
      if (call.grows != (counters.growths > growths)) {
        row_.Refuse(where + ": the counters " + (call.grows ? "stayed where they were" : "moved"));
      }
      growths = counters.growths;
      launches_ = counters.launches;
    }
    row_.Count("split_launches", static_cast<uint64_t>(launches_));
    row_.Count("growths", static_cast<uint64_t>(growths));
    if (launches_ < static_cast<int64_t>(std::size(kCalls))) row_.Refuse("a linear was not split");
    return {};
  }

 private:
  // Rows that an earlier call gave too have its bits.
  void CompareRows(const std::vector<float>& y, std::vector<float>& seen,
                   const std::string& where) {
    const size_t known = std::min(y.size(), seen.size());
    if (known > 0)
      row_.Compare<float>(std::span(seen).first(known), std::span(y).first(known), where);
    if (y.size() > seen.size()) seen = y;
    const bool finite = std::all_of(y.begin(), y.end(), [](float v) { return std::isfinite(v); });
    const bool alive = std::any_of(y.begin(), y.end(), [](float v) { return v != 0; });
    if (!finite || !alive) row_.Refuse(where + ": dead outputs");
  }

  Backend& backend_;
  BitsRow& row_;
  std::vector<std::unique_ptr<SplitLayer>> layers_;
  std::vector<std::unique_ptr<LinearWeight>> weights_;
  std::array<std::vector<float>, 2> first_rows_;  // of the longest call so far
  int64_t launches_ = 0;
};

Result<Row> Compare(const CaseSubject& subject) {
  Session& session = *subject.session;
  DeviceChecks* const checks = session.model().backend->device_checks();
  if (checks == nullptr) {
    return Fail(Code::kUnsupported, "the backend " + session.backend_name() + " has no counters");
  }
  BitsRow row;
  {
    const std::unique_ptr<Backend> beside = TRY(checks->MakeBeside(TablePlacement::kDevice));
    TRY(Play(*beside, row).Run());
  }
  const std::vector<int32_t> ids = BuiltInPrompt(session.drawable_ids());
  TRY(session.Logits(std::span(ids).first(kPassIds)));
  // How many there are is the business of what ran before.
  const SplitCounters own = TRY(checks->ReadSplitCounters());
  if (std::any_of(own.values.begin(), own.values.end(), [](int32_t v) { return v != 0; })) {
    row.Refuse("the session's counters are not zero after a pass");
  }
  return row.Finish();
}

}  // namespace

Status AddCountersZeroCases(const CaseSubject& subject, CaseRegistry& registry) {
  return registry.Add("counters-zero", "split-linears", [subject] { return Compare(subject); });
}

}  // namespace hallmark
