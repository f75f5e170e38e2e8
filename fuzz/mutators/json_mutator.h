// SPDX-License-Identifier: Apache-2.0
// MutateJson: changes a JSON text by its structure: values replaced, members dropped, doubled and
// swapped, numbers moved to the edges of their types, nesting wrapped around. Works on broken JSON
// too, as far as it is understood. For fuzzing alone. Deterministic: a function of text and seed.
#ifndef HALLMARK_FUZZ_MUTATORS_JSON_MUTATOR_H_
#define HALLMARK_FUZZ_MUTATORS_JSON_MUTATOR_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace hallmark::fuzz {

using Random = std::minstd_rand;

// libFuzzer's LLVMFuzzerMutate, or a stand-in where a mutator is tested without it. Changes `data`
// in place and returns its new size, at most `max_size`.
using ByteMutator = size_t (*)(uint8_t* data, size_t size, size_t max_size);

struct Mutation {
  Random& random;
  ByteMutator bytes;
  size_t max_size;

  // Uniform enough for a fuzzer; 0 for a `limit` of 0.
  size_t Below(size_t limit) { return limit == 0 ? 0 : random() % limit; }
};

// The text with its bytes changed by `bytes`.
std::string MutateBytes(std::string text, Mutation& mutation);
// May be larger than max_size; the caller then drops it.
std::string MutateJson(std::string text, Mutation& mutation);

}  // namespace hallmark::fuzz

#endif  // HALLMARK_FUZZ_MUTATORS_JSON_MUTATOR_H_
