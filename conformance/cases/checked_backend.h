// SPDX-License-Identifier: Apache-2.0
// CheckedBackend: a CPU backend that answers as a device does, with counters of split linears,
// tables in two places and rounds that are replayed, all of it pretended, and that breaks one
// promise on purpose: so that the cases which need a device can be seen green and red without one.
// For tests alone.
#ifndef HALLMARK_CONFORMANCE_CASES_CHECKED_BACKEND_H_
#define HALLMARK_CONFORMANCE_CASES_CHECKED_BACKEND_H_

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "conformance/cases/faulty_backend.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/device_checks.h"

namespace hallmark {

enum class DeviceFault {
  kNone,
  kNoChecks,            // there is no device to look at
  kCounterLeft,         // a launch of many rows leaves a counter that is not zero
  kGrownIntoOnes,       // counters that grew hold what was there before
  kSplitSumLost,        // after growth a linear gives other bits
  kNeverSplit,          // no linear is split
  kSessionCounterLeft,  // a pass of the session leaves one
  kMappedRowBeside,     // a mapped table gives the next row
  kMappedLastRowLost,   // its last row reads as zeros
  kStaleReplay,         // one replay in eight does nothing
  kNeverReplays,
  kReplaysWhenOff,
};

class CheckedBackend : public FaultyBackend, private DeviceChecks {
 public:
  CheckedBackend(Backend& real, DeviceFault fault, TablePlacement tables = TablePlacement::kDevice)
      : FaultyBackend(real, Fault::kNone), fault_(fault), tables_(tables) {}
  CheckedBackend(std::unique_ptr<Backend> real, DeviceFault fault, TablePlacement tables)
      : CheckedBackend(*real, fault, tables) {
    owned_ = std::move(real);
  }

  DeviceChecks* device_checks() override {
    return fault_ == DeviceFault::kNoChecks ? nullptr : this;
  }
  Status Embed(const EmbeddingTable& table, std::span<const int32_t> ids, Rows out) override {
    const auto last = static_cast<int32_t>(table.entries) - 1;
    std::vector<int32_t> read(ids.begin(), ids.end());
    const bool mapped = tables_ == TablePlacement::kMapped;
    if (mapped && fault_ == DeviceFault::kMappedRowBeside) {
      for (int32_t& id : read) id = std::min(id + 1, last);
    }
    TRY(FaultyBackend::Embed(table, read, out));
    if (!mapped || fault_ != DeviceFault::kMappedLastRowLost) return {};
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == last)
        std::fill_n(out.data + static_cast<int64_t>(i) * out.cols, out.cols, 0.0f);
    }
    return {};
  }
  Status Linear(const LinearWeight& weight, ConstRows x, Rows y) override {
    TRY(FaultyBackend::Linear(weight, x, y));
    const bool split = weight.in_features >= 4096 && fault_ != DeviceFault::kNeverSplit;
    if (split) TakeCounters(static_cast<size_t>(weight.out_features / 128));
    const bool pass = owned_ == nullptr;
    if (pass && fault_ == DeviceFault::kSessionCounterLeft) counters_.values = {0, 0, 1};
    if (!split) return {};
    if (fault_ == DeviceFault::kCounterLeft && x.rows >= 64) counters_.values.back() = 1;
    if (fault_ == DeviceFault::kSplitSumLost && counters_.growths > 1) y.data[0] += 1;
    return {};
  }

  bool SetGraphs(bool on) override {
    graphs_ = on;
    return true;
  }
  int64_t graph_replays() const override { return replays_; }
  Status Repeatable(const WorkKey& key, const std::function<Status()>& work) override {
    const bool records = graphs_ || fault_ == DeviceFault::kReplaysWhenOff;
    if (!records || fault_ == DeviceFault::kNeverReplays || uses_[key]++ == 0) return work();
    ++replays_;
    if (fault_ == DeviceFault::kStaleReplay && replays_ % 8 == 0) return {};
    return work();
  }

 private:
  Result<std::unique_ptr<Backend>> MakeBeside(TablePlacement tables) override {
    std::unique_ptr<Backend> real = TRY(MakeCpuBackend({}));
    return std::unique_ptr<Backend>(
        std::make_unique<CheckedBackend>(std::move(real), fault_, tables));
  }
  Result<SplitCounters> ReadSplitCounters() override { return counters_; }

  void TakeCounters(size_t count) {
    ++counters_.launches;
    if (count <= counters_.values.size()) return;
    ++counters_.growths;
    const bool ones = fault_ == DeviceFault::kGrownIntoOnes && counters_.growths > 1;
    counters_.values.assign(count, ones ? -1 : 0);
  }

  const DeviceFault fault_;
  const TablePlacement tables_;
  std::unique_ptr<Backend> owned_;
  SplitCounters counters_;
  bool graphs_ = true;
  int64_t replays_ = 0;
  std::map<WorkKey, int64_t> uses_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_CHECKED_BACKEND_H_
