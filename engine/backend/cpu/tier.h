// SPDX-License-Identifier: Apache-2.0
// CpuTier: which instruction set the CPU backend's inner loops use. Found at run time; a tier
// changes speed and never a bit. On machines that are not x86-64 only kScalar exists.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_TIER_H_
#define HALLMARK_ENGINE_BACKEND_CPU_TIER_H_

#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace hallmark {

enum class CpuTier {
  kScalar,      // the definition itself: ref/, no vector code of ours
  kAvx2,        // AVX2, FMA, F16C, BMI1, BMI2
  kAvx512,      // the above and AVX-512 F, BW, DQ, VL, VBMI, VBMI2, VNNI
  kAvx512Fp16,  // the above and AVX-512 FP16
};

// The environment variable that overrides the choice when no option does.
inline constexpr char kCpuTierVariable[] = "HALLMARK_CPU_TIER";

// "scalar", "avx2", "avx512", "avx512fp16".
std::string_view CpuTierName(CpuTier tier);
std::optional<CpuTier> ParseCpuTier(std::string_view name);

// The tiers this machine and its operating system can run, slowest first. Never empty.
std::vector<CpuTier> SupportedCpuTiers();

// `wanted` if given, else HALLMARK_CPU_TIER if set and not empty, else the fastest supported.
// kUnsupported if the machine lacks that tier; kOutOfRange if the variable names no tier.
Result<CpuTier> ChooseCpuTier(std::optional<CpuTier> wanted);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_TIER_H_
