// SPDX-License-Identifier: Apache-2.0
// Keys and values of attention tests: pages on the host and the same pages on the device, in any
// order of memory.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_KERNELS_TEST_ATTENTION_DATA_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_KERNELS_TEST_ATTENTION_DATA_H_

#include <cstring>
#include <memory>
#include <vector>

#include "engine/backend/cpu/kv_page.h"
#include "engine/backend/cuda/kernels_test/device_array.h"
#include "engine/base/random.h"
#include "kernels/mixers/attention_shape.h"

namespace hallmark {

inline AttentionShape ShapeOf(const AttentionGeometry& geometry) {
  return {geometry.heads, geometry.kv_heads, geometry.head_dim};
}
inline KvFormat FormatOf(KvType type) {
  return type == KvType::kBf16 ? KvFormat::kBf16 : KvFormat::kFp8E4m3;
}

// Pages of one sequence, every byte `filler` until something is stored.
class HostPages {
 public:
  HostPages(KvType type, const AttentionGeometry& geometry, int64_t positions,
            unsigned char filler = 0xFF)
      : type_(type),
        geometry_(geometry),
        page_bytes_(KvPageBytes(type, geometry.kv_heads, geometry.head_dim)),
        bytes_(page_bytes_ * static_cast<size_t>((positions + kKvPageTokens - 1) / kKvPageTokens),
               filler) {
    for (size_t at = 0; at < bytes_.size(); at += page_bytes_) {
      pages_.push_back(reinterpret_cast<std::byte*>(bytes_.data() + at));
    }
  }
  HostPages(const HostPages&) = delete;
  HostPages& operator=(const HostPages&) = delete;

  KvPages kv() const { return {type_, pages_.data()}; }
  size_t page_bytes() const { return page_bytes_; }
  const std::vector<unsigned char>& bytes() const { return bytes_; }

  void Store(bool is_value, int64_t position, int head, const std::vector<float>& row) {
    const KvPages pages = kv();
    KvPageAccess(pages, geometry_.kv_heads, geometry_.head_dim)
        .Store(is_value, position, head, row.data());
  }
  // Random keys of variance one, as a norm leaves them, and values in [-1, 1).
  void StoreRandom(int64_t positions, uint64_t seed) {
    SplitMix64 random(seed);
    std::vector<float> row(static_cast<size_t>(geometry_.head_dim));
    for (int64_t at = 0; at < positions; ++at) {
      for (int head = 0; head < geometry_.kv_heads; ++head) {
        for (float& x : row) x = random.NextNormal();
        Store(false, at, head, row);
        for (float& x : row) x = random.NextSigned();
        Store(true, at, head, row);
      }
    }
  }

 private:
  KvType type_;
  AttentionGeometry geometry_;
  size_t page_bytes_;
  std::vector<unsigned char> bytes_;
  std::vector<std::byte*> pages_;
};

// A copy of host pages on the device. Page p lies in slot (p * stride + 1) % (pages + 2), so that
// one slot before and one after are poison, in memory order when stride is 1.
class DevicePages {
 public:
  explicit DevicePages(const HostPages& host, size_t stride = 1)
      : page_bytes_(host.page_bytes()),
        count_(host.bytes().size() / host.page_bytes()),
        memory_(page_bytes_ * (count_ + 2)) {
    for (size_t p = 0; p < count_; ++p) {
      slots_.push_back((p * stride + 1) % (count_ + 2));
      CheckCuda(cudaMemcpy(Slot(p), host.bytes().data() + p * page_bytes_, page_bytes_,
                           cudaMemcpyHostToDevice),
                "cudaMemcpy");
    }
    std::vector<std::byte*> pointers;
    for (size_t p = 0; p < count_; ++p) pointers.push_back(Slot(p));
    pointers.push_back(nullptr);  // a page that was never given out
    pointers_ = std::make_unique<DeviceArray<std::byte*>>(pointers);
  }

  // For rows from `position` on; valid until the next call.
  KvPlace PlaceAt(int64_t position) const {
    position_ = std::make_unique<DeviceArray<int64_t>>(std::vector<int64_t>(1, position));
    return {.pages = pointers_->data(), .offset = 0, .position = position_->data()};
  }

  // The pages' bytes in the order of positions.
  std::vector<unsigned char> Download() const {
    const std::vector<unsigned char> all = memory_.Download();
    std::vector<unsigned char> bytes(count_ * page_bytes_);
    for (size_t p = 0; p < count_; ++p) {
      std::memcpy(bytes.data() + p * page_bytes_, all.data() + slots_[p] * page_bytes_,
                  page_bytes_);
    }
    return bytes;
  }

 private:
  std::byte* Slot(size_t page) const {
    return reinterpret_cast<std::byte*>(memory_.data() + slots_[page] * page_bytes_);
  }

  size_t page_bytes_;
  size_t count_;
  DeviceArray<unsigned char> memory_;
  std::vector<size_t> slots_;
  std::unique_ptr<DeviceArray<std::byte*>> pointers_;
  mutable std::unique_ptr<DeviceArray<int64_t>> position_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_KERNELS_TEST_ATTENTION_DATA_H_
