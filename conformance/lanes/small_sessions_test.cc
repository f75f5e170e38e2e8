// SPDX-License-Identifier: Apache-2.0
// Whole sessions on checkpoints of a few kilobytes that are made for the occasion: a head with rows
// that no id has, equal prompts at once, texts that are scored again and again, two sessions in one
// process, values that fp16 cannot hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "conformance/cases/lane_runs.h"
#include "conformance/harness/checkpoint_writer.h"
#include "conformance/harness/comparators.h"
#include "conformance/harness/drafter_writer.h"
#include "conformance/harness/paths.h"
#include "engine/base/float_types.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

constexpr int64_t kTokens = 24;

std::string TestFolder(const std::string& name) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  return testing::TempDir() + "hallmark_small_" + test->name() + "_" + name;
}

std::string Written(const CheckpointWriter& writer, const std::string& name = "model") {
  const std::string folder = TestFolder(name);
  EXPECT_TRUE(writer.Write(folder).has_value());
  return folder;
}

std::unique_ptr<Session> Open(const std::string& folder, const std::string& drafter = "") {
  SessionOptions options{.threads = 2, .drafter = drafter, .streams = 8, .context = 4096};
  options.poison_pages = true;
  auto session = Session::Open(folder, options);
  EXPECT_TRUE(session.has_value()) << session.error().ToString();
  return session ? std::move(*session) : nullptr;
}

GenerateRequest Request(std::vector<int32_t> prompt, const SamplingParams& sampling = {}) {
  GenerateRequest request{.prompt = std::move(prompt), .max_tokens = kTokens, .ignore_stop = true};
  request.sampling = sampling;
  request.draft = {.copy_match = 0, .window = 3};
  request.digest = true;
  return request;
}

Generation Reply(Session& session, const GenerateRequest& request) {
  auto reply = session.Generate(request);
  EXPECT_TRUE(reply.has_value()) << reply.error().ToString();
  return reply.value_or(Generation{});
}

void ExpectSame(const Generation& expected, const Generation& actual) {
  EXPECT_EQ(expected.ids, actual.ids);
  EXPECT_EQ(expected.state_digest, actual.state_digest);
  EXPECT_FALSE(actual.state_digest.empty());
}

// 4,200 rows in embedding and head, ids for 4,096 of them. Behind the last id stand rows so long
// that one of two opposite ones has the largest logit wherever the text stands.
constexpr int64_t kVocab = 4200;
constexpr int64_t kIds = 4096;

std::string PaddedModel() {
  CheckpointWriter writer({.vocab = kVocab, .quantized = false});
  const int64_t hidden = writer.model().hidden;
  std::string& head = writer.Tensor("lm_head.weight").bytes;
  struct LongRow {
    int64_t row;
    int64_t period;
    float length;
  };
  for (const LongRow& long_row :
       {LongRow{kIds, 3, 1000.0f}, LongRow{kIds + 1, 3, -1000.0f}, LongRow{kVocab - 2, 5, 1000.0f},
        LongRow{kVocab - 1, 5, -1000.0f}}) {
    for (int64_t i = 0; i < hidden; ++i) {
      const float length = i % long_row.period == 0 ? -long_row.length : long_row.length;
      const uint16_t value = FloatToBf16(length);
      std::memcpy(head.data() + 2 * (long_row.row * hidden + i), &value, 2);
    }
  }
  std::string folder = Written(writer);
  std::filesystem::copy(GoldenPath("models/scribe-11m-exl3/tokenizer.json"), folder);
  return folder;
}

std::string DrafterFor(int64_t vocab, const std::string& mask) {
  DrafterWriter writer({.vocab = vocab});
  writer.Set("/dflash_config/mask_token_id", mask);
  std::string folder = TestFolder("drafter");
  EXPECT_TRUE(writer.Write(folder).has_value());
  return folder;
}

TEST(SmallSessions, PaddedRowsOfTheHeadAreNeverDrawn) {
  const std::string folder = PaddedModel();
  // The mask is an id of the table that the tokenizer does not have: published drafters do so.
  const std::unique_ptr<Session> session = Open(folder, DrafterFor(kVocab, "4150"));
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->drawable_ids(), kIds);
  const std::vector<int32_t> prompt = RulePrompt(kIds, 40, 1);
  const auto logits = session->Logits(prompt);
  ASSERT_TRUE(logits.has_value()) << logits.error().ToString();
  for (size_t row = 0; row < prompt.size(); ++row) {
    const auto first = logits->begin() + static_cast<ptrdiff_t>(row * kVocab);
    ASSERT_GE(std::max_element(first, first + kVocab) - first, kIds)
        << "the control of row " << row;
  }
  int64_t drafted = 0;
  for (const SamplingParams& sampling :
       {SamplingParams{}, SamplingParams{.temperature = 1.0, .seed = 5},
        SamplingParams{.temperature = 1.0, .top_k = 20, .top_p = 0.95, .seed = 6},
        SamplingParams{.temperature = 0.7, .min_p = 0.05, .seed = 7}}) {
    GenerateRequest request = Request(prompt, sampling);
    const Generation with = Reply(*session, request);
    request.draft.drafter = false;
    request.resume = false;
    const Generation without = Reply(*session, request);
    ExpectSame(without, with);
    for (const int32_t id : with.ids) EXPECT_LT(id, kIds);
    drafted += with.drafted;
  }
  EXPECT_GT(drafted, 0);
}

TEST(SmallSessions, EqualPromptsAtOnceHaveOneAnswer) {
  const std::unique_ptr<Session> session =
      Open(Written(CheckpointWriter()), DrafterFor(300, "299"));
  ASSERT_NE(session, nullptr);
  GenerateRequest request = Request(RulePrompt(300, 30, 2), {.temperature = 1.0, .seed = 3});
  request.resume = request.keep = false;
  const Generation alone = Reply(*session, request);
  for (const size_t count : {2, 4, 8}) {
    std::vector<StreamId> ids;
    for (size_t i = 0; i < count; ++i) {
      request.draft = {.drafter = i % 2 == 0, .copy_match = 0, .window = static_cast<int64_t>(i)};
      const auto id = session->Submit(request);
      ASSERT_TRUE(id.has_value());
      ids.push_back(*id);
    }
    while (*session->Round()) {
    }
    int64_t peak = 0;
    for (const StreamId id : ids) {
      const auto reply = session->Take(id);
      ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
      ExpectSame(alone, *reply);
      peak = std::max(peak, reply->peak_streams);
    }
    EXPECT_EQ(peak, static_cast<int64_t>(count));
  }
}

TEST(SmallSessions, ATextScoredTenTimesKeepsItsBits) {
  const std::string folder = Written(CheckpointWriter());
  const std::unique_ptr<Session> session = Open(folder);
  ASSERT_NE(session, nullptr);
  const std::vector<int32_t> text = RulePrompt(300, 64, 4);
  const auto first = session->Logits(text);
  ASSERT_TRUE(first.has_value());
  for (int i = 0; i < 9; ++i) {
    // Replies in between, one of which is cut off by its caller.
    GenerateRequest request = Request(RulePrompt(300, 20 + i, static_cast<uint64_t>(i)));
    if (i % 3 == 0) request.on_token = [](int32_t) { return false; };
    Reply(*session, request);
    const auto again = session->Logits(text, i);
    ASSERT_TRUE(again.has_value());
    const auto bits = CompareBits<float>(*first, *again);
    EXPECT_TRUE(bits.Passed()) << bits.ToString();
  }
  const auto fresh = Open(folder)->Logits(text);
  ASSERT_TRUE(fresh.has_value());
  EXPECT_TRUE(CompareBits<float>(*first, *fresh).Passed());
}

TEST(SmallSessions, TwoOfThemInOneProcessKeepApart) {
  const std::string one = Written(CheckpointWriter({.seed = 1}), "one");
  const std::string two = Written(CheckpointWriter({.seed = 2}), "two");
  const GenerateRequest request = Request(RulePrompt(300, 50, 5));
  const Generation alone[] = {Reply(*Open(one), request), Reply(*Open(two), request)};
  EXPECT_NE(alone[0].ids, alone[1].ids);
  const std::unique_ptr<Session> sessions[] = {Open(one), Open(two)};
  std::vector<StreamId> ids;
  for (const auto& session : sessions) {
    const auto id = session->Submit(request);
    ASSERT_TRUE(id.has_value());
    ids.push_back(*id);
  }
  for (bool more = true; more;) {
    more = false;
    for (const auto& session : sessions) more = *session->Round() || more;
  }
  for (size_t i = 0; i < 2; ++i) {
    const auto reply = sessions[i]->Take(ids[i]);
    ASSERT_TRUE(reply.has_value());
    ExpectSame(alone[i], *reply);
  }
}

TEST(SmallSessions, TheBestOfOneCandidateIsTheGreedyIdDraftedOrNot) {
  const std::unique_ptr<Session> session =
      Open(Written(CheckpointWriter()), DrafterFor(300, "299"));
  ASSERT_NE(session, nullptr);
  const std::vector<int32_t> prompt = RulePrompt(300, 30, 6);
  const Generation greedy = Reply(*session, Request(prompt));
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    for (const bool drafter : {true, false}) {
      GenerateRequest request = Request(prompt, {.temperature = 1.0, .top_k = 1, .seed = seed});
      request.draft.drafter = drafter;
      ExpectSame(greedy, Reply(*session, request));
    }
  }
}

// As many rows wait for a verdict as the widest block has, and no more than there are positions.
TEST(SmallSessions, AnyBlockOfADrafterFitsItsWindow) {
  CheckpointWriter target;
  target.Set("/text_config/max_position_embeddings", "300");
  const std::string folder = Written(target);
  GenerateRequest request = Request(RulePrompt(300, 240, 9), {.temperature = 0.5, .seed = 2});
  request.max_tokens = 100;
  const Generation alone = Reply(*Open(folder), request);
  EXPECT_EQ(alone.stop, StopReason::kContext);
  EXPECT_EQ(alone.ids.size(), 61u);  // the last id drawn is not fed
  for (const int block : {2, 3, 17, 128}) {
    const std::string drafter = TestFolder("drafter");
    ASSERT_TRUE(DrafterWriter({.block = block, .seed = 3}).Write(drafter).has_value());
    const std::unique_ptr<Session> session = Open(folder, drafter);
    ASSERT_NE(session, nullptr) << block;
    for (const int64_t window : {1, block - 1, 200}) {
      request.draft = {.copy_match = 0, .window = window};
      const Generation drafted = Reply(*session, request);
      ExpectSame(alone, drafted);
      EXPECT_EQ(drafted.stop, StopReason::kContext);
      EXPECT_GT(drafted.drafted, 0) << block << ", " << window;
      EXPECT_FALSE(drafted.draft_error.has_value());
    }
  }
}

// Geometries at the edges of what configs allow, and prompts that end beside a page's end: cold,
// kept and resumed, cut and copied, a text has one continuation.
TEST(SmallSessions, AnyShapeGoesOnAlikeColdResumedCutAndCopied) {
  const SyntheticModel models[] = {
      {.layers = 1},                 // recurrence alone: pages of no layer
      {.layers = 2, .interval = 1},  // attention alone
      {.hidden = 200, .intermediate = 72, .vocab = 1001},
      {.heads = 3, .head_dim = 256, .key_heads = 3, .value_heads = 6},
      {.vocab = 2},
      {.packed_signs = true, .tied = true, .mtp = true, .visual = true}};
  for (const SyntheticModel& model : models) {
    SCOPED_TRACE(testing::Message() << "model " << &model - models);
    CheckpointWriter writer(model);
    const std::unique_ptr<Session> session = Open(Written(writer));
    ASSERT_NE(session, nullptr);
    const std::vector<int32_t> text = RulePrompt(model.vocab, 300, 3);
    for (const ptrdiff_t size : {300, 257, 256, 255}) {
      GenerateRequest cold = Request({text.begin(), text.begin() + size},
                                     {.temperature = 1.0, .seed = static_cast<uint64_t>(size)});
      cold.draft = {.copy_match = 0, .window = 0};
      cold.resume = cold.keep = false;
      const Generation expected = Reply(*session, cold);
      GenerateRequest kept = cold;
      kept.draft = {.copy_match = 1, .window = 5};
      kept.resume = kept.keep = true;
      kept.prompt_chunk = 7;
      if (size == 300) kept.keep_at = {1, 254, 255, 256, 257};
      for (const int64_t resumed : {size == 300 ? ptrdiff_t{0} : size - 1, size - 1}) {
        const Generation reply = Reply(*session, kept);
        ExpectSame(expected, reply);
        EXPECT_EQ(reply.resumed, resumed);
      }
    }
  }
}

// A residual of more than 65,504 is an fp32 number like any other.
CheckpointWriter LargeResidual() {
  CheckpointWriter writer({.quantized = false});
  std::string& down = writer.Tensor(writer.Name("layers.1.mlp.down_proj.weight")).bytes;
  for (size_t i = 0; i < down.size(); i += 2) {
    uint16_t value;
    std::memcpy(&value, down.data() + i, 2);
    value = FloatToBf16(Bf16ToFloat(value) * 0x1p20f);
    std::memcpy(down.data() + i, &value, 2);
  }
  return writer;
}

TEST(SmallSessions, AResidualBeyondFp16IsCarried) {
  const std::unique_ptr<Session> session = Open(Written(LargeResidual()), DrafterFor(300, "299"));
  ASSERT_NE(session, nullptr);
  const std::vector<int32_t> prompt = RulePrompt(300, 20, 7);
  const auto logits = session->Logits(prompt);
  ASSERT_TRUE(logits.has_value()) << logits.error().ToString();
  for (const float logit : *logits) ASSERT_TRUE(std::isfinite(logit));
  const Generation reply = Reply(*session, Request(prompt));
  EXPECT_EQ(reply.ids.size(), size_t{kTokens});
  EXPECT_GT(reply.drafted, 0);
  EXPECT_FALSE(reply.draft_error.has_value());
}

// Taps that an EXL3 drafter's fp16 inputs cannot hold end the drafting, and no reply.
TEST(SmallSessions, ADrafterThatOverflowsIsGivenUpAndTheReplyGoesOn) {
  const std::string drafter = TestFolder("drafter");
  ASSERT_TRUE(
      DrafterWriter({.targets = {2, 1}, .form = LinearForm::kExl3}).Write(drafter).has_value());
  const std::unique_ptr<Session> session = Open(Written(LargeResidual()), drafter);
  ASSERT_NE(session, nullptr);
  GenerateRequest request = Request(RulePrompt(300, 20, 7));
  const Generation drafted = Reply(*session, request);
  ASSERT_TRUE(drafted.draft_error.has_value());
  EXPECT_EQ(drafted.draft_error->code, Code::kOutOfRange);
  EXPECT_EQ(drafted.draft_error->where.tensor, "fc");
  request.draft.drafter = request.resume = false;
  ExpectSame(Reply(*session, request), drafted);
}

// An EXL3 input is rounded to fp16: one that overflows names its layer, the first that did.
TEST(SmallSessions, AnInputBeyondFp16NamesTheFirstLayerItReached) {
  CheckpointWriter writer;
  for (const int layer : {1, 2}) {
    for (const char* linear : {"gate_proj", "up_proj"}) {
      const std::string name =
          writer.Name("layers." + std::to_string(layer) + ".mlp." + linear + ".svh");
      std::string& scales = writer.Tensor(name).bytes;
      const uint16_t large = 0x7BFF;  // 65,504
      for (size_t i = 0; i < scales.size(); i += 2) std::memcpy(scales.data() + i, &large, 2);
    }
  }
  const std::unique_ptr<Session> session = Open(Written(writer));
  ASSERT_NE(session, nullptr);
  const auto reply = session->Generate(Request(RulePrompt(300, 20, 8)));
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().code, Code::kOutOfRange) << reply.error().ToString();
  EXPECT_EQ(reply.error().where.tensor, writer.Name("layers.1.mlp.down_proj"))
      << reply.error().ToString();
}

}  // namespace
}  // namespace hallmark
