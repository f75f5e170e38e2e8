// SPDX-License-Identifier: Apache-2.0
// Addresses and element conversion inside the key/value pages of the CPU backend. Layout: KvPages.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_KV_PAGE_H_
#define HALLMARK_ENGINE_BACKEND_CPU_KV_PAGE_H_

#include <cstring>

#include "engine/backend/geometry.h"
#include "engine/base/float_types.h"

namespace hallmark {

class KvPageAccess {
 public:
  KvPageAccess(const KvPages& kv, int kv_heads, int head_dim)
      : kv_(kv), kv_heads_(kv_heads), head_dim_(head_dim) {}

  // Rounds `values` [head_dim] to the stored type at one position and head.
  void Store(bool is_value, int64_t position, int head, const float* values) const {
    std::byte* place = Place(is_value, position, head);
    if (kv_.type == KvType::kBf16) {
      for (int d = 0; d < head_dim_; ++d) {
        const uint16_t bits = FloatToBf16(values[d]);
        std::memcpy(place + 2 * d, &bits, 2);
      }
    } else {
      // From fp32 in one rounding: by way of bf16 it would be two.
      for (int d = 0; d < head_dim_; ++d) {
        place[d] = static_cast<std::byte>(FloatToFp8E4m3(values[d]));
      }
    }
  }

  // Widens one stored row to fp32 [head_dim], exactly.
  void Load(bool is_value, int64_t position, int head, float* values) const {
    const std::byte* place = Place(is_value, position, head);
    if (kv_.type == KvType::kBf16) {
      for (int d = 0; d < head_dim_; ++d) {
        uint16_t bits;
        std::memcpy(&bits, place + 2 * d, 2);
        values[d] = Bf16ToFloat(bits);
      }
    } else {
      for (int d = 0; d < head_dim_; ++d) {
        values[d] = Fp8E4m3ToFloat(static_cast<uint8_t>(place[d]));
      }
    }
  }

 private:
  std::byte* Place(bool is_value, int64_t position, int head) const {
    const int64_t row = (is_value ? kKvPageTokens : 0) + position % kKvPageTokens;
    const int64_t element = (row * kv_heads_ + head) * head_dim_;
    const int64_t size = kv_.type == KvType::kBf16 ? 2 : 1;
    return kv_.pages[position / kKvPageTokens] + kv_.offset + element * size;
  }

  const KvPages& kv_;
  int64_t kv_heads_;
  int head_dim_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_KV_PAGE_H_
