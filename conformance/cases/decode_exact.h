// SPDX-License-Identifier: Apache-2.0
// Cases of clause decode-exact, one pair for each of the 27 codebook and width pairs:
//   codec    the published tile, state by state and value by value, through the tile definition;
//   backend  W_q of a 128 x 128 layer read back through the backend's own linear, whatever decoder
//            that runs: the published tile at every place, and for whole widths the layer that
//            ExLlamaV3 itself decoded on a GPU.
#ifndef HALLMARK_CONFORMANCE_CASES_DECODE_EXACT_H_
#define HALLMARK_CONFORMANCE_CASES_DECODE_EXACT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "conformance/cases/subject.h"
#include "conformance/harness/registry.h"
#include "engine/backend/backend.h"
#include "engine/backend/exl3_codec.h"

namespace hallmark {

// Reads W_q [128, 128] (fp16 bits, inputs by outputs) of a one-block layer out of a backend by
// feeding it 128 inputs whose rotation is a unit vector. Exact for any correct backend: codebook
// values lie at least 2^-13 apart, and the output rotation is undone in double with an error far
// below that. trellis [8, 8, 8 * k2]. kOutOfRange when an output is no codebook value at all.
Result<std::vector<uint16_t>> ReadBackWeights(Backend& backend, Exl3Rate rate,
                                              std::span<const uint16_t> trellis);

Status AddDecodeExactCases(const CaseSubject& subject, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_DECODE_EXACT_H_
