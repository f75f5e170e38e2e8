// SPDX-License-Identifier: Apache-2.0
// PointerTables: lists of page addresses as kernels read them, in device memory. A list is sent
// again only when it changed; it is known by its first address, which no two lists of different
// layers or contexts share. Of one stream: a list is overwritten in stream order.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_POINTER_TABLES_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_POINTER_TABLES_H_

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "engine/backend/cuda/arena.h"
#include "engine/backend/cuda/staging.h"
#include "engine/base/result.h"

namespace hallmark {

class PointerTables {
 public:
  // More lists than these, and all are forgotten: bounds memory over many streams.
  static constexpr size_t kMaxTables = 1024;

  PointerTables(DeviceArena& arena, StagingBuffer& staging) : arena_(arena), staging_(staging) {}

  // The device's copy of `pointers`; null for an empty list.
  Result<void*> Place(std::span<const void* const> pointers);

 private:
  struct Table {
    std::vector<const void*> pointers;
    Buffer memory;
  };
  DeviceArena& arena_;
  StagingBuffer& staging_;
  std::map<const void*, Table> tables_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_POINTER_TABLES_H_
