// SPDX-License-Identifier: Apache-2.0
// Buffer: owned memory of a backend, freed by the backend that gave it. Move-only.
#ifndef HALLMARK_ENGINE_BACKEND_BUFFER_H_
#define HALLMARK_ENGINE_BACKEND_BUFFER_H_

#include <cstddef>
#include <utility>

namespace hallmark {

class Buffer {
 public:
  // `release(owner, data, bytes)` frees the memory; `owner` outlives the buffer.
  using Release = void (*)(void* owner, void* data, size_t bytes);

  Buffer() = default;
  Buffer(void* data, size_t bytes, void* owner, Release release)
      : data_(data), bytes_(bytes), owner_(owner), release_(release) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(owner_, other.owner_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) release_(owner_, data_, bytes_);
  }

  size_t bytes() const { return bytes_; }
  void* data() const { return data_; }
  float* floats() const { return static_cast<float*>(data_); }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  void* owner_ = nullptr;
  Release release_ = nullptr;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_BUFFER_H_
