// SPDX-License-Identifier: Apache-2.0
// CheckFolder: whether a folder holds the files that a receipt speaks of, by size and digest, and
// none that an engine would have read besides.
#ifndef HALLMARK_RECEIPTS_VERIFY_CHECKPOINT_FOLDER_H_
#define HALLMARK_RECEIPTS_VERIFY_CHECKPOINT_FOLDER_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/base/result.h"
#include "receipts/verify/reason.h"

namespace hallmark::verify {

// `files` are a receipt's, with name, bytes and sha256. Adds folder-file-missing,
// folder-file-bytes, folder-file-digest or folder-file-unlisted. kIo when the folder itself cannot
// be read.
Status CheckFolder(const nlohmann::json& files, const std::string& folder,
                   const std::string& pointer, Findings& findings);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_CHECKPOINT_FOLDER_H_
