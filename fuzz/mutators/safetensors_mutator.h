// SPDX-License-Identifier: Apache-2.0
// MutateSafetensors: changes a safetensors file by its structure: the header's JSON, its length,
// the data, and the offsets, which it can lay out anew so that a changed shape is met by a file
// that is whole. For fuzzing alone. Deterministic: a function of file and seed.
#ifndef HALLMARK_FUZZ_MUTATORS_SAFETENSORS_MUTATOR_H_
#define HALLMARK_FUZZ_MUTATORS_SAFETENSORS_MUTATOR_H_

#include <cstdint>
#include <string>

#include "fuzz/mutators/json_mutator.h"

namespace hallmark::fuzz {

// May be larger than max_size; the caller then drops it.
std::string MutateSafetensors(std::string file, Mutation& mutation);

// Gives each record whose dtype and shape are sound the next span of the data section. The header
// and the section's size, at most `max_bytes`; the header as it is where it is no JSON object.
struct LaidOut {
  std::string header;
  uint64_t data_bytes = 0;
};
LaidOut LayOut(const std::string& header, uint64_t max_bytes);

}  // namespace hallmark::fuzz

#endif  // HALLMARK_FUZZ_MUTATORS_SAFETENSORS_MUTATOR_H_
