// SPDX-License-Identifier: Apache-2.0
#include "conformance/lanes/lane_commands.h"

#include <rapidcheck.h>
#include <rapidcheck/state.h>

#include <algorithm>
#include <memory>
#include <ostream>

namespace hallmark {
namespace {

// What generators need to know of a history so far.
struct LaneHistory {
  int requests = 0;
};

using LaneCommand = rc::state::Command<LaneHistory, LaneWorld>;

void ExpectNoFault(const LaneWorld& world) {
  if (!world.fault().empty()) RC_FAIL(world.fault());
}

void PrintPlan(std::ostream& out, const RequestPlan& p) {
  out << "submit base=" << p.base << " which=" << p.which << " cut=" << p.cut << " tail=" << p.tail
      << " seed=" << p.seed << " max_tokens=" << p.max_tokens << " sampling=" << p.sampling
      << " window=" << p.window << " copy_match=" << p.copy_match << " drafter=" << p.drafter
      << " resume=" << p.resume << " keep=" << p.keep << " keep_at=" << p.keep_at
      << " chunk=" << p.chunk << " quit_after=" << p.quit_after << " cancels=" << p.cancels;
}

class SubmitCommand : public LaneCommand {
 public:
  explicit SubmitCommand(const LaneSizes& sizes) {
    const auto below = [](int bound) { return *rc::gen::inRange(0, bound); };
    const auto often = [&](int one_in) { return below(one_in) != 0; };
    plan_.base = below(3);
    plan_.which = below(8);
    plan_.cut = below(sizes.tail);
    plan_.tail = below(sizes.tail);
    plan_.seed = static_cast<uint64_t>(below(1 << 20));
    plan_.max_tokens = below(sizes.max_tokens);
    plan_.sampling = below(4);
    plan_.window = below(sizes.window + 1) - 1;
    plan_.copy_match = below(6) - 1;
    plan_.drafter = often(5);
    plan_.resume = often(6);
    plan_.keep = often(6);
    plan_.keep_at = below(sizes.tail);
    plan_.chunk = below(6);
    if (!often(6)) plan_.quit_after = 1 + below(6);
    if (!often(6)) plan_.cancels = below(8);
  }
  void apply(LaneHistory& history) const override { ++history.requests; }
  void run(const LaneHistory&, LaneWorld& world) const override {
    world.Submit(plan_);
    ExpectNoFault(world);
  }
  void show(std::ostream& out) const override { PrintPlan(out, plan_); }

 private:
  RequestPlan plan_;
};

class RoundsCommand : public LaneCommand {
 public:
  RoundsCommand() : rounds_(*rc::gen::inRange(1, 6)) {}
  void run(const LaneHistory&, LaneWorld& world) const override {
    for (int i = 0; i < rounds_; ++i) world.Round();
    ExpectNoFault(world);
  }
  void show(std::ostream& out) const override { out << "round x" << rounds_; }

 private:
  int rounds_;
};

class CancelCommand : public LaneCommand {
 public:
  explicit CancelCommand(const LaneHistory& history)
      : which_(*rc::gen::inRange(0, std::max(1, history.requests))) {}
  void checkPreconditions(const LaneHistory& history) const override {
    RC_PRE(history.requests > 0);
  }
  void run(const LaneHistory&, LaneWorld& world) const override {
    world.Cancel(which_);
    ExpectNoFault(world);
  }
  void show(std::ostream& out) const override { out << "cancel " << which_; }

 private:
  int which_;
};

class TakeCommand : public LaneCommand {
 public:
  explicit TakeCommand(const LaneHistory& history)
      : which_(*rc::gen::inRange(0, std::max(1, history.requests))) {}
  void checkPreconditions(const LaneHistory& history) const override {
    RC_PRE(history.requests > 0);
  }
  void run(const LaneHistory&, LaneWorld& world) const override {
    world.Take(which_);
    ExpectNoFault(world);
  }
  void show(std::ostream& out) const override { out << "take " << which_; }

 private:
  int which_;
};

}  // namespace

void CheckHistory(LaneWorld& world, const LaneSizes& sizes) {
  const auto next = [sizes](const LaneHistory& history) {
    using CommandPtr = std::shared_ptr<const LaneCommand>;
    return rc::gen::weightedOneOf<CommandPtr>({
        {4, rc::gen::exec(
                [sizes]() -> CommandPtr { return std::make_shared<const SubmitCommand>(sizes); })},
        {4, rc::gen::exec([]() -> CommandPtr { return std::make_shared<const RoundsCommand>(); })},
        {1, rc::gen::exec([history]() -> CommandPtr {
           return std::make_shared<const CancelCommand>(history);
         })},
        {1, rc::gen::exec([history]() -> CommandPtr {
           return std::make_shared<const TakeCommand>(history);
         })},
    });
  };
  rc::state::check(LaneHistory{}, world, next);
  world.Settle();
  ExpectNoFault(world);
}

}  // namespace hallmark
