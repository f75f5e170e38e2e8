// SPDX-License-Identifier: Apache-2.0
// TablePlacement: where a device's embedding table lies, and a drafter's codebooks with it.
#ifndef HALLMARK_ENGINE_BACKEND_TABLE_PLACEMENT_H_
#define HALLMARK_ENGINE_BACKEND_TABLE_PLACEMENT_H_

namespace hallmark {

// kMapped: page-locked memory of the host, which kernels read row by row.
enum class TablePlacement { kDevice, kMapped };

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_TABLE_PLACEMENT_H_
