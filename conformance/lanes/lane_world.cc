// SPDX-License-Identifier: Apache-2.0
#include "conformance/lanes/lane_world.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

// Far more rounds than any history needs: a scheduler that stops moving is caught, not waited for.
constexpr int64_t kRoundsBeforeStuck = 20000;

SamplingParams SamplingOf(int number, uint64_t seed) {
  switch (number) {
    case 1:
      return {.temperature = 1.0, .top_k = 20, .top_p = 0.95, .seed = seed};
    case 2:
      return {.temperature = 0.7, .min_p = 0.05, .seed = seed};
    case 3:
      return {.temperature = 1.0, .seed = seed};
    default:
      return {};
  }
}

bool Begins(const std::vector<int32_t>& ids, const std::vector<int32_t>& longer) {
  return ids.size() <= longer.size() && std::equal(ids.begin(), ids.end(), longer.begin());
}

std::string IdsText(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  return "[" + text + "]";
}

}  // namespace

void LaneCounts::Add(const LaneCounts& other) {
  streams += other.streams;
  failed += other.failed;
  cancelled += other.cancelled;
  refused += other.refused;
  rounds += other.rounds;
  drafted += other.drafted;
  accepted += other.accepted;
  copied += other.copied;
  resumed += other.resumed;
  resumes += other.resumes;
  peak_streams = std::max(peak_streams, other.peak_streams);
}

std::string LaneCounts::ToString() const {
  return std::to_string(streams) + " streams (" + std::to_string(failed) + " failed, " +
         std::to_string(cancelled) + " cancelled, " + std::to_string(refused) + " refused), " +
         std::to_string(rounds) + " rounds, " + std::to_string(drafted) + " drafted, " +
         std::to_string(accepted) + " accepted, " + std::to_string(copied) + " copied, " +
         std::to_string(resumed) + " rows resumed in " + std::to_string(resumes) +
         " resumes, at most " + std::to_string(peak_streams) + " streams in a round";
}

LaneWorld::LaneWorld(Target& target, std::vector<int32_t> stop_ids, const SchedulerOptions& options,
                     Serial serial, int64_t random_ids)
    : target_(target),
      stop_ids_(std::move(stop_ids)),
      serial_(std::move(serial)),
      random_ids_(random_ids) {
  auto scheduler = Scheduler::Create(target_, stop_ids_, options);
  CHECK(scheduler.has_value());
  scheduler_ = std::move(*scheduler);
}

void LaneWorld::Expect(bool holds, const std::string& what) {
  if (!holds && fault_.empty()) fault_ = what;
}

GenerateRequest LaneWorld::Make(const RequestPlan& plan) const {
  GenerateRequest request;
  if (plan.base > 0 && !entries_.empty()) {
    const Entry& earlier = *entries_[static_cast<size_t>(plan.which) % entries_.size()];
    request.prompt = earlier.request.prompt;
    if (plan.base == 1) {
      const size_t cut = static_cast<size_t>(plan.cut) % request.prompt.size();
      request.prompt.resize(request.prompt.size() - cut);
    } else {
      request.prompt.insert(request.prompt.end(), earlier.serial_ids.begin(),
                            earlier.serial_ids.end());
    }
  }
  SplitMix64 random(plan.seed);
  int tail = plan.tail;
  if (request.prompt.empty()) tail = std::max(tail, 1);
  for (int i = 0; i < tail; ++i) {
    request.prompt.push_back(
        static_cast<int32_t>(random.Below(static_cast<uint64_t>(random_ids_))));
  }
  request.max_tokens = plan.max_tokens;
  request.sampling = SamplingOf(plan.sampling, plan.seed);
  request.draft.drafter = plan.drafter;
  if (plan.window >= 0) request.draft.window = plan.window;
  if (plan.copy_match >= 0) request.draft.copy_match = plan.copy_match;
  request.resume = plan.resume;
  request.keep = plan.keep;
  const int64_t size = static_cast<int64_t>(request.prompt.size());
  if (plan.keep_at > 0) request.keep_at.assign(1, 1 + plan.keep_at % size);
  request.prompt_chunk = plan.chunk;
  request.digest = true;
  return request;
}

void LaneWorld::Submit(const RequestPlan& plan) {
  auto entry = std::make_unique<Entry>();
  Entry* self = entry.get();
  entry->request = Make(plan);
  const size_t quit_after = static_cast<size_t>(plan.quit_after);

  GenerateRequest alone = entry->request;
  alone.on_token = [self, quit_after](int32_t id) {
    self->serial_ids.push_back(id);
    return quit_after == 0 || self->serial_ids.size() < quit_after;
  };
  const bool too_long = static_cast<int64_t>(alone.prompt.size()) > target_.info().max_positions;
  if (!too_long) entry->expected = serial_(alone);

  GenerateRequest request = entry->request;
  request.on_token = [this, self, quit_after, cancels = plan.cancels](int32_t id) {
    self->ids.push_back(id);
    if (cancels >= 0 && self->ids.size() == 1) Cancel(cancels);
    return quit_after == 0 || self->ids.size() < quit_after;
  };
  auto id = scheduler_->Submit(std::move(request));
  const int64_t pages = target_.info().max_pages;
  const int64_t positions = std::min<int64_t>(
      static_cast<int64_t>(entry->request.prompt.size()) + entry->request.max_tokens,
      target_.info().max_positions);
  const bool never_fits = pages > 0 && positions > pages * target_.info().page_positions;
  Expect(id.has_value() == !(too_long || never_fits),
         id.has_value() ? "a request that can never fit was taken"
                        : "a request was refused: " + id.error().ToString());
  if (id.has_value()) {
    entry->id = *id;
    ++counts_.streams;
  } else {
    ++counts_.refused;
    entry->taken = true;
  }
  entries_.push_back(std::move(entry));
}

void LaneWorld::Round() {
  const auto more = scheduler_->Round();
  Expect(more.has_value(), "a round failed");
  Expect(scheduler_->kept().bytes() <= scheduler_->kept().max_bytes(), "kept more than the bound");
}

void LaneWorld::Cancel(int which) {
  if (entries_.empty()) return;
  Entry& entry = *entries_[static_cast<size_t>(which) % entries_.size()];
  if (!entry.id || entry.taken) return;
  if (scheduler_->Cancel(*entry.id)) entry.cancelled = true;
}

void LaneWorld::Take(int which) {
  if (entries_.empty()) return;
  Entry& entry = *entries_[static_cast<size_t>(which) % entries_.size()];
  if (!entry.id || entry.taken) return;
  if (!scheduler_->IsDone(*entry.id)) {
    Expect(!scheduler_->Take(*entry.id).has_value(), "a running stream could be taken");
    return;
  }
  Check(entry);
}

void LaneWorld::Check(Entry& entry) {
  entry.taken = true;
  auto result = scheduler_->Take(*entry.id);
  Expect(!scheduler_->Take(*entry.id).has_value(), "a stream could be taken twice");
  if (entry.cancelled) {
    ++counts_.cancelled;
    Expect(result.has_value() && result->stop == StopReason::kCancelled, "a cancel was lost");
    Expect(Begins(entry.ids, entry.serial_ids), "a cancelled reply is no beginning of the serial");
    Expect(!result.has_value() || result->ids == entry.ids, "ids were drawn and not handed out");
    return;
  }
  Expect(entry.ids == entry.serial_ids, "the ids handed out are " + IdsText(entry.ids) +
                                            ", the serial reply's " + IdsText(entry.serial_ids));
  if (!entry.expected.has_value()) {
    ++counts_.failed;
    Expect(!result.has_value(), "a stream that must fail did not");
    return;
  }
  Expect(result.has_value(),
         "a stream failed: " + (result.has_value() ? "" : result.error().ToString()));
  if (!result.has_value()) return;
  const Generation& got = *result;
  Expect(got.ids == entry.ids, "the ids returned are not those handed out");
  Expect(got.stop == entry.expected->stop, "the reply stopped for another reason");
  Expect(got.state_digest == entry.expected->state_digest, "the state left behind differs");
  Expect(got.resumed < static_cast<int64_t>(entry.request.prompt.size()), "resumed a whole prompt");
  Expect(entry.request.resume || got.resumed == 0, "resumed without leave");
  Expect(got.accepted <= got.drafted && got.copied <= got.accepted, "impossible counts");
  Expect(got.rounds <= static_cast<int64_t>(got.ids.size()), "a round without an id");
  counts_.rounds += got.rounds;
  counts_.drafted += got.drafted;
  counts_.accepted += got.accepted;
  counts_.copied += got.copied;
  counts_.resumed += got.resumed;
  counts_.resumes += got.resumed > 0;
  counts_.peak_streams = std::max(counts_.peak_streams, got.peak_streams);
}

void LaneWorld::Settle() {
  for (int64_t round = 0; scheduler_->active() > 0 && fault_.empty(); ++round) {
    Expect(round < kRoundsBeforeStuck, "the scheduler no longer moves");
    Round();
  }
  for (size_t i = 0; i < entries_.size() && fault_.empty(); ++i) Take(static_cast<int>(i));
  for (const auto& entry : entries_) Expect(entry->taken, "a stream never ended");
  const size_t kept = scheduler_->kept().count();
  if (kept == 0) Expect(target_.pages_held() == 0, "pages are held and nobody is there");
  scheduler_.reset();
  Expect(target_.pages_held() == 0, "pages are held after the scheduler went");
}

}  // namespace hallmark
