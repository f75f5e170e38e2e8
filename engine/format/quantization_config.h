// SPDX-License-Identifier: Apache-2.0
// QuantizationConfig: what an EXL3 pack says about its own quantization, in config.json's
// quantization_config and in quantization_config.json. Never used to decode: widths and codebooks
// are each tensor's own. Clauses: format-accept, format-reject. Unknown keys and any version are
// accepted; known keys are checked for type and range, and what they state is held against the
// tensors (CheckStorage).
#ifndef HALLMARK_ENGINE_FORMAT_QUANTIZATION_CONFIG_H_
#define HALLMARK_ENGINE_FORMAT_QUANTIZATION_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/result.h"
#include "engine/format/linear.h"
#include "engine/format/tensor.h"

namespace hallmark {

// The multiplier that each marker's value must be; a group with another value has a codebook that
// today's rules do not decode.
inline constexpr uint32_t kMcgMultiplier = 0xCBAC1FED;
inline constexpr uint32_t kMul1Multiplier = 0x83DCD12D;

struct StoredTensor {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
  std::optional<uint64_t> n_bytes;
};

// One entry of tensor_storage. The list is not exhaustive: a tensor may be absent from it.
struct StoredModule {
  std::string key;
  std::string pointer;
  bool exl3 = false;
  std::optional<double> bits_per_weight;  // 2.5 stays 2.5
  std::optional<uint32_t> mcg_multiplier;
  std::optional<uint32_t> mul1_multiplier;
  std::vector<StoredTensor> tensors;
};

struct QuantizationConfig {
  std::string file;
  std::string pointer;           // of the object in that file
  std::string version;           // free-form; never gated on
  std::optional<double> bits;    // the average of the budgeted linears
  std::optional<int> head_bits;  // 1..8, or 16 for a plain head
  std::optional<int> mtp_bits;
  std::optional<Codebook> codebook;  // informational: markers decide
  std::vector<StoredModule> storage;
};

// A config read part by part, for those who want every fault and not the first alone.
struct QuantizationReading {
  QuantizationConfig config;  // whole only without faults
  std::vector<Error> faults;  // in the order of the reading; none follows from another
};
QuantizationReading ReadQuantizationConfig(const Json& value, const std::string& file,
                                           const std::string& pointer);

// The config, or the first of its faults. `value` is the object at `pointer` of `file`.
// kUnsupported for another quant_method or an unknown codebook, kOutOfRange for bits outside 1..8,
// kMalformed for a wrong type.
Result<QuantizationConfig> ParseQuantizationConfig(const Json& value, const std::string& file,
                                                   const std::string& pointer);

// A kMismatch for each value that two sources of one pack state differently; a key that only one
// states is no fault.
std::vector<Error> Disagreements(const QuantizationConfig& a, const QuantizationConfig& b);
// The first of them.
Status CheckAgreement(const QuantizationConfig& a, const QuantizationConfig& b);

// Holds tensor_storage against the checkpoint's tensors (sorted by name): a kMismatch for each
// listed tensor that is absent or has another dtype, shape or size, a width other than the
// trellis's, or a multiplier other than the marker's.
std::vector<Error> StorageFaults(const QuantizationConfig& config,
                                 std::span<const TensorView> tensors);
// The first of them.
Status CheckStorage(const QuantizationConfig& config, std::span<const TensorView> tensors);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_QUANTIZATION_CONFIG_H_
