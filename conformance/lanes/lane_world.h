// SPDX-License-Identifier: Apache-2.0
// LaneWorld: a scheduler on a target, beside a serial model of it, for random histories: requests
// that share beginnings, rounds, cancels from outside and from callbacks, results taken at any
// time. Everything that comes out is held against the serial reply to the same request. The
// commands of lane_commands.h drive it; Settle ends a history and checks that nothing was left
// behind.
#ifndef HALLMARK_CONFORMANCE_LANES_LANE_WORLD_H_
#define HALLMARK_CONFORMANCE_LANES_LANE_WORLD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/scheduler.h"

namespace hallmark {

// How a request of a history is made; plain numbers, so that a failing one can be printed and
// shrunk.
struct RequestPlan {
  int base = 0;       // 0: ids of its own; 1: the beginning of an earlier prompt; 2: earlier prompt
                      // and reply
  int which = 0;      // of the earlier requests
  int cut = 0;        // of an earlier prompt, from its end
  int tail = 1;       // own ids, >= 1 when there is no base
  uint64_t seed = 0;  // of the own ids and of the draws
  int max_tokens = 8;
  int sampling = 0;     // 0 greedy, 1 T 1.0 top-k 20 top-p 0.95, 2 T 0.7 min-p 0.05, 3 T 1.0
  int window = -1;      // -1: adaptive
  int copy_match = -1;  // -1: the default
  bool drafter = true;
  bool resume = true;
  bool keep = true;
  int keep_at = 0;  // 0: none
  int chunk = 0;
  int quit_after = 0;  // the callback says stop after so many ids; 0: never
  int cancels = -1;    // the callback cancels this request at its first id; -1: none
};

struct LaneCounts {
  int64_t streams = 0, failed = 0, cancelled = 0, refused = 0;
  int64_t rounds = 0, drafted = 0, accepted = 0, copied = 0, resumed = 0, resumes = 0;
  int64_t peak_streams = 0;
  void Add(const LaneCounts& other);
  std::string ToString() const;
};

class LaneWorld {
 public:
  // The serial reply to a request; callbacks of the request are called as a stream would call them.
  using Serial = std::function<Result<Generation>(const GenerateRequest&)>;

  // `random_ids`: ids that own parts of prompts are drawn from, 0 .. random_ids - 1.
  LaneWorld(Target& target, std::vector<int32_t> stop_ids, const SchedulerOptions& options,
            Serial serial, int64_t random_ids);

  void Submit(const RequestPlan& plan);
  void Round();
  void Cancel(int which);
  void Take(int which);
  // Runs everything to its end, takes what was not taken, checks it all.
  void Settle();

  size_t requests() const { return entries_.size(); }
  const LaneCounts& counts() const { return counts_; }
  // What went wrong first; empty while nothing has.
  const std::string& fault() const { return fault_; }

 private:
  struct Entry {
    GenerateRequest request;
    std::optional<StreamId> id;  // none: it was refused
    Result<Generation> expected = Generation{};
    std::vector<int32_t> serial_ids;  // as the callback saw them
    std::vector<int32_t> ids;
    bool cancelled = false;
    bool taken = false;
  };

  GenerateRequest Make(const RequestPlan& plan) const;
  void Check(Entry& entry);
  void Expect(bool holds, const std::string& what);

  Target& target_;
  std::vector<int32_t> stop_ids_;
  Serial serial_;
  int64_t random_ids_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<std::unique_ptr<Entry>> entries_;
  LaneCounts counts_;
  std::string fault_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_LANES_LANE_WORLD_H_
