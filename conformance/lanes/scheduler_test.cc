// SPDX-License-Identifier: Apache-2.0
// Named cases of the scheduler on the fake target: sharing, order, refusals, and the smallest
// inputs of faults that random histories found.
#include <gtest/gtest.h>

#include "conformance/lanes/fake_target.h"
#include "engine/draft/copy_index.h"
#include "engine/run/scheduler.h"

namespace hallmark {
namespace {

class SchedulerOnFake : public testing::Test {
 protected:
  void Open(const FakeOptions& fake, SchedulerOptions options = {}) {
    target_ = std::make_unique<FakeTarget>(fake);
    options.clock = [now = 0.0]() mutable { return now += 1.0; };
    auto scheduler = Scheduler::Create(*target_, stop_ids_, options);
    ASSERT_TRUE(scheduler.has_value()) << scheduler.error().ToString();
    scheduler_ = std::move(*scheduler);
  }
  void TearDown() override {
    scheduler_.reset();
    if (!target_) return;
    EXPECT_TRUE(target_->complaints().empty()) << target_->complaints()[0];
    EXPECT_EQ(target_->live_states(), 0);
    EXPECT_EQ(target_->pages_held(), 0);
  }

  StreamId Submit(GenerateRequest request) {
    request.digest = true;
    auto id = scheduler_->Submit(std::move(request));
    EXPECT_TRUE(id.has_value()) << id.error().ToString();
    return id.value_or(0);
  }
  void RunAll() {
    for (int round = 0; scheduler_->active() > 0; ++round) {
      ASSERT_LT(round, 10000);
      ASSERT_TRUE(scheduler_->Round().has_value());
    }
  }
  // The stream's outcome, which must be the serial reply's.
  Generation Expect(StreamId id, const GenerateRequest& request) {
    auto got = scheduler_->Take(id);
    const auto serial = SerialReply(*target_, request, stop_ids_);
    EXPECT_EQ(got.has_value(), serial.has_value());
    if (!got.has_value() || !serial.has_value()) return {};
    EXPECT_EQ(got->ids, serial->ids);
    EXPECT_EQ(got->stop, serial->stop);
    EXPECT_EQ(got->state_digest, serial->state_digest);
    return *got;
  }
  Error Refused(GenerateRequest request) {
    auto id = scheduler_->Submit(std::move(request));
    EXPECT_FALSE(id.has_value());
    return id.has_value() ? Error{} : id.error();
  }

  std::vector<int32_t> stop_ids_ = {5};
  std::unique_ptr<FakeTarget> target_;
  std::unique_ptr<Scheduler> scheduler_;
};

GenerateRequest Request(std::vector<int32_t> prompt, int64_t max_tokens = 12) {
  return {.prompt = std::move(prompt), .max_tokens = max_tokens, .ignore_stop = true};
}

TEST_F(SchedulerOnFake, EightStreamsShareRoundsAndTheNinthWaits) {
  Open({});
  std::vector<GenerateRequest> requests;
  std::vector<StreamId> ids;
  for (int32_t i = 0; i < 9; ++i) {
    requests.push_back(Request({i, 1, i}, 40));
    requests.back().sampling = {.temperature = 1.0, .top_k = 20, .seed = 7};
    ids.push_back(Submit(requests.back()));
  }
  RunAll();
  int64_t peak = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    peak = std::max(peak, Expect(ids[i], requests[i]).peak_streams);
  }
  EXPECT_EQ(peak, 8);
  EXPECT_EQ(target_->widest_call(), 8);
}

TEST_F(SchedulerOnFake, AdmitsInTheOrderOfArrivalEvenWhenALaterOneWouldFit) {
  Open({.max_pages = 4});
  std::vector<int32_t> order;
  const auto noting = [&](int32_t name, std::vector<int32_t> prompt, int64_t tokens) {
    GenerateRequest request = Request(std::move(prompt), tokens);
    request.on_token = [&order, name](int32_t) {
      if (order.empty() || order.back() != name) order.push_back(name);
      return true;
    };
    return request;
  };
  const StreamId first = Submit(noting(1, {1, 2}, 40));   // three pages
  const StreamId second = Submit(noting(2, {3, 4}, 40));  // three more: waits
  const StreamId third = Submit(noting(3, {5, 6}, 2));    // one page, and waits behind it
  RunAll();
  EXPECT_EQ(order.front(), 1);
  EXPECT_EQ(order[1], 2) << "the third overtook";
  for (const StreamId id : {first, second, third}) EXPECT_TRUE(scheduler_->Take(id).has_value());
}

TEST_F(SchedulerOnFake, RefusesWhatCannotRunAndSaysWhy) {
  Open({.max_pages = 2});
  EXPECT_EQ(Refused(Request({})).code, Code::kOutOfRange);
  EXPECT_EQ(Refused(Request({1, 40})).code, Code::kOutOfRange);
  EXPECT_EQ(Refused(Request({-1})).code, Code::kOutOfRange);
  EXPECT_EQ(Refused(Request({1}, -1)).where.flag, "--max-tokens");
  const Error too_long = Refused(Request({1, 2}, 31));
  EXPECT_EQ(too_long.code, Code::kResource);
  EXPECT_EQ(too_long.where.flag, "--context");
  EXPECT_EQ(Refused(Request(std::vector<int32_t>(91, 1))).code, Code::kOutOfRange);
  GenerateRequest request = Request({1, 2});
  request.keep_at = {3};
  EXPECT_EQ(Refused(request).code, Code::kOutOfRange);
  request = Request({1});
  request.draft.window = -1;
  EXPECT_EQ(Refused(request).where.flag, "--window");
  request.draft = {.copy_match = -1};
  EXPECT_EQ(Refused(request).where.flag, "--copy-match");
  request.draft = {.copy_match = CopyIndex::kLongestMatch + 1};
  EXPECT_EQ(Refused(request).where.flag, "--copy-match");
  request = Request({1});
  request.prompt_chunk = -1;
  EXPECT_EQ(Refused(request).code, Code::kOutOfRange);
  EXPECT_EQ(scheduler_->active(), 0u);
}

TEST_F(SchedulerOnFake, NumbersOfStreamsOutsideOneToEightAreRefused) {
  FakeTarget target({});
  for (const int streams : {0, -1, 9}) {
    const auto scheduler = Scheduler::Create(target, {}, {.max_streams = streams});
    ASSERT_FALSE(scheduler.has_value());
    EXPECT_EQ(scheduler.error().where.flag, "--streams");
  }
}

TEST_F(SchedulerOnFake, APromptThatIsOnlyTheStopTokenRunsLikeAnyOther) {
  Open({});
  GenerateRequest request = Request({5});
  request.ignore_stop = false;
  const StreamId id = Submit(request);
  RunAll();
  EXPECT_FALSE(Expect(id, request).ids.empty());
}

TEST_F(SchedulerOnFake, NoTokensAskedForLeavesTheStateOfThePrompt) {
  Open({});
  const GenerateRequest request = Request({1, 2, 3}, 0);
  const StreamId id = Submit(request);
  RunAll();
  EXPECT_EQ(Expect(id, request).rounds, 0);
}

TEST_F(SchedulerOnFake, ResumesAtTheLongestKeptEndStrictlyInside) {
  Open({}, {.kept_bytes = 100000});
  const GenerateRequest first = Request({1, 2, 3, 4, 5, 6}, 4);
  const StreamId one = Submit(first);
  RunAll();
  const Generation reply = Expect(one, first);
  const StreamId same = Submit(first);
  RunAll();
  EXPECT_EQ(Expect(same, first).resumed, 5);  // one id before the prompt's end
  GenerateRequest next = first;
  next.prompt.insert(next.prompt.end(), reply.ids.begin(), reply.ids.end());
  const StreamId longer = Submit(next);
  RunAll();
  EXPECT_EQ(Expect(longer, next).resumed, 9);  // the reply but for its last id
  next.resume = false;
  const StreamId fresh = Submit(next);
  RunAll();
  EXPECT_EQ(Expect(fresh, next).resumed, 0);
}

TEST_F(SchedulerOnFake, APromptThatPartsAtTheLastKeptIdDoesNotResumeThere) {
  Open({}, {.kept_bytes = 100000});
  GenerateRequest first = Request({1, 2, 3}, 0);
  first.keep_at = {3};
  Submit(first);
  RunAll();
  const GenerateRequest parts = Request({1, 2, 9, 4});
  const StreamId id = Submit(parts);
  RunAll();
  EXPECT_EQ(Expect(id, parts).resumed, 2);
}

// A prompt that is kept whole has nothing left to feed and no logits to draw from; a shorter one
// lies inside what is kept. Every length around a page's end, both ways.
TEST_F(SchedulerOnFake, APromptNoLongerThanAKeptOneFeedsItsLastIdAgain) {
  std::vector<int32_t> text;
  for (int32_t i = 0; i < 34; ++i) text.push_back(1 + i * 7 % 31);
  for (const int64_t kept : {15, 16, 17, 31, 32, 33, 34}) {
    for (int64_t asked = 1; asked <= kept; ++asked) {
      Open({}, {.kept_bytes = 100000});
      GenerateRequest first = Request({text.begin(), text.begin() + kept}, 0);
      first.keep_at = {kept};
      Submit(first);
      RunAll();
      GenerateRequest again = Request({text.begin(), text.begin() + asked}, 5);
      const StreamId id = Submit(again);
      RunAll();
      EXPECT_EQ(Expect(id, again).resumed, asked == kept ? kept - 1 : 0);
      TearDown();
    }
  }
}

// What cannot run leaves nothing to do behind it, and the next request is served.
TEST_F(SchedulerOnFake, ARefusedRequestLeavesNoRoundToRun) {
  Open({.max_pages = 2});
  GenerateRequest good = Request({1, 2, 3});
  for (const int64_t length : {33, 91, 5000}) {
    Refused(Request(std::vector<int32_t>(static_cast<size_t>(length), 1), 1));
    EXPECT_EQ(scheduler_->active(), 0u);
    const auto more = scheduler_->Round();
    ASSERT_TRUE(more.has_value());
    EXPECT_FALSE(*more);
    EXPECT_EQ(target_->live_states(), 0);
    good.keep = false;
    const StreamId id = Submit(good);
    RunAll();
    EXPECT_EQ(Expect(id, good).ids.size(), 12u);
  }
}

// A row that joins at once moves the state before its draw: the draw's position must not move too.
TEST_F(SchedulerOnFake, ALoneRowIsDrawnAtItsOwnPosition) {
  Open({});
  GenerateRequest request = Request({1});
  request.draft = {.drafter = false, .copy_match = 0};
  request.sampling = {.temperature = 1.0, .seed = 3};
  const StreamId id = Submit(request);
  RunAll();
  Expect(id, request);
}

TEST_F(SchedulerOnFake, ACancelFromTheOwnCallbackOutranksItsAnswer) {
  Open({});
  GenerateRequest request = Request({1, 2});
  StreamId id = 0;
  request.on_token = [&](int32_t) {
    EXPECT_TRUE(scheduler_->Cancel(id));
    return false;
  };
  id = Submit(request);
  RunAll();
  const auto got = scheduler_->Take(id);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->stop, StopReason::kCancelled);
  EXPECT_EQ(got->ids.size(), 1u);
}

TEST_F(SchedulerOnFake, ARoundInsideARoundIsRefused) {
  Open({});
  GenerateRequest request = Request({1, 2}, 1);
  bool refused = false;
  request.on_token = [&](int32_t) {
    refused = !scheduler_->Round().has_value();
    return true;
  };
  const StreamId id = Submit(request);
  RunAll();
  EXPECT_TRUE(refused);
  EXPECT_TRUE(scheduler_->Take(id).has_value());
}

TEST_F(SchedulerOnFake, AStreamWhoseDrafterFailsGoesOnWithoutIt) {
  FakeOptions fake;
  GenerateRequest request = Request({1, 2});
  request.draft = {.copy_match = 0, .window = 4};
  const auto serial = SerialReply(FakeTarget(fake), request, {});
  ASSERT_TRUE(serial.has_value());
  fake.draft_breaker = serial->ids[0];
  Open(fake);
  GenerateRequest neighbour = Request({9, 8, 7}, 30);
  neighbour.draft = {.copy_match = 0, .window = 4};
  const StreamId id = Submit(request);
  const StreamId other = Submit(neighbour);
  RunAll();
  const Generation got = Expect(id, request);
  ASSERT_TRUE(got.draft_error.has_value());
  EXPECT_EQ(got.draft_error->code, Code::kOutOfRange);
  EXPECT_GT(Expect(other, neighbour).drafted, 0);
}

// The guess is the id that breaks the call; the id before it is fine and must come out.
TEST_F(SchedulerOnFake, AGuessThatCannotBeRunEndsNobody) {
  FakeOptions fake;
  const GenerateRequest request = Request({1, 2}, 12);
  const auto serial = SerialReply(FakeTarget(fake), request, {});
  ASSERT_TRUE(serial.has_value());
  fake.call_breaker = serial->ids.back();  // never fed, but guessed
  Open(fake);
  std::vector<StreamId> ids;
  for (int i = 0; i < 20; ++i) {
    GenerateRequest widths = request;
    widths.draft = {.copy_match = 0, .window = 1 + i % 7};
    ids.push_back(Submit(widths));
  }
  RunAll();
  for (const StreamId id : ids) Expect(id, request);
}

// A kept state shares the only page there is, and its stream must go on writing it.
TEST_F(SchedulerOnFake, AKeptStateGivesBackThePageItShares) {
  Open({.max_pages = 1}, {.kept_bytes = 100000});
  GenerateRequest request = Request({1, 2, 3}, 4);
  request.keep_at = {2};
  const StreamId id = Submit(request);
  RunAll();
  Expect(id, request);
}

TEST_F(SchedulerOnFake, AFailingStreamEndsAlone) {
  FakeOptions fake;
  const GenerateRequest doomed = Request({1, 2}, 12);
  const auto serial = SerialReply(FakeTarget(fake), doomed, {});
  ASSERT_TRUE(serial.has_value());
  fake.call_breaker = serial->ids[3];
  GenerateRequest neighbour = Request({9, 8}, 20);
  const auto fine = SerialReply(FakeTarget(fake), neighbour, {});
  ASSERT_TRUE(fine.has_value()) << "choose another neighbour";
  Open(fake);
  const StreamId one = Submit(doomed);
  const StreamId two = Submit(neighbour);
  RunAll();
  EXPECT_FALSE(scheduler_->Take(one).has_value());
  EXPECT_GE(Expect(two, neighbour).peak_streams, 2);
}

// The shared pass fails, the neighbour is run again first, and its callback cancels the stream
// whose id is at fault: that one is over, and must not be run to its error.
TEST_F(SchedulerOnFake, AStreamCancelledWhileAFailedPassIsRunAgainKeepsWhatItDrew) {
  FakeOptions fake;
  GenerateRequest doomed = Request({1, 2}, 12);
  doomed.draft = {.drafter = false, .copy_match = 0};
  const auto serial = SerialReply(FakeTarget(fake), doomed, {});
  ASSERT_TRUE(serial.has_value());
  fake.call_breaker = serial->ids[3];
  Open(fake);
  size_t drawn = 0;
  StreamId victim = 0;
  GenerateRequest neighbour = Request({9, 8}, 20);
  neighbour.draft = doomed.draft;
  neighbour.on_token = [&](int32_t) {
    if (drawn == 4) scheduler_->Cancel(victim);
    return true;
  };
  doomed.on_token = [&](int32_t) { return ++drawn > 0; };
  const StreamId first = Submit(neighbour);
  victim = Submit(doomed);
  RunAll();
  const auto got = scheduler_->Take(victim);
  ASSERT_TRUE(got.has_value()) << got.error().ToString();
  EXPECT_EQ(got->stop, StopReason::kCancelled);
  EXPECT_EQ(got->ids, std::vector<int32_t>(serial->ids.begin(), serial->ids.begin() + 4));
  EXPECT_TRUE(scheduler_->Take(first).has_value());
}

}  // namespace
}  // namespace hallmark
