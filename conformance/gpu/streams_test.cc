// SPDX-License-Identifier: Apache-2.0
// Streams of execution beside each other. Two backends with the same checkpoint, driven from two
// threads at once, give the bits each gives alone; the partial sums of split linears survive growth
// and whatever the memory held before; a slice of a linear keeps the sums of the whole. Clauses
// concurrent-equals-solo, counters-zero, slice-equals-parent.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "conformance/cases/bits_row.h"
#include "conformance/cases/host_linear.h"
#include "conformance/cases/lane_runs.h"
#include "conformance/gpu/gpu_session.h"
#include "conformance/harness/random_exl3.h"
#include "engine/backend/cuda/cuda_backend.h"
#include "engine/backend/draft_ops.h"
#include "engine/model/model.h"
#include "kernels/exl3/range_plan.h"

namespace hallmark {
namespace {

void ExpectPass(const Result<Row>& result, const std::string& name) {
  EXPECT_EQ(WhyNotPassed(result, name), "");
}

constexpr uint64_t kSeed = 0x73747265616D73ull;
constexpr int kThreads = 2;
constexpr int kRounds = 50;

// Shapes whose inputs are split: by the rule, and by the table of measured plans.
struct SplitShape {
  int64_t k, n;
};
constexpr SplitShape kSplitShapes[] = {{4096, 640}, {6144, 5120}, {2048, 384}};
static_assert(Exl3RangePlanOf(4096, 640).splits > 2);
static_assert(Exl3RangePlanOf(6144, 5120).splits > 2);
static_assert(Exl3RangePlanOf(2048, 384).splits > 1);
// Above 128 rows a layer is decoded once, then multiplied.
constexpr int64_t kRowCounts[] = {1, 8, 17, 64, 128, 129};

Result<std::unique_ptr<Backend>> MakeBackend() { return MakeCudaBackend({}); }

// Made once: all backends load the same bytes.
const RandomExl3& LayerOf(size_t layer) {
  static const auto* const kLayers = [] {
    auto* layers = new std::vector<std::unique_ptr<RandomExl3>>;
    for (const auto& [k, n] : kSplitShapes) {
      layers->push_back(std::make_unique<RandomExl3>(
          RandomExl3Options{.in_features = k, .out_features = n, .bias = true, .seed = kSeed}));
    }
    return layers;
  }();
  return *(*kLayers)[layer];
}

// One backend with every split shape loaded, and inputs that go with them.
struct Layers {
  std::unique_ptr<Backend> backend;
  std::vector<std::unique_ptr<LinearWeight>> weights;

  static Result<Layers> Load() {
    Layers layers{.backend = TRY(MakeBackend())};
    for (size_t layer = 0; layer < std::size(kSplitShapes); ++layer) {
      layers.weights.push_back(TRY(layers.backend->LoadLinear(LayerOf(layer).source())));
    }
    return layers;
  }
  Result<std::vector<float>> Run(size_t layer, int64_t rows) {
    const LinearWeight& weight = *weights[layer];
    return RunLinearOnHost(*backend, weight, RandomRows(rows, weight.in_features, kSeed + layer),
                           rows);
  }
};

using Outputs = std::map<std::pair<size_t, int64_t>, std::vector<float>>;

// What each layer gives for each number of rows, every time in a backend that has done nothing
// else.
Result<Outputs> RunAlone() {
  Outputs outputs;
  for (size_t layer = 0; layer < std::size(kSplitShapes); ++layer) {
    for (const int64_t rows : kRowCounts) {
      Layers fresh = TRY(Layers::Load());
      outputs[{layer, rows}] = TRY(fresh.Run(layer, rows));
    }
  }
  return outputs;
}

TEST(SplitLinears, GrowthBetweenCallsChangesNoBit) {
  const auto alone = RunAlone();
  ASSERT_TRUE(alone.has_value()) << alone.error().ToString();
  auto layers = Layers::Load();
  ASSERT_TRUE(layers.has_value()) << layers.error().ToString();
  BitsRow row;
  for (size_t layer = 0; layer < std::size(kSplitShapes); ++layer) {
    // Shrinking and growing in turn, each layer after a wider and a narrower one.
    for (const int64_t rows : {1, 128, 1, 1, 129, 128, 128, 1, 17}) {
      const auto run = layers->Run(layer, rows);
      ASSERT_TRUE(run.has_value()) << run.error().ToString();
      row.Compare<float>(alone->at({layer, rows}), *run,
                         "layer " + std::to_string(layer) + ", " + std::to_string(rows) + " rows");
    }
    // The first rows of many are the rows alone.
    const std::vector<float>& many = alone->at({layer, 129});
    for (const int64_t rows : kRowCounts) {
      const std::vector<float>& few = alone->at({layer, rows});
      row.Compare<float>(few, std::span(many).first(few.size()), "the first rows of 129");
    }
  }
  ExpectPass(row.Finish(), "growth");
}

// Freed memory full of ones is what partial sums, counters and outputs are made of next.
TEST(SplitLinears, APoisonedNeighbourChangesNoBit) {
  constexpr size_t kBlocks[] = {256, 4096, 65536, 262144, 1 << 20, 8 << 20};
  const auto alone = RunAlone();
  ASSERT_TRUE(alone.has_value()) << alone.error().ToString();
  auto layers = Layers::Load();
  ASSERT_TRUE(layers.has_value()) << layers.error().ToString();
  Backend& backend = *layers->backend;
  BitsRow row;
  for (const int64_t rows : kRowCounts) {
    for (size_t layer = 0; layer < std::size(kSplitShapes); ++layer) {
      {
        std::vector<Buffer> neighbours;
        for (const size_t bytes : kBlocks) {
          for (int i = 0; i < 16; ++i) {
            auto buffer = backend.Allocate(bytes);
            ASSERT_TRUE(buffer.has_value()) << buffer.error().ToString();
            ASSERT_TRUE(backend.Fill(buffer->data(), 0xFF, bytes).has_value());
            neighbours.push_back(*std::move(buffer));
          }
        }
      }
      const auto run = layers->Run(layer, rows);
      ASSERT_TRUE(run.has_value()) << run.error().ToString();
      row.Compare<float>(alone->at({layer, rows}), *run,
                         "layer " + std::to_string(layer) + ", " + std::to_string(rows) + " rows");
    }
  }
  ExpectPass(row.Finish(), "poison");
}

TEST(SplitLinears, TwoStreamsAtOnceGiveTheirOwnBits) {
  const auto alone = RunAlone();
  ASSERT_TRUE(alone.has_value()) << alone.error().ToString();
  std::array<Result<Row>, kThreads> results = {Row{}, Row{}};
  std::barrier together(kThreads);
  const auto work = [&](int thread) -> Result<Row> {
    auto layers = Layers::Load();
    BitsRow row;
    for (int round = 0; round < kRounds; ++round) {
      together.arrive_and_wait();
      if (!layers.has_value()) continue;  // the other thread waits for this one
      const size_t layer = static_cast<size_t>(round + thread) % std::size(kSplitShapes);
      for (size_t i = 0; i < std::size(kRowCounts); ++i) {
        const int64_t rows =
            kRowCounts[(i + static_cast<size_t>(2 * thread)) % std::size(kRowCounts)];
        const auto run = layers->Run(layer, rows);
        if (!run.has_value()) {
          row.Refuse(run.error().ToString());
          continue;
        }
        row.Compare<float>(
            alone->at({layer, rows}), *run,
            "round " + std::to_string(round) + ", " + std::to_string(rows) + " rows");
      }
    }
    if (!layers.has_value()) return tl::unexpected(layers.error());
    return row.Finish();
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { results[static_cast<size_t>(i)] = work(i); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) ExpectPass(result, "a thread's linears");
}

// Linears of one input in one call share launches, not sums: other widths, another rate, a bias.
TEST(SplitLinears, LinearsOfOneInputEqualEachAlone) {
  constexpr int64_t kIn = 4096;
  const RandomExl3 layers[] = {
      RandomExl3({.in_features = kIn, .out_features = 640, .bias = true, .seed = kSeed}),
      RandomExl3({.in_features = kIn, .out_features = 200, .seed = kSeed + 1}),
      RandomExl3({.rate = {Codebook::kMcg, 8}, .in_features = kIn, .out_features = 128}),
      RandomExl3({.in_features = kIn, .out_features = 1152, .seed = kSeed + 2}),
  };
  auto backend = MakeBackend();
  ASSERT_TRUE(backend.has_value()) << backend.error().ToString();
  std::vector<std::unique_ptr<LinearWeight>> weights;
  std::vector<const LinearWeight*> pointers;
  for (const RandomExl3& layer : layers) {
    auto weight = (*backend)->LoadLinear(layer.source());
    ASSERT_TRUE(weight.has_value()) << weight.error().ToString();
    weights.push_back(*std::move(weight));
    pointers.push_back(weights.back().get());
  }
  BitsRow row;
  for (const int64_t rows : kRowCounts) {
    const std::vector<float> x = RandomRows(rows, kIn, kSeed);
    const auto in = (*backend)->Allocate(x.size() * sizeof(float));
    ASSERT_TRUE(in.has_value());
    ASSERT_TRUE((*backend)->Upload(in->data(), x.data(), in->bytes()).has_value());
    std::vector<Buffer> buffers;
    std::vector<Rows> outputs;
    for (const LinearWeight* weight : pointers) {
      const size_t bytes = static_cast<size_t>(rows * weight->out_features) * sizeof(float);
      auto out = (*backend)->Allocate(bytes);
      ASSERT_TRUE(out.has_value());
      ASSERT_TRUE((*backend)->Fill(out->data(), 0xFF, bytes).has_value());
      buffers.push_back(*std::move(out));
      outputs.push_back({buffers.back().floats(), rows, weight->out_features});
    }
    const Status ran = (*backend)->Linears(pointers, {in->floats(), rows, kIn}, outputs);
    ASSERT_TRUE(ran.has_value()) << ran.error().ToString();
    for (size_t i = 0; i < pointers.size(); ++i) {
      std::vector<float> together(static_cast<size_t>(rows * outputs[i].cols));
      ASSERT_TRUE(
          (*backend)->Download(together.data(), buffers[i].data(), buffers[i].bytes()).has_value());
      const auto alone = RunLinearOnHost(**backend, *pointers[i], x, rows);
      ASSERT_TRUE(alone.has_value()) << alone.error().ToString();
      row.Compare<float>(*alone, together,
                         "linear " + std::to_string(i) + ", " + std::to_string(rows) + " rows");
    }
  }
  ExpectPass(row.Finish(), "linears of one input");
}

// Two sessions, each with a backend of its own, on one checkpoint whose linears are split.
TEST(Sessions, TwoThreadsOnOneCheckpointGiveTheirOwnBits) {
  constexpr int64_t kHidden = 2048;
  constexpr int64_t kIntermediate = 4096;
  static_assert(Exl3RangePlanOf(kHidden, kIntermediate).splits > 1);
  static_assert(Exl3RangePlanOf(kIntermediate, kHidden).splits > 1);
  constexpr int64_t kTokens = 70;
  const auto folder = SyntheticFolder::Write({.hidden = kHidden,
                                              .intermediate = kIntermediate,
                                              .vocab = 1000,
                                              .heads = 8,
                                              .kv_heads = 2,
                                              .head_dim = 256,
                                              .key_heads = 4,
                                              .value_heads = 8});
  ASSERT_TRUE(folder.has_value()) << folder.error().ToString();
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<float>> alone;
  for (int i = 0; i < kThreads; ++i) {
    auto session = OpenOnDevice(folder->path());
    ASSERT_TRUE(session.has_value()) << session.error().ToString();
    ids.push_back(
        RulePrompt(session.value()->vocab_size(), kTokens, kSeed + static_cast<uint64_t>(i)));
    auto logits = (*session)->Logits(ids.back());
    ASSERT_TRUE(logits.has_value()) << logits.error().ToString();
    alone.push_back(*std::move(logits));
    sessions.push_back(*std::move(session));
  }
  std::array<Result<Row>, kThreads> results = {Row{}, Row{}};
  std::barrier together(kThreads);
  const auto work = [&](size_t thread) -> Result<Row> {
    constexpr int64_t kChunks[] = {0, 7, 16, 33, 1};
    BitsRow row;
    for (int round = 0; round < kRounds; ++round) {
      together.arrive_and_wait();
      const int64_t chunk = kChunks[(static_cast<size_t>(round) + thread) % std::size(kChunks)];
      const auto logits = sessions[thread]->Logits(ids[thread], chunk);
      if (!logits.has_value()) {
        row.Refuse(logits.error().ToString());
        continue;
      }
      row.Compare<float>(alone[thread], *logits,
                         "round " + std::to_string(round) + ", pieces of " + std::to_string(chunk));
    }
    return row.Finish();
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { results[i] = work(i); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) ExpectPass(result, "a thread's session");
}

// A head so wide that its own width decides its splits, and slices that would be cut otherwise.
TEST(SlicedLinears, ASliceKeepsTheSumsOfTheWhole) {
  constexpr int64_t kIn = 2048;
  constexpr int64_t kOut = 205 * kColumnStrip - 24;
  constexpr int64_t kStored = 205 * kColumnStrip;
  static_assert(Exl3RangePlanOf(kIn, kStored).splits == 1);
  static_assert(Exl3RangePlanOf(kIn, kColumnStrip).splits == 2);
  const RandomExl3 head({.in_features = kIn, .out_features = kOut, .seed = kSeed});
  auto backend = MakeBackend();
  ASSERT_TRUE(backend.has_value()) << backend.error().ToString();
  const auto weight = (*backend)->LoadLinear(head.source());
  ASSERT_TRUE(weight.has_value()) << weight.error().ToString();
  const std::vector<std::vector<ColumnSpan>> all_spans = {
      {{0, kColumnStrip}},
      {{kStored - kColumnStrip, kOut - (kStored - kColumnStrip)}},
      {{kColumnStrip, 3 * kColumnStrip}, {100 * kColumnStrip, kColumnStrip}},
  };
  BitsRow row;
  for (const int64_t rows : {1, 17, 65}) {
    const std::vector<float> x = RandomRows(rows, kIn, kSeed);
    const auto parent = RunLinearOnHost(**backend, **weight, x, rows);
    ASSERT_TRUE(parent.has_value()) << parent.error().ToString();
    const auto in = (*backend)->Allocate(x.size() * sizeof(float));
    ASSERT_TRUE(in.has_value());
    ASSERT_TRUE((*backend)->Upload(in->data(), x.data(), in->bytes()).has_value());
    for (const std::vector<ColumnSpan>& spans : all_spans) {
      int64_t columns = 0;
      for (const ColumnSpan& span : spans) columns += span.count;
      std::vector<float> slice(static_cast<size_t>(rows * columns));
      const auto out = (*backend)->Allocate(slice.size() * sizeof(float));
      ASSERT_TRUE(out.has_value());
      const Status ran = (*backend)->draft_ops()->LinearColumns(
          **weight, spans, {in->floats(), rows, kIn}, {out->floats(), rows, columns});
      ASSERT_TRUE(ran.has_value()) << ran.error().ToString();
      ASSERT_TRUE((*backend)->Download(slice.data(), out->data(), out->bytes()).has_value());
      for (int64_t r = 0; r < rows; ++r) {
        int64_t at = r * columns;
        for (const ColumnSpan& span : spans) {
          const size_t count = static_cast<size_t>(span.count);
          row.Compare<float>(
              std::span(*parent).subspan(static_cast<size_t>(r * kOut + span.first), count),
              std::span(slice).subspan(static_cast<size_t>(at), count),
              "row " + std::to_string(r) + ", columns from " + std::to_string(span.first));
          at += span.count;
        }
      }
    }
  }
  ExpectPass(row.Finish(), "slices");
}

}  // namespace
}  // namespace hallmark
