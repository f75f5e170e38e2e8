// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace hallmark {
namespace {

constexpr size_t kPiece = 256;

}  // namespace

Result<std::unique_ptr<StagingBuffer>> StagingBuffer::Create(CudaStream& stream) {
  const MappedMemory memory = TRY(stream.AllocateMapped(kBytes));
  return std::unique_ptr<StagingBuffer>(new StagingBuffer(stream, memory));
}

StagingBuffer::~StagingBuffer() { stream_.Retire(memory_); }

Result<std::byte*> StagingBuffer::Take(size_t* count) {
  if (generation_ != stream_.generation()) {
    used_ = 0;  // the device is past everything that lay here
    generation_ = stream_.generation();
  }
  if (used_ == kBytes) {
    TRY(stream_.Synchronize());
    used_ = 0;
    generation_ = stream_.generation();
  }
  std::byte* place = memory_.host + used_;
  *count = std::min(*count, kBytes - used_);
  used_ += (*count + kPiece - 1) / kPiece * kPiece;
  return place;
}

Status StagingBuffer::SendFilled(void* to, size_t bytes, const Fill& fill) {
  for (size_t done = 0; done < bytes;) {
    size_t count = bytes - done;
    std::byte* place = TRY(Take(&count));
    fill(done, count, place);
    TRY(stream_.CopyToDevice(static_cast<std::byte*>(to) + done, place, count));
    done += count;
  }
  return {};
}

Status StagingBuffer::Send(void* to, const void* host, size_t bytes) {
  const auto* source = static_cast<const std::byte*>(host);
  return SendFilled(to, bytes, [source](size_t first, size_t count, std::byte* place) {
    std::memcpy(place, source + first, count);
  });
}

Status StagingBuffer::Receive(void* host, const void* from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    size_t count = bytes - done;
    std::byte* place = TRY(Take(&count));
    TRY(stream_.CopyToHost(place, static_cast<const std::byte*>(from) + done, count));
    TRY(stream_.Synchronize());
    std::memcpy(static_cast<std::byte*>(host) + done, place, count);
    done += count;
  }
  return {};
}

}  // namespace hallmark
