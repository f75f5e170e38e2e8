// SPDX-License-Identifier: Apache-2.0
// Whether this test is built with the address sanitizer, for bounds on time and amounts of work.
// Not for leaving out what a test asserts.
#ifndef HALLMARK_CONFORMANCE_HARNESS_SANITIZER_H_
#define HALLMARK_CONFORMANCE_HARNESS_SANITIZER_H_

namespace hallmark {

#if defined(__SANITIZE_ADDRESS__)  // GCC
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)  // clang
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_HARNESS_SANITIZER_H_
