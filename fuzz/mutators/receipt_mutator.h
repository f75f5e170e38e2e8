// SPDX-License-Identifier: Apache-2.0
// MutateReceipt: changes a receipt by the structure of its JSON and seals it again, as a forger
// would who knows every digest's rule: the one line that an emitter would write, with the digests
// of what it now holds. For fuzzing alone. Deterministic: a function of text and seed.
#ifndef HALLMARK_FUZZ_MUTATORS_RECEIPT_MUTATOR_H_
#define HALLMARK_FUZZ_MUTATORS_RECEIPT_MUTATOR_H_

#include <string>

#include "fuzz/mutators/json_mutator.h"

namespace hallmark::fuzz {

// May be larger than max_size; the caller then drops it.
std::string MutateReceipt(std::string text, Mutation& mutation);

}  // namespace hallmark::fuzz

#endif  // HALLMARK_FUZZ_MUTATORS_RECEIPT_MUTATOR_H_
