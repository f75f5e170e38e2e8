// SPDX-License-Identifier: Apache-2.0
// The stored types of weights that kernels widen to fp32, exactly.
#ifndef HALLMARK_KERNELS_ROWS_ELEMENT_TYPE_H_
#define HALLMARK_KERNELS_ROWS_ELEMENT_TYPE_H_

namespace hallmark {

enum class ElementType { kBf16, kF16, kF32 };

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_ROWS_ELEMENT_TYPE_H_
