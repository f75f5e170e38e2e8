// SPDX-License-Identifier: Apache-2.0
// Clause: mapped-equals-device
// A random table of any stored type, at any address of its file: the bytes that a mapped table
// holds, and those that one in device memory was sent, are the tensor's, first row to last. No
// kernel runs here.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "engine/backend/cuda/cuda_backend.h"
#include "engine/backend/cuda/fake_device.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

RC_GTEST_PROP(TablePlacement, BothPlacesHoldTheTensorsBytes, ()) {
  constexpr DType kTypes[] = {DType::kBF16, DType::kF16, DType::kF32};
  const DType type = kTypes[*rc::gen::inRange<size_t>(0, 3)];
  // Odd numbers of rows, and tables of several staging pieces.
  const auto rows = *rc::gen::inRange<int64_t>(1, 5000);
  const auto cols = *rc::gen::inRange<int64_t>(1, 300);
  const auto offset = *rc::gen::inRange<size_t>(0, 9);
  const size_t bytes = static_cast<size_t>(rows * cols * DTypeSize(type));
  std::vector<std::byte> file(offset + bytes);
  SplitMix64 random(*rc::gen::arbitrary<uint64_t>());
  for (std::byte& byte : file) byte = static_cast<std::byte>(random.Next());
  const TensorView tensor{.name = "table",
                          .dtype = type,
                          .shape = {rows, cols},
                          .bytes = std::span(file).subspan(offset)};
  for (const bool mapped : {false, true}) {
    FakeCudaDevice device;
    {
      auto backend = MakeCudaBackend(device, {.mapped_tables = mapped});
      RC_ASSERT(backend.has_value());
      RC_ASSERT((*backend)->Finish().has_value());
      device.ForgetCalls();
      const auto table = (*backend)->LoadTable(tensor);
      RC_ASSERT(table.has_value());
      RC_ASSERT((*table)->entries == rows);
      RC_ASSERT((*table)->cols == cols);
      RC_ASSERT((*backend)->Finish().has_value());
      const auto place = mapped ? CudaCallKind::kAllocateMapped : CudaCallKind::kCopyToDevice;
      const std::byte* held = nullptr;
      for (const CudaCall& call : device.calls()) {
        if (call.kind == place && held == nullptr)
          held = static_cast<const std::byte*>(call.address);
      }
      RC_ASSERT(held != nullptr);
      RC_ASSERT(std::memcmp(held, tensor.bytes.data(), bytes) == 0);
    }
    RC_ASSERT(device.Problems().empty());
  }
}

}  // namespace
}  // namespace hallmark
