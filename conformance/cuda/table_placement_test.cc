// SPDX-License-Identifier: Apache-2.0
// Clause mapped-equals-device, the host's half: a table's bytes are the checkpoint's wherever they
// lie, the first row and the last included. That kernels read the same rows is a GPU suite's part.
#include <gtest/gtest.h>

#include <cstring>

#include "conformance/cuda/fake_session.h"
#include "engine/format/checkpoint.h"
#include "engine/format/inventory.h"

namespace hallmark {
namespace {

TEST(TablePlacement, MappedTablesTakeNoDeviceMemory) {
  const auto files = FakeFiles::Write(testing::TempDir() + "hallmark_cuda_tables");
  ASSERT_TRUE(files.has_value());
  FakeCudaDevice device, mapped;
  size_t device_bytes = 0;
  size_t mapped_bytes = 0;
  {
    const auto session = OpenFakeSession(*files, device, false);
    ASSERT_TRUE(session.has_value());
    device_bytes = device.mapped_bytes();
  }
  {
    const auto session = OpenFakeSession(*files, mapped, true);
    ASSERT_TRUE(session.has_value());
    mapped_bytes = mapped.mapped_bytes();
    const auto& embedding = (*session)->inventory().embedding;
    EXPECT_GE(mapped_bytes - device_bytes, embedding.bytes.size());
    // Somewhere in page-locked memory lie exactly the tensor's bytes.
    bool found = false;
    for (const CudaCall& call : mapped.calls()) {
      if (call.kind != CudaCallKind::kAllocateMapped) continue;
      if (call.bytes != embedding.bytes.size()) continue;
      found |= std::memcmp(call.address, embedding.bytes.data(), call.bytes) == 0;
    }
    EXPECT_TRUE(found);
  }
  EXPECT_EQ(device.Problems(), std::vector<std::string>{});
  EXPECT_EQ(mapped.Problems(), std::vector<std::string>{});
}

}  // namespace
}  // namespace hallmark
