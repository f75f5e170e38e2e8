// SPDX-License-Identifier: Apache-2.0
// The cases that only receipts of a device hold, and that of scratch, green on a backend that
// pretends to be one and red on one that breaks a promise. No GPU is needed.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "conformance/cases/checked_backend.h"
#include "conformance/cases/levels.h"
#include "conformance/cases/scratch_clean.h"
#include "conformance/harness/paths.h"
#include "engine/model/model.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

// A golden model whose model runs on `Made`, until the object goes.
template <typename Made, typename FaultType>
class OnBackend {
 public:
  OnBackend(const char* name, FaultType fault) {
    auto opened = Session::Open(GoldenPath(std::string("models/") + name));
    EXPECT_TRUE(opened.has_value()) << opened.error().ToString();
    session_ = *std::move(opened);
    model_ = const_cast<Model*>(&session_->model());
    real_ = model_->backend;
    made_ = std::make_unique<Made>(*real_, fault);
    model_->backend = made_.get();
  }
  ~OnBackend() { model_->backend = real_; }
  CaseSubject subject() const { return {.session = session_.get(), .golden = GoldenPath("")}; }

 private:
  std::unique_ptr<Session> session_;
  Model* model_ = nullptr;
  Backend* real_ = nullptr;
  std::unique_ptr<Made> made_;
};

std::map<std::string, Row> RowsOf(const CaseRegistry& registry, std::string_view prefix = "") {
  std::map<std::string, Row> rows;
  for (Row& row : registry.Run(prefix, {})) rows[row.clause + "/" + row.case_name] = row;
  return rows;
}

// The cases of the backend "cuda", or one of them, on a pretended one.
std::map<std::string, Row> RunDeviceCases(DeviceFault fault, std::string_view prefix = "") {
  const OnBackend<CheckedBackend, DeviceFault> on("prism-exl3", fault);
  CaseRegistry registry;
  for (const Level level : kLevels) {
    EXPECT_TRUE(AddBackendCases(level, "cuda", on.subject(), registry).has_value());
  }
  return RowsOf(registry, prefix);
}

constexpr char kCounters[] = "counters-zero/split-linears";
constexpr char kTables[] = "mapped-equals-device/rows";
constexpr char kGraphs[] = "graph-equals-eager/rounds";

TEST(DeviceOnlyCases, PassAndCountWhatTheySaw) {
  auto rows = RunDeviceCases(DeviceFault::kNone);
  ASSERT_EQ(rows.size(), 3u);
  for (const auto& [name, row] : rows) {
    EXPECT_EQ(row.outcome, Outcome::kPass) << name << ": " << row.detail;
  }
  // 4 calls on the narrow linear's one counter, then 4 on eight.
  EXPECT_EQ(rows[kCounters].counts["counters"], 36u);
  EXPECT_EQ(rows[kCounters].counts["split_launches"], 8u);
  EXPECT_EQ(rows[kCounters].counts["growths"], 2u);
  EXPECT_EQ(rows[kTables].counts["tables"], 3u);
  EXPECT_EQ(rows[kTables].counts["rows"], 2u * (1 + 2 + 206) + 1 + 2 + 256);
  EXPECT_EQ(rows[kGraphs].counts["replays"], 40u);
  EXPECT_GE(rows[kGraphs].counts["positions"], 200u);
}

TEST(DeviceOnlyCases, AreRedWhereAPromiseIsBroken) {
  const std::pair<DeviceFault, const char*> faults[] = {
      {DeviceFault::kCounterLeft, kCounters},        {DeviceFault::kGrownIntoOnes, kCounters},
      {DeviceFault::kSplitSumLost, kCounters},       {DeviceFault::kNeverSplit, kCounters},
      {DeviceFault::kSessionCounterLeft, kCounters}, {DeviceFault::kMappedRowBeside, kTables},
      {DeviceFault::kMappedLastRowLost, kTables},    {DeviceFault::kStaleReplay, kGraphs},
      {DeviceFault::kNeverReplays, kGraphs},         {DeviceFault::kReplaysWhenOff, kGraphs}};
  for (const auto& [fault, red] : faults) {
    const auto rows = RunDeviceCases(fault, red);
    ASSERT_EQ(rows.size(), 1u) << red;
    const Row& row = rows.at(red);
    // A replay that does nothing leaves poison, which the engine may name before the row can.
    EXPECT_TRUE(row.outcome == Outcome::kFail ||
                (fault == DeviceFault::kStaleReplay && row.outcome == Outcome::kHarnessError))
        << static_cast<int>(fault) << ": " << row.detail;
    EXPECT_FALSE(row.detail.empty());
  }
  // And no other.
  for (const auto& [name, row] : RunDeviceCases(DeviceFault::kMappedRowBeside)) {
    EXPECT_EQ(row.outcome == Outcome::kPass, name != kTables) << name << ": " << row.detail;
  }
}

TEST(DeviceOnlyCases, AreNotSupportedWhereThereIsNoDevice) {
  for (const auto& [name, row] : RunDeviceCases(DeviceFault::kNoChecks)) {
    EXPECT_EQ(row.outcome, name == kGraphs ? Outcome::kPass : Outcome::kNotSupported) << name;
  }
  const OnBackend<FaultyBackend, Fault> plain("prism-exl3", Fault::kNone);
  CaseRegistry registry;
  ASSERT_TRUE(AddBackendCases(Level::kL2, "cuda", plain.subject(), registry).has_value());
  EXPECT_EQ(RowsOf(registry)[kGraphs].outcome, Outcome::kNotSupported);
}

TEST(DeviceOnlyCases, BelongToNoOtherBackend) {
  CaseRegistry registry;
  for (const Level level : kLevels) {
    for (const char* backend : {"cpu", "", "cud", "cuda/1"}) {
      ASSERT_TRUE(
          AddBackendCases(level, backend, {.golden = GoldenPath("")}, registry).has_value());
    }
  }
  EXPECT_TRUE(registry.Names().empty());
}

// An MLP that reads what another phase left, once that has been poisoned.
class LeakingBackend : public FaultyBackend {
 public:
  LeakingBackend(Backend& real, bool leaks) : FaultyBackend(real, Fault::kNone), leaks_(leaks) {}
  Status Fill(void* destination, uint8_t byte, size_t bytes) override {
    poisoned_ = poisoned_ || byte == 0xFF;
    return FaultyBackend::Fill(destination, byte, bytes);
  }
  Status SwiGlu(ConstRows gate, ConstRows up, Rows out) override {
    TRY(FaultyBackend::SwiGlu(gate, up, out));
    if (leaks_ && poisoned_) out.data[0] += 1;
    poisoned_ = false;
    return {};
  }

 private:
  const bool leaks_;
  bool poisoned_ = false;
};

TEST(ScratchCleanCases, PassOnTheEngineAndCountWhatIsShared) {
  const OnBackend<LeakingBackend, bool> on("scribe-11m-exl3", false);
  CaseRegistry registry;
  ASSERT_TRUE(AddScratchCleanCases(on.subject(), registry).has_value());
  const auto rows = RowsOf(registry);
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& [name, row] : rows) {
    EXPECT_EQ(row.outcome, Outcome::kPass) << name << ": " << row.detail;
    EXPECT_EQ(row.counts.at("positions"), 134u + 9 + 21 + 3 + 3);
    EXPECT_LT(row.counts.at("shared_bytes"), row.counts.at("apart_bytes"));
  }
}

TEST(ScratchCleanCases, AreRedWhereAPhaseReadsAnothers) {
  const OnBackend<LeakingBackend, bool> on("scribe-11m-exl3", true);
  CaseRegistry registry;
  ASSERT_TRUE(AddScratchCleanCases(on.subject(), registry).has_value());
  const std::string name = "scratch-clean/passes,scratch=poisoned";
  EXPECT_EQ(RowsOf(registry, name).at(name).outcome, Outcome::kFail);
}

}  // namespace
}  // namespace hallmark
