// SPDX-License-Identifier: Apache-2.0
// libFuzzer's hook for a mutator of ours, HALLMARK_MUTATOR; linked with fuzzers alone. Every fourth
// mutation, and each that does not fit, is libFuzzer's own, so that no input is out of reach.
#include <cstdint>
#include <cstring>
#include <string>

#include "fuzz/mutators/folder_mutator.h"
#include "fuzz/mutators/json_mutator.h"
#include "fuzz/mutators/receipt_mutator.h"
#include "fuzz/mutators/safetensors_mutator.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  using namespace hallmark::fuzz;
  Random random(seed);
  Mutation mutation{random, &LLVMFuzzerMutate, max_size};
  if (mutation.Below(4) != 0) {
    const std::string made =
        HALLMARK_MUTATOR(std::string(reinterpret_cast<const char*>(data), size), mutation);
    if (!made.empty() && made.size() <= max_size) {
      std::memcpy(data, made.data(), made.size());
      return made.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
