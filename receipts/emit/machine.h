// SPDX-License-Identifier: Apache-2.0
// Facts of the machine and of the build for a receipt's context: never part of its core.
#ifndef HALLMARK_RECEIPTS_EMIT_MACHINE_H_
#define HALLMARK_RECEIPTS_EMIT_MACHINE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/backend/backend.h"
#include "engine/base/result.h"
#include "receipts/emit/statement.h"

namespace hallmark {

std::string HallmarkVersion();  // "0.1.0"
nlohmann::json HostFacts();     // system, cpu, cores
// Name, compute capability, CUDA that the driver serves and that the build holds, fingerprint.
nlohmann::json DeviceFacts(const BackendDevice& device);
nlohmann::json BuildFacts();        // compiler, flags, type, architecture
Result<FileDigest> BinaryDigest();  // of the program that runs, named "hallmark"
std::string UtcNow();               // "2026-11-29T15:00:00Z"

// What the checkpoint's own files say of its licence: a LICENSE file or a README's front matter;
// "not stated" when they say nothing. A statement is repeated, never judged.
std::string StatedLicence(const std::string& directory);

}  // namespace hallmark

#endif  // HALLMARK_RECEIPTS_EMIT_MACHINE_H_
