// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/fault_words.h"

#include <cstring>
#include <utility>

namespace hallmark {
namespace {

constexpr int32_t kNoLayer = 0;
constexpr int32_t kNoRow = INT32_MAX;

}  // namespace

FaultWords::FaultWords(CudaStream& stream, Buffer words, MappedMemory host)
    : stream_(stream), words_(std::move(words)), host_(host) {
  const int32_t clean[kWords] = {kNoLayer, kNoRow};
  std::memcpy(host_.host + kBytes, clean, kBytes);
}

Result<std::unique_ptr<FaultWords>> FaultWords::Create(CudaStream& stream, DeviceArena& arena) {
  Buffer words = TRY(arena.Allocate(kBytes));
  const MappedMemory host = TRY(stream.AllocateMapped(2 * kBytes));
  std::unique_ptr<FaultWords> faults(new FaultWords(stream, std::move(words), host));
  TRY(faults->Wipe());
  return faults;
}

FaultWords::~FaultWords() { stream_.Retire(host_); }

Status FaultWords::Wipe() {
  return stream_.CopyToDevice(words_.data(), host_.host + kBytes, kBytes);
}

Status FaultWords::Read() { return stream_.CopyToHost(host_.host, words_.data(), kBytes); }

Status FaultWords::Take() {
  int32_t found[kWords];
  std::memcpy(found, host_.host, sizeof(found));
  if (found[kOverflow] == kNoLayer && found[kDraftRow] == kNoRow) return {};
  TRY(Wipe());
  if (found[kOverflow] != kNoLayer) {
    const size_t index = static_cast<size_t>(found[kOverflow]) - 1;
    Locator where;
    if (index < layers_.size()) where.tensor = layers_[index];
    return Fail(Code::kOutOfRange, "a rotated input is not finite in fp16", where);
  }
  return Fail(Code::kOutOfRange,
              "a draft logit of row " + std::to_string(found[kDraftRow]) + " is not finite");
}

}  // namespace hallmark
