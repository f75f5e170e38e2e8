// SPDX-License-Identifier: Apache-2.0
// Memory on the device. Clause mapped-equals-device: an embedding in host memory gives the bits of
// one in device memory, first and last id included. Clause scratch-clean: NaN in memory whose phase
// is over, or in pages before they are stored, reaches no bit. Clause failure-isolation: every byte
// goes back, whether a session was closed or never came to be.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/cases/bits_row.h"
#include "conformance/cases/lane_runs.h"
#include "conformance/gpu/gpu_session.h"
#include "engine/backend/backend.h"
#include "engine/backend/cpu/widen.h"
#include "engine/backend/cuda/runtime_device.h"
#include "engine/format/inventory.h"
#include "engine/model/forward.h"
#include "engine/model/model.h"

namespace hallmark {
namespace {

void ExpectPass(const Result<Row>& result, const std::string& name) {
  EXPECT_EQ(WhyNotPassed(result, name), "");
}

constexpr uint64_t kSeed = 0x6D656D6F7279ull;

// Rows of an Embed on the host; the device's memory held NaN before.
Result<std::vector<float>> EmbedOnHost(const Session& session, std::span<const int32_t> ids) {
  const Model& model = session.model();
  Backend& backend = *model.backend;
  const int64_t rows = static_cast<int64_t>(ids.size());
  const int64_t cols = model.config.hidden;
  std::vector<float> values(static_cast<size_t>(rows * cols));
  const Buffer out = TRY(backend.Allocate(values.size() * sizeof(float)));
  TRY(backend.Fill(out.data(), 0xFF, out.bytes()));
  TRY(backend.Embed(*model.embedding, ids, {out.floats(), rows, cols}));
  TRY(backend.Download(values.data(), out.data(), out.bytes()));
  return values;
}

// Both placements against the checkpoint's own bytes, then against each other in all logits.
Result<Row> CompareTables(const std::string& directory) {
  const auto device = TRY(OpenOnDevice(directory, {.mapped_embedding = false}));
  const auto mapped = TRY(OpenOnDevice(directory, {.mapped_embedding = true}));
  const int32_t last = static_cast<int32_t>(device->vocab_size()) - 1;
  std::vector<int32_t> ids = {0, last, 1, last - 1, last, 0};
  const std::vector<int32_t> others = RulePrompt(device->vocab_size(), 122, kSeed);
  ids.insert(ids.end(), others.begin(), others.end());

  const TensorView& table = device->inventory().embedding;
  const int64_t cols = device->model().config.hidden;
  std::vector<float> truth(ids.size() * static_cast<size_t>(cols));
  for (size_t i = 0; i < ids.size(); ++i) {
    TRY(WidenToFloat(table, ids[i] * cols, cols, truth.data() + i * static_cast<size_t>(cols)));
  }
  BitsRow row;
  for (const size_t count : {size_t{1}, size_t{2}, ids.size()}) {
    const auto some = std::span<const int32_t>(ids).first(count);
    const auto rows = std::span<const float>(truth).first(count * static_cast<size_t>(cols));
    const std::string where = std::to_string(count) + " ids, ";
    row.Compare<float>(rows, TRY(EmbedOnHost(*device, some)), where + "in device memory");
    row.Compare<float>(rows, TRY(EmbedOnHost(*mapped, some)), where + "in host memory");
  }
  row.Compare<float>(TRY(device->Logits(ids)), TRY(mapped->Logits(ids)), "logits");
  row.Compare<float>(TRY(device->Logits(ids)), TRY(mapped->Logits(ids, 1)), "logits, id by id");
  return row.Finish();
}

TEST(MappedTables, GoldenModelsGiveTheSameBits) {
  for (const char* name : {kScribe, kPrism}) ExpectPass(CompareTables(GoldenModelPath(name)), name);
}

TEST(MappedTables, EveryStoredTypeGivesTheSameBits) {
  for (const DType type : {DType::kBF16, DType::kF16, DType::kF32}) {
    // An odd number of rows, so that the last ends beside no round address.
    const auto folder = SyntheticFolder::Write({.vocab = 301, .plain = type});
    ASSERT_TRUE(folder.has_value()) << folder.error().ToString();
    ExpectPass(CompareTables(folder->path()), std::string(DTypeName(type)));
  }
}

struct Trace {
  std::vector<float> logits;
  std::string digests;
};

// Everything a pass does: a prompt in pieces past the first key chunk, two streams in one call, a
// window that is verified and partly committed, and rows after it.
Result<Trace> Exercise(const Session& session, const ScratchOptions& scratch, bool poisoned_pages) {
  constexpr size_t kPrompt = 530;
  const Model& model = session.model();
  const std::vector<int32_t> ids = RulePrompt(session.drawable_ids(), kPrompt + 30, kSeed);
  const auto all = std::span(ids);
  auto pool = std::make_shared<KvPool>(
      *model.backend, model.config,
      KvPoolOptions{.type = session.options().kv, .poison = poisoned_pages});
  ForwardPass pass = TRY(ForwardPass::Create(model, 48, {1, 2}, scratch));
  Sequence first = TRY(Sequence::Create(pool, model.config));
  Sequence second = TRY(Sequence::Create(pool, model.config));
  VerifyWindow window = TRY(VerifyWindow::Create(model, 9));
  Trace trace;
  const auto keep = [&](const std::vector<float>& logits) {
    trace.logits.insert(trace.logits.end(), logits.begin(), logits.end());
  };
  keep(TRY(pass.Run(first, all.first(kPrompt), {.logits = LogitRows::kAll})).logits);
  const PassSlice slices[] = {
      {.sequence = &first,
       .ids = all.subspan(kPrompt, 9),
       .logits = LogitRows::kAll,
       .window = &window},
      {.sequence = &second, .ids = all.first(21), .logits = LogitRows::kAll}};
  for (const auto& logits : TRY(pass.RunSlices(slices))) keep(logits);
  TRY(pass.Commit(first, window, 5));
  for (Sequence* sequence : {&first, &second}) {
    const size_t at = static_cast<size_t>(sequence->position());
    keep(TRY(pass.Run(*sequence, all.subspan(at, 3), {.logits = LogitRows::kAll})).logits);
    trace.digests += TRY(sequence->StateDigest());
  }
  return trace;
}

Result<Row> CompareTraces(const Session& session, const ScratchOptions& scratch,
                          bool poisoned_pages) {
  const Trace expected = TRY(Exercise(session, {.overlap = false}, false));
  const Trace actual = TRY(Exercise(session, scratch, poisoned_pages));
  BitsRow row;
  row.Compare<float>(expected.logits, actual.logits, "logits");
  row.CompareText(expected.digests, actual.digests, "states");
  const Liveness liveness =
      MeasureLiveness(expected.logits, static_cast<size_t>(session.vocab_size()));
  if (!liveness.Passed()) row.Refuse("dead logits: " + liveness.ToString());
  return row.Finish();
}

class PoisonedMemory : public testing::TestWithParam<std::tuple<const char*, KvType>> {
 protected:
  void SetUp() override {
    auto session =
        OpenOnDevice(GoldenModelPath(std::get<0>(GetParam())), {.kv = std::get<1>(GetParam())});
    ASSERT_TRUE(session.has_value()) << session.error().ToString();
    session_ = *std::move(session);
  }
  std::unique_ptr<Session> session_;
};

TEST_P(PoisonedMemory, ScratchWhosePhaseIsOverReachesNoBit) {
  ExpectPass(CompareTraces(*session_, {.poison = true}, false), "poisoned scratch");
  ExpectPass(CompareTraces(*session_, {}, false), "shared scratch");
}

TEST_P(PoisonedMemory, PagesBeforeTheyAreStoredReachNoBit) {
  ExpectPass(CompareTraces(*session_, {.overlap = false}, true), "poisoned pages");
  ExpectPass(CompareTraces(*session_, {.poison = true}, true), "poisoned pages and scratch");
}

INSTANTIATE_TEST_SUITE_P(Golden, PoisonedMemory,
                         testing::Combine(testing::Values(kScribe, kPrism),
                                          testing::Values(KvType::kBf16, KvType::kFp8E4m3)),
                         [](const auto& info) {
                           const std::string name = std::get<0>(info.param);
                           return name.substr(0, name.find('-')) + "_" +
                                  KvName(std::get<1>(info.param));
                         });

class DeviceBytes : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto device = OpenRuntimeDevice();
    ASSERT_TRUE(device.has_value()) << device.error().ToString();
    device_ = *std::move(device);
    // What the driver keeps for itself once kernels are loaded is none of a session's.
    for (int round = 0; round < 2; ++round) {
      ASSERT_NO_FATAL_FAILURE(OpenRunClose());
      ASSERT_NO_FATAL_FAILURE(RefusedOpens());
    }
    baseline_ = Free();
    ASSERT_GT(baseline_, 0u);
  }

  SessionOptions Options() const {
    return {.mapped_embedding = GetParam(), .drafter = GoldenModelPath(kScribeDrafter)};
  }
  uint64_t Free() const {
    const auto free = device_->FreeBytes();
    EXPECT_TRUE(free.has_value());
    return free.has_value() ? *free : 0;
  }

  void OpenRunClose() const {
    const auto session = OpenOnDevice(GoldenModelPath(kScribe), Options());
    ASSERT_TRUE(session.has_value()) << session.error().ToString();
    GenerateRequest request{.prompt = RulePrompt((*session)->drawable_ids(), 600, kSeed),
                            .max_tokens = 12,
                            .ignore_stop = true};
    request.draft.window = 7;
    const auto reply = (*session)->Generate(request);
    ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
    ASSERT_FALSE(reply->draft_error.has_value());
    ASSERT_EQ(reply->ids.size(), 12u);
    held_ = std::max(held_, baseline_ > Free() ? baseline_ - Free() : 0);
  }

  // Refused before anything is asked of the device, and before weights are loaded.
  void RefusedOpens() const {
    SessionOptions tier = Options();
    tier.tier = "avx2";
    SessionOptions drafter = Options();
    drafter.drafter = GoldenModelPath(kPrismDrafter);
    SessionOptions context = Options();
    context.context = int64_t{1} << 40;
    const std::pair<SessionOptions, Code> refused[] = {{tier, Code::kOutOfRange},
                                                       {context, Code::kResource}};
    for (const auto& [options, code] : refused) {
      const auto session = OpenOnDevice(GoldenModelPath(kScribe), options);
      ASSERT_FALSE(session.has_value());
      EXPECT_EQ(session.error().code, code) << session.error().ToString();
    }
    const auto other = OpenOnDevice(GoldenModelPath(kScribe), drafter);
    ASSERT_FALSE(other.has_value());
    EXPECT_NE(other.error().code, Code::kDevice) << other.error().ToString();
  }

  std::unique_ptr<CudaDevice> device_;
  uint64_t baseline_ = 0;
  mutable uint64_t held_ = 0;  // most that a session was seen to hold
};

TEST_P(DeviceBytes, AClosedSessionGivesEverythingBack) {
  ASSERT_NO_FATAL_FAILURE(OpenRunClose());
  EXPECT_EQ(Free(), baseline_);
  EXPECT_GT(held_, uint64_t{1} << 20);  // the measure sees a session
}

TEST_P(DeviceBytes, ARefusedOpenGivesEverythingBack) {
  ASSERT_NO_FATAL_FAILURE(RefusedOpens());
  EXPECT_EQ(Free(), baseline_);
  ASSERT_NO_FATAL_FAILURE(OpenRunClose());
  EXPECT_EQ(Free(), baseline_);
}

TEST_P(DeviceBytes, TwentyRoundsStayAtTheBaseline) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_NO_FATAL_FAILURE(OpenRunClose());
    if (round % 5 == 4) {
      ASSERT_NO_FATAL_FAILURE(RefusedOpens());
    }
    ASSERT_EQ(Free(), baseline_) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, DeviceBytes, testing::Bool(),
                         [](const auto& info) { return info.param ? "Mapped" : "Device"; });

}  // namespace
}  // namespace hallmark
