// SPDX-License-Identifier: Apache-2.0
// Clause format-accept at full size: a 27B checkpoint of the true geometry and file sizes, whose
// data is holes. Its inventory reads headers and markers, so it is quick and small.
#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <string>

#include "conformance/format/fault.h"
#include "engine/format/checkpoint.h"
#include "engine/format/inventory.h"

namespace hallmark {
namespace {

// Peak resident set of this process in bytes, and a way to start the peak afresh.
uint64_t PeakResident() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}
void ForgetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

TEST(HeaderOnly27B, InventoryTakesUnderASecondAnd200MB) {
  const std::string folder = TestFolder();
  ASSERT_TRUE(HeaderOnly27B().Write(folder).has_value());
  ForgetPeak();

  const std::clock_t start = std::clock();
  const auto checkpoint = Checkpoint::Open(folder);
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().ToString();
  const auto inventory = TakeInventory(*checkpoint);
  ASSERT_TRUE(inventory.has_value()) << inventory.error().ToString();
  // Processor time: nothing is read from a disk here, and a busy machine is not the reader's fault.
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const uint64_t peak = PeakResident();

  std::printf("seconds %.3f, peak resident %.1f MB\n", seconds, static_cast<double>(peak) / 1e6);
  EXPECT_LT(seconds, 1.0);
  EXPECT_GT(peak, 0u);
  EXPECT_LT(peak, 200'000'000u);

  // The true sizes: 64 layers of which 16 full attention; bytes as the geometry gives them.
  EXPECT_EQ(inventory->layers.size(), 64u);
  EXPECT_EQ(Linears(*inventory).size(), 48u * 8 + 16 * 7 + 1);
  uint64_t stored = 0;
  for (const CheckpointFile& shard : checkpoint->shards()) stored += shard.bytes;
  EXPECT_GT(stored, uint64_t{12} << 30);
  uint64_t weights = 0;
  for (const LinearSource* linear : Linears(*inventory)) {
    weights += static_cast<uint64_t>(linear->in_features * linear->out_features);
  }
  // All text parameters but the embedding, the convolutions, norms and per-head vectors.
  const uint64_t rest = uint64_t{248320} * 5120 + 48 * (uint64_t{10240} * 4 + 48 * 2 + 128) +
                        16 * 2 * 256 + uint64_t{64} * 2 * 5120 + 5120;
  EXPECT_EQ(weights + rest, 26'895'998'464u);
  EXPECT_EQ(inventory->head->out_features, 248320);
}

}  // namespace
}  // namespace hallmark
