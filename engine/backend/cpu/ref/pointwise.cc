// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/ref/pointwise.h"

#include <cstring>
#include <vector>

#include "engine/base/elementary.h"

namespace hallmark {

void RefSwiGlu(const float* gate, const float* up, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = Silu(gate[i]) * up[i];
}

void RefRope(const float* inv_freq, int rotary_dim, int64_t position, float* head) {
  const int half = rotary_dim / 2;
  for (int d = 0; d < half; ++d) {
    const SinCosPair turn = SinCos(static_cast<float>(position) * inv_freq[d]);
    const float x = head[d];
    const float y = head[d + half];
    head[d] = x * turn.cos - y * turn.sin;
    head[d + half] = y * turn.cos + x * turn.sin;
  }
}

void RefConvSilu(const float* x, int64_t rows, int64_t channels, const float* weight, int kernel,
                 const float* window_in, float* window_out, float* out) {
  const int64_t history = kernel - 1;
  // Row t of the input, negative rows from the window.
  auto input = [&](int64_t t) {
    return t < 0 ? window_in + (history + t) * channels : x + t * channels;
  };
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t c = 0; c < channels; ++c) {
      float sum = weight[c * kernel] * input(t - history)[c];
      for (int j = 1; j < kernel; ++j) sum += weight[c * kernel + j] * input(t - history + j)[c];
      out[t * channels + c] = Silu(sum);
    }
  }
  if (window_out == nullptr) return;
  // A call shorter than the window keeps some of the old rows, and the two windows may be one.
  std::vector<float> kept(static_cast<size_t>(history * channels));
  for (int64_t j = 0; j < history; ++j) {
    std::memcpy(kept.data() + j * channels, input(rows - history + j),
                static_cast<size_t>(channels) * sizeof(float));
  }
  std::memcpy(window_out, kept.data(), kept.size() * sizeof(float));
}

}  // namespace hallmark
