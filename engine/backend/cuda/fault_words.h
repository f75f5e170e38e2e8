// SPDX-License-Identifier: Apache-2.0
// FaultWords: where kernels write down that a value left its range, and the names that turn what
// they wrote into an error. Read whenever the stream is waited for anyway (Read enqueues, Take
// judges), so an error may be told later than the call that caused it, never lost.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_FAULT_WORDS_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_FAULT_WORDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend/cuda/arena.h"
#include "engine/backend/cuda/stream.h"
#include "engine/base/result.h"

namespace hallmark {

class FaultWords {
 public:
  static Result<std::unique_ptr<FaultWords>> Create(CudaStream& stream, DeviceArena& arena);
  ~FaultWords();
  FaultWords(const FaultWords&) = delete;
  FaultWords& operator=(const FaultWords&) = delete;

  // The id (> 0) by which kernels name an EXL3 layer.
  int32_t AddLayer(const std::string& name) {
    layers_.push_back(name);
    return static_cast<int32_t>(layers_.size());
  }
  // Device words: the lowest layer id whose input overflowed, 0 for none; and the lowest draft row
  // with a logit that is not finite, INT32_MAX for none.
  int32_t* overflow() const { return words() + kOverflow; }
  int32_t* draft_row() const { return words() + kDraftRow; }

  // Brings the words to the host, in stream order.
  Status Read();
  // After the stream was waited for since Read: kOutOfRange for what is written there, which is
  // then wiped.
  Status Take();

 private:
  static constexpr int kOverflow = 0;
  static constexpr int kDraftRow = 1;
  static constexpr int kWords = 2;
  static constexpr size_t kBytes = kWords * sizeof(int32_t);

  FaultWords(CudaStream& stream, Buffer words, MappedMemory host);
  int32_t* words() const { return static_cast<int32_t*>(words_.data()); }
  Status Wipe();

  CudaStream& stream_;
  Buffer words_;
  MappedMemory host_;  // what was read, then what the words hold while nothing is wrong
  std::vector<std::string> layers_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_FAULT_WORDS_H_
